"""The watcher's judgement on made-up objects: what is a partial gang, and what is not."""

import itertools

import pytest

from e2e.watcher.judge import INDEX, Judge

_uids = itertools.count(1)


class World:
    """A gang of `count` owned by a Job, and a clock that the test moves."""

    def __init__(self, count=4, parallelism=None, suspended=False, conditions=("Admitted",)):
        self.judge, self.now, self.count = Judge(), 100.0, count
        self.job = {"kind": "Job", "metadata": {"uid": "job", "name": "j", "namespace": "ns"},
                    "spec": {"completions": count, "parallelism": parallelism or count,
                             "suspend": suspended}, "status": {}}
        self.workload = {
            "kind": "Workload",
            "metadata": {"uid": "wl", "name": "w", "namespace": "ns",
                         "ownerReferences": [{"uid": "job", "kind": "Job", "controller": True}]},
            "spec": {"podSets": [{"name": "main", "count": parallelism or count}]},
            "status": {"conditions": [{"type": t, "status": "True"} for t in conditions],
                       "admission": {"podSetAssignments": [{"name": "main", "count": parallelism or count}]}}}
        self.tell()

    def tell(self):
        self.judge.owner("MODIFIED", self.job)
        self.judge.workload("MODIFIED", self.workload)

    def pod(self, rank, node="", phase="Pending", **fields):
        number = next(_uids)
        pod = {"metadata": {"uid": f"pod-{number}", "name": f"j-{rank}-{number}", "namespace": "ns",
                            "resourceVersion": f"{number:09}", "annotations": {INDEX: str(rank)},
                            "ownerReferences": [{"uid": "job", "kind": "Job", "controller": True}]},
               "spec": {"nodeName": node, **fields.get("spec", {})},
               "status": {"phase": phase, "conditions": fields.get("conditions", [])}}
        self.judge.pod("ADDED", pod)
        return pod

    def bind(self, *ranks):
        return [self.pod(r, node=f"n{r}", phase="Running") for r in ranks]

    def wait(self, seconds):
        """Looks every half second, as the watcher does."""
        for _ in range(int(seconds * 2)):
            self.judge.look(self.now)
            self.now += 0.5
        return [v.rule for v in self.judge.violations]


def test_a_gang_that_is_bound_whole_is_not_partial():
    world = World()
    world.bind(0, 1, 2, 3)
    assert world.wait(30) == []
    assert world.judge.whole_seen == {"wl"}


def test_three_of_four_bound_for_longer_than_ten_seconds_is_partial_once():
    world = World()
    world.bind(0, 1, 2)
    assert world.wait(10) == []
    assert world.wait(5) == ["a"]
    assert world.wait(30) == ["a"]


def test_each_newly_bound_member_restarts_the_ten_seconds():
    world = World()
    for rank in range(4):
        world.bind(rank)
        assert world.wait(9) == []
    assert world.wait(20) == []


def test_no_bound_pod_at_all_is_waiting_and_not_partial():
    world = World()
    world.pod(0)
    assert world.wait(60) == []


def test_succeeded_members_count_as_bound():
    world = World()
    world.bind(0, 1)
    world.pod(2, node="n2", phase="Succeeded")
    world.pod(3, node="n3", phase="Succeeded")
    assert world.wait(30) == []


def test_succeeded_members_whose_pods_are_gone_count_by_the_status_of_the_job():
    world = World()
    world.job["status"]["succeeded"] = 2
    world.tell()
    world.bind(0, 1)
    assert world.wait(30) == []


def test_one_succeeded_member_beside_no_other_is_partial():
    world = World()
    world.pod(0, node="n0", phase="Succeeded")
    assert world.wait(15) == ["a"]


def test_a_rank_in_back_off_after_a_failed_pod_is_left_out():
    world = World()
    world.bind(0, 1, 2)
    world.pod(3, node="n3", phase="Failed")
    assert world.wait(60) == []


def test_a_rank_whose_failed_pod_has_an_unbound_successor_counts():
    world = World()
    world.bind(0, 1, 2)
    world.pod(3, node="n3", phase="Failed")
    world.pod(3)
    assert world.wait(15) == ["a"]


def test_a_member_that_is_being_deleted_is_not_bound():
    world = World()
    pods = world.bind(0, 1, 2, 3)
    world.wait(5)
    pods[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.judge.pod("MODIFIED", pods[0])
    assert world.wait(15) == ["a"]


def test_a_deleted_member_that_is_not_replaced_is_partial():
    world = World()
    pods = world.bind(0, 1, 2, 3)
    world.wait(20)
    world.judge.pod("DELETED", pods[0])
    assert world.wait(15) == ["a"]


def test_only_as_many_as_the_parallelism_have_to_be_bound_together():
    world = World(count=10, parallelism=3)
    world.bind(0, 1, 2)
    assert world.wait(30) == []


def test_the_last_completions_need_fewer_than_the_parallelism():
    world = World(count=10, parallelism=3)
    world.job["status"]["succeeded"] = 8
    world.tell()
    world.bind(8, 9)
    assert world.wait(30) == []


@pytest.mark.parametrize("case, change", {
    "it is evicted": {"conditions": ("Admitted", "Evicted")},
    "it is not admitted": {"conditions": ("QuotaReserved",)},
    "it is finished": {"conditions": ("Admitted", "Finished")},
    "its owner is suspended": {"suspended": True},
}.items(), ids=str)
def test_a_workload_is_not_judged_while(case, change):
    world = World(**change)
    world.bind(0, 1)
    assert world.wait(30) == []


def test_the_time_before_an_eviction_does_not_count_for_the_next_admission():
    world = World()
    world.bind(0, 1)
    world.wait(8)
    world.workload["status"]["conditions"].append({"type": "Evicted", "status": "True"})
    world.tell()
    world.wait(5)
    world.workload["status"]["conditions"].pop()
    world.tell()
    assert world.wait(8) == []
    assert world.wait(5) == ["a"]


def test_a_member_without_a_node_beside_bound_ones_is_partial_even_while_others_are_still_bound():
    world = World(count=8)
    world.bind(0)
    world.pod(7, conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])
    for rank in range(1, 7):  # one every 3 s, so that rule (a) never fires
        world.wait(3)
        world.bind(rank)
    assert world.judge.violations[0].rule == "b"


def test_a_member_that_the_scheduler_has_not_looked_at_yet_has_not_been_refused():
    world = World(count=8)
    world.bind(0)
    world.pod(7)
    for rank in range(1, 7):
        world.wait(3)
        world.bind(rank)
    assert world.judge.violations == []


def test_a_gated_member_beside_bound_ones_has_no_node_it_may_use():
    world = World(count=8)
    world.bind(0)
    world.pod(7, spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    for rank in range(1, 7):
        world.wait(3)
        world.bind(rank)
    assert [v.rule for v in world.judge.violations] == ["b"]

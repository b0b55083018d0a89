"""Gangs inside the fabric: in the domain they require, each rank on its planned host, also after nodes die."""

import random
import time

import pytest

from e2e.harness import fleet
from e2e.harness.cluster import plan_of, rank_of
from e2e.harness.controlplane import wait_for
from e2e.harness.load import Slots, Stream

SUPERPOD, UNIT = "cloud/superpod", "cloud/unit"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
UNIT_NODES, SUPERPOD_NODES = 32, 256


def fabric(cluster, *units: int) -> list[str]:
    """HGX nodes in scalable units of these sizes, eight units to a superpod, and their flavor."""
    nodes = [fleet.node(f"hgx-{unit:02}-{i:03}",
                        labels={"e2e/pool": "hgx", UNIT: f"su-{unit:02}", SUPERPOD: f"sp-{unit // 8}"})
             for unit, size in enumerate(units) for i in range(size)]
    cluster.add(fleet.topology("fabric", (SUPERPOD, UNIT, "kubernetes.io/hostname")),
                fleet.flavor("hgx", topology="fabric", labels={"e2e/pool": "hgx"}))
    cluster.add(*nodes)
    return [node["metadata"]["name"] for node in nodes]


def team(cluster, gpus: int) -> str:
    """A namespace with a queue of its own over the fabric."""
    namespace = cluster.namespace()
    cluster.add(fleet.cluster_queue(f"cq-{namespace}", "hgx", gpus))
    cluster.add(fleet.local_queue("main", namespace, f"cq-{namespace}"))
    return namespace


def gang(name: str, namespace: str, nodes: int, inside: str) -> dict:
    """Its pods leave a silent node after 5 s, where Kubernetes would have them wait for 300."""
    leave_soon = [{"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute",
                   "tolerationSeconds": 5} for why in ("unreachable", "not-ready")]
    return fleet.job(name, namespace, "main", pods=nodes, template_annotations={REQUIRED: inside},
                     tolerations=leave_soon)


def by_rank(pods: list) -> dict[int, str]:
    return {rank_of(pod): pod["spec"]["nodeName"] for pod in pods}


@pytest.mark.full
def test_60_gangs_of_2_to_128_nodes_each_inside_its_domain(cluster, watcher):
    nodes = fabric(cluster, *[UNIT_NODES] * 39, 2)
    assert len(nodes) == 1250
    domain = {n["metadata"]["name"]: n["metadata"]["labels"] for n in cluster.api.items("/api/v1/nodes")}
    teams = [team(cluster, 10_000), team(cluster, 10_000)]
    strangers = cluster.namespace()
    sizes = [2] * 20 + [4] * 12 + [8] * 10 + [16] * 8 + [32] * 6 + [64] * 2 + [128] * 2
    random.Random(60).shuffle(sizes)
    gangs = [(f"gang-{i:02}", teams[i % 2], size, UNIT if size <= UNIT_NODES else SUPERPOD)
             for i, size in enumerate(sizes)]

    def foreign(i):
        return fleet.pod(f"foreign-{i:03}", strangers, gpus=8, labels={"e2e/foreign": "true"})

    with Slots(cluster.api, lambda pod: "e2e/foreign" in pod["metadata"].get("labels", {})) as slots:
        with Stream(cluster.api, foreign, rate=5, limit=60):
            cluster.submit(*(gang(*each) for each in gangs))
            for name, namespace, size, _ in gangs:
                cluster.wait_running(namespace, name, size, 180)
        wait_for("every foreign pod has a node", lambda: len(slots.foreign) == 60, 60)
        assert slots.lost() == []

    taken = []
    for name, namespace, size, level in gangs:
        where = by_rank(cluster.running(namespace, name))
        assert where == dict(enumerate(plan_of(cluster.workload(namespace, name)))), name
        assert len({domain[node][level] for node in where.values()}) == 1, f"{name} spans several of {level}"
        taken += where.values()
    taken += slots.foreign.values()
    assert len(taken) == len(set(taken)) == sum(sizes) + 60, "two pods that fill a node on one node"
    watcher.settle()
    watcher.check()


RACK = "cloud/rack"


def reason_of(cluster, namespace: str, job: str) -> tuple[str, str]:
    """Why it waits: reason and message of QuotaReserved."""
    conditions = cluster.workload(namespace, job)["status"]["conditions"]
    reserved = next(c for c in conditions if c["type"] == "QuotaReserved")
    assert reserved["status"] == "False", reserved
    return reserved["reason"], reserved["message"]


def test_jobs_of_16_in_racks_of_18_with_two_nodes_down_and_quotas_that_do_not_divide(cluster, watcher):
    """NVL72: a rack has 18 nodes of 4 GPUs, here 16 that are up; a job of 16 pods needs a whole one. The
    quotas, 100 + 60 + 40 GPUs, are good for 3 jobs of 64 in all, and for none in two of the queues alone."""
    cluster.add(fleet.topology("racks", (RACK, "kubernetes.io/hostname")),
                fleet.flavor("gb200", topology="racks", labels={"e2e/pool": "nvl"}))
    nodes = [fleet.node(f"nvl-{rack}-{i:02}", gpus=4, labels={"e2e/pool": "nvl", RACK: f"rack-{rack}"})
             for rack in range(4) for i in range(18)]
    cluster.add(*nodes)
    rack_of = {n["metadata"]["name"]: n["metadata"]["labels"][RACK] for n in nodes}
    for rack in range(4):
        for i in (3, 11):
            cluster.lose(f"nvl-{rack}-{i:02}")
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    teams = []
    for gpus in (100, 60, 40):
        name = cluster.namespace()
        cluster.add(fleet.cluster_queue(f"cq-{name}", "gb200", gpus, cohort="nvl", preemption=preemption))
        cluster.add(fleet.local_queue("main", name, f"cq-{name}"))
        teams.append(name)

    def submit(job: str, name: str, **kinds) -> None:
        cluster.submit(fleet.job(job, name, "main", pods=16, gpus=4, template_annotations={REQUIRED: RACK}, **kinds))

    def racks(*jobs: tuple[str, str]) -> set[str]:
        """The racks of these jobs, which run, each in one of its own."""
        taken = []
        for name, job in jobs:
            own = {rack_of[p["spec"]["nodeName"]] for p in cluster.wait_running(name, job, 16)}
            assert len(own) == 1, f"{job} spans {own}"
            taken += own
        assert len(taken) == len(set(taken)), taken
        return set(taken)

    first, second, third = teams
    for job in ("a-1", "a-2", "a-3", "a-4"):
        submit(job, first)
        if job != "a-4":
            cluster.wait_running(first, job, 16)
    assert len(racks((first, "a-1"), (first, "a-2"), (first, "a-3"))) == 3
    cluster.wait_pending(first, "a-4")
    reason, message = reason_of(cluster, first, "a-4")
    assert reason == "WaitingForQuota" and "64 nvidia.com/gpu asked, 8 free" in message, (reason, message)

    # 60 of its own do not hold 64: it may borrow what is idle, and reclaim nothing.
    submit("b-1", second)
    cluster.wait_pending(second, "b-1")
    assert reason_of(cluster, second, "b-1")[0] == "WaitingForQuota"

    # With quota for all, the racks decide: one more job fits, and then none.
    cluster.api.merge(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/cq-{third}", {"spec": {"resourceGroups": [
        {"coveredResources": ["cpu", fleet.GPU], "flavors": [{"name": "gb200", "resources": [
            {"name": "cpu", "nominalQuota": "100k"}, {"name": fleet.GPU, "nominalQuota": "1000"}]}]}]}})
    wait_for("one of the two runs", lambda: len(cluster.running(first)) + len(cluster.running(second)) == 64, 60)
    waiting = (second, "b-1") if cluster.running(first, "a-4") else (first, "a-4")
    wait_for("the racks are the reason", lambda: reason_of(cluster, *waiting)[0] == "TopologyPlacementFailed", 40)
    assert "16" in reason_of(cluster, *waiting)[1] and RACK in reason_of(cluster, *waiting)[1], (
        reason_of(cluster, *waiting))

    # Nothing goes round: what runs stays, what waits is written once.
    def versions():
        return {w["metadata"]["name"]: w["metadata"]["resourceVersion"]
                for name in teams for w in cluster.workloads(name)}

    before, pods = versions(), {p["metadata"]["uid"] for name in teams for p in cluster.pods(name)}
    time.sleep(10)
    assert versions() == before
    assert {p["metadata"]["uid"] for name in teams for p in cluster.pods(name)} == pods
    assert not any(cluster.condition(w, "Evicted") for name in teams for w in cluster.workloads(name))

    # A rack is free: who waits gets it as soon as its 16 nodes are free, and not before.
    cluster.api.delete(f"/apis/batch/v1/namespaces/{first}/jobs/a-2", propagationPolicy="Background",
                       gracePeriodSeconds=0)
    assert len(racks(waiting)) == 1
    watcher.settle()
    watcher.check()


def lose_two(cluster, team_name: str) -> set[str]:
    """Two nodes of the running gang fall silent within 30 s of each other."""
    dead = [pod["spec"]["nodeName"] for pod in cluster.running(team_name, "gang") if rank_of(pod) in (5, 40)]
    assert len(dead) == 2
    cluster.lose(dead[0])
    time.sleep(10)
    cluster.lose(dead[1])
    return set(dead)


# The watcher takes no notice of the Job controller's back-off after pods that are deleted: 10 s after
# the first, 20 s after the second. So long the gang goes on without them.
@pytest.mark.partial_gangs_expected
def test_two_nodes_of_a_gang_of_64_die_and_spares_of_its_unit_take_their_place(cluster):
    fabric(cluster, 66, 16)
    name = team(cluster, 10_000)
    cluster.submit(gang("gang", name, 64, UNIT))
    before = {rank_of(p): p for p in cluster.wait_running(name, "gang", 64)}
    dead = lose_two(cluster, name)

    def whole_again():
        pods = [p for p in cluster.running(name, "gang") if not p["metadata"].get("deletionTimestamp")]
        return pods if len(pods) == 64 and dead.isdisjoint(by_rank(pods).values()) else None

    after = {rank_of(p): p for p in wait_for("both are replaced", whole_again, 150, 0.5)}
    untouched = [r for r in after if after[r]["metadata"]["uid"] == before[r]["metadata"]["uid"]]
    assert sorted(set(range(64)) - set(untouched)) == [5, 40]
    assert {node.rsplit("-", 1)[0] for node in by_rank(after.values()).values()} == {"hgx-00"}
    assert by_rank(after.values()) == dict(enumerate(plan_of(cluster.workload(name, "gang"))))
    wait_for("nothing waits for a dead node", lambda: len(cluster.pods(name)) == 64, 90)
    assert cluster.condition(cluster.job(name, "gang"), "Failed") is None


def test_two_nodes_of_a_gang_of_64_die_without_spares_and_it_queues_again_whole(cluster, watcher):
    fabric(cluster, 64, 16)
    name = team(cluster, 10_000)
    cluster.submit(gang("gang", name, 64, UNIT))
    cluster.wait_running(name, "gang", 64)
    dead = lose_two(cluster, name)

    def queues_again():
        workload = cluster.workload(name, "gang")
        conditions = {c["type"]: c for c in workload["status"]["conditions"]}
        reserved = conditions["QuotaReserved"]
        return conditions if "room for 62 of 64 pods" in reserved["message"] else None

    conditions = wait_for("the gang queues again", queues_again, 150, 0.5)
    assert conditions["Evicted"]["reason"] == "NodeFailures", conditions["Evicted"]
    assert any(node in conditions["Evicted"]["message"] for node in dead), conditions["Evicted"]
    wait_for("no pod of it is left", lambda: cluster.pods(name) == [], 120)
    for node in dead:
        cluster.revive(node)
    cluster.wait_running(name, "gang", 64, 90)
    assert cluster.condition(cluster.job(name, "gang"), "Failed") is None
    watcher.settle()
    watcher.check()

"""From `kubectl create` to a placed gang: planned, whole or not at all, and preempted whole."""

import time

import pytest

from e2e.harness import fleet
from e2e.harness.cluster import plan_of, rank_of
from e2e.harness.controlplane import wait_for


def test_a_gang_of_16_runs_each_rank_on_its_planned_node(cluster, watcher):
    cluster.nodes(20)
    team, _ = cluster.queue(160)
    cluster.submit(fleet.job("train", team, "main", pods=16))
    pods = cluster.wait_running(team, "train", 16)
    plan = plan_of(cluster.workload(team, "train"))
    assert len(plan) == 16
    assert {rank_of(p): p["spec"]["nodeName"] for p in pods} == dict(enumerate(plan))
    watcher.settle()
    watcher.check()


def test_kubectl_create_is_all_a_user_needs(cluster):
    cluster.nodes(2)
    team, _ = cluster.queue(16)
    cluster.plane.kubectl("create", "-f", "-", stdin=f"""
apiVersion: batch/v1
kind: Job
metadata:
  name: by-hand
  namespace: {team}
  labels: {{kueue.x-k8s.io/queue-name: main}}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {{labels: {{e2e/job: by-hand}}}}
    spec:
      restartPolicy: Never
      containers:
      - {{name: c, image: train, resources: {{limits: {{nvidia.com/gpu: "8"}}}}}}
""")
    cluster.wait_running(team, "by-hand", 2)


def test_a_plain_pod_is_gated_queued_pinned_and_run(cluster):
    cluster.nodes(1)
    team, _ = cluster.queue(8)
    cluster.submit(fleet.pod("shell", team, gpus=8, labels={fleet.QUEUE: "main", "e2e/job": "shell"}))
    [pod] = cluster.wait_running(team, "shell", 1)
    assert plan_of(cluster.workload(team, "shell")) == [pod["spec"]["nodeName"]]
    cluster.submit(fleet.pod("waits", team, gpus=1, labels={fleet.QUEUE: "main", "e2e/job": "waits"}))
    cluster.wait_pending(team, "waits")
    [pod] = cluster.pods(team, "waits")
    assert [g["name"] for g in pod["spec"]["schedulingGates"]] == ["kueue.x-k8s.io/admission"]


@pytest.mark.parametrize("kind", [{"topology": True}, {"capacity": "fixed"}],
                         ids=["topology flavor", "capacity: fixed flavor"])
def test_a_second_gang_has_no_pod_until_the_first_ends(cluster, watcher, kind):
    cluster.nodes(20)
    team, _ = cluster.queue(1000, **kind)  # quota for many: only the nodes are scarce
    cluster.submit(fleet.job("first", team, "main", pods=16))
    cluster.wait_running(team, "first", 16)
    cluster.submit(fleet.job("second", team, "main", pods=16))
    cluster.wait_pending(team, "second")
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert cluster.pods(team, "second") == []
        assert cluster.job(team, "second")["spec"]["suspend"] is True
        time.sleep(0.2)
    cluster.plane.kubectl("delete", "job", "-n", team, "first", "--wait=false")
    cluster.wait_running(team, "second", 16)
    watcher.settle()
    watcher.check()


def test_prod_takes_its_guarantee_back_from_a_borrowing_gang_and_nobody_else_loses_a_pod(cluster, watcher):
    cluster.nodes(12)
    reclaim = {"reclaimWithinCohort": "Any"}
    prod, prod_queue = cluster.queue(32, cohort="reclaim", preemption=reclaim, borrowing=0)
    lent, lent_queue = cluster.queue(64, cohort="reclaim")
    # 8 nodes within the own quota of `lent`, then 4 borrowed from prod: the newest is the victim.
    cluster.submit(fleet.job("own", lent, "main", pods=8))
    cluster.wait_running(lent, "own", 8)
    cluster.in_a_later_second(cluster.workload(lent, "own"), "QuotaReserved")
    cluster.submit(fleet.job("borrower", lent, "main", pods=4))
    victims = {p["metadata"]["uid"] for p in cluster.wait_running(lent, "borrower", 4)}
    others = {p["metadata"]["uid"] for p in cluster.running(lent, "own")}
    cluster.expect_used_gpus(lent_queue, 96)  # 64 of its own and 32 borrowed

    cluster.submit(fleet.job("guaranteed", prod, "main", pods=4))
    cluster.wait_running(prod, "guaranteed", 4)
    assert {p["metadata"]["uid"] for p in cluster.running(lent, "own")} == others
    assert victims.isdisjoint(p["metadata"]["uid"] for p in cluster.pods(lent))
    evicted = wait_for("the borrower queues again", lambda: cluster.condition(
        cluster.workload(lent, "borrower"), "Requeued") and cluster.workload(lent, "borrower"), 20)
    preempted = next(c for c in evicted["status"]["conditions"] if c["type"] == "Preempted")
    assert preempted["reason"] == "InCohortReclamation"
    assert cluster.pods(lent, "borrower") == []
    cluster.expect_used_gpus(prod_queue, 32)
    cluster.expect_used_gpus(lent_queue, 64)
    watcher.settle()
    watcher.check()


def test_of_300_one_node_jobs_on_250_nodes_50_wait_and_all_finish(cluster):
    cluster.nodes(250)
    team, queue = cluster.queue(100_000)
    cluster.submit(*(fleet.job(f"j-{i:03}", team, "main", runtime=20) for i in range(300)))
    most = 0

    def all_done():
        nonlocal most
        pods = cluster.pods(team)
        live = [p for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed")]
        most = max(most, len(live))
        taken = [p["spec"]["nodeName"] for p in live if p["spec"].get("nodeName")]
        assert len(taken) == len(set(taken)), "two 8-GPU pods on one 8-GPU node"
        return sum(p["status"].get("phase") == "Succeeded" for p in pods) == 300

    wait_for("all 300 finish", all_done, 240, 0.5)
    assert most <= 250, f"{most} pods at once for 250 nodes: none of the others may exist"
    wait_for("the quota is free again", lambda: cluster.used_gpus(queue) == 0, 30)


def test_a_job_is_deleted_while_it_waits_and_leaves_nothing(cluster):
    cluster.nodes(1)
    team, queue = cluster.queue(8)
    cluster.submit(fleet.job("runs", team, "main"))
    cluster.wait_running(team, "runs", 1)
    cluster.submit(fleet.job("waits", team, "main"))
    cluster.wait_pending(team, "waits")
    cluster.plane.kubectl("delete", "job", "-n", team, "waits")
    wait_for("its Workload goes", lambda: cluster.workload(team, "waits") is None, 30)
    cluster.expect_used_gpus(queue, 8)

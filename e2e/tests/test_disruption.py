"""The scheduler preempts, nodes die: a gang is taken out whole or goes on whole."""

import signal
import time

import pytest

from e2e.harness import fleet
from e2e.harness.controlplane import wait_for
from e2e.harness.load import pinned_nodes

GANG = 4


def user_class(name, value):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value}


@pytest.fixture(params=["protect", "keep"])
def pod_priority(request, cluster):
    """muster with that podPriority: the preemptor's priority class and what the gang's pods name."""
    if request.param == "protect":
        yield "system-cluster-critical", {}
        return
    cluster.add(user_class("user-low", 100), user_class("user-high", 1000))
    cluster.muster.reconfigure(podPriority="keep")
    yield "user-high", {"priorityClassName": "user-low"}
    cluster.muster.reconfigure()


@pytest.mark.parametrize("asks_for", ["GPUs", "CPU only"])
def test_a_pod_that_would_have_the_scheduler_preempt_leaves_no_gang_partial(
        cluster, watcher, pod_priority, asks_for):
    preemptor_class, fields = pod_priority
    cluster.nodes(GANG)
    team, _ = cluster.queue(8 * GANG)
    cluster.submit(fleet.job("gang", team, "main", pods=GANG, cpu="90", **fields))
    cluster.wait_running(team, "gang", GANG)

    resources = {"gpus": 8} if asks_for == "GPUs" else {"gpus": 0, "cpu": "50"}
    cluster.submit(fleet.pod("preemptor", "kube-system", labels={"e2e": "preemptor"},
                             priorityClassName=preemptor_class, **resources))
    try:
        end = time.monotonic() + 15
        torn_since = None
        while time.monotonic() < end:
            left = len(cluster.bound(team, "gang"))
            if left in (0, GANG):
                torn_since = None
            else:
                torn_since = torn_since or time.monotonic()
                assert time.monotonic() - torn_since <= 5, f"{left} of {GANG} members for more than 5 s"
            time.sleep(0.2)
        watcher.settle()
        watcher.check()
    finally:
        cluster.plane.kubectl("delete", "pod", "-n", "kube-system", "preemptor", "--force",
                              "--grace-period=0", "--wait=true")
    cluster.wait_running(team, "gang", GANG, 60)


@pytest.mark.parametrize("how", ["deleted", "unreachable"])
def test_a_planned_node_that_dies_between_plan_and_bind_does_not_fail_the_job(cluster, watcher, how):
    cluster.nodes(GANG + 2)
    team, _ = cluster.queue(100_000)
    cluster.plane.processes.signal("kube-scheduler", signal.SIGSTOP)
    try:
        cluster.submit(fleet.job("gang", team, "main", pods=GANG, backoff_limit=0))
        pods = wait_for("the pods exist, unbound", lambda: (
            lambda p: p if len(p) == GANG else None)(cluster.pods(team, "gang")), 30)
        planned = sorted({v for p in pods for v in pinned_nodes(p)})
        cluster.lose(planned[0], how)
        time.sleep(1)
    finally:
        cluster.plane.processes.signal("kube-scheduler", signal.SIGCONT)
    pods = cluster.wait_running(team, "gang", GANG, 60)
    assert planned[0] not in {p["spec"]["nodeName"] for p in pods}
    job = cluster.job(team, "gang")
    assert cluster.condition(job, "Failed") is None
    assert job["status"].get("failed", 0) == 0
    watcher.settle()
    watcher.check()


def test_a_member_that_somebody_deletes_is_replaced_on_its_node(cluster, watcher):
    cluster.nodes(GANG + 1)
    team, _ = cluster.queue(100_000)
    cluster.submit(fleet.job("gang", team, "main", pods=GANG))
    before = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in cluster.wait_running(team, "gang", GANG)}
    cluster.plane.kubectl("delete", "pod", "-n", team, sorted(before)[0], "--wait=true")
    after = cluster.wait_running(team, "gang", GANG, 60)  # the Job controller's back-off is 10 s
    assert sorted(p["spec"]["nodeName"] for p in after) == sorted(before.values())

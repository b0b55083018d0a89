"""Gangs on elastic flavors: held until an autoscaler has brought nodes for all of their pods."""

import time

from e2e.harness import fleet
from e2e.harness.autoscaler import Autoscaler
from e2e.harness.cluster import plan_of, rank_of
from e2e.harness.controlplane import wait_for


def placed(cluster, namespace: str, job: str) -> tuple[str, str] | None:
    """Status and reason of condition muster.dev/Placed."""
    workload = cluster.workload(namespace, job) or {}
    return next(((c["status"], c["reason"]) for c in workload.get("status", {}).get("conditions", [])
                 if c["type"] == "muster.dev/Placed"), None)


def wait_held(cluster, namespace: str, job: str, pods: int) -> None:
    wait_for(f"{job} is held", lambda: placed(cluster, namespace, job) == ("False", "WaitingForCapacity")
             and len(unschedulable(cluster, namespace, job)) == pods, 30)


def unschedulable(cluster, namespace: str, job: str) -> list:
    return [p for p in cluster.pods(namespace, job) if any(
        c["type"] == "PodScheduled" and c["status"] == "False" for c in p["status"].get("conditions", []))]


def test_a_gang_whose_nodes_come_one_by_one_starts_whole_and_keeps_them(cluster, watcher):
    team, _ = cluster.queue(10_000, capacity="elastic")
    strangers = cluster.namespace()
    cluster.submit(fleet.job("gang", team, "main", pods=8))
    wait_held(cluster, team, "gang", 8)
    for i in range(8):
        assert cluster.bound(team) == [], f"a pod was bound with {i} of 8 nodes"
        # What comes later wants the very nodes: a queued job, a queued pair, a pod of somebody else.
        if i in (2, 4):
            cluster.submit(fleet.job(f"small-{i}", team, "main"), fleet.job(f"pair-{i}", team, "main", pods=2),
                           fleet.pod(f"foreign-{i}", strangers, gpus=8))
        began = time.monotonic()
        cluster.nodes(1, prefix=f"late{i}")
        time.sleep(1.5)
    pods = cluster.wait_running(team, "gang", 8, 20)
    print(f"the gang runs {time.monotonic() - began:.1f} s after its last node")
    assert time.monotonic() - began < 10
    assert {rank_of(p): p["spec"]["nodeName"] for p in pods} == dict(
        enumerate(plan_of(cluster.workload(team, "gang"))))
    assert placed(cluster, team, "gang") == ("True", "Placed")
    assert len(cluster.bound(team)) == 8 and cluster.bound(strangers) == []
    cluster.nodes(8, prefix="more")  # for two pairs, two small ones and two strangers
    for i in (2, 4):
        cluster.wait_running(team, f"small-{i}", 1, 30)
        cluster.wait_running(team, f"pair-{i}", 2, 30)
    wait_for("the strangers run", lambda: len(cluster.running(strangers)) == 2, 30)
    watcher.settle()
    watcher.check()


def test_a_restart_while_a_gang_waits_changes_nothing(cluster, watcher):
    team, _ = cluster.queue(10_000, capacity="elastic")
    cluster.submit(fleet.job("gang", team, "main", pods=3))
    wait_held(cluster, team, "gang", 3)
    cluster.nodes(2, prefix="early")
    cluster.muster.kill()
    time.sleep(1)
    cluster.muster.start()
    time.sleep(2)
    assert cluster.bound(team) == []
    assert placed(cluster, team, "gang") == ("False", "WaitingForCapacity")
    cluster.nodes(1, prefix="last")
    cluster.wait_running(team, "gang", 3, 20)
    watcher.settle()
    watcher.check()


def test_an_autoscaler_brings_nodes_for_what_the_window_shows_it(cluster, watcher):
    cluster.muster.reconfigure(elasticWindow=8)
    try:
        team, queue = cluster.queue(10_000, capacity="elastic")
        gangs = {f"gang-{i}": pods for i, pods in enumerate((4, 4, 6, 2, 12, 3))}
        everything = sum(gangs.values())

        def node(i):
            return fleet.node(f"scaled-{i:02}", labels={"e2e/pool": "main"})

        with Autoscaler(cluster.api, node, most=everything) as autoscaler:
            try:
                cluster.submit(*(fleet.job(name, team, "main", pods=pods) for name, pods in gangs.items()))
                cluster.expect_used_gpus(queue, everything * 8)  # admitted at once, all of them
                for name, pods in gangs.items():
                    cluster.wait_running(team, name, pods, 90)
            finally:
                cluster.will_remove(*(node(i) for i in range(everything)))
        assert len(autoscaler.added) == everything
        # 8 at a time, or the gang of 12 alone; those before them may have their nodes and not be bound yet.
        assert autoscaler.most_unschedulable <= 20 < everything, autoscaler.most_unschedulable
        watcher.settle()
        watcher.check()
    finally:
        cluster.muster.reconfigure()

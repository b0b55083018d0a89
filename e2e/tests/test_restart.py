"""muster dies at bad moments; the API objects are the truth that it goes on from."""

import time

from e2e.harness import fleet
from e2e.harness.controlplane import wait_for


def gpus(pods):
    return sum(int(p["spec"]["containers"][0]["resources"]["requests"].get(fleet.GPU, 0)) for p in pods)


def test_killed_twice_in_a_burst_every_job_is_whole_or_not_started_and_the_quota_adds_up(cluster, watcher):
    cluster.nodes(60)
    team, queue = cluster.queue(60 * 8)
    sizes = {f"job-{i:02}": (1, 2, 4, 8)[i % 4] for i in range(40)}  # 150 nodes wanted, 60 there
    cluster.submit(*(fleet.job(name, team, "main", pods=size) for name, size in list(sizes.items())[:20]))
    time.sleep(0.7)
    cluster.muster.kill()
    cluster.muster.start()
    cluster.submit(*(fleet.job(name, team, "main", pods=size) for name, size in list(sizes.items())[20:]))
    time.sleep(0.3)
    cluster.muster.kill()
    time.sleep(2)
    cluster.muster.start()

    def settled():
        counts = {name: len(cluster.bound(team, name)) for name in sizes}
        whole = all(count in (0, sizes[name]) for name, count in counts.items())
        return whole and sum(counts.values()) >= 53  # a gang of 8 is all that may not fit
    wait_for("all that fits runs, whole", settled, 90, 1)
    watcher.settle()
    watcher.check()

    admitted = [w for w in cluster.workloads(team) if cluster.condition(w, "Admitted")]
    of_admitted = sum(s["count"] for w in admitted for s in w["status"]["admission"]["podSetAssignments"]) * 8
    running = gpus(cluster.bound(team))
    wait_for("the status catches up", lambda: cluster.used_gpus(queue) == running, 20)
    assert of_admitted == running == cluster.used_gpus(queue)
    for name in sizes:
        started = bool(cluster.bound(team, name))
        assert bool(cluster.job(team, name)["spec"].get("suspend")) != started, name


def test_a_restart_changes_nothing_for_what_runs(cluster, watcher):
    cluster.nodes(8)
    team, queue = cluster.queue(64)
    cluster.submit(fleet.job("runs", team, "main", pods=6))
    before = {p["metadata"]["uid"] for p in cluster.wait_running(team, "runs", 6)}
    cluster.submit(fleet.job("waits", team, "main", pods=4))
    cluster.wait_pending(team, "waits")
    assert cluster.muster.stop() == 0
    cluster.muster.start()
    time.sleep(5)
    assert {p["metadata"]["uid"] for p in cluster.running(team, "runs")} == before
    assert cluster.pods(team, "waits") == []
    cluster.expect_used_gpus(queue, 48)
    watcher.check()


def test_while_muster_is_down_jobs_are_refused_and_pods_of_others_are_not(cluster):
    cluster.nodes(2)
    team, _ = cluster.queue(16)
    cluster.muster.kill()
    try:
        message = cluster.refused("create", "-f", "-", stdin=str(fleet.job("late", team, "main")))
        assert "gate.muster.dev" in message
        cluster.submit(fleet.pod("cpu", team, gpus=0, labels={"e2e/job": "cpu"}))
        cluster.wait_running(team, "cpu", 1)
    finally:
        cluster.muster.start()

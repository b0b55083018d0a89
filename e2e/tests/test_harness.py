"""The harness itself, on a control plane without muster: what the other tests rely on."""

import datetime
import pathlib
import time

import pytest
from kubernetes import client, config

from e2e.harness import fleet
from e2e.harness.api import ApiError
from e2e.harness.controlplane import ControlPlane, wait_for
from e2e.harness.manifests import kustomize
from e2e.harness.nudge import Nudger, seconds
from e2e.harness.process import ProcessError, Processes
from e2e.harness.tools import MANIFESTS
from e2e.watcher import Watcher


def running_pods(plane, namespace):
    return [p for p in plane.api.items(f"/api/v1/namespaces/{namespace}/pods")
            if p["status"].get("phase") == "Running"]


@pytest.fixture(scope="module")
def plane(bare):
    bare.install_definitions(kustomize(MANIFESTS / "crds"))
    bare.apply([fleet.namespace("team-a")])
    for node in fleet.nodes(20):
        bare.api.create(node)
    return bare


def test_a_pod_that_is_overdue_is_changed_once_so_that_kwok_looks_again(plane):
    assert (seconds("1m30s"), seconds("500ms"), seconds("3s")) == (90, 0.5, 3)
    slow = fleet.pod("slow", "team-a", gpus=0, annotations={"bench/runtime": "1h"})
    plane.api.create(slow)
    wait_for("the pod runs", lambda: running_pods(plane, "team-a"), 30)
    nudger, now = Nudger(plane.kubeconfig), datetime.datetime.now(datetime.timezone.utc)
    path = "/api/v1/namespaces/team-a/pods/slow"
    for hours, nudged in ((0, 0), (2, 1), (3, 1)):
        nudger.look(plane.api, now + datetime.timedelta(hours=hours))
        assert len(nudger.nudged) == nudged
        assert ("bench/nudged" in plane.api.get(path)["metadata"]["annotations"]) == bool(nudged)
    plane.api.delete(path)
    wait_for("the pod is gone", lambda: not plane.api.exists(path), 30)


def test_the_kubernetes_library_runs_a_gang_on_fake_nodes(plane):
    library = client.BatchV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    library.create_namespaced_job("team-a", fleet.job("gang", "team-a", None, pods=16, runtime=3))
    wait_for("16 pods run", lambda: len(running_pods(plane, "team-a")) == 16, 30)
    nodes = {p["spec"]["nodeName"] for p in running_pods(plane, "team-a")}
    assert len(nodes) == 16, "each pod takes all 8 GPUs of a node"
    wait_for("the Job completes after bench/runtime",
             lambda: library.read_namespaced_job_status("gang", "team-a").status.succeeded == 16, 30)


def test_a_running_pod_lives_until_it_is_deleted_and_its_owner_replaces_it(plane):
    plane.api.create(fleet.job("stays", "team-a", None, pods=1, gpus=1))
    [pod] = wait_for("it runs", lambda: [p for p in running_pods(plane, "team-a")
                                         if p["metadata"]["name"].startswith("stays")], 30)
    plane.kubectl("delete", "pod", "-n", "team-a", pod["metadata"]["name"], "--wait=true")
    wait_for("a new pod runs", lambda: [p for p in running_pods(plane, "team-a")
                                        if p["metadata"]["name"].startswith("stays")
                                        and p["metadata"]["uid"] != pod["metadata"]["uid"]], 30)
    plane.kubectl("delete", "job", "-n", "team-a", "stays", "--wait=true")


def workload_of(job, count):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"name": job["metadata"]["name"], "namespace": "team-a", "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"],
                 "uid": job["metadata"]["uid"], "controller": True}]},
            "spec": {"queueName": "main", "podSets": [
                {"name": "main", "count": count, "template": job["spec"]["template"]}]}}


def admit(plane, name, count):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    plane.api.merge(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads/{name}/status", {"status": {
        "conditions": [{"type": t, "status": "True", "reason": "ByTheTest", "message": "",
                        "lastTransitionTime": now} for t in ("QuotaReserved", "Admitted")],
        "admission": {"clusterQueue": "main", "podSetAssignments": [{"name": "main", "count": count}]}}})


def test_the_watcher_sees_a_partial_gang_and_no_other(plane):
    with Watcher(plane.kubeconfig) as watcher:
        # 16 whole, then 6 more of which only the 4 free nodes can take 4.
        for name, pods in (("whole", 16), ("torn", 6)):
            created = plane.api.create(fleet.job(name, "team-a", None, pods=pods))
            plane.api.create(workload_of(created, pods))
            admit(plane, name, pods)
            wait_for(f"{name} is under way", lambda: len(running_pods(plane, "team-a")) in (16, 20), 30)
            time.sleep(1)
        wait_for("the watcher speaks up", lambda: watcher.violations, 25)
        watcher.settle()
        watcher.check_sight()
    assert {v.workload for v in watcher.violations} == {"team-a/torn"}
    assert {v.rule for v in watcher.violations} == {"a", "b"}
    assert watcher.counts() == (2, 1)
    plane.kubectl("delete", "jobs", "--all", "-n", "team-a", "--wait=true")


def test_an_identity_may_do_only_what_rbac_grants(plane):
    nobody = plane.service_account("team-a", "nobody")
    refused = plane.kubectl("get", "pods", "-n", "team-a", kubeconfig=nobody, check=False)
    assert refused.returncode != 0
    assert 'User "system:serviceaccount:team-a:nobody" cannot list' in refused.stderr


def test_a_broken_api_call_is_an_error_with_its_reason(plane):
    with pytest.raises(ApiError) as caught:
        plane.api.get("/api/v1/namespaces/team-a/pods/none")
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


def test_nothing_is_left_after_stop_and_the_audit_log_counted_by_user(scratch):
    plane = ControlPlane(scratch / "stopped", audit=True).start()
    try:
        plane.apply([fleet.namespace("counted")])
        users = {user for user, _, _ in plane.writes()}
        assert "e2e-admin" in users
        assert ("e2e-admin", "patch", "namespaces") in plane.writes()
        names = plane.processes.living()
        assert names == ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
    finally:
        stopped = plane.stop()
    assert stopped == 5
    assert plane.processes.living() == []
    assert not plane.api.healthy()


def test_a_process_that_dies_while_starting_is_named_with_its_last_words(tmp_path: pathlib.Path):
    processes = Processes(tmp_path)
    processes.start("dies", ["sh", "-c", "echo no such luck; exit 3"])
    with pytest.raises(ProcessError, match="dies died while starting:\nno such luck"):
        processes.wait_until("dies", lambda: False, 5)
    processes.stop_all()


def test_a_process_that_ignores_sigterm_or_is_stopped_still_goes(tmp_path: pathlib.Path):
    processes = Processes(tmp_path)
    processes.start("deaf", ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
    processes.start("frozen", ["sleep", "600"])
    processes.signal("frozen", 19)
    time.sleep(0.3)
    assert processes.stop("deaf", grace=0.5) == -9
    assert processes.stop("frozen") == -15
    assert processes.living() == []


def test_a_recycled_pid_is_not_taken_for_ours(tmp_path: pathlib.Path):
    processes = Processes(tmp_path)
    child = processes.start("real", ["sleep", "600"])
    other = Processes(tmp_path)  # as a later invocation finds them, by pid file alone
    assert other.living() == ["real"]
    [pid_file] = (tmp_path / "pids").iterdir()
    right = pid_file.read_text()
    pid_file.write_text(f"{child.pid} 1")
    assert other.living() == []
    pid_file.write_text(right)
    assert other.stop_all() == 1
    assert child.wait() == -15

"""Every way round the quota, tried by somebody who is not muster (by a cluster admin, whom RBAC stops
nowhere): refused, or undone."""

import json
import time

import pytest

from e2e.harness import fleet
from e2e.harness.api import object_path
from e2e.harness.cluster import Refused
from e2e.harness.controlplane import wait_for


@pytest.fixture
def full(cluster):
    """One node, taken by the Job `runs`; the Job `waits` and the pod `gated` wait for it."""
    cluster.nodes(1)
    team, queue = cluster.queue(8)
    cluster.submit(fleet.job("runs", team, "main"))
    cluster.wait_running(team, "runs", 1)
    cluster.submit(fleet.job("waits", team, "main"),
                   fleet.pod("gated", team, gpus=1, labels={fleet.QUEUE: "main", "e2e/job": "gated"}))
    cluster.wait_pending(team, "waits")
    cluster.wait_pending(team, "gated")
    cluster.add(fleet.local_queue("other", team, queue))
    yield cluster, team
    assert len(cluster.bound(team)) == 1, "somebody got round the quota"
    cluster.expect_used_gpus(queue, 8)


def patch(cluster, kind, team, name, change, *args):
    return cluster.refused("patch", kind, "-n", team, name, "--type=merge", "-p", json.dumps(change), *args)


def test_the_gate_of_a_pod_is_taken_off_by_its_user(full):
    cluster, team = full
    assert "muster" in patch(cluster, "pod", team, "gated", {"spec": {"schedulingGates": []}})


@pytest.mark.parametrize("affinity_or_toleration", [
    {"spec": {"nodeSelector": {"e2e/pool": "main"}}},
    {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "e2e/pool", "operator": "Exists"}]}]}}}}},
    {"spec": {"tolerations": [{"key": "anything", "operator": "Exists"}]}},
], ids=["node selector", "affinity", "toleration"])
def test_a_gated_pod_is_given_another_place_by_its_user(full, affinity_or_toleration):
    cluster, team = full
    patch(cluster, "pod", team, "gated", affinity_or_toleration)


def test_a_waiting_job_is_resumed_by_its_user(full):
    """Refused, or suspended again at once with no pod left behind."""
    cluster, team = full
    cluster.plane.kubectl("patch", "job", "-n", team, "waits", "--type=merge",
                          "-p", '{"spec": {"suspend": false}}', check=False)
    time.sleep(3)
    assert cluster.job(team, "waits")["spec"]["suspend"] is True
    assert cluster.bound(team, "waits") == []


def test_a_job_is_created_unsuspended(full):
    cluster, team = full
    cluster.submit(fleet.job("eager", team, "main", spec={"suspend": False}))
    assert cluster.job(team, "eager")["spec"]["suspend"] is True


def test_more_pods_than_were_admitted(full):
    cluster, team = full
    message = patch(cluster, "job", team, "runs", {"spec": {"parallelism": 4, "completions": 4}})
    assert "parallelism" in message


@pytest.mark.parametrize("label", ["other", None], ids=["changed", "removed"])
def test_the_queue_of_a_running_job_is(full, label):
    cluster, team = full
    patch(cluster, "job", team, "runs", {"metadata": {"labels": {fleet.QUEUE: label}}})


def test_the_queue_label_of_a_gated_pod_is_removed(full):
    cluster, team = full
    patch(cluster, "pod", team, "gated", {"metadata": {"labels": {fleet.QUEUE: None}}})


@pytest.mark.parametrize("name, fields", [
    ("preset-node", {"nodeName": "gpu-000"}), ("other-scheduler", {"schedulerName": "mine"})])
def test_a_managed_pod_goes_past_the_scheduler(full, name, fields):
    cluster, team = full
    with pytest.raises(Refused) as refusal:
        cluster.submit(fleet.pod(name, team, labels={fleet.QUEUE: "main"}, **fields))
    assert list(fields)[0] in refusal.value.message


@pytest.mark.parametrize("name, fields", [
    ("preset-node", {"nodeName": "gpu-000"}), ("other-scheduler", {"schedulerName": "mine"})])
def test_the_template_of_a_managed_job_goes_past_the_scheduler(full, name, fields):
    cluster, team = full
    with pytest.raises(Refused) as refusal:
        cluster.submit(fleet.job(name, team, "main", **fields))
    assert list(fields)[0] in refusal.value.message


def test_a_pod_that_copies_the_labels_of_a_running_gang_gets_no_slot(full):
    cluster, team = full
    [member] = cluster.running(team, "runs")
    labels = {k: v for k, v in member["metadata"]["labels"].items() if k != "e2e/job"}
    annotations = {k: v for k, v in member["metadata"].get("annotations", {}).items()}
    copy = fleet.pod("copy", team, gpus=8, labels={**labels, "e2e/job": "copy"}, annotations=annotations,
                     affinity=member["spec"].get("affinity"))
    try:
        cluster.submit(copy)
    except Refused:
        return
    time.sleep(5)
    assert cluster.bound(team, "copy") == []


def owned(pod, owners):
    pod["metadata"]["ownerReferences"] = owners
    return pod


@pytest.mark.parametrize("labelled", [True, False], ids=["with its labels", "without any"])
def test_a_user_puts_a_pod_into_a_queued_job(full, labelled):
    """It would take a slot of the gang, whatever it asks for."""
    cluster, team = full
    [member] = cluster.running(team, "runs")
    labels = {**member["metadata"]["labels"], "e2e/job": "fat"} if labelled else {"e2e/job": "fat"}
    owners = member["metadata"]["ownerReferences"]
    message = cluster.refused("create", "-f", "-", stdin=json.dumps(
        owned(fleet.pod("fat", team, gpus=8, labels=labels), owners)))
    assert "only the Job controller" in message


def test_a_user_gives_a_pod_to_a_queued_job_later(full):
    cluster, team = full
    [member] = cluster.running(team, "runs")
    cluster.submit(fleet.pod("loose", team, gpus=0, labels={"e2e/job": "loose"}, nodeSelector={"no": "where"}))
    message = patch(cluster, "pod", team, "loose",
                    {"metadata": {"ownerReferences": member["metadata"]["ownerReferences"]}})
    assert "only the Job controller" in message


@pytest.mark.parametrize("change", [
    {"metadata": {"labels": {"muster.dev/preemptible": "false"}}},
    {"metadata": {"annotations": {"muster.dev/min-runtime": "99999h"}}},
    {"metadata": {"annotations": {"muster.dev/checkpoint-grace": "99999h"}}},
], ids=["preemptible", "min-runtime", "checkpoint-grace"])
def test_the_terms_of_a_running_job_are_bettered(full, change):
    cluster, team = full
    assert "while the Job runs" in patch(cluster, "job", team, "runs", change)


def test_the_priority_of_a_workload_is_raised_by_a_user(full):
    cluster, team = full
    for job in ("runs", "waits"):
        name = cluster.workload(team, job)["metadata"]["name"]
        message = patch(cluster, "workload", team, name, {"spec": {"priority": 2000000000}})
        assert "spec.priority" in message


def test_a_workload_is_given_to_another_job(full):
    cluster, team = full
    runs, waits = (cluster.workload(team, job)["metadata"] for job in ("runs", "waits"))
    message = patch(cluster, "workload", team, runs["name"],
                    {"metadata": {"ownerReferences": waits["ownerReferences"]}})
    assert "ownerReferences" in message


def test_a_suspended_job_grows_before_it_goes_on(full):
    """What an admitted Job goes on with is what was admitted."""
    cluster, team = full
    patch_args = ("patch", "job", "-n", team, "runs", "--type=merge", "-p")
    cluster.plane.kubectl(*patch_args, '{"spec": {"suspend": true}}')
    grown = {"spec": {"template": {"spec": {"containers": [{
        "name": "main", "image": "registry.example/train:1",
        "resources": {"requests": {fleet.GPU: "8", "cpu": "2"}, "limits": {fleet.GPU: "8"}}}]}}}}
    resumed = {"spec": {**grown["spec"], "suspend": False}}
    for _ in range(40):
        for change in (grown, resumed):
            cluster.plane.kubectl(*patch_args, json.dumps(change), check=False)
    wait_for("one of the two runs", lambda: cluster.running(team), 30)
    time.sleep(3)

    def cpu(pod_spec):
        return pod_spec["containers"][0]["resources"]["requests"]["cpu"]

    for pod in cluster.bound(team):
        admitted = cluster.workload(team, pod["metadata"]["labels"]["e2e/job"])
        assert cpu(pod["spec"]) == cpu(admitted["spec"]["podSets"][0]["template"]["spec"])


def test_the_resources_of_a_running_member_are_raised(full):
    cluster, team = full
    [member] = cluster.running(team, "runs")
    message = patch(cluster, "pod", team, member["metadata"]["name"], {"spec": {"containers": [
        {"name": "main", "image": "registry.example/train:1", "resources": {
            "requests": {"cpu": "64", fleet.GPU: "8"}, "limits": {fleet.GPU: "8"}}}]}}, "--subresource=resize")
    assert "muster" in message


def test_the_status_of_a_workload_is_written_by_a_user(full):
    cluster, team = full
    workload = cluster.workload(team, "waits")
    running = cluster.workload(team, "runs")
    message = cluster.refused(
        "patch", "workload", "-n", team, workload["metadata"]["name"], "--subresource=status",
        "--type=merge", "-p", json.dumps({"status": {"admission": running["status"]["admission"],
                                                     "conditions": running["status"]["conditions"]}}))
    assert "muster" in message


def test_a_developer_has_no_right_to_the_status_at_all(full):
    cluster, team = full
    cluster.plane.kubectl("create", "rolebinding", "dev", "--clusterrole=edit", "--user=dev", "-n", team)
    dev = cluster.plane.identity("dev", "dev")
    name = cluster.workload(team, "waits")["metadata"]["name"]
    wait_for("the aggregated roles reach the developer", lambda: cluster.plane.kubectl(
        "get", "workload", "-n", team, name, kubeconfig=dev, check=False).returncode == 0, 20)
    message = cluster.refused("patch", "workload", "-n", team, name, "--subresource=status", "--type=merge",
                              "-p", '{"status": {"conditions": []}}', kubeconfig=dev)
    assert "forbidden" in message.lower()


def test_a_request_that_can_never_fit_is_taken_with_a_warning(full):
    cluster, team = full
    done = cluster.plane.kubectl("create", "-f", "-", stdin=json.dumps(
        fleet.job("never", team, "main", pods=1000)))
    assert "Warning" in done.stderr and "never" in done.stderr


def test_all_errors_of_an_unusable_object_are_told_at_once(full):
    cluster, _ = full
    # Two faults that no CRD rule can see: those are told before any webhook is asked.
    broken = fleet.cluster_queue("broken", "nowhere", 8)
    broken["spec"]["resourceGroups"].append(broken["spec"]["resourceGroups"][0])
    message = cluster.refused("create", "-f", "-", stdin=json.dumps(broken))
    assert "resourceGroups[1].coveredResources" in message and "resourceGroups[1].flavors" in message
    assert not cluster.api.exists(object_path(broken))


def test_in_a_namespace_that_is_given_over_no_unlabelled_pod_gets_past_the_queue(full):
    cluster, team = full
    cluster.plane.kubectl("label", "namespace", team, "muster.dev/managed=true")
    queue = cluster.api.get(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{team}/localqueues/main")["spec"]["clusterQueue"]
    cluster.add(fleet.local_queue("default", team, queue))
    create = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    plain = json.dumps(fleet.pod("plain", team, gpus=8))

    def is_gated() -> bool:
        made = json.loads(cluster.plane.kubectl(*create, stdin=plain).stdout)
        return bool(made["spec"].get("schedulingGates"))

    wait_for("pods without a label are gated there", is_gated, 20)
    bound = fleet.pod("bound", team, gpus=8, nodeName="gpu-000")
    assert "spec.nodeName" in cluster.refused(*create, stdin=json.dumps(bound))
    [member] = cluster.running(team, "runs")
    adopted = owned(fleet.pod("adopted", team, gpus=8), member["metadata"]["ownerReferences"])
    assert "only the Job controller" in cluster.refused(*create, stdin=json.dumps(adopted))

"""Objects that any tenant may create, and that must not stop anybody else's work."""

import json

from e2e.harness import fleet
from e2e.harness.controlplane import wait_for


def deep_pod(name: str, namespace: str, depth: int) -> dict:
    """Clients may write metadata.managedFields, and the API server keeps and shows what they wrote."""
    fields: dict = {}
    for _ in range(depth):
        fields = {"f:a": fields}
    pod = fleet.pod(name, namespace, gpus=0, nodeSelector={"no": "where"})
    pod["metadata"]["managedFields"] = [{
        "manager": "somebody", "operation": "Update", "apiVersion": "v1", "time": "2026-11-30T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": fields}}}]
    return pod


def create(cluster, obj: dict) -> None:
    """As it is: kubectl would check it first, and the library would leave fields out."""
    cluster.plane.kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(obj))


def test_a_pod_that_is_nested_without_end_blinds_nobody(cluster):
    cluster.nodes(1)
    team, queue = cluster.queue(8)
    other = cluster.namespace()
    create(cluster, deep_pod("deep", other, 100))
    kept = cluster.plane.kubectl("get", "pod", "-n", other, "deep", "-o", "json", "--show-managed-fields").stdout
    assert kept.count("f:a") >= 100, "the API server does not keep what this test is about"

    def one_job_after_the_other(first: str, second: str) -> None:
        # What has left is seen to have left: by the watch of pods.
        cluster.submit(fleet.job(first, team, "main"))
        cluster.wait_running(team, first, 1)
        cluster.plane.kubectl("delete", "job", "-n", team, first, "--wait=false")
        cluster.submit(fleet.job(second, team, "main"))
        cluster.wait_running(team, second, 1)
        cluster.plane.kubectl("delete", "job", "-n", team, second, "--wait=false")

    one_job_after_the_other("a", "b")
    cluster.muster.kill()
    cluster.muster.start()
    one_job_after_the_other("c", "d")


def test_invented_resources_take_no_place_from_those_that_nodes_bring(cluster):
    cluster.nodes(1)
    team, other = cluster.namespace(), cluster.namespace()
    queue = fleet.cluster_queue(f"cq-{team}", f"fl-{team}", 8)
    group = queue["spec"]["resourceGroups"][0]
    group["coveredResources"].append("example.com/new")
    group["flavors"][0]["resources"].append({"name": "example.com/new", "nominalQuota": "64"})
    cluster.add(fleet.flavor(f"fl-{team}", capacity="fixed"), queue,
                fleet.local_queue("main", team, queue["metadata"]["name"]))
    flood = fleet.pod("flood", other, gpus=0, nodeName="gpu-000")
    asked = flood["spec"]["containers"][0]["resources"]
    for i in range(1500):
        asked["requests"][f"example.com/r{i}"] = asked["limits"][f"example.com/r{i}"] = "1"
    create(cluster, flood)
    # A node of a new kind: ten of one thing and a hundred of another are not 110 of either.
    [node] = fleet.nodes(1, labels={"e2e/pool": "main"}, prefix="new-kind")
    for amounts in (node["status"]["allocatable"], node["status"]["capacity"]):
        amounts |= {"example.com/new": "10", "example.com/newer": "100"}
    cluster.add(node)
    gang = fleet.job("gang", team, "main", pods=16, gpus=0)
    asked = gang["spec"]["template"]["spec"]["containers"][0]["resources"]
    asked["requests"]["example.com/new"] = asked["limits"]["example.com/new"] = "1"
    cluster.submit(gang)

    def says_ten() -> bool:
        workload = cluster.workload(team, "gang") or {}
        return any("room for 10 of 16 pods" in c["message"]
                   for c in (workload.get("status") or {}).get("conditions", []))
    wait_for("the gang does not fit on ten", says_ten, 40)
    assert cluster.pods(team, "gang") == []

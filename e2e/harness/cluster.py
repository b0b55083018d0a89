"""A control plane with muster on it, and the questions that tests ask of it.

Work is submitted with the kubernetes Python library, as a user's own tooling would.
"""

import concurrent.futures
import contextlib
import itertools
import json
import time

from kubernetes import client, config

from e2e.harness import fleet
from e2e.harness.api import WORKLOADS, ApiError, object_path
from e2e.harness.controlplane import ControlPlane, wait_for
from e2e.harness.muster import Muster

_JOBS = "/apis/batch/v1/namespaces/{}/jobs"
_numbers = itertools.count(1)


class Refused(Exception):
    """The API server (or a webhook) said no; `message` is what the user reads."""

    def __init__(self, error: client.ApiException):
        body = json.loads(error.body) if error.body else {}
        self.code, self.message = error.status, body.get("message", "")
        super().__init__(f"{error.status}: {self.message}")


class Cluster:
    def __init__(self, plane: ControlPlane, muster: Muster):
        self.plane, self.muster, self.api = plane, muster, plane.api
        library = config.new_client_from_config(str(plane.kubeconfig))
        self.batch, self.core = client.BatchV1Api(library), client.CoreV1Api(library)
        self._made: list = []        # cluster-scoped objects of the running test
        self._namespaces: list = []  # those of the running test

    # Setting the scene

    def namespace(self) -> str:
        name = f"team-{next(_numbers)}"
        self.api.create(fleet.namespace(name))
        self._namespaces.append(name)
        return name

    def add(self, *objects: dict) -> None:
        """Creates queues, flavors, nodes and the like; `clean` takes them away again."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self.api.create, objects))
        self._made += objects

    def will_remove(self, *objects: dict) -> None:
        """Others create them; `clean` takes away those that are there."""
        self._made += objects

    def queue(self, gpus: int, *, cohort: str | None = None, capacity: str | None = "fixed",
              topology: bool = False, **queue_fields) -> tuple[str, str]:
        """A namespace with its own flavor, ClusterQueue and LocalQueue `main`: (namespace, queue).
        Queues of one cohort share the flavor of the first."""
        namespace = self.namespace()
        name = f"cq-{namespace}"
        flavor = f"fl-{cohort or namespace}"
        if not any(o["kind"] == "ResourceFlavor" and o["metadata"]["name"] == flavor for o in self._made):
            if topology:
                self.add(fleet.topology(f"top-{flavor}"))
            self.add(fleet.flavor(flavor, topology=f"top-{flavor}" if topology else None,
                                  capacity=None if topology else capacity,
                                  labels={"e2e/pool": "main"} if topology else None))
        self.add(fleet.cluster_queue(name, flavor, gpus, cohort=cohort, **queue_fields))
        self.add(fleet.local_queue("main", namespace, name))
        wait_for(f"ClusterQueue {name} is active", lambda: self.condition(
            self.api.get(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{name}"), "Active"), 20)
        return namespace, name

    def nodes(self, count: int, **kinds) -> list[str]:
        labels = {"e2e/pool": "main", **kinds.pop("labels", {})}
        made = fleet.nodes(count, labels=labels, **kinds)
        self.add(*made)
        return [n["metadata"]["name"] for n in made]

    def lose(self, node: str, how: str = "unreachable") -> None:
        """The node is deleted, or falls silent: what the node lifecycle controller then does."""
        path = f"/api/v1/nodes/{node}"
        if how == "deleted":
            self.api.delete(path)
            return
        self.api.merge(path, {"metadata": {"annotations": {"bench/dead": "true"}}, "spec": {"taints": [
            {"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]}})
        self.api.merge(path + "/status", {"status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
             "message": "Kubelet stopped posting node status."}]}})

    def revive(self, node: str) -> None:
        """A node that fell silent is back."""
        path = f"/api/v1/nodes/{node}"
        self.api.merge(path, {"metadata": {"annotations": {"bench/dead": None}}, "spec": {"taints": None}})
        self.api.merge(path + "/status", {"status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})

    def clean(self) -> None:
        """Takes away what the test made, and waits until it is gone."""
        for namespace in self._namespaces:
            for path in (_JOBS.format(namespace), f"/api/v1/namespaces/{namespace}/pods"):
                self.api.delete(path, propagationPolicy="Background", gracePeriodSeconds=0)
        for namespace in self._namespaces:
            wait_for(f"{namespace} is empty", lambda: not self._force_pods_away(namespace), 60, 0.5)
            wait_for(f"no Workload is left in {namespace}", lambda: not self.api.items(
                f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads"), 60, 0.5)
        for obj in reversed(self._made):
            with contextlib.suppress(ApiError):
                self.api.delete(object_path(obj))
        for obj in self._made:
            wait_for(f"{obj['kind']} {obj['metadata']['name']} is gone",
                     lambda: not self.api.exists(object_path(obj)), 30)
        self._made, self._namespaces = [], []

    def _force_pods_away(self, namespace: str) -> list:
        """The pods that are left. One whose node is gone has no kubelet to let it go."""
        left = self.api.items(f"/api/v1/namespaces/{namespace}/pods")
        for pod in left:
            if pod["metadata"].get("deletionTimestamp"):
                with contextlib.suppress(ApiError):
                    self.api.delete(object_path({"apiVersion": "v1", "kind": "Pod", **pod}),
                                    gracePeriodSeconds=0)
        return left

    # Submitting

    def submit(self, *objects: dict) -> None:
        """Creates Jobs and pods at once, eight at a time; Refused when one is."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self._submit, objects))

    def _submit(self, obj: dict) -> None:
        namespace = obj["metadata"]["namespace"]
        create = (self.batch.create_namespaced_job if obj["kind"] == "Job"
                  else self.core.create_namespaced_pod)
        try:
            create(namespace, obj, _preload_content=False)
        except client.ApiException as error:
            raise Refused(error) from None

    def refused(self, *args, stdin: str | None = None, kubeconfig=None) -> str:
        """What the user reads when kubectl ARGS is refused; AssertionError when it is not."""
        done = self.plane.kubectl(*args, stdin=stdin, kubeconfig=kubeconfig, check=False)
        assert done.returncode != 0, f"kubectl {' '.join(map(str, args))} was not refused: {done.stdout}"
        return done.stderr

    # Looking

    def job(self, namespace: str, name: str) -> dict:
        return self.api.get(f"{_JOBS.format(namespace)}/{name}")

    def pods(self, namespace: str, job: str | None = None) -> list:
        return self.api.items(f"/api/v1/namespaces/{namespace}/pods", f"e2e/job={job}" if job else "")

    def bound(self, namespace: str, job: str | None = None) -> list:
        return [p for p in self.pods(namespace, job)
                if p["spec"].get("nodeName") and not p["metadata"].get("deletionTimestamp")
                and p["status"].get("phase") not in ("Succeeded", "Failed")]

    def running(self, namespace: str, job: str | None = None) -> list:
        return [p for p in self.pods(namespace, job) if p["status"].get("phase") == "Running"]

    def workloads(self, namespace: str | None = None) -> list:
        path = WORKLOADS if namespace is None else f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads"
        return self.api.items(path)

    def workload(self, namespace: str, owner: str) -> dict | None:
        """The Workload whose owner has that name."""
        return next((w for w in self.workloads(namespace)
                     if any(r["name"] == owner for r in w["metadata"].get("ownerReferences", []))), None)

    @staticmethod
    def condition(obj: dict | None, kind: str) -> dict | None:
        """The condition, when it is True."""
        return next((c for c in ((obj or {}).get("status") or {}).get("conditions") or []
                     if c["type"] == kind and c["status"] == "True"), None)

    def in_a_later_second(self, obj: dict, kind: str) -> None:
        """Returns in a later second than the condition's last transition: the API keeps its times in
        whole seconds, so what follows within the same second is neither older nor newer."""
        stored = self.condition(obj, kind)["lastTransitionTime"]
        wait_for(f"the second after {stored}", lambda: time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > stored, 5)

    def admitted(self, namespace: str, owner: str) -> dict | None:
        workload = self.workload(namespace, owner)
        return workload if self.condition(workload, "Admitted") else None

    def wait_running(self, namespace: str, job: str, count: int, seconds: float = 60) -> list:
        try:
            return wait_for(f"{count} pods of {namespace}/{job} run", lambda: (
                lambda pods: pods if len(pods) == count else None)(self.running(namespace, job)), seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe(namespace, job)}") from None

    def wait_pending(self, namespace: str, job: str, seconds: float = 20) -> dict:
        """The Workload, once muster has said that it waits."""
        def waits():
            workload = self.workload(namespace, job)
            conditions = ((workload or {}).get("status") or {}).get("conditions") or []
            return workload if any(c["type"] == "QuotaReserved" and c["status"] == "False"
                                   for c in conditions) else None
        return wait_for(f"{namespace}/{job} waits", waits, seconds)

    def describe(self, namespace: str, job: str) -> str:
        """For the message of a failed test."""
        workload = self.workload(namespace, job) or {}
        lines = [f"workload status: {json.dumps(workload.get('status'))}",
                 f"suspended: {self.job(namespace, job)['spec'].get('suspend')}"]
        for pod in self.pods(namespace, job)[:20]:
            reason = [c.get("message") for c in pod["status"].get("conditions", []) if c["status"] == "False"]
            lines.append(f"{pod['metadata']['name']} {pod['status'].get('phase')} "
                         f"on {pod['spec'].get('nodeName')} {reason}")
        return "\n".join(lines)

    def used_gpus(self, queue: str) -> int:
        """GPUs that the ClusterQueue's status says are reserved."""
        status = self.api.get(f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{queue}").get("status", {})
        return sum(int(r["total"]) for f in status.get("flavorsReservation", [])
                   for r in f["resources"] if r["name"] == fleet.GPU)

    def expect_used_gpus(self, queue: str, gpus: int, seconds: float = 20.0) -> None:
        """The status follows the decisions within a second or so, not at once."""
        wait_for(f"{gpus} GPUs of {queue} are reserved", lambda: self.used_gpus(queue) == gpus, seconds)


def plan_of(workload: dict, pod_set: int = 0) -> list[str]:
    """The planned nodes of a gang, one per pod, in the order that ranks take them. Flavors without
    a topology have the plan too, with the single level kubernetes.io/hostname."""
    assignment = workload["status"]["admission"]["podSetAssignments"][pod_set].get("topologyAssignment")
    if not assignment:
        return []
    assert assignment["levels"][-1] == "kubernetes.io/hostname", assignment["levels"]
    slots = []
    for run in assignment["slices"]:
        names, counts = run["valuesPerLevel"][-1], run["podCounts"]
        for i in range(run["domainCount"]):
            if "universal" in names:
                name = names["universal"]
            else:
                individual = names["individual"]
                name = individual.get("prefix", "") + individual["roots"][i] + individual.get("suffix", "")
            slots += [name] * (counts["universal"] if "universal" in counts else counts["individual"][i])
    return slots


def rank_of(pod: dict) -> int:
    return int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])

"""What the quickstart knows of the cluster, from watches: for the table while it runs, for the proof
at its end."""

import dataclasses
import re
import threading
import time

from e2e.harness.api import WORKLOADS, Api, Reflector
from e2e.harness.fleet import GPU

_CLUSTER_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
_LOCAL_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/localqueues"


@dataclasses.dataclass
class Preemption:
    at: float      # monotonic
    victim: str    # namespace/name of its owner
    by: str
    reason: str
    message: str
    pods: frozenset  # uids of the victim's bound pods when it was evicted


@dataclasses.dataclass(frozen=True)
class LostPod:
    name: str      # namespace/name
    workload: str  # uid
    created: str   # as the API writes times, in whole seconds
    gone: str


@dataclasses.dataclass(frozen=True)
class QueueRow:
    name: str
    pending: int
    admitted: int
    used: int      # GPUs reserved
    nominal: int   # GPUs
    borrowed: int  # GPUs


class Observer:
    def __init__(self, api: Api):
        self._lock = threading.RLock()
        self._pods: dict[str, dict] = {}
        self._workloads: dict[str, dict] = {}
        self._queues: dict[str, dict] = {}
        self._local: dict[str, str] = {}
        self._admissions: dict[str, set[str]] = {}  # workload uid -> when it was admitted
        self._evictions: dict[str, set[str]] = {}  # workload uid -> when it was evicted
        self._finished: dict[str, str] = {}        # workload uid -> when it finished
        self._lost: list[LostPod] = []             # bound pods that were deleted
        self.preemptions: list[Preemption] = []
        self.admitted_gangs: dict[str, int] = {}  # owner -> pods, of workloads with more than one
        self._watches = [
            Reflector(api, WORKLOADS, self._workload), Reflector(api, "/api/v1/pods", self._pod),
            Reflector(api, _CLUSTER_QUEUES, self._queue), Reflector(api, _LOCAL_QUEUES, self._local_queue)]

    def __enter__(self) -> "Observer":
        for watch in self._watches:
            watch.start()
        for watch in self._watches:
            while not watch.synced.wait(0.1):
                if watch.failure:
                    raise watch.failure
        return self

    def __exit__(self, *_) -> None:
        for watch in self._watches:
            watch.stop()

    # What the table shows

    def rows(self) -> list[QueueRow]:
        with self._lock:
            counts = {name: [0, 0] for name in self._queues}
            for workload in self._workloads.values():
                queue = self._local.get(f"{workload['metadata']['namespace']}/{workload['spec'].get('queueName')}")
                if queue in counts and not _true(workload, "Finished"):
                    counts[queue][_true(workload, "Admitted") and not _true(workload, "Evicted")] += 1
            return [QueueRow(name, *counts[name], *_gpus(queue)) for name, queue in sorted(self._queues.items())]

    def gpus_in_use(self) -> int:
        with self._lock:
            return sum(int(c["resources"]["requests"].get(GPU, 0)) for p in self._pods.values()
                       if _bound(p) for c in p["spec"]["containers"])

    def unfinished(self) -> int:
        with self._lock:
            return sum(not _true(w, "Finished") for w in self._workloads.values())

    # What the proof needs

    def left_of_victims(self) -> list[str]:
        """Pods that a preempted gang still has of those it had when it was preempted."""
        with self._lock:
            return [self._pods[uid]["metadata"]["name"] for p in self.preemptions for uid in p.pods
                    if uid in self._pods and _bound(self._pods[uid])]

    def torn(self) -> list[str]:
        """Pods that were lost although their workload had not finished and was not evicted since the
        admission that they were created under. (Who is evicted at once gets its pods still: the Job
        controller makes them until it sees the Job suspended again.) Told by times: what one watch
        shows first says nothing about another."""
        with self._lock:
            return [pod.name for pod in self._lost
                    if not any(self._began(pod) <= at <= pod.gone
                               for at in self._evictions.get(pod.workload, ()))
                    and not self._finished.get(pod.workload, "~") <= pod.gone]

    def _began(self, pod: LostPod) -> str:
        """When the workload was admitted for the last time before the pod was created."""
        return max((at for at in self._admissions.get(pod.workload, ()) if at <= pod.created),
                   default=pod.created)

    def wait_victims_gone(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.left_of_victims() and time.monotonic() < end:
            time.sleep(0.2)

    # From the watches

    def _pod(self, kind: str, pod: dict) -> None:
        with self._lock:
            uid = pod["metadata"]["uid"]
            if kind != "DELETED":
                self._pods[uid] = pod
                return
            self._pods.pop(uid, None)
            workload = self._workload_of(pod)
            if workload and _bound(pod, terminating=True):
                meta = pod["metadata"]
                self._lost.append(LostPod(f"{meta['namespace']}/{meta['name']}", workload["metadata"]["uid"],
                                          meta["creationTimestamp"],
                                          time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())))

    def _workload(self, kind: str, workload: dict) -> None:
        with self._lock:
            uid = workload["metadata"]["uid"]
            if kind == "DELETED":
                self._workloads.pop(uid, None)
                return
            self._workloads[uid] = workload
            count = sum(s["count"] for s in workload["spec"]["podSets"])
            if _true(workload, "Admitted"):
                self._admissions.setdefault(uid, set()).add(_condition(workload, "Admitted")["lastTransitionTime"])
                if count > 1:
                    self.admitted_gangs[_owner(workload)] = count
            if _true(workload, "Finished"):
                self._finished[uid] = _condition(workload, "Finished")["lastTransitionTime"]
            if not _true(workload, "Evicted"):
                return
            evicted = _condition(workload, "Evicted")
            known = self._evictions.setdefault(uid, set())
            if evicted["reason"] == "Preempted" and evicted["lastTransitionTime"] not in known:
                self._record(workload)
            known.add(evicted["lastTransitionTime"])

    def _record(self, workload: dict) -> None:
        preempted = _condition(workload, "Preempted") or _condition(workload, "Evicted")
        by = re.search(r"UID: ([0-9a-f-]{36})", preempted["message"])
        preemptor = self._workloads.get(by[1]) if by else None
        pods = frozenset(u for u, p in self._pods.items() if _bound(p) and self._workload_of(p) is workload)
        self.preemptions.append(Preemption(
            time.monotonic(), _owner(workload), _owner(preemptor) if preemptor else "?",
            preempted["reason"], preempted["message"], pods))

    def _workload_of(self, pod: dict) -> dict | None:
        owners = {r["uid"] for r in pod["metadata"].get("ownerReferences", [])} | {pod["metadata"]["uid"]}
        return next((w for w in self._workloads.values()
                     if any(r["uid"] in owners for r in w["metadata"].get("ownerReferences", []))), None)

    def _queue(self, kind: str, queue: dict) -> None:
        with self._lock:
            if kind == "DELETED":
                self._queues.pop(queue["metadata"]["name"], None)
            else:
                self._queues[queue["metadata"]["name"]] = queue

    def _local_queue(self, _kind: str, queue: dict) -> None:
        with self._lock:
            meta = queue["metadata"]
            self._local[f"{meta['namespace']}/{meta['name']}"] = queue["spec"]["clusterQueue"]


def _gpus(queue: dict) -> tuple[int, int, int]:
    """(reserved, nominal, borrowed) GPUs of a ClusterQueue over all its flavors."""
    nominal = sum(int(r["nominalQuota"]) for g in queue["spec"].get("resourceGroups", [])
                  for f in g["flavors"] for r in f["resources"] if r["name"] == GPU)
    used = borrowed = 0
    for flavor in queue.get("status", {}).get("flavorsReservation") or []:
        for resource in flavor["resources"]:
            if resource["name"] == GPU:
                used += int(resource.get("total", 0))
                borrowed += int(resource.get("borrowed", 0))
    return used, nominal, borrowed


def _condition(obj: dict, kind: str) -> dict | None:
    return next((c for c in obj.get("status", {}).get("conditions") or [] if c["type"] == kind), None)


def _true(obj: dict, kind: str) -> bool:
    condition = _condition(obj, kind)
    return bool(condition) and condition["status"] == "True"


def _owner(workload: dict) -> str:
    owners = workload["metadata"].get("ownerReferences") or [{"name": workload["metadata"]["name"]}]
    return f"{workload['metadata']['namespace']}/{owners[0]['name']}"


def _bound(pod: dict, terminating: bool = False) -> bool:
    if pod["metadata"].get("deletionTimestamp") and not terminating:
        return False
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")

"""What a partial gang is, as a pure state machine: objects and times in, violations out.

Of a workload that is Admitted, not Evicted and not suspended:
* (a) some pods were bound (succeeded ones count) but fewer than its count, and no further one was
  bound for PATIENCE seconds; ranks that wait for their owner's own back-off after a failed pod are
  left out; or
* (b) one member is bound while another has had no node it may use for PATIENCE seconds.

Times are seconds on any one monotonic clock. A member that is being deleted is not bound any more.
"""

import dataclasses

PATIENCE = 10.0
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclasses.dataclass(frozen=True)
class Violation:
    workload: str  # namespace/name
    rule: str      # "a" or "b" above
    text: str      # one sentence with the numbers
    at: float

    def __str__(self) -> str:
        return f"partial gang ({self.rule}) {self.workload}: {self.text}"


@dataclasses.dataclass
class _Gang:
    """What is remembered of one workload between two looks at it."""

    bound_ever: set = dataclasses.field(default_factory=set)  # pod uids
    last_bound: float = 0.0     # when the newest member was bound
    partial_since: float | None = None
    stuck_since: dict = dataclasses.field(default_factory=dict)  # pod uid -> time
    reported: set = dataclasses.field(default_factory=set)


class Judge:
    def __init__(self, patience: float = PATIENCE):
        self._patience = patience
        self._pods: dict[str, dict] = {}
        self._owners: dict[str, dict] = {}
        self._workloads: dict[str, dict] = {}
        self._gangs: dict[str, _Gang] = {}
        self._members: dict[str, dict[str, dict]] = {}  # owner uid -> pod uid -> pod
        self.violations: list[Violation] = []
        self.admitted_seen: set[str] = set()  # uids of workloads that were ever Admitted
        self.whole_seen: set[str] = set()     # uids of those with every member bound at one time

    # Input

    def pod(self, kind: str, pod: dict) -> None:
        uid = pod["metadata"]["uid"]
        owner = _controller_uid(pod) or uid  # a plain pod is its own owner
        if kind == "DELETED":
            self._pods.pop(uid, None)
            self._members.get(owner, {}).pop(uid, None)
        else:
            self._pods[uid] = pod
            self._members.setdefault(owner, {})[uid] = pod

    def owner(self, kind: str, owner: dict) -> None:
        _keep(self._owners, kind, owner)

    def workload(self, kind: str, workload: dict) -> None:
        _keep(self._workloads, kind, workload)
        if kind == "DELETED":
            self._gangs.pop(workload["metadata"]["uid"], None)

    # Judgement

    def look(self, now: float) -> list[Violation]:
        """Judges everything; the violations that are new. Call it often: once a second or more."""
        fresh = []
        for uid, workload in self._workloads.items():
            if not self._counts(workload):
                self._gangs.pop(uid, None)  # a later admission begins afresh
                continue
            self.admitted_seen.add(uid)
            gang = self._gangs.setdefault(uid, _Gang(last_bound=now))
            fresh += self._judge(workload, gang, now)
        self.violations += fresh
        return fresh

    def _counts(self, workload: dict) -> bool:
        """Admitted, not Evicted, not suspended, its owner alive and unfinished."""
        if workload["metadata"].get("deletionTimestamp") or workload["spec"].get("active") is False:
            return False
        if not _is_true(workload, "Admitted") or _is_true(workload, "Evicted"):
            return False
        if _is_true(workload, "Finished"):
            return False
        owners = [self._owners.get(ref["uid"]) for ref in _owner_refs(workload) if ref["kind"] != "Pod"]
        for owner in owners:
            if owner is None or owner["metadata"].get("deletionTimestamp"):
                return False
            if owner["spec"].get("suspend") or _is_true(owner, "Complete") or _is_true(owner, "Failed"):
                return False
            if _is_true(owner, "SuccessCriteriaMet") or _is_true(owner, "FailureTarget"):
                return False  # the owner is ending; its pods go in any order
        return True

    def _judge(self, workload: dict, gang: _Gang, now: float) -> list[Violation]:
        uid = workload["metadata"]["uid"]
        name = f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
        members = [p for ref in _owner_refs(workload) for p in self._members.get(ref["uid"], {}).values()]
        live = [p for p in members if not p["metadata"].get("deletionTimestamp")]
        bound = [p for p in live if p["spec"].get("nodeName") and _phase(p) not in ("Failed", "Succeeded")]
        for pod in bound:
            if pod["metadata"]["uid"] not in gang.bound_ever:
                gang.bound_ever.add(pod["metadata"]["uid"])
                gang.last_bound = now
        succeeded = self._succeeded(workload, live)
        need = self._need(workload, succeeded, live)
        out = []

        if len(bound) + succeeded > 0 and len(bound) < need:
            if gang.partial_since is None:
                gang.partial_since = now
            waited = now - max(gang.partial_since, gang.last_bound)
            if waited > self._patience and "a" not in gang.reported:
                gang.reported.add("a")
                out.append(Violation(name, "a", f"{len(bound)} bound and {succeeded} succeeded, {need} more "
                                     f"should be bound together, none was for {waited:.1f} s", now))
        else:
            gang.partial_since = None
            gang.reported.discard("a")
            if need and len(bound) >= need:
                self.whole_seen.add(uid)

        stuck = {p["metadata"]["uid"]: p for p in live if not p["spec"].get("nodeName") and _has_no_node(p)}
        gang.stuck_since = {u: gang.stuck_since.get(u, now) for u in stuck} if bound else {}
        for pod_uid, since in gang.stuck_since.items():
            if now - since > self._patience and pod_uid not in gang.reported:
                gang.reported.add(pod_uid)
                out.append(Violation(name, "b", f"pod {stuck[pod_uid]['metadata']['name']} has had no node "
                                     f"for {now - since:.1f} s while {len(bound)} members are bound", now))
        return out

    def _succeeded(self, workload: dict, live: list) -> int:
        seen = sum(_phase(p) == "Succeeded" for p in live)
        counted = sum((self._owners.get(ref["uid"]) or {}).get("status", {}).get("succeeded", 0)
                      for ref in _owner_refs(workload) if ref["kind"] != "Pod")
        return max(seen, counted)

    def _need(self, workload: dict, succeeded: int, live: list) -> int:
        """How many members have to be bound at this moment for the gang to be whole."""
        sets = (workload.get("status", {}).get("admission") or {}).get("podSetAssignments") or []
        count = sum(s.get("count", 0) for s in sets) or sum(s["count"] for s in workload["spec"]["podSets"])
        jobs = [self._owners[r["uid"]] for r in _owner_refs(workload)
                if r["kind"] == "Job" and r["uid"] in self._owners]
        left = count - succeeded
        if jobs:
            completions = jobs[0]["spec"].get("completions") or count
            left = min(count, completions - succeeded)
        return max(0, left - _in_back_off(live))


def _in_back_off(live: list) -> int:
    """Ranks whose newest pod failed and has no successor yet: their owner decides when."""
    newest: dict[str, dict] = {}
    plain = 0
    for pod in live:
        index = pod["metadata"].get("annotations", {}).get(INDEX)
        if index is None:
            plain += _phase(pod) == "Failed"
            continue
        other = newest.get(index)
        if other is None or _age_key(pod) > _age_key(other):
            newest[index] = pod
    if newest:
        return sum(_phase(p) == "Failed" for p in newest.values())
    alive = sum(_phase(p) not in ("Failed", "Succeeded") for p in live)
    return plain if alive == 0 else max(0, plain - alive)


def _age_key(pod: dict) -> tuple:
    return (pod["metadata"].get("creationTimestamp", ""), pod["metadata"].get("resourceVersion", ""))


def _has_no_node(pod: dict) -> bool:
    """The scheduler said so, or the pod still carries a gate."""
    if pod["spec"].get("schedulingGates"):
        return True
    return any(c["type"] == "PodScheduled" and c["status"] == "False"
               for c in pod.get("status", {}).get("conditions") or [])


def _phase(pod: dict) -> str:
    return pod.get("status", {}).get("phase", "")


def _is_true(obj: dict, condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True"
               for c in obj.get("status", {}).get("conditions") or [])


def _owner_refs(obj: dict) -> list:
    return obj["metadata"].get("ownerReferences") or []


def _controller_uid(obj: dict) -> str | None:
    return next((r["uid"] for r in _owner_refs(obj) if r.get("controller")), None)


def _keep(store: dict, kind: str, obj: dict) -> None:
    if kind == "DELETED":
        store.pop(obj["metadata"]["uid"], None)
    else:
        store[obj["metadata"]["uid"]] = obj

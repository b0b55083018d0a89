"""Things that happen while a test looks elsewhere: pods created at a steady rate, bindings recorded."""

import time

from e2e.harness.api import JOBS, Api, Reflector
from e2e.harness.background import Background


class Stream(Background):
    """Creates make(i) at `rate` a second from enter to exit (or until `limit`)."""

    def __init__(self, api: Api, make, rate: float, limit: int = 10_000):
        super().__init__("stream of pods")
        self._api, self._make, self._rate, self._limit = api, make, rate, limit
        self.created = 0

    def work(self) -> None:
        began = time.monotonic()
        while self.created < self._limit:
            wait = began + self.created / self._rate - time.monotonic()
            if self.stop_asked.wait(max(0.0, wait)):
                return
            self._api.create(self._make(self.created))
            self.created += 1


class Slots:
    """Records, from watches, the nodes that every Job was promised as it started and every pod that
    was ever bound, and tells which promised slots others took.

    The promise counts from the start: a plan whose room was taken while its Job was still suspended
    is made again before any pod exists (design 2.4), and costs nobody anything."""

    def __init__(self, api: Api, is_foreign):
        self._is_foreign = is_foreign
        self.started: dict[str, list[set[str]]] = {}  # Job -> the nodes of each of its starts
        self.foreign: dict[str, str] = {}             # pod name -> node
        self._watches = [Reflector(api, JOBS, self._job), Reflector(api, "/api/v1/pods", self._pod)]

    def __enter__(self) -> "Slots":
        for watch in self._watches:
            watch.start()
        for watch in self._watches:
            assert watch.synced.wait(10), watch.failure
        return self

    def __exit__(self, *_) -> None:
        for watch in self._watches:
            watch.stop()

    def lost(self) -> list[str]:
        """Foreign pods on a node that a started gang was promised. Meaningful where a gang's pod
        fills its node and foreign pods never end: then a node belongs to one or to the other."""
        promised = {node: name for name, starts in self.started.items() for nodes in starts for node in nodes}
        return [f"{pod} took {node}, promised to {promised[node]}"
                for pod, node in self.foreign.items() if node in promised]

    def _job(self, kind: str, job: dict) -> None:
        if kind == "DELETED" or job["spec"].get("suspend"):
            return
        nodes = set(pinned_nodes(job["spec"]["template"]))
        starts = self.started.setdefault(job["metadata"]["name"], [])
        if nodes and nodes not in starts:
            starts.append(nodes)

    def _pod(self, kind: str, pod: dict) -> None:
        if kind != "DELETED" and pod["spec"].get("nodeName") and self._is_foreign(pod):
            self.foreign[pod["metadata"]["name"]] = pod["spec"]["nodeName"]


def pinned_nodes(pod: dict) -> list[str]:
    """The nodes that a pod, or a pod template, may run on by its terms on metadata.name; empty
    without any."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    return [name for term in terms for field in term.get("matchFields", [])
            if field["key"] == "metadata.name" for name in field["values"]]

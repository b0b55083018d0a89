"""A cluster autoscaler's stand-in: brings nodes for pods that kube-scheduler found no place for.

As the real one does, it asks what the nodes that are there could still take (by requests alone: it
knows of no extender), and brings as many more as the rest needs, a while later and one by one.
"""

import contextlib
import math
import time

from e2e.harness import fleet
from e2e.harness.api import Api
from e2e.harness.background import Background

_PERIOD = 0.1


class Autoscaler(Background):
    """Adds nodes make(i) of 8 GPUs from enter to exit, `most` at most, each `delay` seconds after it
    was seen to be needed and `apart` seconds after the one before. They stay."""

    def __init__(self, api: Api, make, most: int, delay: float = 2.0, apart: float = 0.5):
        super().__init__("autoscaler")
        self._api, self._make, self._most, self._delay, self._apart = api, make, most, delay, apart
        self._coming: list[float] = []  # when they are there
        self.added: list[tuple[float, str]] = []  # when, name
        self.most_unschedulable = 0  # pods, at one time

    def work(self) -> None:
        while not self.stop_asked.wait(_PERIOD):
            while self._coming and self._coming[0] <= time.monotonic():
                self._coming.pop(0)
                self._add_node()
            self._order_nodes()

    def _add_node(self) -> None:
        node = self._make(len(self.added))
        self._api.create(node)
        self.added.append((time.monotonic(), node["metadata"]["name"]))

    def _order_nodes(self) -> None:
        pods = self._api.items("/api/v1/pods")
        waiting = [_gpus(p) for p in pods if _is_unschedulable(p)]
        self.most_unschedulable = max(self.most_unschedulable, len(waiting))
        if not waiting:
            return
        free = {n["metadata"]["name"]: int(n["status"]["allocatable"].get(fleet.GPU, "0"))
                for n in self._api.items("/api/v1/nodes")}
        for pod in pods:
            with contextlib.suppress(KeyError):
                free[pod["spec"]["nodeName"]] -= _gpus(pod)
        rooms = sorted(free.values())
        left = 0
        for gpus in sorted(waiting, reverse=True):
            fitting = next((i for i, room in enumerate(rooms) if room >= gpus), None)
            if fitting is None:
                left += gpus
            else:
                rooms[fitting] -= gpus
        needed = math.ceil(left / 8) - len(self._coming)
        for _ in range(min(needed, self._most - len(self.added) - len(self._coming))):
            last = self._coming[-1] if self._coming else 0.0
            self._coming.append(max(time.monotonic() + self._delay, last + self._apart))


def _gpus(pod: dict) -> int:
    if pod["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    return sum(int(c.get("resources", {}).get("requests", {}).get(fleet.GPU, "0"))
               for c in pod["spec"]["containers"])


def _is_unschedulable(pod: dict) -> bool:
    return not pod["spec"].get("nodeName") and any(
        c["type"] == "PodScheduled" and c["status"] == "False" and c.get("reason") == "Unschedulable"
        for c in pod["status"].get("conditions", []))

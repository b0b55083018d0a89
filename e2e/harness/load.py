"""Things that happen while a test looks elsewhere: pods created at a steady rate, bindings recorded."""

import contextlib
import threading
import time

from e2e.harness.api import WORKLOADS, Api, ApiError, Reflector
from e2e.harness.cluster import plan_of


class Stream(threading.Thread):
    """Creates make(i) at `rate` a second from enter to exit (or until `limit`)."""

    def __init__(self, api: Api, make, rate: float, limit: int = 10_000):
        super().__init__(daemon=True, name="stream of pods")
        self._api, self._make, self._rate, self._limit = api, make, rate, limit
        self._stop_asked = threading.Event()
        self.created = 0
        self.failure: Exception | None = None

    def __enter__(self) -> "Stream":
        self.start()
        return self

    def __exit__(self, kind, *_) -> None:
        self._stop_asked.set()
        self.join()
        if self.failure and kind is None:
            raise self.failure

    def run(self) -> None:
        began = time.monotonic()
        try:
            while self.created < self._limit:
                wait = began + self.created / self._rate - time.monotonic()
                if self._stop_asked.wait(max(0.0, wait)):
                    return
                self._api.create(self._make(self.created))
                self.created += 1
        except (ApiError, OSError) as error:
            self.failure = error


class Slots:
    """Records, from watches, every plan that was ever written and every pod that was ever bound, and
    tells which planned slots others took."""

    def __init__(self, api: Api, is_foreign):
        self._is_foreign = is_foreign
        self.plans: dict[str, list[list[str]]] = {}  # workload name -> its plans, in time order
        self.foreign: dict[str, str] = {}            # pod name -> node
        self._watches = [Reflector(api, WORKLOADS, self._workload), Reflector(api, "/api/v1/pods", self._pod)]

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
        """Foreign pods on a node that any plan ever named. Meaningful where a gang's pod fills its
        node and foreign pods never end: then a node belongs to one or to the other."""
        planned = {node: name for name, plans in self.plans.items() for plan in plans for node in plan}
        return [f"{pod} took {node}, planned for {planned[node]}"
                for pod, node in self.foreign.items() if node in planned]

    def _workload(self, kind: str, workload: dict) -> None:
        with contextlib.suppress(KeyError, TypeError):
            plan = plan_of(workload)
            plans = self.plans.setdefault(workload["metadata"]["name"], [])
            if kind != "DELETED" and plan and plan not in plans:
                plans.append(plan)

    def _pod(self, kind: str, pod: dict) -> None:
        if kind != "DELETED" and pod["spec"].get("nodeName") and self._is_foreign(pod):
            self.foreign[pod["metadata"]["name"]] = pod["spec"]["nodeName"]

"""Wakes fake pods that kwok forgot.

kwok 0.8.0 loses the delayed end of a pod now and then, when a busy machine makes it play the stage
before twice: the pod would run for ever. Any change of the pod makes it look again.
"""

import contextlib
import datetime
import http.client
import pathlib
import re
import threading

from e2e.harness.api import Api, ApiError

_EVERY, _OVERDUE = 5.0, 5.0  # seconds
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def seconds(duration: str) -> float:
    """Of a Go duration: '1m30s' is 90."""
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", duration))


class Nudger(threading.Thread):
    """Changes each running pod that is overdue by five seconds, once."""

    def __init__(self, kubeconfig: pathlib.Path):
        super().__init__(daemon=True, name="nudger")
        self._kubeconfig = kubeconfig
        self._stop_asked = threading.Event()
        self.nudged: set[str] = set()

    def stop(self) -> None:
        self._stop_asked.set()

    def run(self) -> None:
        api = Api(self._kubeconfig)
        while not self._stop_asked.wait(_EVERY):
            # Tests stop the API server.
            with contextlib.suppress(ApiError, OSError, ValueError, http.client.HTTPException):
                self.look(api, datetime.datetime.now(datetime.timezone.utc))

    def look(self, api: Api, now: datetime.datetime) -> None:
        for pod in api.get("/api/v1/pods?fieldSelector=status.phase%3DRunning")["items"]:
            meta = pod["metadata"]
            runtime = meta.get("annotations", {}).get("bench/runtime")
            started = pod["status"].get("startTime")
            if not runtime or not started or "deletionTimestamp" in meta or meta["uid"] in self.nudged:
                continue
            age = (now - datetime.datetime.fromisoformat(started.replace("Z", "+00:00"))).total_seconds()
            if age > seconds(runtime) + _OVERDUE:
                self.nudged.add(meta["uid"])
                api.merge(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                          {"metadata": {"annotations": {"bench/nudged": "true"}}})

"""Feeds the judge from three watches on a live cluster and looks every half second."""

import pathlib
import threading
import time

from e2e.harness.api import WORKLOADS, Api, Reflector
from e2e.watcher.judge import PATIENCE, Judge


class Watcher:
    """Runs from enter to exit. `check()` raises AssertionError when a gang was partial, and also
    when the watcher could not see (a watch that failed would prove nothing)."""

    def __init__(self, kubeconfig: pathlib.Path, patience: float = PATIENCE, on_violation=None):
        self.judge = Judge(patience)
        self._on_violation = on_violation
        self._lock = threading.Lock()
        self._stop = threading.Event()
        api = Api(kubeconfig)
        self._reflectors = [
            Reflector(api, "/api/v1/pods", self._locked(self.judge.pod)),
            Reflector(api, "/apis/batch/v1/jobs", self._locked(self.judge.owner)),
            Reflector(api, WORKLOADS, self._locked(self.judge.workload))]
        self._looker = threading.Thread(target=self._look, daemon=True, name="partial-gang judge")
        self._look_failure: Exception | None = None

    def __enter__(self) -> "Watcher":
        for reflector in self._reflectors:
            reflector.start()
        for reflector in self._reflectors:
            while not reflector.synced.wait(0.1):
                if reflector.failure:
                    raise reflector.failure
        self._looker.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._looker.join()
        for reflector in self._reflectors:
            reflector.stop()

    def settle(self) -> None:
        """Waits the patience out, so that what is partial now is told."""
        time.sleep(PATIENCE + 1.0)

    def check(self) -> None:
        self.check_sight()
        assert not self.violations, "\n".join(map(str, self.violations))

    def check_sight(self) -> None:
        """AssertionError when the watcher stopped seeing."""
        blind = [r.failure for r in self._reflectors if r.failure] + [self._look_failure]
        assert not any(blind), f"the watcher went blind: {blind}"

    @property
    def violations(self) -> list:
        return self.judge.violations

    def counts(self) -> tuple[int, int]:
        """(workloads seen Admitted, those of them seen with every member bound)."""
        with self._lock:
            return len(self.judge.admitted_seen), len(self.judge.whole_seen)

    def _locked(self, seen):
        def call(kind: str, obj: dict) -> None:
            with self._lock:
                seen(kind, obj)
        return call

    def _look(self) -> None:
        try:
            while not self._stop.wait(0.5):
                with self._lock:
                    fresh = self.judge.look(time.monotonic())
                for violation in fresh:
                    if self._on_violation:
                        self._on_violation(violation)
        except Exception as error:
            self._look_failure = error
            raise

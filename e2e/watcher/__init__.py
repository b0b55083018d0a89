"""The partial-gang watcher: judges from pods, their owners and Workloads alone."""

from e2e.watcher.judge import Judge, Violation
from e2e.watcher.watcher import Watcher

__all__ = ["Judge", "Violation", "Watcher"]

"""Processes with a pid file: started in their own session, stopped by pid, waited for until gone.

A pid file holds "pid start-time"; the start time (clock ticks since boot, field 22 of
/proc/PID/stat) keeps a recycled pid from being taken for ours. Files are numbered in start order,
so that whoever cleans up later can stop in the opposite order.
"""

import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import time


class ProcessError(RuntimeError):
    """A process did not start, or died while something waited for it."""


def free_port() -> int:
    """A TCP port nobody on loopback uses, below the range the kernel hands to outgoing connections."""
    for _ in range(200):
        port = random.randint(20000, 32000)
        if port in _handed_out:
            continue
        with contextlib.closing(socket.socket()) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _handed_out.add(port)
        return port
    raise ProcessError("no free port on 127.0.0.1 between 20000 and 32000")


_handed_out: set[int] = set()


def start_time(pid: int) -> str | None:
    """Start time of a live process; None when there is none or it is only a zombie."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rsplit(")", 1)[1].split()  # the name in parentheses may hold blanks
    return None if fields[0] in "ZX" else fields[19]


def _recorded(pid_file: pathlib.Path) -> int | None:
    """The pid of the file, if that very process still lives."""
    try:
        pid, started = pid_file.read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if start_time(int(pid)) == started else None


def _stop_pid(pid: int, grace: float) -> None:
    started = start_time(pid)
    for sig, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        if started is None or start_time(pid) != started:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
            os.kill(pid, signal.SIGCONT)  # a stopped process would never see the signal
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if start_time(pid) != started:
                return
            time.sleep(0.02)
    raise ProcessError(f"process {pid} does not go away")


class Processes:
    """The processes of one directory: logs in DIR/log, pid files in DIR/pids."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.logs = directory / "log"
        self.pids = directory / "pids"
        self._children: dict[str, subprocess.Popen] = {}

    def start(self, name: str, argv: list, env: dict | None = None) -> subprocess.Popen:
        self.logs.mkdir(parents=True, exist_ok=True)
        self.pids.mkdir(parents=True, exist_ok=True)
        with open(self.logs / f"{name}.log", "ab") as log:
            child = subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory, env={**os.environ, **(env or {})}, start_new_session=True)
        number = 1 + max((int(p.name[:3]) for p in self.pids.iterdir()), default=0)
        started = start_time(child.pid)
        if started is not None:  # else it died at once; whoever waits for it will say so
            (self.pids / f"{number:03}-{name}").write_text(f"{child.pid} {started}")
        self._children[name] = child
        return child

    def alive(self, name: str) -> bool:
        return any(_recorded(p) for p in self._files(name))

    def tail(self, name: str, lines: int = 12) -> str:
        try:
            text = (self.logs / f"{name}.log").read_text(errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def wait_until(self, name: str, ready, seconds: float) -> None:
        """Polls ready() until it is true; fails when the process dies or the time is over."""
        end = time.monotonic() + seconds
        while not ready():
            if not self.alive(name):
                raise ProcessError(f"{name} died while starting:\n{self.tail(name)}")
            if time.monotonic() > end:
                raise ProcessError(f"{name} is not ready after {seconds:.0f} s:\n{self.tail(name)}")
            time.sleep(0.1)

    def signal(self, name: str, sig: int) -> None:
        for pid_file in self._files(name):
            if (pid := _recorded(pid_file)) is not None:
                os.kill(pid, sig)

    def stop(self, name: str, grace: float = 15.0) -> int | None:
        """Stops one; returns its exit code where it was our child (negative = by signal)."""
        child = self._children.pop(name, None)
        for pid_file in self._files(name):
            if (pid := _recorded(pid_file)) is not None:
                _stop_pid(pid, grace)
            pid_file.unlink(missing_ok=True)
        return child.wait() if child else None

    def kill(self, name: str) -> None:
        """As a power cut would: SIGKILL, then waits until it is gone."""
        self.signal(name, signal.SIGKILL)
        self.stop(name)

    def stop_all(self) -> int:
        """Stops everything that has a pid file, last started first, but the caller; returns how many
        were alive."""
        stopped = 0
        for pid_file in sorted(self._files(), reverse=True):
            name, pid = pid_file.name[4:], _recorded(pid_file)
            if pid == os.getpid():
                continue
            stopped += pid is not None
            self.stop(name)
        return stopped

    def living(self) -> list[str]:
        return [p.name[4:] for p in sorted(self._files()) if _recorded(p)]

    def _files(self, name: str | None = None) -> list[pathlib.Path]:
        if not self.pids.is_dir():
            return []
        return [p for p in self.pids.iterdir() if name is None or p.name[4:] == name]

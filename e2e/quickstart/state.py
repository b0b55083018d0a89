"""state.py check|down DIR: is a quickstart up in DIR? stop it. Standard library only."""

import fcntl
import os
import pathlib
import shutil
import signal
import sys
import time

from e2e.harness.process import Processes, start_time

OWN = "000-quickstart"


class Busy(Exception):
    """Another quickstart holds the directory."""


class Hold:
    """The directory belongs to this process until released; its pid file is the first to be stopped."""

    def __init__(self, directory: pathlib.Path):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / ".gitignore").write_text("*\n")
        self._pid_file = directory / "pids" / OWN
        self._lock = open(directory / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy from None
        if Processes(directory).living():
            raise Busy
        shutil.rmtree(directory / "log", ignore_errors=True)
        self._pid_file.parent.mkdir(exist_ok=True)
        self._pid_file.write_text(f"{os.getpid()} {start_time(os.getpid())}")

    def release(self) -> None:
        self._pid_file.unlink(missing_ok=True)


def complaint(directory: pathlib.Path) -> str:
    return f"quickstart: already up in {directory}; ./quickstart --down --dir {directory} stops it"


def down(directory: pathlib.Path) -> list[str]:
    """Returns when every process of the directory is gone: their names, in the order they were
    started."""
    own = directory / "pids" / OWN
    processes = Processes(directory)
    stopped = processes.living()
    if "quickstart" in stopped:
        pid = int(own.read_text().split()[0])
        os.kill(pid, signal.SIGTERM)  # it takes the others down with it
        end = time.monotonic() + 60
        while "quickstart" in processes.living() and time.monotonic() < end:
            time.sleep(0.1)
    processes.stop_all()
    shutil.rmtree(directory / "etcd", ignore_errors=True)
    return stopped


def main() -> int:
    action, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    if action == "down":
        stopped = down(directory)
        print(f"quickstart: stopped {', '.join(stopped)} of {directory}" if stopped
              else f"quickstart: nothing was up in {directory}", file=sys.stderr)
    elif Processes(directory).living():
        print(complaint(directory), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

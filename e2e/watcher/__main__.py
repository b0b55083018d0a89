"""python3 -m e2e.watcher --kubeconfig F [--seconds N]: prints partial gangs, exit 1 if there were any."""

import argparse
import pathlib
import signal
import sys
import threading

from e2e.watcher.watcher import Watcher


def main() -> int:
    parser = argparse.ArgumentParser(prog="e2e.watcher", description=__doc__)
    parser.add_argument("--kubeconfig", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, help="how long; default: until SIGINT or SIGTERM")
    arguments = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with Watcher(arguments.kubeconfig, on_violation=lambda v: print(v, flush=True)) as watcher:
        ended.wait(arguments.seconds)
    watcher.check_sight()
    admitted, whole = watcher.counts()
    print(f"{admitted} workloads admitted, {whole} seen whole, {len(watcher.violations)} partial gangs")
    return 1 if watcher.violations else 0


if __name__ == "__main__":
    sys.exit(main())

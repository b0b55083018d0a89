#!/usr/bin/env python3
"""How fast bursts of Jobs start with muster, beside the bare scheduler, on one machine in one sitting.

    tests/bench/bursts.py [--rounds 5] [--scenario one-pod|gangs|fabric|held|all] [--writes] [--dir D]

Runs both sides in turn (bare, muster, bare, …), each on a new local control plane with 400 idle nodes
of 8 GPUs, and prints each side's median and the ratio of medians. `one-pod`: 300 Jobs of one 8-GPU pod
at once, Jobs started per second. `gangs`: 20 Jobs of 16 pods at once, pods running per second. `fabric`:
100 Jobs of 16 pods on 2,000 nodes in racks of 16, with muster each inside one rack. `held`: one-pod
again, but both sides with muster, on one of them with 64 pods of elastic gangs that wait for nodes; then
once with 1,000 of them. The clock runs from the first create to the last pod seen Running. `--writes`: one more run of each scenario with the API
server's audit log on, and the writes per Job by user.

MUSTER_BINARY names the muster to measure (default: build/release/cli/muster).
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("MUSTER_BINARY", str(ROOT / "build" / "release" / "cli" / "muster"))

from e2e.harness import fleet, manifests  # noqa: E402
from e2e.harness.api import Api, Reflector  # noqa: E402
from e2e.harness.controlplane import ControlPlane, wait_for  # noqa: E402
from e2e.harness.muster import SCHEDULER_CONFIGURATION, Muster  # noqa: E402

TEAM = "bench"
HELD = "held"
HELD_GANG = 8  # pods
REQUIRED = "kueue.x-k8s.io/podset-required-topology"


@dataclasses.dataclass(frozen=True)
class Scenario:
    jobs: int
    pods: int  # of a Job
    nodes: int = 400
    racks: bool = False  # a flavor with a topology, and each Job asks for one rack


SCENARIOS = {"one-pod": Scenario(300, 1), "gangs": Scenario(20, 16),
             "fabric": Scenario(100, 16, nodes=2000, racks=True), "held": Scenario(300, 1)}


def bare_configuration() -> dict:
    """The shipped scheduler configuration without its extender: what differs is muster alone."""
    config = manifests.scheduler_configuration(
        SCHEDULER_CONFIGURATION, "https://127.0.0.1", pathlib.Path("x"), pathlib.Path("x"), pathlib.Path("x"))
    del config["extenders"]
    return config


class Running:
    """Counts pods of the bench that have been seen Running."""

    def __init__(self, api: Api):
        self.seen: set[str] = set()
        self.last = 0.0
        self._watch = Reflector(api, f"/api/v1/namespaces/{TEAM}/pods", self._pod)
        self._watch.start()
        assert self._watch.synced.wait(10)

    def _pod(self, kind: str, pod: dict) -> None:
        if kind != "DELETED" and pod.get("status", {}).get("phase") == "Running":
            if pod["metadata"]["uid"] not in self.seen:
                self.seen.add(pod["metadata"]["uid"])
                self.last = time.monotonic()

    def stop(self) -> None:
        self._watch.stop()


def burst(plane: ControlPlane, scenario: Scenario, queue: str | None) -> float:
    """Seconds from the first create to the last pod running."""
    running = Running(plane.api)
    annotations = {REQUIRED: "cloud/rack"} if scenario.racks and queue else None
    objects = [fleet.job(f"j{i:03}", TEAM, queue, pods=scenario.pods, template_annotations=annotations)
               for i in range(scenario.jobs)]
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(plane.api.create, objects))
    wait_for("all pods run", lambda: len(running.seen) >= scenario.jobs * scenario.pods, 300, every=0.05)
    running.stop()
    return running.last - began


def hold(plane: ControlPlane, muster: Muster, pods: int) -> None:
    """So many pods of gangs whose nodes never come."""
    muster.reconfigure(elasticWindow=pods)
    plane.api.create(fleet.namespace(HELD))
    for obj in (fleet.flavor("elastic", capacity="elastic", labels={"bench/pool": "nowhere"}),
                fleet.cluster_queue("elastic", "elastic", pods * 8), fleet.local_queue("main", HELD, "elastic")):
        plane.api.create(obj)
    for i in range(pods // HELD_GANG):
        plane.api.create(fleet.job(f"held-{i:03}", HELD, "main", pods=HELD_GANG))
    wait_for("all gangs are held", lambda: sum(
        any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod["status"].get("conditions", []))
        for pod in plane.api.items(f"/api/v1/namespaces/{HELD}/pods")) == pods, 300, every=1)


def one_run(scenario: Scenario, with_muster: bool, folder: pathlib.Path, audit: bool = False, held: int = 0):
    shutil.rmtree(folder, ignore_errors=True)
    with ControlPlane(folder, audit=audit) as plane:
        plane.start(scheduler=None if with_muster else bare_configuration(), with_scheduler=not with_muster)
        if with_muster:
            muster = Muster(plane).install()
        objects = [fleet.namespace(TEAM), *fleet.nodes(scenario.nodes, labels={"bench/pool": "h100"})]
        if with_muster:
            flavor = (fleet.flavor("h100", topology="racks", labels={"bench/pool": "h100"})
                      if scenario.racks else fleet.flavor("h100", capacity="fixed"))
            objects += [*([fleet.topology("racks")] if scenario.racks else []), flavor,
                        fleet.cluster_queue("bench", "h100", scenario.nodes * 8),
                        fleet.local_queue("main", TEAM, "bench")]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            plane.api.create(objects[0])
            list(pool.map(plane.api.create, objects[1:]))
        if held:
            hold(plane, muster, held)
        time.sleep(5)  # nodes initialised, caches warm
        before = len(plane.writes()) if audit else 0
        seconds = burst(plane, scenario, "main" if with_muster else None)
        writes = plane.writes()[before:] if audit else []
    shutil.rmtree(folder, ignore_errors=True)
    return seconds, writes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scenario", choices=[*SCENARIOS, "all"], default="all")
    parser.add_argument("--writes", action="store_true")
    parser.add_argument("--dir", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = arguments.dir or pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))
    for name in SCENARIOS if arguments.scenario == "all" else [arguments.scenario]:
        scenario = SCENARIOS[name]
        units, unit = ((scenario.jobs, "Jobs/s") if scenario.pods == 1
                       else (scenario.jobs * scenario.pods, "pods/s"))
        sides = {"muster": 0, "held": 64} if name == "held" else {"bare": 0, "muster": 0}
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(arguments.rounds):
            for side, held in sides.items():
                seconds, _ = one_run(scenario, side != "bare", folder / "plane", held=held)
                rates[side].append(units / seconds)
                print(f"{name} round {number + 1} {side}: {units / seconds:.1f} {unit}", flush=True)
        if arguments.rounds:
            medians = {side: statistics.median(rates[side]) for side in sides}
            first, second = medians.values()
            print(f"{name}: " + ", ".join(f"{side} {medians[side]:.1f} {unit} ({min(rates[side]):.1f} to "
                                          f"{max(rates[side]):.1f})" for side in sides)
                  + f", ratio {second / first:.2f}", flush=True)
        if name == "held":
            seconds, _ = one_run(scenario, True, folder / "plane", held=1000)
            print(f"held, 1,000 pods: {units / seconds:.1f} {unit}", flush=True)
        if arguments.writes:
            _, writes = one_run(scenario, True, folder / "plane", audit=True)
            by_user = collections.Counter((user, f"{verb} {resource}") for user, verb, resource in writes)
            for (user, what), count in sorted(by_user.items()):
                print(f"{name} writes per Job: {count / scenario.jobs:6.2f}  {user}: {what}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

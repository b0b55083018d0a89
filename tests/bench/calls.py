#!/usr/bin/env python3
"""How long the extender takes to answer on a large fleet; how soon muster is ready there, with how much.

    tests/bench/calls.py [--nodes 1250] [--foreign 0] [--some 500] [--calls 2000] [--dir D]

640 nodes carry plans (40 running gangs of 16 one-node pods); --foreign so many pods of 1 GPU stand on
the others. Then pods outside every plan ask, as kube-scheduler does, over mutual TLS on one kept
connection: filter, and prioritize with the same nodes, for 1, --some and all names. 16 pods take turns,
so that up to 16 answers are open. Prints p50 and p99 of the calls by muster's own histogram
(interpolated within a bucket of /metrics, as histogram_quantile does) and by the caller's clock. In the
end muster is started anew: the time until /readyz, and its memory ten seconds later and at most.

MUSTER_BINARY names the muster to measure (default: build/release/cli/muster).
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import ssl
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("MUSTER_BINARY", str(ROOT / "build" / "release" / "cli" / "muster"))

from e2e.harness import fleet  # noqa: E402
from e2e.harness.controlplane import ControlPlane, wait_for  # noqa: E402
from e2e.harness.muster import Muster  # noqa: E402

GANGS, PODS = 40, 16
TEAM = "bench"
SAMPLE = re.compile(r'muster_extender_call_seconds_bucket\{(.*)\}')


def buckets(muster: Muster, verb: str) -> dict[float, float]:
    """Upper bound in seconds -> calls up to it, over all sizes."""
    found: dict[float, float] = {}
    for name, value in muster.metrics().items():
        if match := SAMPLE.fullmatch(name):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[1]))
            if labels["verb"] == verb:
                bound = float(labels["le"])
                found[bound] = found.get(bound, 0) + value
    return found


def quantile(share: float, before: dict, after: dict) -> float:
    counts = sorted((bound, after[bound] - before.get(bound, 0)) for bound in after)
    rank, low, below = share * counts[-1][1], 0.0, 0.0
    for bound, count in counts:
        if count >= rank:
            return low if count == below else low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    return low


class Scheduler:
    """One connection, as kube-scheduler's client keeps it."""

    def __init__(self, muster: Muster):
        context = ssl.create_default_context(cafile=str(muster.ca_file()))
        context.load_cert_chain(*map(str, muster.client_files()))
        host, port = muster.extender.split(":")
        self._connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=10)

    def ask(self, verb: str, body: bytes) -> bytes:
        self._connection.request("POST", f"/v1/{verb}", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, (answer.status, text[:200])
        return text


def fill(plane: ControlPlane, count: int, foreign: int) -> list[str]:
    nodes = fleet.nodes(count)
    for node in nodes[GANGS * PODS:]:
        del node["metadata"]["annotations"]  # nobody plays their kubelets: the pods there only stand
        node["metadata"]["labels"]["bench/still"] = "true"
    flavor = fleet.flavor("h100", capacity="fixed", labels={"bench/gangs": "true"})
    for node in nodes[:GANGS * PODS]:
        node["metadata"]["labels"]["bench/gangs"] = "true"
    still = [node["metadata"]["name"] for node in nodes[GANGS * PODS:]]
    pods = [fleet.pod(f"still-{i:06}", "default", gpus=1, cpu="100m", nodeName=still[i % len(still)])
            for i in range(foreign)]
    objects = [flavor, fleet.cluster_queue("bench", "h100", count * 8), fleet.local_queue("main", TEAM, "bench")]
    plane.api.create(fleet.namespace(TEAM))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(plane.api.create, objects + nodes))
        list(pool.map(plane.api.create,
                      [fleet.job(f"gang-{i:02}", TEAM, "main", pods=PODS) for i in range(GANGS)]))
        list(pool.map(plane.api.create, pods))
    wait_for("all gangs run", lambda: sum(
        pod.get("status", {}).get("phase") == "Running"
        for pod in plane.api.items(f"/api/v1/namespaces/{TEAM}/pods")) >= GANGS * PODS, 300, every=1)
    return [node["metadata"]["name"] for node in nodes]


def measure(muster: Muster, names: list[str], some: int, calls: int) -> None:
    scheduler = Scheduler(muster)
    for count in (1, some, len(names)):
        bodies = []
        for i in range(16):
            pod = fleet.pod(f"other-{i}", "default", gpus=8)
            pod["metadata"]["uid"] = f"00000000-0000-0000-0000-{i:012}"
            bodies.append(json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names[-count:]}).encode())
        for verb in ("filter", "prioritize"):
            for body in bodies:
                scheduler.ask(verb, body)  # warm
            before = buckets(muster, verb)
            seconds = []
            for i in range(calls):
                began = time.perf_counter()
                scheduler.ask(verb, bodies[i % 16])
                seconds.append(time.perf_counter() - began)
            after = buckets(muster, verb)
            p50, p99 = (quantile(q, before, after) * 1e3 for q in (0.5, 0.99))
            seconds.sort()
            caller50, caller99 = (seconds[int(q * calls)] * 1e3 for q in (0.5, 0.99))
            print(f"{verb} {count} names: p50 {p50:.3f} ms, p99 {p99:.3f} ms; by the caller "
                  f"{caller50:.3f} and {caller99:.3f} ms; {calls} calls", flush=True)


def memory(plane: ControlPlane) -> dict[str, int]:
    """VmRSS and VmHWM of muster in MB."""
    pid_file = next(plane.processes.pids.glob("*-muster"))
    status = pathlib.Path(f"/proc/{pid_file.read_text().split()[0]}/status").read_text()
    return {name: int(kilobytes) // 1000
            for name, kilobytes in re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1250)
    parser.add_argument("--foreign", type=int, default=0)
    parser.add_argument("--some", type=int, default=500)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--dir", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = arguments.dir or pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-"))
    with ControlPlane(folder / "plane") as plane:
        plane.start(with_scheduler=False)
        muster = Muster(plane).install()
        names = fill(plane, arguments.nodes, arguments.foreign)
        print(f"{len(names)} nodes, {arguments.foreign + GANGS * PODS} pods", flush=True)
        measure(muster, names, arguments.some, arguments.calls)
        muster.stop()
        began = time.monotonic()
        muster.start()
        ready = time.monotonic() - began
        time.sleep(10)
        now = memory(plane)
        print(f"ready {ready:.1f} s after its start; {now['VmRSS']} MB, {now['VmHWM']} MB at most", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

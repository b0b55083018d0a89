"""The part of ./quickstart that comes after everything is built."""

import argparse
import concurrent.futures
import contextlib
import pathlib
import shlex
import signal
import sys
import time

from e2e.harness import fleet
from e2e.harness.controlplane import ControlPlane
from e2e.harness.muster import Muster
from e2e.harness.process import ProcessError
from e2e.harness.tools import muster_binary, tools
from e2e.quickstart import scenario
from e2e.quickstart.observe import Observer
from e2e.quickstart.state import Busy, Hold, complaint
from e2e.quickstart.table import Table
from e2e.watcher import Watcher

_DEADLINE = 4 * scenario.DAY  # when work that has not finished is called stuck


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Interrupted(Exception):
    pass


def _interrupt(*_) -> None:
    raise Interrupted


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--began", type=float, default=time.time())
    parser.add_argument("--config", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--empty", action="store_true")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        hold = Hold(arguments.dir)
    except Busy:
        say(complaint(arguments.dir))
        return 2
    plane = ControlPlane(arguments.dir)
    keep = arguments.keep or arguments.empty
    status, up = 1, False
    try:
        say("== starting the control plane and muster")
        plane.start(with_scheduler=False)
        Muster(plane, config=arguments.config).install()
        say(f"== up after {time.time() - arguments.began:.0f} s")
        up = True
        status = 0 if arguments.empty else run(plane, arguments.began)
    except Interrupted:
        say("\nquickstart: interrupted")
        keep = False
    except (ProcessError, RuntimeError, OSError) as error:
        say(f"quickstart: {error}")
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if not (keep and up):
            plane.stop()
        hold.release()
    if keep and up:
        say(hints(plane, arguments.dir, arguments.empty))
        print(f"KUBECONFIG={plane.kubeconfig}", flush=True)
    elif not keep:
        say(f"nothing is left running; logs are in {arguments.dir / 'log'}")
    return status


def hints(plane: ControlPlane, directory: pathlib.Path, empty: bool) -> str:
    """What can be done with what was left up. Applying the example as it is over the scaled fleet
    would multiply its quotas, so that is for an empty control plane only."""
    examples = "manifests/examples"
    path = shlex.quote(f"{tools()}:{muster_binary().parent}")
    lines = [("to use it", f"export KUBECONFIG={shlex.quote(str(plane.kubeconfig))} PATH={path}:$PATH")]
    if empty:
        lines += [("queues", f"kubectl apply -k {examples}/research-fleet"),
                  ("nodes", f"kubectl apply -f {examples}/fake-nodes.yaml"),
                  ("", "(two; any Node with the annotation kwok.x-k8s.io/node: fake will do)")]
    else:
        lines += [("what is there", f"the research fleet at 1/{scenario.SCALE} of its size: "
                                    "kubectl get nodes,clusterqueues; kubectl get localqueues -A")]
    lines += [("work", f"kubectl create -f {examples}/research-fleet/jobs.yaml"),
              ("", "(what does not fit waits: kubectl get workloads -A; see docs/using.md)"),
              ("log", str(directory / "log" / "muster.log")),
              ("stop it all", f"./quickstart --down --dir {shlex.quote(str(directory))}")]
    return "\n" + "\n".join(f"{title:<15}{text}" for title, text in lines)


def run(plane: ControlPlane, began: float) -> int:
    """The day. 0 when everything that it is to show was seen."""
    objects = scenario.objects()
    nodes = scenario.nodes(objects)
    gpus = sum(int(n["status"]["allocatable"][fleet.GPU]) for n in nodes)
    say(f"== the research fleet, 1/{scenario.SCALE}: {len(nodes)} nodes, {gpus} GPUs")
    plane.apply([o for o in objects if o["kind"] == "Namespace"])
    plane.apply([o for o in objects if o["kind"] != "Namespace"])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(plane.api.create, nodes))
    with Observer(plane.api) as observer, Watcher(plane.kubeconfig) as watcher:
        table = Table(observer, gpus)
        finished, took = live_through(plane, observer, table)
        observer.wait_victims_gone(20)
        watcher.settle()
        watcher.check_sight()
        return prove(observer, watcher, table, gpus, finished, took, began)


def live_through(plane: ControlPlane, observer: Observer, table: Table) -> tuple[bool, float]:
    """(everything finished, seconds)."""
    arrivals = scenario.arrivals()
    begun = time.monotonic()
    submitted = 0
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sent = []
        while True:
            now = time.monotonic() - begun
            while submitted < len(arrivals) and arrivals[submitted].at <= now:
                sent.append(pool.submit(plane.api.create, arrivals[submitted].obj))
                submitted += 1
            everything = submitted == len(arrivals) and all(s.done() for s in sent)
            left = observer.unfinished()
            table.show(now, f"{submitted} of {len(arrivals)} submitted, {left} unfinished")
            if everything:
                for s in sent:
                    s.result()  # an ApiError here ends the run with its message
                if left == 0 and now > arrivals[-1].at + 2:
                    return True, now
            if now > _DEADLINE or not plane.processes.alive("muster"):
                return False, now
            time.sleep(0.25)


def prove(observer: Observer, watcher: Watcher, table: Table, gpus: int, finished: bool, took: float,
          began: float) -> int:
    admitted, whole = watcher.counts()
    gangs = len(observer.admitted_gangs)
    reclaimed = [p for p in observer.preemptions if len(p.pods) > 1 and p.by != "?"]
    left = observer.left_of_victims()
    torn = observer.torn()
    claims = [
        (gangs > 0, f"{gangs} gangs admitted ({sum(observer.admitted_gangs.values())} pods); "
                    f"of {admitted} workloads {whole} were seen whole"),
        (bool(reclaimed), f"{len(observer.preemptions)} gangs preempted" + "".join(
            f"\n       e.g. {p.victim} ({len(p.pods)} pods) by {p.by}, {p.reason}: {p.message}"
            for p in reclaimed[:1])),
        (not left and not torn, "preempted whole: every pod of each victim went"
         + (f", but for {', '.join(left[:5])}" if left else ", and no pod of anybody else")
         + (f"; pods lost besides: {', '.join(torn[:5])}" if torn else "")),
        (not watcher.violations, f"{len(watcher.violations)} partial gangs, by the watcher"
         + "".join(f"\n       {v}" for v in watcher.violations[:5])),
        (finished, f"a day's work in {took:.0f} s, "
         + ("all of it finished" if finished else f"{observer.unfinished()} workloads unfinished")
         + f"; at most {table.peak_use} of {gpus} GPUs in use at once"),
    ]
    print("\nproved:" if all(ok for ok, _ in claims) else "\nNOT everything was proved:")
    for ok, text in claims:
        print(f"  {'ok ' if ok else 'NO '}  {text}")
    print(f"time: {time.time() - began:.0f} s in all", flush=True)
    return 0 if all(ok for ok, _ in claims) else 1


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(1)

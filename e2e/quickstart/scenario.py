"""A day's work on the research fleet of manifests/examples, made small enough for two cores.

The fleet and its quotas are the example's, every count divided by SCALE. A day takes DAY seconds: one
second is 24 minutes. What happens, so that everything muster is for can be seen:

* at night multimodal fills the idle fleet with opportunistic gangs, far beyond its own quota;
* in the morning pretraining's flagship wants its guarantee back: whole gangs of multimodal go;
* during the day the teams train, people debug, sweeps run on spot and flex-start capacity;
* at noon serving scales up, again on its guarantee;
* in the evening the gangs that were preempted run again, and everything finishes.
"""

import copy
import dataclasses
import re

import yaml

from e2e.harness import fleet
from e2e.harness.manifests import kustomize
from e2e.harness.tools import MANIFESTS

SCALE = 4
DAY = 60.0
_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
_QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")


@dataclasses.dataclass(frozen=True)
class Arrival:
    at: float  # seconds after the day began
    obj: dict


def clock(seconds: float) -> str:
    minutes = int(seconds / DAY * 24 * 60)
    return f"day {1 + minutes // 1440}, {minutes // 60 % 24:02}:{minutes % 60:02}"


def objects() -> list:
    """Namespaces, flavors, priorities, cohorts and queues, with the quotas of a fleet 1/SCALE the size."""
    out = kustomize(MANIFESTS / "examples" / "research-fleet")
    for obj in out:
        for group in obj.get("spec", {}).get("resourceGroups", []):
            for flavor in group["flavors"]:
                for resource in flavor["resources"]:
                    for name in _QUOTAS:
                        if name in resource:
                            resource[name] = _divided(resource[name])
    return sorted(out, key=lambda o: o["kind"] != "Namespace")


def _divided(quantity) -> str:
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", str(quantity)).groups()
    return f"{int(number) // SCALE}{unit}"


def nodes(example_objects: list) -> list:
    """The groups that the example's ConfigMap describes, each 1/SCALE in number."""
    groups = next(o["data"]["groups"] for o in example_objects
                  if o["kind"] == "ConfigMap" and "groups" in o.get("data", {}))
    out = []
    for group in yaml.safe_load(groups):
        for i in range(group["count"] // SCALE):
            name = f"{group['prefix']}-{i}"
            domains = {label: f"{label.rsplit('/', 1)[-1]}-{i // size}"
                       for label, size in group.get("domains", {}).items()}
            node = fleet.node(name, labels={**group["labels"], **domains}, taints=group.get("taints"))
            node["status"]["allocatable"] = node["status"]["capacity"] = dict(group["allocatable"])
            out.append(node)
    return out


def _gang(name, team, pods, runtime, priority, whole_nodes=True, **fields) -> dict:
    job = fleet.job(name, team, "training", pods=pods, gpus=8 if whole_nodes else 1, runtime=runtime,
                    priority=priority, cpu="180" if whole_nodes else "20",
                    template_annotations={_TOPOLOGY: "fleet.example/block"} if whole_nodes else None, **fields)
    return job


def arrivals() -> list[Arrival]:
    """The day, in order of time."""
    day: list[Arrival] = []

    def at(hour: float, obj: dict) -> None:
        day.append(Arrival(hour / 24 * DAY, copy.deepcopy(obj)))

    for i in range(18):  # 1,152 GPUs reserved capacity, 300 of them its own
        at(0.1 * i, _gang(f"night-{i:02}", "multimodal", 8, 26, "opportunistic"))
    at(7.5, _gang("flagship", "pretraining", 64, 14, "flagship"))
    for i in range(6):
        at(8 + i, _gang(f"sft-{i}", "posttraining", 4, 8, "research"))
        at(8.5 + i, _gang(f"ablation-{i}", "pretraining", 8, 8, "research"))
    for i in range(6):  # no topology asked for: spot and flex-start
        at(2 + 2.5 * i, _gang(f"sweep-{i}", "multimodal", 32, 10, "opportunistic", whole_nodes=False))
    for i in range(48):
        team = ("pretraining", "posttraining", "multimodal")[i % 3]
        at(6 + i * 0.25, fleet.pod(f"debug-{i:02}", team, gpus=1, cpu="8", annotations={"bench/runtime": "5s"},
                                   labels={fleet.QUEUE: "debug", "kueue.x-k8s.io/priority-class": "debug"}))
    for i in range(12):
        at(12 + i * 0.1, fleet.pod(f"replica-{i:02}", "serving", gpus=8, cpu="180",
                                   annotations={"bench/runtime": "20s"},
                                   labels={fleet.QUEUE: "inference", "kueue.x-k8s.io/priority-class": "serving"}))
    return sorted(day, key=lambda a: a.at)

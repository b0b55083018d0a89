"""./quickstart as users call it: what it prints, its exit codes, and that it leaves nothing running."""

import json
import os
import re
import subprocess
import types

import pytest

from e2e.harness import fleet
from e2e.harness.api import Api
from e2e.harness.controlplane import wait_for
from e2e.harness.process import Processes
from e2e.harness.tools import ROOT, muster_binary, tools
from e2e.quickstart.__main__ import hints
from e2e.quickstart.observe import Observer

ENVIRONMENT = {**os.environ, "MUSTER_BINARY": str(muster_binary())}


def quickstart(*args, seconds=120):
    return subprocess.run([ROOT / "quickstart", *map(str, args)], env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=seconds, stdin=subprocess.DEVNULL)


@pytest.fixture
def folder(tmp_path):
    yield tmp_path / "state"
    quickstart("--down", "--dir", tmp_path / "state")
    assert Processes(tmp_path / "state").living() == []


def kubectl(kubeconfig, *args, stdin=None):
    return subprocess.run([tools() / "kubectl", "--kubeconfig", kubeconfig, *args], input=stdin,
                          capture_output=True, text=True, check=True).stdout


def test_empty_brings_up_a_cluster_without_nodes_queues_or_jobs_and_down_takes_it_away(folder):
    done = quickstart("--empty", "--dir", folder)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last == f"KUBECONFIG={folder / 'kubeconfig'}"
    kubeconfig = last.removeprefix("KUBECONFIG=")
    assert f"export KUBECONFIG={kubeconfig} PATH=" in done.stderr
    for kind in ("nodes", "jobs", "clusterqueues", "localqueues", "resourceflavors"):
        assert kubectl(kubeconfig, "get", kind, "-A", "-o", "name") == "", kind

    # Whoever comes next brings their own: nodes, queues, a Job that runs for bench/runtime.
    for obj in (fleet.node("mine"), fleet.flavor("any"), fleet.cluster_queue("all", "any", 8),
                fleet.local_queue("main", "default", "all"), fleet.job("job", "default", "main", runtime=1)):
        Api(folder / "kubeconfig").create(obj)
    wait_for("the Job is done", lambda: json.loads(kubectl(kubeconfig, "get", "job", "job", "-o", "json"))
             .get("status", {}).get("succeeded") == 1, 60)

    again = quickstart("--empty", "--dir", folder)
    assert again.returncode == 2
    assert "already up" in again.stderr and len(again.stderr.splitlines()) == 1
    assert kubectl(kubeconfig, "get", "nodes", "-o", "name") == "node/mine\n", "the first one goes on"

    down = quickstart("--down", "--dir", folder)
    assert (down.returncode, down.stdout) == (0, "")
    for name in ("etcd", "kube-apiserver", "muster"):
        assert re.search(rf"stopped .*\b{name}\b", down.stderr), down.stderr
    assert Processes(folder).living() == []
    none = quickstart("--down", "--dir", folder)
    assert none.returncode == 0 and "nothing was up" in none.stderr, "there was none: still 0"


@pytest.mark.parametrize("words", [
    ["--nonsense"], ["--config"], ["--config", "no-such-file"], ["--dir"], ["--down", "--keep"], ["extra"]])
def test_wrong_usage_is_exit_2_with_one_line(words):
    done = quickstart(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def seen_by_observer(*seen):
    """What it takes for torn when its watches show, in this order, a pod born at second 10 go
    (`lost`), its gang admitted, or evicted or finished at that second."""
    pod = {"metadata": {"uid": "pod", "name": "p", "namespace": "ns", "creationTimestamp": second(10),
                        "ownerReferences": [{"uid": "job"}]}, "spec": {"nodeName": "n"}, "status": {}}
    observer = Observer(None)
    observer._pod("ADDED", pod)
    for what, *at in seen:
        if what == "lost":
            observer._pod("DELETED", pod)
            continue
        conditions = [{"type": what, "status": "True", "reason": "Preempted", "message": "",
                       "lastTransitionTime": second(*at or [9])}]
        observer._workload("MODIFIED", {
            "metadata": {"uid": "wl", "name": "w", "namespace": "ns",
                         "ownerReferences": [{"uid": "job", "name": "j"}]},
            "spec": {"podSets": [{"count": 2}]}, "status": {"conditions": conditions}})
    return observer.torn()


def second(at):
    return f"2020-01-01T00:00:{at:02}Z"


@pytest.mark.parametrize("seen, torn", [
    ([("Admitted",), ("lost",)], True),
    ([("Admitted",), ("Evicted", 20), ("lost",)], False),
    ([("Admitted",), ("lost",), ("Evicted", 20)], False),       # The other watch was first.
    ([("Evicted", 20), ("Admitted",), ("lost",)], False),       # It started again meanwhile.
    ([("Evicted", 5), ("Admitted",), ("lost",)], True),         # That was before it started.
    ([("Admitted", 7), ("Evicted", 8), ("lost",)], False),      # Its pods came after it was evicted.
    ([("Admitted",), ("lost",), ("Finished", 30)], False),
])
def test_a_lost_pod_is_excused_by_what_happened_since_its_gang_started_whatever_is_seen_first(seen, torn):
    assert seen_by_observer(*seen) == (["ns/p"] if torn else [])


def test_a_broken_configuration_is_told_and_nothing_is_left_running(folder, tmp_path):
    broken = tmp_path / "config.yaml"
    broken.write_text("apiVersion: muster.dev/v1\nkind: ServerConfig\nnoSuchKey: 1\n")
    done = quickstart("--empty", "--dir", folder, "--config", broken)
    assert done.returncode == 1
    assert "noSuchKey" in done.stderr
    assert Processes(folder).living() == []


def test_the_hints_multiply_no_quotas_of_a_fleet_that_is_there(tmp_path):
    plane = types.SimpleNamespace(kubeconfig=tmp_path / "kubeconfig")
    kept, empty = hints(plane, tmp_path, empty=False), hints(plane, tmp_path, empty=True)
    assert "apply -k" in empty and "fake-nodes.yaml" in empty
    assert "apply" not in kept and "1/4" in kept
    for text in (kept, empty):
        assert f"export KUBECONFIG={plane.kubeconfig} PATH={tools()}:" in text


def test_the_main_job_is_proved_and_leaves_nothing_running(folder):
    done = quickstart("--dir", folder, seconds=600)
    print(done.stdout[-6000:], done.stderr[-3000:])
    assert done.returncode == 0
    for claim in (r"ok +[1-9]\d* gangs admitted", r"ok +[1-9]\d* gangs preempted\n +e\.g\. .* by .*Reclam",
                  r"ok +0 partial gangs", r"time: \d+ s in all"):
        assert re.search(claim, done.stdout), claim
    assert Processes(folder).living() == []

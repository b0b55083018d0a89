"""kube-scheduler's own HTTP client, linked from k8s.io/kubernetes, against the running extender."""

import json
import os
import re
import subprocess

import pytest

from e2e.harness import fleet
from e2e.harness.cluster import plan_of
from e2e.harness.tools import tools


@pytest.fixture
def world(cluster, tmp_path):
    """Six nodes: a gang fills two of them, an ordinary pod sits on another."""
    cluster.nodes(6)
    team, _ = cluster.queue(100)
    cluster.submit(fleet.job("gang", team, "main", pods=2))
    cluster.wait_running(team, "gang", 2)
    gang_nodes = plan_of(cluster.workload(team, "gang"))
    cluster.submit(fleet.pod("ordinary", team, gpus=8, labels={"e2e": "ordinary", "e2e/job": "ordinary"}))
    cluster.wait_running(team, "ordinary", 1)
    certificate, key = cluster.muster.client_files()
    file = tmp_path / "world.json"
    file.write_text(json.dumps({
        "urlPrefix": f"https://{cluster.muster.extender}/v1", "ca": str(cluster.muster.ca_file()),
        "cert": str(certificate), "key": str(key), "gangNodes": gang_nodes,
        "nodes": cluster.api.items("/api/v1/nodes"), "pods": cluster.api.items("/api/v1/pods")}))
    return file


def test_filter_prioritize_and_preempt_answer_the_scheduler_s_own_client_over_mutual_tls(world):
    programs = sorted(tools().glob("scheduler-client-*.test"), key=os.path.getmtime)
    assert programs, "e2e/bootstrap/tools.sh with MUSTER_TOOLS_FOR_TESTS=1 builds the client"
    done = subprocess.run([programs[-1], "-test.v"], env={**os.environ, "MUSTER_WORLD": str(world)},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIP" not in done.stdout
    assert len(re.findall(r"^--- PASS", done.stdout, re.MULTILINE)) == 7

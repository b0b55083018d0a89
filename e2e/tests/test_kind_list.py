"""The kind harness has the same tests, and says so when it cannot run them."""

import os
import shutil
import subprocess

import pytest

from e2e.harness.tools import ROOT


def collected(environment):
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "e2e/tests", "--collect-only", "-q",
                           "-p", "no:cacheprovider"], cwd=ROOT, env={**os.environ, **environment},
                          capture_output=True, text=True)
    return sorted(line for line in done.stdout.splitlines() if "::" in line)


def test_the_kind_harness_has_the_same_list_of_tests():
    listed = subprocess.run([ROOT / "e2e" / "kind" / "run", "--list"], capture_output=True, text=True, check=True)
    local = collected({"MUSTER_E2E_PLATFORM": ""})
    assert sorted(listed.stdout.splitlines()) == local
    assert len(local) > 50


@pytest.mark.skipif(bool(shutil.which("docker") and shutil.which("kind")), reason="docker and kind are here")
def test_without_docker_or_kind_the_kind_harness_says_that_it_did_not_run():
    done = subprocess.run([ROOT / "e2e" / "kind" / "run"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "NOT RUN" in done.stderr

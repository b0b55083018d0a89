"""What the CRDs accept and refuse by themselves, on an API server without webhooks of ours."""

import pytest
import yaml

from e2e.harness.manifests import Shipped
from e2e.harness.tools import MANIFESTS

CASES = MANIFESTS / "tests" / "cases.yaml"


@pytest.fixture(scope="module")
def server(bare):
    bare.install_definitions(Shipped().definitions())
    return bare


def test_every_rule_of_the_definitions_has_a_sample_that_is_judged_as_it_says(server):
    wrong = []
    for case in yaml.safe_load(CASES.read_text()):
        words = ["apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", CASES.parent / case["file"]]
        if "subresource" in case:
            words.append(f"--subresource={case['subresource']}")
        done = server.kubectl(*words, check=False)
        said = done.stdout + done.stderr
        if (done.returncode == 0) != case["valid"] or case.get("message", "") not in said:
            wrong.append(f"{case['file']}: exit {done.returncode}, {said.strip()}")
    assert wrong == []


def test_every_sample_is_in_a_case():
    named = {case["file"] for case in yaml.safe_load(CASES.read_text())}
    assert named == {file.name for file in CASES.parent.glob("*.yaml")} - {CASES.name}

"""Fixtures: a bare control plane, and one with muster on it. Each test module has its own."""

import os
import pathlib
import shutil
import tempfile

import pytest

from e2e.harness.controlplane import ControlPlane


@pytest.fixture(scope="session")
def scratch():
    """A folder for control planes; kept (and named) when something failed, for its logs."""
    keep = os.environ.get("MUSTER_E2E_KEEP")
    folder = pathlib.Path(keep) if keep else pathlib.Path(tempfile.mkdtemp(prefix="muster-e2e-"))
    yield folder
    if not keep and not getattr(pytest, "muster_failed", False):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"\nlogs of the control planes: {folder}")


def pytest_runtest_logreport(report):
    if report.failed:
        pytest.muster_failed = True


@pytest.fixture(scope="module")
def bare(scratch, request):
    """A control plane without muster."""
    with ControlPlane(scratch / request.module.__name__.rsplit(".", 1)[-1]) as plane:
        plane.start()
        yield plane

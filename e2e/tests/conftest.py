"""Fixtures: a bare control plane per module, and one with muster for all tests.

Each test that uses `cluster` has its own namespaces, queues and nodes, and leaves none of them. After
each, muster has to be alive: a sanitizer report ends it, and with it the test that caused it.
"""

import os
import pathlib
import shutil
import signal
import tempfile

import pytest

from e2e.harness.cluster import Cluster
from e2e.harness.controlplane import ControlPlane
from e2e.harness.muster import Muster
from e2e.kind.platform import KindMuster, KindPlane
from e2e.watcher import Watcher

_failed = []


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="also the tests marked `full`")


def _interrupt(*_):
    raise KeyboardInterrupt


def pytest_configure(config):
    signal.signal(signal.SIGTERM, _interrupt)  # fixtures stop what they started
    config.addinivalue_line("markers", "full: takes minutes; runs with --full only")
    config.addinivalue_line("markers", "partial_gangs_expected: the watcher's verdict is not asserted")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--full"):
        for item in items:
            if "full" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="only with --full"))


def pytest_runtest_logreport(report):
    if report.failed:
        _failed.append(report.nodeid)


@pytest.fixture(scope="session")
def scratch():
    """A folder for control planes; kept (and named) when something failed, for its logs."""
    named = os.environ.get("MUSTER_E2E_KEEP")
    folder = pathlib.Path(named) if named else pathlib.Path(tempfile.mkdtemp(prefix="muster-e2e-"))
    yield folder
    if named or _failed:
        print(f"\nlogs of the control planes: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def bare(scratch, request):
    """A control plane without muster."""
    with ControlPlane(scratch / request.module.__name__.rsplit(".", 1)[-1]) as plane:
        plane.start()
        yield plane


@pytest.fixture(scope="session")
def shared_cluster(scratch):
    on_kind = os.environ.get("MUSTER_E2E_PLATFORM") == "kind"
    with (KindPlane if on_kind else ControlPlane)(scratch / "cluster") as plane:
        plane.start(with_scheduler=False)
        muster = (KindMuster if on_kind else Muster)(plane).install()
        yield Cluster(plane, muster)
        if plane.processes.alive("muster"):
            assert muster.stop() == 0, f"muster did not end in peace:\n{plane.processes.tail('muster', 40)}"


@pytest.fixture
def cluster(shared_cluster, request):
    """The cluster with muster, watched for partial gangs while the test runs."""
    with Watcher(shared_cluster.plane.kubeconfig) as watcher:
        yield shared_cluster
        if not shared_cluster.plane.processes.alive("muster"):
            tail = shared_cluster.plane.processes.tail("muster", 60)
            shared_cluster.muster.start()
            shared_cluster.clean()
            pytest.fail(f"muster died:\n{tail}")
        shared_cluster.clean()
        watcher.check_sight()
        if "partial_gangs_expected" not in request.keywords:
            watcher.check()


@pytest.fixture
def watcher(cluster):
    """A watcher of the test's own, to ask and to settle before the test ends."""
    with Watcher(cluster.plane.kubeconfig) as own:
        yield own

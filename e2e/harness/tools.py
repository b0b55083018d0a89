"""Where the programs are that the harness starts."""

import functools
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"


@functools.cache
def tools() -> pathlib.Path:
    """The folder of kube-apiserver and its like, as e2e/bootstrap/tools.sh builds it. The
    environment variable MUSTER_E2E_TOOLS names another one."""
    named = os.environ.get("MUSTER_E2E_TOOLS")
    if not named:
        script = ROOT / "e2e" / "bootstrap" / "tools.sh"
        named = subprocess.run([script, "--print-folder"], check=True, capture_output=True,
                               text=True).stdout.strip()
    if not (pathlib.Path(named) / "kube-apiserver").exists():
        raise FileNotFoundError(f"no control plane in {named}: run e2e/bootstrap/tools.sh")
    return pathlib.Path(named)


def muster_binary() -> pathlib.Path:
    """The muster under test: MUSTER_BINARY, else the dev build (with its sanitizers)."""
    named = os.environ.get("MUSTER_BINARY")
    return pathlib.Path(named) if named else ROOT / "build" / "dev" / "cli" / "muster"

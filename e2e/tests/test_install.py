"""What users apply and write, checked without a container engine."""

import json
import os
import re
import subprocess

import pytest
import yaml

from e2e.harness.manifests import kustomize, scheduler_configuration
from e2e.harness.tools import MANIFESTS, ROOT, muster_binary, tools

OVERLAYS = ["own-scheduler", "second-scheduler"]
EXAMPLES = ["research-fleet", "kubeflow-teams"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_api_server_takes_every_object_of_the_overlay(cluster, overlay):
    objects = kustomize(MANIFESTS / "overlays" / overlay)
    for obj in objects:
        # Those of this cluster are in use, with a url in the place of the service.
        if obj["kind"].endswith("WebhookConfiguration"):
            obj["metadata"]["name"] += "-as-shipped"
    done = cluster.plane.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server",
                                 "--field-manager=dry", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert len(done.stdout.splitlines()) == len(objects)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_api_server_and_the_webhooks_take_every_object_of_the_example(cluster, example):
    objects = kustomize(MANIFESTS / "examples" / example)
    # A dry run does not remember namespaces: those first, for real.
    namespaces = [o for o in objects if o["kind"] == "Namespace"]
    cluster.plane.apply(namespaces)
    cluster.plane.kubectl("apply", "--server-side", "--dry-run=server", "--field-manager=dry", "-f", "-",
                          stdin=yaml.safe_dump_all(objects))


def test_kubeadm_takes_the_configuration():
    done = subprocess.run([tools() / "kubeadm", "config", "validate", "--config",
                           MANIFESTS / "scheduler" / "kubeadm-config.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ok" in done.stdout


def test_the_kubeadm_patch_changes_the_static_pod_that_kubeadm_writes(tmp_path):
    patches = MANIFESTS / "scheduler" / "kubeadm-patches"
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump_all([
        {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": "v1.37.2"},
        {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
         "localAPIEndpoint": {"advertiseAddress": "192.0.2.1"},  # any: nothing is started
         "patches": {"directory": str(patches)}}]))
    done = subprocess.run([tools() / "kubeadm", "init", "phase", "control-plane", "scheduler", "--dry-run",
                           "--config", config], env={**os.environ, "KUBEADM_INIT_DRYRUN_DIR": str(tmp_path)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [written] = tmp_path.rglob("kube-scheduler.yaml")
    pod = yaml.safe_load(written.read_text())
    [container] = pod["spec"]["containers"]
    assert "--config=/etc/kubernetes/muster/kube-scheduler.yaml" in container["command"]
    mounted = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    assert mounted["muster"] == "/etc/kubernetes/muster"
    assert {v["name"]: v["hostPath"]["path"] for v in pod["spec"]["volumes"]}["muster"] == "/etc/kubernetes/muster"
    assert "kubeconfig" in mounted, "what kubeadm mounts itself stays"


def test_the_kind_configuration_names_files_that_exist():
    kind = yaml.safe_load((MANIFESTS / "scheduler" / "kind.yaml").read_text())
    assert (kind["apiVersion"], kind["kind"]) == ("kind.x-k8s.io/v1alpha4", "Cluster")
    plane = next(n for n in kind["nodes"] if n["role"] == "control-plane")
    for patch in plane["kubeadmConfigPatches"]:
        assert yaml.safe_load(patch)["kind"] == "InitConfiguration"
    assert (MANIFESTS / "scheduler" / "kube-scheduler.yaml").exists()
    assert list((MANIFESTS / "scheduler" / "kubeadm-patches").glob("kube-scheduler*.yaml"))


def test_the_four_lists_of_managed_resources_agree():
    """manifests/scheduler/README.md names them: three repeat what the server's configuration says."""
    documents = yaml.safe_load_all((MANIFESTS / "base" / "config.yaml").read_text())
    [decided] = [d["managedResources"] for d in documents if d["kind"] == "ServerConfig"]
    for name in ("kube-scheduler.yaml", "second/scheduler.yaml"):
        [extender] = yaml.safe_load((MANIFESTS / "scheduler" / name).read_text())["extenders"]
        assert [r["name"] for r in extender["managedResources"]] == decided, name
    hook = yaml.safe_load((MANIFESTS / "overlays" / "second-scheduler" / "scheduler-webhook.yaml").read_text())
    [condition] = hook["webhooks"][0]["matchConditions"]
    listed = re.match(r"\[(.*?)\]\.exists", condition["expression"])[1]
    assert re.findall(r"'([^']*)'", listed) == decided


def test_kube_scheduler_takes_both_scheduler_files(cluster, tmp_path):
    for name in ("kube-scheduler.yaml", "second/scheduler.yaml"):
        muster = cluster.muster
        config = scheduler_configuration(MANIFESTS / "scheduler" / name, f"https://{muster.extender}",
                                         muster.ca_file(), *muster.client_files())
        config.setdefault("clientConnection", {})["kubeconfig"] = str(cluster.plane.kubeconfig)
        file = tmp_path / "scheduler.yaml"
        file.write_text(yaml.safe_dump(config))
        done = subprocess.run([tools() / "kube-scheduler", f"--config={file}", "--secure-port=0",
                               f"--write-config-to={tmp_path}/out.yaml"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{name}: {done.stderr[-2000:]}"


def test_the_entrypoint_of_the_image_is_a_command_line_that_muster_takes():
    text = (MANIFESTS / "Dockerfile").read_text()
    entrypoint = json.loads(re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)[-1])
    assert entrypoint[0].endswith("/muster")
    deployment = next(o for o in kustomize(MANIFESTS / "base") if o["kind"] == "Deployment")
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        words = entrypoint[1:] + container.get("args", [])
        done = subprocess.run([muster_binary(), *words, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"


def test_every_page_of_help_exits_0_and_a_wrong_word_2():
    for words in ([], ["serve"], ["decide"]):
        done = subprocess.run([muster_binary(), *words, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and "Usage" in done.stdout
    done = subprocess.run([muster_binary(), "sevre"], capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1


def test_a_full_gate_is_a_script_that_says_so():
    done = subprocess.run([ROOT / "test", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--full" in done.stdout
    assert subprocess.run([ROOT / "test", "--nonsense"], capture_output=True).returncode == 2

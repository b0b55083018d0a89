"""A kind cluster with the interface of the local control plane, and muster in it as users install it.

The road is the one that manifests/scheduler/README.md describes for a kubeadm cluster that exists:
overlay applied unchanged, client certificate copied out of its Secret, kube-scheduler's static pod
written again with the shipped patch. Only nodes that kwok plays get the tests' pods.
"""

import base64
import json
import pathlib
import shutil
import subprocess
import time

import yaml

from e2e.harness.api import Api
from e2e.harness.controlplane import ApiServer, wait_for
from e2e.harness.manifests import kustomize
from e2e.harness.muster import Metrics
from e2e.harness.process import Processes, free_port
from e2e.harness.tools import MANIFESTS, ROOT, tools

NAME = "muster-e2e"
NODE = f"{NAME}-control-plane"
IMAGE = "muster:e2e"
NAMESPACE = "muster-system"
_ETC = "/etc/kubernetes/muster"


def _run(*argv, stdin: str | None = None) -> str:
    done = subprocess.run([str(a) for a in argv], input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, argv[:4]))}: {done.stderr.strip()[-2000:]}")
    return done.stdout


class _Pods:
    """The harness's word for processes, where the processes are containers."""

    def __init__(self, plane: "KindPlane"):
        self._plane = plane

    def signal(self, name: str, number: int) -> None:
        _run("docker", "exec", NODE, "pkill", f"-{int(number)}", "-x", name)

    def alive(self, name: str) -> bool:
        return bool(self._plane.muster_pods(ready=True)) if name == "muster" else True

    def tail(self, name: str, lines: int = 12) -> str:
        return self._plane.kubectl("logs", "-n", NAMESPACE, "-l", f"app.kubernetes.io/name={name}",
                                   f"--tail={lines}", "--prefix", check=False).stdout


class KindPlane(ApiServer):
    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        self.files = directory / "muster"  # mounted into the control-plane node
        self.local = Processes(directory)  # kwok and port forwards run here
        self.processes = _Pods(self)

    def start(self, **_) -> "KindPlane":
        (self.files / "patches").mkdir(parents=True, exist_ok=True)
        config = yaml.safe_load((MANIFESTS / "scheduler" / "kind.yaml").read_text())
        for node in config["nodes"]:
            for mount in node.get("extraMounts", []):
                mount["hostPath"] = str(self.files)
        _run("kind", "create", "cluster", "--name", NAME, "--config", "-", "--wait", "5m",
             "--kubeconfig", self.kubeconfig, stdin=yaml.safe_dump(config))
        self.api = Api(self.kubeconfig)
        self.local.start("kwok", [
            tools() / "kwok", f"--kubeconfig={self.kubeconfig}", "--manage-all-nodes=false",
            f"--config={ROOT / 'e2e' / 'harness' / 'stages.yaml'}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--server-address=127.0.0.1:{free_port()}", "--node-lease-duration-seconds=40"])
        return self

    def stop(self) -> None:
        self.local.stop_all()
        _run("kind", "delete", "cluster", "--name", NAME)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def muster_pods(self, ready: bool = False) -> list:
        pods = self.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", "app.kubernetes.io/name=muster")
        return [p for p in pods if not p["metadata"].get("deletionTimestamp") and (not ready or any(
            c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", [])))]

    def identity(self, name: str, user: str, groups: tuple = ()) -> pathlib.Path:
        """A kubeconfig with a certificate that the cluster's own signer issued."""
        key, request = self.directory / f"{name}.key", self.directory / f"{name}.csr"
        _run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
             "-out", request, "-subj", "".join(f"/O={g}" for g in groups) + f"/CN={user}")
        path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}"
        self.api.create({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": name}, "spec": {
                "request": base64.b64encode(request.read_bytes()).decode(), "usages": ["client auth"],
                "signerName": "kubernetes.io/kube-apiserver-client"}})
        self.kubectl("certificate", "approve", name)
        certificate = wait_for("the certificate is issued",
                               lambda: self.api.get(path)["status"].get("certificate"), 30)
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"client-certificate-data": certificate, "client-key": str(key)}
        file = self.directory / f"{name}.kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file

    def restart_scheduler(self, configuration: dict) -> None:
        """Writes the configuration where the static pod reads it, and the pod again with the patch."""
        (self.files / "kube-scheduler.yaml").write_text(yaml.safe_dump(configuration))
        for patch in (MANIFESTS / "scheduler" / "kubeadm-patches").iterdir():
            shutil.copy(patch, self.files / "patches")
        _run("docker", "exec", NODE, "kubeadm", "init", "phase", "control-plane", "scheduler",
             "--patches", f"{_ETC}/patches")
        subprocess.run(["docker", "exec", NODE, "pkill", "-x", "kube-scheduler"], check=False)
        time.sleep(2)
        wait_for("kube-scheduler is back", lambda: subprocess.run(
            ["docker", "exec", NODE, "pgrep", "-x", "kube-scheduler"], capture_output=True).returncode == 0, 90)


class KindMuster(Metrics):
    def __init__(self, plane: KindPlane):
        self.plane = plane
        self.extender, self.webhook, self.metrics_address = (f"127.0.0.1:{free_port()}" for _ in range(3))

    def install(self) -> "KindMuster":
        _run("docker", "build", "-f", MANIFESTS / "Dockerfile", "-t", IMAGE, ROOT)
        _run("kind", "load", "docker-image", IMAGE, "--name", NAME)
        objects = kustomize(MANIFESTS / "overlays" / "own-scheduler")
        for obj in objects:
            if obj["kind"] == "Deployment":
                obj["spec"]["replicas"] = 1  # tests kill it and look at what is left
                obj["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGE
        definitions = [o for o in objects if o["kind"] == "CustomResourceDefinition"]
        self.plane.install_definitions(definitions)
        self.plane.apply(sorted((o for o in objects if o not in definitions), key=lambda o: o["kind"] != "Namespace"))
        wait_for("muster is ready", self.ready, 180)
        self._forward()
        secret = self.plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/muster-extender-client")["data"]
        for name in ("ca.crt", "tls.crt", "tls.key"):
            (self.plane.files / name).write_bytes(base64.b64decode(secret[name]))
        self.plane.restart_scheduler(self.scheduler_configuration())
        return self

    def scheduler_configuration(self) -> dict:
        return yaml.safe_load((MANIFESTS / "scheduler" / "kube-scheduler.yaml").read_text())

    def start(self) -> None:
        self._scale(1)
        wait_for("muster is ready", self.ready, 120)
        self._forward()

    def _forward(self) -> None:
        """Its listeners on the addresses that tests know; a forward ends with its pod."""
        for name, address, port in (("extender", self.extender, 9444), ("webhook", self.webhook, 9443),
                                    ("metrics", self.metrics_address, 8080)):
            self.plane.local.stop(f"forward-{name}")
            self.plane.local.start(f"forward-{name}", [
                tools() / "kubectl", f"--kubeconfig={self.plane.kubeconfig}", "port-forward", "-n", NAMESPACE,
                "deployment/muster", f"{address.rsplit(':', 1)[1]}:{port}"])
        time.sleep(1)

    def stop(self) -> int:
        self._scale(0)
        wait_for("muster is gone", lambda: not self.plane.muster_pods(), 60)
        return 0

    def kill(self) -> None:
        self._scale(0)
        self.plane.kubectl("delete", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=muster", "--force",
                           "--grace-period=0")

    def reconfigure(self, **server_config) -> None:
        config_map = next(o for o in kustomize(MANIFESTS / "overlays" / "own-scheduler")
                          if o["kind"] == "ConfigMap" and o["metadata"]["name"].startswith("muster"))
        documents = list(yaml.safe_load_all(config_map["data"]["config.yaml"]))
        documents[-1].update(server_config)
        config_map["data"]["config.yaml"] = yaml.safe_dump_all(documents)
        self.plane.apply([config_map])
        self.stop()
        self.start()

    def ready(self) -> bool:
        return bool(self.plane.muster_pods(ready=True))

    def ca_file(self) -> pathlib.Path:
        return self.plane.files / "ca.crt"

    def client_files(self) -> tuple[pathlib.Path, pathlib.Path]:
        return self.plane.files / "tls.crt", self.plane.files / "tls.key"

    def _scale(self, replicas: int) -> None:
        self.plane.kubectl("patch", "deployment", "-n", NAMESPACE, "muster", "--type=merge",
                           "-p", json.dumps({"spec": {"replicas": replicas}}))

"""A control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
kwok, all with their data, logs and pid files under one directory, on free ports.

Differences from a cluster that kubeadm makes, each for a reason:
* no ServiceAccount admission: there is no kubelet to mount a token;
* without `node_lifecycle` nothing marks nodes whose heartbeat is missing, nothing taints new nodes,
  and kwok writes no leases: 400 nodes would cost 40 writes a second. Failure drills switch it on;
* etcd does not fsync.
"""

import json
import pathlib
import shutil
import subprocess
import time

import yaml

from e2e.harness.api import Api
from e2e.harness.nudge import Nudger
from e2e.harness.pki import Authority
from e2e.harness.process import ProcessError, Processes, free_port
from e2e.harness.tools import tools

SCHEDULER_USER = "system:kube-scheduler"
JOB_CONTROLLER_USER = "system:serviceaccount:kube-system:job-controller"
_STAGES = pathlib.Path(__file__).with_name("stages.yaml")
_START_SECONDS = 120.0  # a cold page cache on a slow disk; warm it is about 4 s


class ApiServer:
    """What kubectl and the API client need of a cluster, whoever made it."""

    kubeconfig: pathlib.Path
    api: Api | None = None  # as cluster admin, once there is one

    def kubectl(self, *args, stdin: str | None = None, kubeconfig: pathlib.Path | None = None,
                check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [tools() / "kubectl", "--kubeconfig", kubeconfig or self.kubeconfig, *map(str, args)],
            input=stdin, text=True, capture_output=True)
        if check and done.returncode != 0:
            raise ProcessError(f"kubectl {' '.join(map(str, args))}: {done.stderr.strip()[:2000]}")
        return done

    def apply(self, objects: list) -> None:
        """kubectl apply --server-side of all, in the order given."""
        if objects:
            self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-",
                         stdin=yaml.safe_dump_all(objects))

    def install_definitions(self, definitions: list) -> None:
        """Applies CRDs and waits until each is served."""
        self.apply(definitions)
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s",
                     *(f"crd/{d['metadata']['name']}" for d in definitions))


class ControlPlane(ApiServer):
    def __init__(self, directory: pathlib.Path, *, audit: bool = False, node_lifecycle: bool = False):
        self.directory = pathlib.Path(directory).absolute()
        self.processes = Processes(self.directory)
        self.pki = self.directory / "pki"
        self.kubeconfig = self.directory / "kubeconfig"
        self.audit_log = self.directory / "log" / "audit.json" if audit else None
        self._node_lifecycle = node_lifecycle
        self._nudger: Nudger | None = None
        self.url = ""

    # Life

    def start(self, *, scheduler: dict | None = None, with_scheduler: bool = True) -> "ControlPlane":
        """Everything up and ready. `scheduler` is a KubeSchedulerConfiguration; its clientConnection
        and leaderElection are filled in."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(self.pki)
        try:
            self._start_etcd()
            self._start_apiserver()
            self._start_controller_manager()
            if with_scheduler:
                self.start_scheduler(scheduler)
            self._start_kwok()
            self._nudger = Nudger(self.kubeconfig)
            self._nudger.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> int:
        """Returns when every process is gone; how many there were. Logs stay."""
        if self._nudger:
            self._nudger.stop()
        stopped = self.processes.stop_all()
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)
        return stopped

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # Identities

    def identity(self, name: str, user: str, groups: tuple = ()) -> pathlib.Path:
        """A kubeconfig that speaks as `user` (client certificate), with what RBAC grants it."""
        certificate, key = self.authority.issue(name, user, groups)
        path = self.kubeconfig if name == "admin" else self.directory / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "local",
            "clusters": [{"name": "local", "cluster": {
                "server": self.url, "certificate-authority": str(self.authority.certificate)}}],
            "users": [{"name": name, "user": {
                "client-certificate": str(certificate), "client-key": str(key)}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": name}}]}))
        path.chmod(0o600)
        return path

    def service_account(self, namespace: str, name: str) -> pathlib.Path:
        """A kubeconfig with the user name and groups that a service account token carries."""
        return self.identity(
            f"{namespace}.{name}", f"system:serviceaccount:{namespace}:{name}",
            ("system:serviceaccounts", f"system:serviceaccounts:{namespace}"))

    # Components

    def start_scheduler(self, configuration: dict | None = None) -> None:
        """kube-scheduler under its own identity, bound by the RBAC that Kubernetes ships for it."""
        config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                  **(configuration or {})}
        config["clientConnection"] = {
            "kubeconfig": str(self.identity("scheduler", SCHEDULER_USER)), "qps": 500, "burst": 1000}
        config["leaderElection"] = {"leaderElect": False}
        path = self.directory / "scheduler.yaml"
        path.write_text(yaml.safe_dump(config))
        # One line per pod bound or refused is in the events already; --v=0 keeps the log short.
        self.processes.start("kube-scheduler", [
            tools() / "kube-scheduler", f"--config={path}", "--secure-port=0"])

    def restart_scheduler(self, configuration: dict | None = None) -> None:
        self.processes.stop("kube-scheduler")
        self.start_scheduler(configuration)

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._etcd = client
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)
        self.processes.start("etcd", [
            tools() / "etcd", "--data-dir", self.directory / "etcd", "--unsafe-no-fsync",
            "--log-level=warn", "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}"])

    def _start_apiserver(self) -> None:
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        certificate, key = self.authority.issue(
            "apiserver", "kube-apiserver",
            hosts=("DNS:localhost", "DNS:kubernetes.default", "IP:127.0.0.1", "IP:10.96.0.1"))
        private, public = self.authority.service_account_key()
        off = ["ServiceAccount"] + ([] if self._node_lifecycle else ["TaintNodesByCondition"])
        argv = [
            tools() / "kube-apiserver", f"--etcd-servers={self._etcd}", "--bind-address=127.0.0.1",
            f"--secure-port={port}", "--endpoint-reconciler-type=none",
            f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority.certificate}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}", f"--service-account-signing-key-file={private}",
            "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC",
            f"--disable-admission-plugins={','.join(off)}",
            "--max-requests-inflight=3000", "--max-mutating-requests-inflight=1500"]
        if self.audit_log:
            policy = self.directory / "audit-policy.yaml"
            policy.write_text(yaml.safe_dump({
                "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
                "omitStages": ["RequestReceived", "ResponseStarted"],
                "rules": [{"level": "Metadata", "verbs": [
                    "create", "update", "patch", "delete", "deletecollection"]}, {"level": "None"}]}))
            argv += [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}"]
        self.processes.start("kube-apiserver", argv)
        self.identity("admin", "e2e-admin", ("system:masters",))
        self.api = Api(self.kubeconfig)
        self.processes.wait_until("kube-apiserver", self.api.healthy, _START_SECONDS)

    def _start_controller_manager(self) -> None:
        private, _ = self.authority.service_account_key()
        kubeconfig = self.identity("controller-manager", "system:kube-controller-manager")
        argv = [
            tools() / "kube-controller-manager", f"--kubeconfig={kubeconfig}", "--secure-port=0",
            "--use-service-account-credentials=true", f"--service-account-private-key-file={private}",
            f"--root-ca-file={self.authority.certificate}", "--leader-elect=false",
            "--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-job-syncs=10"]
        if self._node_lifecycle:
            argv += ["--node-monitor-period=1s", "--node-monitor-grace-period=20s"]
        else:
            argv += ["--controllers=*,-node-lifecycle-controller"]
        self.processes.start("kube-controller-manager", argv)

    def _start_kwok(self) -> None:
        kubeconfig = self.identity("kwok", "kwok", ("system:masters",))
        lease = 20 if self._node_lifecycle else 0
        self.processes.start("kwok", [
            tools() / "kwok", f"--kubeconfig={kubeconfig}", f"--config={_STAGES}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-ip=127.0.0.1", f"--server-address=127.0.0.1:{free_port()}",
            f"--node-lease-duration-seconds={lease}"])

    # What the audit log says

    def writes(self) -> list[tuple[str, str, str]]:
        """(user, verb, resource) of every write that the API server accepted so far."""
        out = []
        for line in self.audit_log.read_text().splitlines():
            entry = json.loads(line)
            if entry.get("responseStatus", {}).get("code", 500) < 300:
                ref = entry.get("objectRef", {})
                resource = "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
                out.append((entry["user"]["username"], entry["verb"], resource))
        return out


def wait_for(what: str, condition, seconds: float, every: float = 0.1):
    """The first true value of condition(); AssertionError that says what never came."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(every)

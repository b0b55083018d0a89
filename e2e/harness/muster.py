"""muster as a process of the harness: the shipped manifests applied, the server under its own identity."""

import http.client
import pathlib
import re
import urllib.request

import yaml

from e2e.harness import manifests
from e2e.harness.controlplane import ControlPlane, wait_for
from e2e.harness.process import free_port
from e2e.harness.tools import MANIFESTS, muster_binary

SCHEDULER_CONFIGURATION = MANIFESTS / "scheduler" / "kube-scheduler.yaml"
_READY_SECONDS = 60.0


class Metrics:
    """What /metrics says."""

    metrics_address: str

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics: 'name{labels}' -> value."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        samples = {}
        for line in text.splitlines():
            if match := re.fullmatch(r"([^#\s][^ ]*(?:\{.*\})?) ([^ ]+)", line):
                samples[match[1]] = float(match[2])
        return samples


class Muster(Metrics):
    """One `muster serve` beside a control plane. `install()` once, then start, kill and start again
    at will: addresses and certificates stay the same, as those of a Service do."""

    def __init__(self, plane: ControlPlane, *, binary: pathlib.Path | None = None,
                 config: pathlib.Path | None = None, name: str = "muster"):
        self.plane = plane
        self.name = name
        self.binary = binary or muster_binary()
        self.cert_dir = plane.directory / "certs"
        self.extender, self.webhook, self.metrics_address = (
            f"127.0.0.1:{free_port()}" for _ in range(3))
        self._shipped = manifests.Shipped()
        self._config = config
        self._server_config: dict = {}
        self.kubeconfig: pathlib.Path | None = None

    def install(self, *, scheduler: bool = True) -> "Muster":
        """What a user does: apply the manifests, start the server, point kube-scheduler at it. The
        webhooks are registered last, as nothing could be created while nobody answers them."""
        self.plane.install_definitions(self._shipped.definitions())
        self.plane.apply(self._shipped.cluster_objects())
        self.kubeconfig = self.plane.service_account(*self._shipped.service_account())
        self.start()
        self.plane.apply(self._shipped.webhooks(f"https://{self.webhook}"))
        wait_for("muster fills in the caBundle of every webhook", self._webhooks_trusted, 30)
        if scheduler:
            self.plane.restart_scheduler(self.scheduler_configuration())
        return self

    def scheduler_configuration(self) -> dict:
        certificate, key = self.client_files()
        return manifests.scheduler_configuration(
            SCHEDULER_CONFIGURATION, f"https://{self.extender}", self.ca_file(), certificate, key)

    def _webhooks_trusted(self) -> bool:
        kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
        return all(hook["clientConfig"].get("caBundle")
                   for kind in kinds
                   for configuration in self.plane.api.items(f"/apis/admissionregistration.k8s.io/v1/{kind}")
                   for hook in configuration["webhooks"])

    def start(self, *extra: str) -> None:
        self.plane.processes.start(self.name, self.argv() + list(extra), env={
            "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"})
        self.plane.processes.wait_until(self.name, self.ready, _READY_SECONDS)

    def reconfigure(self, **server_config) -> None:
        """Starts again with these keys of ServerConfig on top of the shipped ones (none: as shipped)."""
        self.stop()
        self._server_config = server_config
        self.start()

    def stop(self) -> int | None:
        """SIGTERM; the exit code, which is 0 for a server that drained in peace."""
        return self.plane.processes.stop(self.name)

    def kill(self) -> None:
        self.plane.processes.kill(self.name)

    def argv(self) -> list:
        return [self.binary, "serve", "--kubeconfig", self.kubeconfig, "--config", self.config_file(),
                "--extender-address", self.extender, "--webhook-address", self.webhook,
                "--metrics-address", self.metrics_address, "--api-address", "none",
                "--cert-dir", self.cert_dir, "--leader-elect=false"]

    def config_file(self) -> pathlib.Path:
        """The shipped configuration (or the one given), its ServerConfig changed by what the test
        asked for."""
        text = self._config.read_text() if self._config else self._shipped.configuration()
        documents = [d for d in yaml.safe_load_all(text) if d]
        if self._server_config:
            server = next((d for d in documents if d["kind"] == "ServerConfig"), None)
            if server is None:
                server = {"apiVersion": "muster.dev/v1", "kind": "ServerConfig"}
                documents.append(server)
            server.update(self._server_config)
        path = self.plane.directory / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return path

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.metrics_address}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (OSError, http.client.HTTPException):
            return False

    # Certificates that muster made in its folder

    def ca_file(self) -> pathlib.Path:
        return self.cert_dir / "ca.crt"

    def client_files(self) -> tuple[pathlib.Path, pathlib.Path]:
        """What kube-scheduler shows to the extender."""
        return self.cert_dir / "client.crt", self.cert_dir / "client.key"

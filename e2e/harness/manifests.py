"""The manifests that users apply, changed only where a process on loopback differs from a pod.

What is changed, and nothing else:

| object | change | because |
| --- | --- | --- |
| webhook configurations | `clientConfig.service` -> `clientConfig.url`, path kept; caBundle left to muster | there is no service network |
| Deployment | `replicas: 0` | muster runs as a process of the harness, under the same identity |
| scheduler configuration | host and port of `urlPrefix`, the file names of `tlsConfig` | kube-scheduler reaches muster on loopback |
| | `clientConnection`, `leaderElection` | filled in by the control plane |
"""

import copy
import pathlib
import subprocess
import urllib.parse

import yaml

from e2e.harness.tools import MANIFESTS, tools

_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def kustomize(folder: pathlib.Path) -> list:
    done = subprocess.run([tools() / "kubectl", "kustomize", folder], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"kubectl kustomize {folder.name}: {done.stderr.strip()}")
    return [d for d in yaml.safe_load_all(done.stdout) if d]


class Shipped:
    """What users of the cluster's own kube-scheduler apply, split into what comes before the server and what comes after it."""

    def __init__(self, overlay: pathlib.Path = MANIFESTS / "overlays" / "own-scheduler"):
        self._objects = kustomize(overlay)

    def _of(self, *kinds: str) -> list:
        return [copy.deepcopy(o) for o in self._objects if o["kind"] in kinds]

    def service_account(self) -> tuple[str, str]:
        """(namespace, name) of the identity the Deployment runs under."""
        deployment = self._of("Deployment")[0]
        return (deployment["metadata"]["namespace"],
                deployment["spec"]["template"]["spec"]["serviceAccountName"])

    def definitions(self) -> list:
        return self._of("CustomResourceDefinition")

    def cluster_objects(self) -> list:
        """Everything but CRDs and webhooks: namespace, RBAC, priority class, services, Deployment."""
        objects = [copy.deepcopy(o) for o in self._objects
                   if o["kind"] not in (*_WEBHOOKS, "CustomResourceDefinition")]
        for obj in objects:
            if obj["kind"] == "Deployment":
                obj["spec"]["replicas"] = 0
        return sorted(objects, key=lambda o: o["kind"] != "Namespace")

    def webhooks(self, url: str) -> list:
        configurations = self._of(*_WEBHOOKS)
        for configuration in configurations:
            for hook in configuration["webhooks"]:
                service = hook["clientConfig"].pop("service")
                hook["clientConfig"]["url"] = url + service["path"]
        return configurations

    def configuration(self) -> str:
        """The configuration file of the server, out of the ConfigMap that the Deployment mounts."""
        for config_map in self._of("ConfigMap"):
            for text in config_map.get("data", {}).values():
                if any(d and d.get("kind") in ("Configuration", "ServerConfig")
                       for d in yaml.safe_load_all(text)):
                    return text
        raise LookupError("no ConfigMap of the manifests holds a Configuration or a ServerConfig")


def scheduler_configuration(shipped: pathlib.Path, url: str, ca: pathlib.Path,
                            certificate: pathlib.Path, key: pathlib.Path) -> dict:
    """A shipped KubeSchedulerConfiguration whose extender is on loopback."""
    config = yaml.safe_load(shipped.read_text())
    for extender in config["extenders"]:
        path = urllib.parse.urlsplit(extender["urlPrefix"]).path
        extender["urlPrefix"] = url + path
        extender["tlsConfig"] |= {"caFile": str(ca), "certFile": str(certificate), "keyFile": str(key)}
    return config

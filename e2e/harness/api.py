"""A small API client on the standard library: what the harness and the watcher read with.

Independent of muster's own client on purpose; the tests submit their work with kubectl and with the
kubernetes Python library.
"""

import base64
import http.client
import json
import pathlib
import socket
import ssl
import tempfile
import threading
import time
import urllib.parse

import yaml

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
JOBS = "/apis/batch/v1/jobs"
_PLURALS = {"ClusterQueue": "clusterqueues", "NetworkPolicy": "networkpolicies",
            "PriorityClass": "priorityclasses", "WorkloadPriorityClass": "workloadpriorityclasses",
            "Topology": "topologies", "RuntimeClass": "runtimeclasses"}
_CLUSTER_SCOPED = {"Node", "Namespace", "PriorityClass", "ClusterQueue", "Cohort", "ResourceFlavor",
                   "Topology", "WorkloadPriorityClass", "AdmissionCheck", "ClusterRole",
                   "ClusterRoleBinding", "RuntimeClass"}


class ApiError(RuntimeError):
    def __init__(self, code: int, method: str, path: str, body: bytes):
        try:
            status = json.loads(body)
            self.reason, self.message = status.get("reason", ""), status.get("message", "")
        except (ValueError, AttributeError):
            self.reason, self.message = "", body[:300].decode(errors="replace")
        self.code = code
        super().__init__(f"{method} {path}: {code} {self.reason} {self.message}")


class WatchClosed(Exception):
    """The server ended the watch; go on from `version` (None: list again)."""

    def __init__(self, version: str | None):
        super().__init__(f"watch closed at {version}")
        self.version = version


def object_path(obj: dict) -> str:
    """Where one object lives, from its apiVersion, kind, namespace and name."""
    return collection_path(obj) + "/" + obj["metadata"]["name"]


def collection_path(obj: dict) -> str:
    group = obj["apiVersion"]
    prefix = "/api/v1" if group == "v1" else f"/apis/{group}"
    kind = obj["kind"]
    plural = _PLURALS.get(kind, kind.lower() + "s")
    if kind in _CLUSTER_SCOPED:
        return f"{prefix}/{plural}"
    return f"{prefix}/namespaces/{obj['metadata'].get('namespace', 'default')}/{plural}"


def _as_file(folder: pathlib.Path, section: dict, name: str) -> str:
    """The file that a kubeconfig names, or one made of the data it holds instead."""
    if name in section:
        return section[name]
    file = folder / name
    file.write_bytes(base64.b64decode(section[name + "-data"]))
    return str(file)


class Api:
    """Safe for threads: each has its own kept-alive connection."""

    def __init__(self, kubeconfig: pathlib.Path):
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urllib.parse.urlsplit(cluster["server"])
        self._host, self._port = address.hostname, address.port
        with tempfile.TemporaryDirectory() as folder:
            ca, certificate, key = (_as_file(pathlib.Path(folder), *where) for where in (
                (cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key")))
            self._tls = ssl.create_default_context(cafile=ca)
            self._tls.load_cert_chain(certificate, key)
        self._local = threading.local()

    def request(self, method: str, path: str, body=None, content_type="application/json"):
        """The decoded answer (text where it is not JSON); ApiError for every status above 299."""
        payload = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": content_type}
        for attempt in range(2):  # a kept-alive connection may have been closed meanwhile
            fresh = getattr(self._local, "connection", None) is None
            if fresh:
                self._local.connection = self._connect(60)
            try:
                self._local.connection.request(method, path, payload, headers)
                answer = self._local.connection.getresponse()
                content = answer.read()
                break
            except (http.client.HTTPException, OSError):
                self._local.connection.close()
                self._local.connection = None
                if fresh or attempt:
                    raise
        if answer.status > 299:
            raise ApiError(answer.status, method, path, content)
        if answer.headers.get_content_type() == "application/json":
            return json.loads(content)
        return content.decode()

    def get(self, path: str):
        return self.request("GET", path)

    def items(self, path: str, selector: str = "") -> list:
        query = "?labelSelector=" + urllib.parse.quote(selector) if selector else ""
        return self.get(path + query)["items"]

    def create(self, obj: dict):
        return self.request("POST", collection_path(obj), obj)

    def merge(self, path: str, patch: dict):
        return self.request("PATCH", path, patch, "application/merge-patch+json")

    def json_patch(self, path: str, patch: list):
        return self.request("PATCH", path, patch, "application/json-patch+json")

    def delete(self, path: str, **options):
        return self.request("DELETE", path, options or None)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
            return True
        except ApiError as error:
            if error.code == 404:
                return False
            raise

    def healthy(self) -> bool:
        try:
            return self.get("/readyz") == "ok"
        except (ApiError, OSError, http.client.HTTPException):
            return False

    def watch(self, path: str, version: str, selector: str = "", stop: threading.Event | None = None):
        """Yields (type, object) from `version` on; type BOOKMARK carries only a version. Ends when
        `stop` is set; raises WatchClosed when the server ends it."""
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
        if selector:
            query["labelSelector"] = selector
        connection = self._connect(5.0)
        try:
            connection.request("GET", path + "?" + urllib.parse.urlencode(query))
            answer = connection.getresponse()
            if answer.status != 200:
                raise WatchClosed(None if answer.status == 410 else version)
            pending = b""
            while not (stop and stop.is_set()):
                try:
                    chunk = answer.read1(1 << 16)
                except TimeoutError:
                    # The socket file object refuses to read on after a time-out; a fresh watch
                    # from the last version costs one request.
                    raise WatchClosed(version) from None
                if not chunk:
                    raise WatchClosed(version)
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        gone = event["object"].get("code") == 410
                        raise WatchClosed(None if gone else version)
                    version = event["object"]["metadata"]["resourceVersion"]
                    yield event["type"], event["object"]
        except (http.client.HTTPException, ConnectionError, socket.gaierror):
            raise WatchClosed(version) from None
        finally:
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)


class Reflector(threading.Thread):
    """Keeps calling `seen(type, object)` for one collection: first ADDED for each listed object,
    then the changes, across cut watches. After a relist a vanished object is reported DELETED."""

    def __init__(self, api: Api, path: str, seen, selector: str = ""):
        super().__init__(daemon=True, name="watch " + path)
        self._api, self._path, self._seen, self._selector = api, path, seen, selector
        self._stop_asked = threading.Event()
        self._known: dict[str, dict] = {}
        self.synced = threading.Event()
        self.failure: Exception | None = None

    def stop(self) -> None:
        """No call of `seen` begins after this; the thread itself ends within a read time-out."""
        self._stop_asked.set()

    def run(self) -> None:
        version = None
        while not self._stop_asked.is_set():
            try:
                if version is None:
                    version = self._list()
                    self.synced.set()
                for kind, obj in self._api.watch(self._path, version, self._selector, self._stop_asked):
                    version = obj["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._tell(kind, obj)
            except WatchClosed as closed:
                version = closed.version
            except (OSError, http.client.HTTPException, ApiError) as error:
                if self._stop_asked.is_set():
                    return
                if isinstance(error, ApiError) and error.code in (401, 403):
                    self.failure = error
                    return
                time.sleep(0.2)
            except Exception as error:  # a bug in `seen` must not look like a quiet cluster
                self.failure = error
                raise

    def _list(self) -> str:
        query = "?labelSelector=" + urllib.parse.quote(self._selector) if self._selector else ""
        listed = self._api.get(self._path + query)
        now = {o["metadata"]["uid"]: o for o in listed["items"]}
        for uid in [u for u in self._known if u not in now]:
            self._tell("DELETED", self._known[uid])
        for obj in now.values():
            self._tell("ADDED", obj)
        return listed["metadata"]["resourceVersion"]

    def _tell(self, kind: str, obj: dict) -> None:
        if self._stop_asked.is_set():
            return
        uid = obj["metadata"]["uid"]
        if kind == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = obj
        self._seen(kind, obj)

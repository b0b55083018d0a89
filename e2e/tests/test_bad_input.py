"""Bytes that no API server sends, on the listeners, and manifests that nobody should write, to decide:
a clear refusal, no crash (the server under test runs with sanitizers)."""

import http.client
import json
import socket
import ssl
import subprocess

import pytest

from e2e.harness import fleet
from e2e.harness.tools import muster_binary

REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
    "uid": "u-1", "kind": {"group": "batch", "version": "v1", "kind": "Job"},
    "resource": {"group": "batch", "version": "v1", "resource": "jobs"}, "operation": "CREATE",
    "namespace": "default", "name": "j", "userInfo": {"username": "somebody"},
    "object": fleet.job("j", "default", "main")}}
ARGS = {"Pod": fleet.pod("p", "default"), "NodeNames": ["a", "b"]}


def without(document, *path):
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return json.dumps(copy).encode()


def with_value(document, value, *path):
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(copy).encode()


SHAPELESS = {
    "nothing": b"", "a blank": b" ", "not JSON": b"hello", "a number": b"1", "null": b"null", "a list": b"[]",
    "half a string": b'"abc', "an empty object": b"{}", "bytes that are no UTF-8": b'{"kind": "\xff\xfe"}',
    "a NUL": b'{"kind": "a\x00b"}', "a byte order mark": b"\xef\xbb\xbf{}",
    "100,000 open brackets": b"[" * 100_000, "100,000 open objects": b'{"a":' * 100_000,
    "a number with 100,000 digits": b'{"kind": ' + b"9" * 100_000 + b"}",
    "a float that is too big": b'{"kind": 1e999999}',
}
REVIEWS = {
    **SHAPELESS,
    "truncated": json.dumps(REVIEW).encode()[:-30],
    "no request": without(REVIEW, "request"), "no uid": without(REVIEW, "request", "uid"),
    "no object": without(REVIEW, "request", "object"),
    "a request that is a string": with_value(REVIEW, "x", "request"),
    "an object that is a list": with_value(REVIEW, [], "request", "object"),
    "metadata that is a number": with_value(REVIEW, 7, "request", "object", "metadata"),
    "labels that are a list": with_value(REVIEW, ["x"], "request", "object", "metadata", "labels"),
    "containers that are null": with_value(REVIEW, None, "request", "object", "spec", "template", "spec", "containers"),
    "a quantity that is none": with_value(REVIEW, {"requests": {"cpu": "many"}}, "request", "object", "spec",
                                          "template", "spec", "containers", 0, "resources"),
    "a quantity beyond all bounds": with_value(REVIEW, {"requests": {"cpu": "9" * 400 + "E"}}, "request", "object",
                                               "spec", "template", "spec", "containers", 0, "resources"),
    "negative parallelism": with_value(REVIEW, -5, "request", "object", "spec", "parallelism"),
    "parallelism beyond 32 bits": with_value(REVIEW, 1 << 40, "request", "object", "spec", "parallelism"),
}
EXTENDER = {
    **SHAPELESS,
    "truncated": json.dumps(ARGS).encode()[:-30],
    "no pod": without(ARGS, "Pod"), "a pod that is null": with_value(ARGS, None, "Pod"),
    "node names that are numbers": with_value(ARGS, [1, 2], "NodeNames"),
    "node names that are null": with_value(ARGS, None, "NodeNames"),
    "nodes nobody knows": with_value(ARGS, ["no-such-node"], "NodeNames"),
    "the same node a thousand times": with_value(ARGS, ["a"] * 1000, "NodeNames"),
    "a node name of a megabyte": with_value(ARGS, ["a" * (1 << 20)], "NodeNames"),
    "victims that are a list": with_value(ARGS, [], "NodeNameToMetaVictims"),
    "victims that are null": with_value(ARGS, {"a": None}, "NodeNameToMetaVictims"),
}


class Endpoint:
    def __init__(self, address, certificate=None):
        self.host, port = address.split(":")
        self.port = int(port)
        self.tls = ssl._create_unverified_context()
        if certificate:
            self.tls.load_cert_chain(*certificate)

    def post(self, path, body):
        """(status, decoded body or None); status 0 when the server hung up."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=20, context=self.tls)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        except (ConnectionError, http.client.HTTPException, ssl.SSLError):
            return 0, None
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, None

    def raw(self, text, half_close=True):
        with self.tls.wrap_socket(socket.create_connection((self.host, self.port), 20)) as stream:
            stream.settimeout(20)
            try:
                stream.sendall(text)
                return stream.recv(4096)
            except OSError:
                return b""


@pytest.fixture
def webhook(cluster):
    return Endpoint(cluster.muster.webhook)


@pytest.fixture
def extender(cluster):
    return Endpoint(cluster.muster.extender, cluster.muster.client_files())


def refused_clearly(status, answer):
    """A 4xx, or an AdmissionReview that says no with a message, or one that says yes."""
    if 400 <= status < 500:
        return True
    if status != 200:
        return False
    response = answer["response"]
    return response["allowed"] or bool(response["status"]["message"])


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_no_admission_review_brings_the_webhook_down(cluster, webhook, path):
    for what, body in REVIEWS.items():
        status, answer = webhook.post(path, body)
        assert refused_clearly(status, answer), f"{what}: {status} {answer}"
        assert cluster.plane.processes.alive("muster"), what
    status, answer = webhook.post(path, json.dumps(REVIEW).encode())
    assert (status, answer["response"]["uid"]) == (200, "u-1")


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
def test_no_extender_arguments_bring_the_extender_down(cluster, extender, verb):
    for what, body in EXTENDER.items():
        status, answer = extender.post(f"/v1/{verb}", body)
        assert status == 200 or 400 <= status < 500, f"{what}: {status} {answer}"
        assert cluster.plane.processes.alive("muster"), what
    status, _ = extender.post(f"/v1/{verb}", json.dumps({**ARGS, "NodeNameToMetaVictims": {}}).encode())
    assert status == 200


@pytest.mark.parametrize("megabytes", [64, 200])
def test_a_body_above_the_limit_is_refused_and_costs_no_memory_for_long(cluster, webhook, extender, megabytes):
    body = b'{"a": "' + b"x" * (megabytes << 20) + b'"}'
    assert webhook.post("/validate", body)[0] in (0, 413)
    assert extender.post("/v1/filter", body)[0] in (0, 413)
    assert cluster.muster.ready()


def test_what_is_not_http_is_hung_up_on(cluster, webhook):
    for text in (b"\x16\x03\x01 not again", b"GET\r\n\r\n", b"POST /validate HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                 b"POST /validate HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                 b"POST /validate HTTP/1.1\r\n" + b"X: y\r\n" * 100_000,
                 b"POST /validate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n"):
        assert b"200 OK" not in webhook.raw(text)
        assert cluster.plane.processes.alive("muster"), text[:60]
    assert cluster.muster.ready()


def test_paths_and_methods_that_do_not_exist_are_refused(webhook, extender):
    assert webhook.post("/nowhere", b"{}")[0] == 404
    assert extender.post("/v1/bind", b"{}")[0] == 404


BROKEN_MANIFESTS = {
    "not YAML": "a: [1, 2", "a tab": "a:\n\tb: 1", "an unfinished string": 'kind: "Node',
    "a scalar": "hello", "a list": "- 1\n- 2", "no kind": "apiVersion: v1\nmetadata: {name: x}",
    "a Node without a name": "apiVersion: v1\nkind: Node\nmetadata: {}",
    "a quantity that is none": "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: lots}}",
    "a queue whose groups are a string": "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\n"
                                         "metadata: {name: q}\nspec: {resourceGroups: none}",
    "brackets without end": "[" * 50_000,
    "an alias bomb": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)),
}


@pytest.mark.parametrize("what", BROKEN_MANIFESTS)
def test_decide_refuses_a_broken_manifest_with_one_clear_line(what, tmp_path):
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN_MANIFESTS[what])
    done = subprocess.run([muster_binary(), "decide", "-f", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr[:2000]
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 1 and "broken.yaml" in lines[0], done.stderr[:2000]

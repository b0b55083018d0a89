"""Objects that tests submit, as plain dicts: nodes, queues, Jobs and pods."""

QUEUE = "kueue.x-k8s.io/queue-name"
GPU = "nvidia.com/gpu"
_KUEUE = "kueue.x-k8s.io/v1beta2"


def node(name: str, gpus: int = 8, cpu: int = 96, labels: dict | None = None,
         taints: list | None = None, pods: int = 110) -> dict:
    resources = {"cpu": str(cpu), "memory": "1Ti", "pods": str(pods), "ephemeral-storage": "1Ti"}
    if gpus:
        resources[GPU] = str(gpus)
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
                     "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                                **(labels or {})}},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": resources, "capacity": resources, "phase": "Running",
                   "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}


def nodes(count: int, prefix: str = "gpu", per_rack: int = 16, **kinds) -> list:
    """gpu-000, gpu-001, …; every per_rack of them share the label cloud/rack."""
    labels = kinds.pop("labels", {})
    return [node(f"{prefix}-{i:03}", labels={"cloud/rack": f"{prefix}-rack-{i // per_rack}", **labels}, **kinds)
            for i in range(count)]


def namespace(name: str) -> dict:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def flavor(name: str, topology: str | None = None, capacity: str | None = None,
           labels: dict | None = None) -> dict:
    spec = {"nodeLabels": labels or {}}
    if topology:
        spec["topologyName"] = topology
    annotations = {"muster.dev/capacity": capacity} if capacity else {}
    return {"apiVersion": _KUEUE, "kind": "ResourceFlavor",
            "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def topology(name: str, levels: tuple = ("cloud/rack", "kubernetes.io/hostname")) -> dict:
    return {"apiVersion": _KUEUE, "kind": "Topology", "metadata": {"name": name},
            "spec": {"levels": [{"nodeLabel": level} for level in levels]}}


def cluster_queue(name: str, flavor_name: str, gpus: int, cohort: str | None = None,
                  preemption: dict | None = None, cpu: str = "100k", strategy: str | None = None,
                  borrowing: int | None = None) -> dict:
    gpu = {"name": GPU, "nominalQuota": str(gpus)}
    if borrowing is not None:
        gpu["borrowingLimit"] = str(borrowing)
    spec = {"namespaceSelector": {}, "resourceGroups": [{
        "coveredResources": ["cpu", GPU],
        "flavors": [{"name": flavor_name,
                     "resources": [{"name": "cpu", "nominalQuota": cpu}, gpu]}]}]}
    if cohort:
        spec["cohortName"] = cohort
    if preemption:
        spec["preemption"] = preemption
    if strategy:
        spec["queueingStrategy"] = strategy
    return {"apiVersion": _KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def local_queue(name: str, namespace_name: str, queue: str) -> dict:
    return {"apiVersion": _KUEUE, "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": namespace_name}, "spec": {"clusterQueue": queue}}


def priority_class(name: str, value: int) -> dict:
    return {"apiVersion": _KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name},
            "value": value}


def pod_spec(gpus: int = 8, cpu: str = "1", **spec) -> dict:
    requests = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
    limits = {GPU: str(gpus)} if gpus else {}
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "registry.example/train:1",
                            "resources": {"requests": requests, "limits": limits}}], **spec}


def job(name: str, namespace_name: str, queue: str | None, pods: int = 1, gpus: int = 8,
        runtime: float | None = None, priority: str | None = None, labels: dict | None = None,
        template_annotations: dict | None = None, backoff_limit: int = 6,
        spec: dict | None = None, **pod_fields) -> dict:
    """An Indexed Job, one pod per completion. runtime: seconds until its pods succeed; None: never."""
    all_labels = {**({QUEUE: queue} if queue else {}),
                  **({"kueue.x-k8s.io/priority-class": priority} if priority else {}), **(labels or {})}
    annotations = {**({"bench/runtime": f"{runtime}s"} if runtime is not None else {}),
                   **(template_annotations or {})}
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": namespace_name, "labels": all_labels},
            "spec": {"parallelism": pods, "completions": pods, "completionMode": "Indexed",
                     "backoffLimit": backoff_limit,
                     "template": {"metadata": {"annotations": annotations, "labels": {"e2e/job": name}},
                                  "spec": pod_spec(gpus, **pod_fields)}, **(spec or {})}}


def pod(name: str, namespace_name: str, gpus: int = 1, labels: dict | None = None,
        annotations: dict | None = None, cpu: str = "1", **spec) -> dict:
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace_name, "labels": labels or {},
                         "annotations": annotations or {}},
            "spec": pod_spec(gpus, cpu, **spec)}

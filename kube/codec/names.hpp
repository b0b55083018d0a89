#pragma once
// Labels, annotations, gates and classes of the API that more than one folder reads or writes.

namespace muster::kube {

// kueue.x-k8s.io: the names that existing clusters, dashboards and tools know.
inline constexpr const char* kQueueNameLabel = "kueue.x-k8s.io/queue-name";
inline constexpr const char* kPriorityClassLabel = "kueue.x-k8s.io/priority-class";
inline constexpr const char* kManagedLabel = "kueue.x-k8s.io/managed";
inline constexpr const char* kPodSetLabel = "kueue.x-k8s.io/podset";
/// A label, or in old manifests an annotation.
inline constexpr const char* kPodGroupLabel = "kueue.x-k8s.io/pod-group-name";
inline constexpr const char* kWorkloadAnnotation = "kueue.x-k8s.io/workload";
inline constexpr const char* kAdmissionGate = "kueue.x-k8s.io/admission";
inline constexpr const char* kRequiredTopology = "kueue.x-k8s.io/podset-required-topology";
inline constexpr const char* kPreferredTopology = "kueue.x-k8s.io/podset-preferred-topology";
inline constexpr const char* kUnconstrainedTopology =
    "kueue.x-k8s.io/podset-unconstrained-topology";
/// Slices: pods that stand together in groups of a size; or several layers of them, as a JSON list.
inline constexpr const char* kSliceTopology = "kueue.x-k8s.io/podset-slice-required-topology";
inline constexpr const char* kSliceSize = "kueue.x-k8s.io/podset-slice-size";
inline constexpr const char* kSliceConstraints =
    "kueue.x-k8s.io/podset-slice-required-topology-constraints";
/// On a pod template: pod sets of one name get the same flavors.
inline constexpr const char* kPodSetGroup = "kueue.x-k8s.io/podset-group-name";
/// On a Job: it may run with fewer pods, down to this many.
inline constexpr const char* kMinParallelism = "kueue.x-k8s.io/job-min-parallelism";
/// On a Job, "true": completions follow parallelism when that is reduced.
inline constexpr const char* kCompletionsFollow =
    "kueue.x-k8s.io/job-completions-equal-parallelism";
/// On a Workload: by it one whose Job is gone is still known to be of that Job.
inline constexpr const char* kJobUidLabel = "kueue.x-k8s.io/job-uid";
/// The LocalQueue of work that names none.
inline constexpr const char* kDefaultLocalQueue = "default";

// muster.dev: what muster adds.
/// On a namespace, "true": everything in it is queued.
inline constexpr const char* kGivenOverLabel = "muster.dev/managed";
/// Label `true` or `false`; the next three are annotations.
inline constexpr const char* kPreemptibleLabel = "muster.dev/preemptible";
inline constexpr const char* kMinRuntimeAnnotation = "muster.dev/min-runtime";
inline constexpr const char* kCheckpointGraceAnnotation = "muster.dev/checkpoint-grace";
/// RFC 3339, kept by the job.
inline constexpr const char* kLastCheckpointAnnotation = "muster.dev/last-checkpoint";
/// The PriorityClass the user wrote, kept where podPriority `protect` replaced it.
inline constexpr const char* kOriginalPriorityClass = "muster.dev/priority-class";
/// The class `protect` puts in its place; shipped in manifests/common.
inline constexpr const char* kManagedPriorityClass = "muster-managed";

// Kubernetes.
/// Every namespace carries its own name under this label.
inline constexpr const char* kNamespaceNameLabel = "kubernetes.io/metadata.name";

}  // namespace muster::kube

#pragma once
// Labels, annotations, gates and finalizers that the controller reads and writes.

namespace muster::controller {

// kueue.x-k8s.io: the names that existing clusters, dashboards and tools know.
inline constexpr const char* kQueueNameLabel = "kueue.x-k8s.io/queue-name";
inline constexpr const char* kPriorityClassLabel = "kueue.x-k8s.io/priority-class";
inline constexpr const char* kJobUidLabel = "kueue.x-k8s.io/job-uid";
inline constexpr const char* kManagedLabel = "kueue.x-k8s.io/managed";
inline constexpr const char* kPodSetLabel = "kueue.x-k8s.io/podset";
inline constexpr const char* kClusterQueueLabel = "kueue.x-k8s.io/cluster-queue-name";
inline constexpr const char* kLocalQueueLabel = "kueue.x-k8s.io/local-queue-name";
inline constexpr const char* kWorkloadAnnotation = "kueue.x-k8s.io/workload";
/// Label, or the annotation of the same name: a pod of a group of plain pods.
inline constexpr const char* kPodGroupLabel = "kueue.x-k8s.io/pod-group-name";
inline constexpr const char* kAdmissionGate = "kueue.x-k8s.io/admission";
inline constexpr const char* kRequiredTopology = "kueue.x-k8s.io/podset-required-topology";
inline constexpr const char* kPreferredTopology = "kueue.x-k8s.io/podset-preferred-topology";
inline constexpr const char* kUnconstrainedTopology =
    "kueue.x-k8s.io/podset-unconstrained-topology";

// muster.dev: what muster adds.
inline constexpr const char* kCapacityAnnotation = "muster.dev/capacity";
/// The PriorityClass the user wrote, kept where podPriority `protect` replaced it.
inline constexpr const char* kOriginalPriorityClass = "muster.dev/priority-class";
/// The class `protect` puts in its place.
inline constexpr const char* kManagedPriorityClass = "muster-managed";

// Kubernetes.
inline constexpr const char* kJobTrackingFinalizer = "batch.kubernetes.io/job-tracking";

/// The pod set of an owner that has one pod template only.
inline constexpr const char* kMainPodSet = "main";

}  // namespace muster::controller

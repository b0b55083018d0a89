#pragma once
// Labels, annotations and gates that the webhook reads and writes.

namespace muster::webhook {

inline constexpr const char* kQueueNameLabel = "kueue.x-k8s.io/queue-name";
inline constexpr const char* kPriorityClassLabel = "kueue.x-k8s.io/priority-class";
inline constexpr const char* kMaxExecTimeLabel = "kueue.x-k8s.io/max-exec-time-seconds";
inline constexpr const char* kManagedLabel = "kueue.x-k8s.io/managed";
inline constexpr const char* kPodSetLabel = "kueue.x-k8s.io/podset";
inline constexpr const char* kWorkloadAnnotation = "kueue.x-k8s.io/workload";
inline constexpr const char* kAdmissionGate = "kueue.x-k8s.io/admission";
inline constexpr const char* kDefaultLocalQueue = "default";

/// The PriorityClass the user wrote, kept where podPriority `protect` replaced it.
inline constexpr const char* kOriginalPriorityClass = "muster.dev/priority-class";
/// The class `protect` puts in its place; shipped in manifests/common.
inline constexpr const char* kManagedPriorityClass = "muster-managed";

/// Every namespace carries its own name under this label.
inline constexpr const char* kNamespaceNameLabel = "kubernetes.io/metadata.name";

}  // namespace muster::webhook

#pragma once
// Labels, annotations, gates and finalizers that the controller reads and writes.

#include "kube/codec/names.hpp"

namespace muster::controller {

using kube::kAdmissionGate;
using kube::kCheckpointGraceAnnotation;
using kube::kCompletionsFollow;
using kube::kJobUidLabel;
using kube::kLastCheckpointAnnotation;
using kube::kManagedLabel;
using kube::kManagedPriorityClass;
using kube::kMinParallelism;
using kube::kMinRuntimeAnnotation;
using kube::kOriginalPriorityClass;
using kube::kPodSetGroup;
using kube::kPodSetLabel;
using kube::kPreemptibleLabel;
using kube::kPreferredTopology;
using kube::kPriorityClassLabel;
using kube::kQueueNameLabel;
using kube::kRequiredTopology;
using kube::kSliceConstraints;
using kube::kSliceSize;
using kube::kSliceTopology;
using kube::kUnconstrainedTopology;
using kube::kWorkloadAnnotation;

// kueue.x-k8s.io: the names that existing clusters, dashboards and tools know.
inline constexpr const char* kClusterQueueLabel = "kueue.x-k8s.io/cluster-queue-name";
inline constexpr const char* kLocalQueueLabel = "kueue.x-k8s.io/local-queue-name";
/// Label, or the annotation of the same name: a pod of a group of plain pods.
using kube::kPodGroupLabel;

// muster.dev: what muster adds.
inline constexpr const char* kCapacityAnnotation = "muster.dev/capacity";
/// On the pods of a gang that was held: when it got its nodes.
inline constexpr const char* kPlacedAnnotation = "muster.dev/placed";
/// On the pods of an evicted workload: when they go.
inline constexpr const char* kEvictAtAnnotation = "muster.dev/evict-at";

// Kubernetes.
inline constexpr const char* kJobTrackingFinalizer = "batch.kubernetes.io/job-tracking";

/// The pod set of an owner that has one pod template only.
inline constexpr const char* kMainPodSet = "main";

}  // namespace muster::controller

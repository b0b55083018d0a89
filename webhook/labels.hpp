#pragma once
// Labels, annotations and gates that the webhook reads and writes.

#include "kube/codec/names.hpp"

namespace muster::webhook {

using kube::kAdmissionGate;
using kube::kCheckpointGraceAnnotation;
using kube::kDefaultLocalQueue;
using kube::kGivenOverLabel;
using kube::kJobUidLabel;
using kube::kLastCheckpointAnnotation;
using kube::kManagedLabel;
using kube::kManagedPriorityClass;
using kube::kMinParallelism;
using kube::kMinRuntimeAnnotation;
using kube::kNamespaceNameLabel;
using kube::kOriginalPriorityClass;
using kube::kPodGroupLabel;
using kube::kPodSetLabel;
using kube::kPreemptibleLabel;
using kube::kPriorityClassLabel;
using kube::kQueueNameLabel;
using kube::kWorkloadAnnotation;

inline constexpr const char* kMaxExecTimeLabel = "kueue.x-k8s.io/max-exec-time-seconds";

}  // namespace muster::webhook

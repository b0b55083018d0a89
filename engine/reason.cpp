#include "engine/reason.hpp"

namespace muster::engine {

std::string_view to_string(PendingReason reason) {
  switch (reason) {
    case PendingReason::kPendingEvaluation:
      return "PendingEvaluation";
    case PendingReason::kWaitingForQuota:
      return "WaitingForQuota";
    case PendingReason::kExceedsMaxQuota:
      return "ExceedsMaxQuota";
    case PendingReason::kNoMatchingFlavor:
      return "NoMatchingFlavor";
    case PendingReason::kTopologyPlacementFailed:
      return "TopologyPlacementFailed";
    case PendingReason::kWaitingForPreemptedWorkloads:
      return "WaitingForPreemptedWorkloads";
    case PendingReason::kMisconfigured:
      return "Misconfigured";
    case PendingReason::kSuspended:
      return "Suspended";
    case PendingReason::kDeactivated:
      return "Deactivated";
  }
  return "PendingEvaluation";
}

std::string_view to_string(EvictionReason reason) {
  switch (reason) {
    case EvictionReason::kPreempted:
      return "Preempted";
    case EvictionReason::kClusterQueueStopped:
      return "ClusterQueueStopped";
    case EvictionReason::kLocalQueueStopped:
      return "LocalQueueStopped";
    case EvictionReason::kNodeFailures:
      return "NodeFailures";
    case EvictionReason::kDeactivated:
      return "Deactivated";
  }
  return "Deactivated";
}

std::string_view to_string(PreemptionRule rule) {
  switch (rule) {
    case PreemptionRule::kInClusterQueue:
      return "InClusterQueue";
    case PreemptionRule::kInCohortReclamation:
      return "InCohortReclamation";
    case PreemptionRule::kInCohortReclaimWhileBorrowing:
      return "InCohortReclaimWhileBorrowing";
    case PreemptionRule::kInCohortFairSharing:
      return "InCohortFairSharing";
  }
  return "InClusterQueue";
}

}  // namespace muster::engine

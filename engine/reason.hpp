#pragma once
// Reasons are data. engine/explain.hpp is the one place that renders them.

#include "engine/specs.hpp"

#include <string_view>
#include <variant>
#include <vector>

namespace muster::engine {

/// Why a workload has no quota yet; spelled as the reasons of condition QuotaReserved=False
/// (semantics section h).
enum class PendingReason {
  kPendingEvaluation,
  kWaitingForQuota,
  kExceedsMaxQuota,
  kNoMatchingFlavor,
  kTopologyPlacementFailed,
  kWaitingForPreemptedWorkloads,
  kMisconfigured,
  kSuspended,
  kDeactivated,
};

[[nodiscard]] std::string_view to_string(PendingReason reason);
[[nodiscard]] std::string_view to_string(EvictionReason reason);
[[nodiscard]] std::string_view to_string(PreemptionRule rule);

/// Quota is short. `scope` is the tree node whose quota or limit binds.
struct QuotaShortfall {
  quota::FlavorResource what;
  Amount asked;      ///< Total of the request.
  Amount available;  ///< What could be had now (WaitingForQuota) or ever (ExceedsMaxQuota).
  /// `cohort NAME` when a cohort's quota binds, else `ClusterQueue NAME`.
  bool in_cohort = false;
  std::string scope;
  bool own_only = false;  ///< `scope` is what the request may not go beyond: it may not borrow.
  bool operator==(const QuotaShortfall&) const = default;
};

/// A flavor that the pods cannot use: an untolerated taint, a selector, a missing object.
struct FlavorMismatch {
  FlavorName flavor;
  std::string detail;  ///< `untolerated taint spot=true:NoSchedule`.
  bool operator==(const FlavorMismatch&) const = default;
};

/// A running workload after whose end a pending one would fit.
struct RoomAfter {
  WorkloadKey workload;
  std::int64_t hosts = 0;  ///< That it is planned on.
  bool operator==(const RoomAfter&) const = default;
};

/// Quota would do, the nodes do not.
struct NodesShortfall {
  FlavorName flavor;
  PodSetName pod_set;
  std::int64_t asked = 0;  ///< Pods; slices where slice_size is above 1.
  /// Those that fit at once now (in the best domain, if one is required). All that is asked: the
  /// leader of the group does not fit beside them.
  std::int64_t fitting = 0;
  std::int64_t slice_size = 1;  ///< Pods that have to stand together.
  std::string slice_level;      ///< In one domain of this level; empty: they need not.
  std::string level;            ///< Required topology level; empty: none.
  std::string best_domain;      ///< `block/rack`: where they fit; empty: nowhere, or none required.
  std::string unknown_level;  ///< Not in the topology, or not below the level before; empty: none.
  std::optional<topology::BadSlices> indivisible;  ///< The pods cannot be cut into these.
  std::int64_t nodes = 0;                          ///< Nodes of the flavor.
  /// Nodes left out, by cause (`not ready`, `taint`, `selector`).
  std::map<std::string, std::int64_t> excluded;
  /// Nodes that could not take one pod if they were empty, by the resource they have too little of.
  std::map<ResourceName, std::int64_t> too_small;
  /// Nodes without room for one pod now, by the resource that is used up.
  std::map<ResourceName, std::int64_t> full;
  std::optional<RoomAfter> after;  ///< Absent: nobody's end alone would do, or not looked for.
  bool operator==(const NodesShortfall&) const = default;
};

/// The queue itself cannot admit: it does not exist, is stopped, or misses something.
struct QueueUnusable {
  std::string detail;
  std::string needs = {};  ///< What would have to change; empty: nothing that could be named.
  bool operator==(const QueueUnusable&) const = default;
};

/// Victims were chosen and are on their way out.
struct AwaitingVictims {
  std::vector<WorkloadKey> victims;
  bool again = false;  ///< Former victims did not leave in time: others were looked for.
  bool operator==(const AwaitingVictims&) const = default;
};

/// A workload that the policies would have let go, had it not been protected.
struct SparedWorkload {
  enum class Why {
    kNotPreemptible,
    kMinRuntime,       ///< Until `until`.
    kPreemptedBefore,  ///< Once already, and nothing new happened since.
  };
  WorkloadKey workload;
  Why why = Why::kNotPreemptible;
  std::optional<Instant> until;
  bool operator==(const SparedWorkload&) const = default;
};
/// Never the first cause. In order of key, each once.
struct Spared {
  std::vector<SparedWorkload> workloads;
  bool operator==(const Spared&) const = default;
};

using Cause = std::variant<QuotaShortfall, FlavorMismatch, NodesShortfall, QueueUnusable,
                           AwaitingVictims, Spared>;

/// The verdict on a pending workload.
struct Explanation {
  PendingReason reason = PendingReason::kPendingEvaluation;
  std::vector<Cause> causes;  ///< The binding ones first.
  bool operator==(const Explanation&) const = default;
};

}  // namespace muster::engine

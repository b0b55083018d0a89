#pragma once
// Workload status as merge patches: one patch per step of a workload's life, each with the version
// it was made from. Conditions and reasons: queueing semantics section (h).

#include "base/time.hpp"
#include "kube/codec/objects.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::controller {

/// Quota reserved and admitted, in one write; Evicted and Preempted of a former life flip to False.
/// `held`: the gang waits for nodes (engine/elastic.hpp), condition muster.dev/Placed is False.
[[nodiscard]] kube::Json admit_patch(const kube::Workload& workload,
                                     const kube::WorkloadAdmission& admission,
                                     const std::string& message, bool held, Instant now);

/// A new plan; conditions stay, but for muster.dev/Placed of a gang that is or was held.
[[nodiscard]] kube::Json replan_patch(const kube::Workload& workload,
                                      const kube::WorkloadAdmission& admission, bool held,
                                      Instant now);

/// Pods by pod set that ended well and need nothing any more.
[[nodiscard]] kube::Json reclaim_patch(const kube::Workload& workload,
                                       const std::map<std::string, std::int64_t>& reclaimable);

struct EvictionWords {
  std::string reason;  ///< Of condition Evicted.
  std::string rule;    ///< Of condition Preempted; empty: it was no preemption.
  std::string message;
};
[[nodiscard]] kube::Json evict_patch(const kube::Workload& workload, const EvictionWords& words,
                                     Instant now);

/// Admission cleared after the last pod is gone. `requeue_at` is kept in requeueState (absent: may
/// queue at once).
[[nodiscard]] kube::Json release_patch(const kube::Workload& workload,
                                       std::optional<Instant> requeue_at, Instant now);

[[nodiscard]] kube::Json finish_patch(const kube::Workload& workload, bool succeeded,
                                      const std::string& message, Instant now);

/// Why it waits. Absent when that is what it says already.
[[nodiscard]] kube::Json pending_patch(const kube::Workload& workload, std::string_view reason,
                                       const std::string& message, Instant now);

/// When a condition that admit_patch() turned to False was True since; of one that others turned
/// so, when they did. Nothing for any other.
[[nodiscard]] std::optional<Instant> former_time(const kube::Condition& condition);

[[nodiscard]] bool is_reserved(const kube::Workload& workload);

}  // namespace muster::controller

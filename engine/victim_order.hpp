#pragma once
// What both preemption searches ask about a workload that might have to go: semantics (d).

#include "engine/state.hpp"

#include <map>
#include <span>

namespace muster::engine {

/// The policy test of semantics (d).
[[nodiscard]] bool policy_allows(PreemptionPolicy policy, const WorkloadSpec& preemptor,
                                 const WorkloadSpec& victim);

/// Something of at least one of `needed` is among the amounts.
[[nodiscard]] bool uses_any(const quota::FrAmounts& amounts, std::span<const quota::FrId> needed);

/// Cheapest loss first: lower priority, then the most recent reservation, then uid and key.
[[nodiscard]] bool cheaper(const WorkloadRecord& a, const WorkloadRecord& b);

/// Admission Fair Sharing decides among the LocalQueues of this ClusterQueue.
[[nodiscard]] bool usage_orders(const State& state, const ClusterQueueName& queue);

/// The order among workloads of one ClusterQueue: with Admission Fair Sharing those of the
/// LocalQueue that used more lately first, then as `cheaper`.
class CandidateOrder {
 public:
  CandidateOrder(const State& state, const ClusterQueueName& queue);
  [[nodiscard]] bool operator()(const WorkloadRecord* a, const WorkloadRecord* b) const;

 private:
  std::map<LocalQueueKey, quota::WeightedUse>
      uses_;  ///< Of all that hold quota there, if it counts.
};

}  // namespace muster::engine

#pragma once
// Whose quota and room a workload may take: queueing semantics (d), classical algorithm. The unit
// is the whole workload; a victim set must satisfy quota and nodes together.

#include "engine/effect.hpp"
#include "engine/flavor_assigner.hpp"
#include "engine/state.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace muster::engine {

struct Victim {
  WorkloadKey workload;
  PreemptionRule rule = PreemptionRule::kInClusterQueue;
  bool own_queue = false;
};

struct PreemptionRequest {
  const WorkloadSpec* preemptor = nullptr;
  ClusterQueueName queue;
  quota::FrAmounts amounts;         ///< All it will use, also what needs no preemption.
  std::vector<quota::FrId> needed;  ///< Short ones; a victim uses at least one of them.
  /// Asked on the state without the victims tried so far; empty: nodes do not matter.
  std::function<bool()> nodes_fit;
};

/// Workloads to evict so that the request fits, in an order good to read; empty when those that are
/// leaving already suffice; nothing when no legal set does. The set is irreducible: putting any one
/// back breaks the fit. The state is as before on return. `tried` counts work done.
[[nodiscard]] std::optional<std::vector<Victim>> find_victims(State& state,
                                                              const PreemptionRequest& request,
                                                              std::size_t& tried);

}  // namespace muster::engine

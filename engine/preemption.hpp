#pragma once
// Whose quota and room a workload may take: queueing semantics (d). The unit is the whole workload;
// a victim set must satisfy quota and nodes together. Under fair sharing fair_preemption.hpp
// answers.

#include "engine/effect.hpp"
#include "engine/flavor_assigner.hpp"
#include "engine/state.hpp"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace muster::engine {

struct Victim {
  WorkloadKey workload;
  PreemptionRule rule = PreemptionRule::kInClusterQueue;
  bool own_queue = false;
  bool hold = false;  ///< It does not run: what is held for it (State::holds) is taken.
};

/// Who may have to go.
enum class Reach {
  kAny,
  kWithoutOverdue,  ///< Anybody, and those who should have left by now are not counted on.
  kLeavingOnly,     ///< Nobody: only what is free, or becomes free by those who are leaving.
};

struct SearchOptions {
  Reach reach = Reach::kAny;
  /// Where given: whom the policies would have allowed to take, but for their protection.
  std::map<WorkloadKey, SparedWorkload>* spared = nullptr;
};

struct PreemptionRequest {
  const WorkloadSpec* preemptor = nullptr;
  ClusterQueueName queue;
  quota::FrAmounts amounts;         ///< All it will use, also what needs no preemption.
  std::vector<quota::FrId> needed;  ///< Short ones; a victim uses at least one of them.
  /// Asked on the state without the victims tried so far; empty: nodes do not matter.
  std::function<bool()> nodes_fit;
  SearchOptions search;
};

/// Workloads to evict, and holds to take, so that the request fits, in an order good to read; empty
/// when those that are leaving already suffice; nothing when no legal set does. The set is
/// irreducible: putting any one back breaks the fit. The state is as before on return. `tried`
/// counts work done.
[[nodiscard]] std::optional<std::vector<Victim>> find_victims(State& state,
                                                              const PreemptionRequest& request,
                                                              std::size_t& tried);

/// When a leaving workload should have left: after Options::hold_timeout and its checkpoint grace.
/// Nothing when it is not known since when it is leaving.
[[nodiscard]] std::optional<Instant> due_to_leave(const State& state, const WorkloadRecord& record);
[[nodiscard]] bool overdue(const State& state, const WorkloadRecord& record);

}  // namespace muster::engine

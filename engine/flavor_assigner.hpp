#pragma once
// Which flavors a workload gets, and on which nodes: queueing semantics (b).

#include "engine/reason.hpp"
#include "engine/state.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace muster::engine {

/// How far a request got, worst first.
enum class Mode {
  kNoFit,    ///< Nothing that could be preempted helps.
  kPreempt,  ///< It would fit if others left.
  kFit,
};

/// What preempting for a request would hit (the finer modes of semantics b.4).
enum class Oracle { kNoCandidates, kOwnQueue, kOtherQueuesOnly };

/// A question to the preemption search: could `amounts` of the queue be had, and with `place` also
/// the nodes, if others left?
struct OracleQuery {
  quota::NodeIndex queue;
  const WorkloadSpec* workload = nullptr;
  quota::FrAmounts amounts;
  std::vector<quota::FrId> needed;  ///< The ones that are short.
  std::function<bool()> nodes_fit;  ///< Empty: nodes do not matter.
};
using OracleFunction = std::function<Oracle(const OracleQuery&)>;

struct Assignment {
  Mode mode = Mode::kNoFit;
  /// Flavors and usage; with kFit also the plan. Meaningless with kNoFit.
  Admission admission;
  quota::FrAmounts amounts;         ///< Total per flavor resource.
  std::vector<quota::FrId> needed;  ///< kPreempt: what victims must use.
  std::int64_t borrow_level = 0;
  Explanation why;  ///< Not kFit: what binds.
};

struct AssignOptions {
  /// Look at quota only: enough to know the borrow level, an order of magnitude cheaper.
  bool quota_only = false;
  /// Absent: nothing can be preempted.
  OracleFunction oracle;
};

/// The best assignment on the state as it is now. The workload's queue must be in the tree.
[[nodiscard]] Assignment assign_flavors(State& state, const WorkloadSpec& workload,
                                        const ClusterQueueSpec& queue,
                                        const AssignOptions& options);

}  // namespace muster::engine

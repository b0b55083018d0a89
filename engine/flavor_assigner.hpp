#pragma once
// Which flavors a workload gets, and on which nodes: queueing semantics (b).

#include "engine/reason.hpp"
#include "engine/state.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
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
struct OracleAnswer {
  Oracle oracle = Oracle::kNoCandidates;
  /// The highest of the amounts, with those gone who would have to go.
  std::int64_t borrow_level = 0;
};
using OracleFunction = std::function<OracleAnswer(const OracleQuery&)>;

struct Assignment {
  Mode mode = Mode::kNoFit;
  /// Flavors and usage; with kFit also the plan. Meaningless with kNoFit.
  Admission admission;
  quota::FrAmounts amounts;         ///< Total per flavor resource.
  std::vector<quota::FrId> needed;  ///< kPreempt: what victims must use.
  std::int64_t borrow_level = 0;
  Explanation why;  ///< Not kFit: what binds.
  /// Scans that stopped before their last flavor, and where they would go on.
  ScanStart rest;
  /// PeerFacts::scans_go_on: what was wrong with each flavor, for those that are not a fit.
  std::vector<Explanation> flaws;
};

struct AssignOptions {
  /// Look at quota only: enough to know the borrow level and the amounts, an order of magnitude
  /// cheaper. What is short of quota for now is not explained, and without a topology no pod set is
  /// told its flavors.
  bool quota_only = false;
  /// Absent: nothing can be preempted.
  OracleFunction oracle;
  ScanStart start;
};

/// Of one workload in its queue. What does not depend on use is worked out once; it holds while
/// nothing but the use of quota and nodes changes in the state, the workload and the queue.
class FlavorAssigner {
 public:
  /// The workload's queue must be in the tree. `counts`: pods by pod set, as far as they are left
  /// to run; empty: all that are left.
  FlavorAssigner(State& state, const WorkloadSpec& workload, const ClusterQueueSpec& queue,
                 const std::vector<std::int64_t>& counts = {});
  ~FlavorAssigner();
  FlavorAssigner(const FlavorAssigner&) = delete;
  FlavorAssigner& operator=(const FlavorAssigner&) = delete;

  /// The best assignment on the state as it is now: pod set by pod set, resource group by resource
  /// group, each with what the ones before it left.
  [[nodiscard]] Assignment assign(const AssignOptions& options);
  /// A combination of flavors that fits as a whole where taking the best for each pod set in turn
  /// leaves none for a later one; the first in the order of the queue's flavors. Nothing: there is
  /// none, no choice to make, or `budget` flavors were judged; what is left of it is left there.
  [[nodiscard]] std::optional<Assignment> find_joint_fit(std::size_t& budget);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine

#pragma once
// Who could be preempted for a request, and by which rule: queueing semantics (d), classical.

#include "engine/preemption.hpp"
#include "engine/state.hpp"

#include <vector>

namespace muster::engine {

/// Why a candidate may be taken.
enum class Variant {
  kWithinQueue,
  kHierarchicalReclaim,
  kReclaimWithoutBorrowing,  ///< Only for a request that stays within its queue's nominal quota.
  kReclaimWhileBorrowing
};

struct Candidate {
  /// Holds quota, or is pending with a hold.
  const WorkloadRecord* record = nullptr;
  const Hold* hold = nullptr;  ///< What is taken is only this.
  quota::NodeIndex queue;
  quota::NodeIndex common_ancestor;  ///< With another queue: where the two subtrees meet.
  Variant variant = Variant::kWithinQueue;
};

struct Candidates {
  std::vector<Candidate> hierarchy;  ///< Other queues', from where the request has the advantage.
  std::vector<Candidate> priority;   ///< Other queues', from below that.
  std::vector<Candidate> own;
  std::vector<Candidate>
      holds;  ///< Of lower rank than the request; in the order of put_in_order().
  [[nodiscard]] bool any_of_cohort() const { return !hierarchy.empty() || !priority.empty(); }
};

/// For each ancestor of the request's queue, from the lowest: whether the subtree on the request's
/// side has the advantage over the queues first met there, that is, its own quota covers the
/// request. From there on what others borrowed is taken back whatever the mode.
[[nodiscard]] std::vector<bool> subtree_advantages(const State& state,
                                                   const PreemptionRequest& request);

/// All that the policies of the request's queue let it take on the state as it is, but those that
/// are leaving already or are protected (State::spared), which are added to
/// `request.search.spared`.
[[nodiscard]] Candidates collect_candidates(State& state, const PreemptionRequest& request);

/// Each list by priority, then the most recent reservation, then uid: cheapest loss first. Where
/// use of LocalQueues orders the queue, its own by that first.
void put_in_order(Candidates& candidates, const State& state, const PreemptionRequest& request);

/// The queue, or an ancestor strictly below where it meets the request's queue, uses no more than
/// its own quota of everything that is short: nothing is to be taken back from it.
[[nodiscard]] bool within_nominal(const State& state, const PreemptionRequest& request,
                                  quota::NodeIndex queue, quota::NodeIndex common_ancestor);

[[nodiscard]] PreemptionRule rule_of(Variant variant);

}  // namespace muster::engine

#include "engine/preemption_bound.hpp"

#include "engine/candidates.hpp"
#include "engine/held_use.hpp"
#include "engine/victim_order.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace muster::engine {
namespace {

using quota::NodeIndex;

class Bound {
 public:
  explicit Bound(PreemptionTrial& trial)
      : trial_(trial),
        state_(trial.state()),
        tree_(state_.tree),
        request_(trial.request()),
        own_(state_.queue_node(request_.queue)),
        spec_(state_.queues.at(request_.queue).preemption) {}

  bool holds() {
    // Who gives is told by the state as it is: taking from one may spare another.
    const std::vector<NodeIndex> givers = others_that_give();
    take_from(own_, spec_.within_cluster_queue);
    if (!givers.empty() && cohort_may_help()) {
      for (const NodeIndex queue : givers) take_from(queue, spec_.reclaim_within_cohort);
    }
    const bool fits = too_large_ || trial_.quota_fits(true);
    tree_.restore(log_, 0);
    return fits;
  }

 private:
  [[nodiscard]] std::vector<NodeIndex> others_that_give() const {
    std::vector<NodeIndex> givers;
    if (spec_.reclaim_within_cohort == PreemptionPolicy::kNever) return givers;
    for (const NodeIndex queue : tree_.queues_below(tree_.root(own_))) {
      if (queue == own_) continue;
      const bool spared =
          state_.options.fair_sharing
              ? tree_.within_nominal(queue, request_.needed)
              : within_nominal(state_, request_, queue, *tree_.lowest_common_ancestor(own_, queue));
      if (!spared) givers.push_back(queue);
    }
    return givers;
  }

  /// Asked when what its own queue gives is gone. Who would still borrow takes from others only by
  /// the rules that say so (semantics d).
  [[nodiscard]] bool cohort_may_help() const {
    if (state_.options.fair_sharing ||
        spec_.borrow_within_cohort.policy != PreemptionPolicy::kNever) {
      return true;
    }
    const bool borrows = std::any_of(
        request_.amounts.begin(), request_.amounts.end(),
        [&](const auto& entry) { return tree_.borrowing(own_, entry.first, entry.second); });
    if (!borrows) return true;
    const std::vector<bool> advantages = subtree_advantages(state_, request_);
    return std::find(advantages.begin(), advantages.end(), true) != advantages.end();
  }

  void take_from(NodeIndex queue, PreemptionPolicy policy) {
    if (policy == PreemptionPolicy::kNever) return;
    std::optional<std::int64_t> priority;
    if (policy != PreemptionPolicy::kAny) priority = request_.preemptor->priority;
    if (policy == PreemptionPolicy::kLowerPriority) {
      if (*priority == std::numeric_limits<std::int64_t>::min()) return;
      --*priority;
    }
    const HeldUse& held = state_.held_use(queue);
    quota::FrAmounts gone;
    for (const auto& [fr, asked] : request_.amounts) {
      const Amount amount = held.up_to(fr, priority);
      too_large_ = too_large_ || amount.is_unlimited();
      if (amount > Amount()) gone.emplace_back(fr, amount);
    }
    if (!gone.empty()) tree_.remove_usage(queue, gone, &log_);
    for (const auto& [key, hold] : state_.holds_in(queue)) {
      if (!policy_allows(policy, *request_.preemptor, state_.workloads.at(key).spec)) continue;
      tree_.remove_usage(queue, hold->amounts, &log_);
    }
  }

  PreemptionTrial& trial_;
  State& state_;
  quota::QuotaTree& tree_;
  const PreemptionRequest& request_;
  NodeIndex own_;
  const PreemptionSpec& spec_;
  quota::UsageLog log_;
  bool too_large_ = false;  ///< A sum is beyond what can be counted.
};

}  // namespace

bool may_find_victims(PreemptionTrial& trial) {
  return Bound(trial).holds();
}

}  // namespace muster::engine

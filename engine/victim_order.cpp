#include "engine/victim_order.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace muster::engine {

bool policy_allows(PreemptionPolicy policy, const WorkloadSpec& preemptor,
                   const WorkloadSpec& victim) {
  switch (policy) {
    case PreemptionPolicy::kNever:
      return false;
    case PreemptionPolicy::kAny:
      return true;
    case PreemptionPolicy::kLowerPriority:
      return preemptor.priority > victim.priority;
    case PreemptionPolicy::kLowerOrNewerEqualPriority: {
      if (preemptor.priority != victim.priority) return preemptor.priority > victim.priority;
      if (!preemptor.created) return false;
      return !victim.created || *preemptor.created < *victim.created;
    }
  }
  return false;
}

bool uses_any(const quota::FrAmounts& amounts, std::span<const quota::FrId> needed) {
  return std::any_of(amounts.begin(), amounts.end(), [&](const auto& entry) {
    return entry.second > Amount() &&
           std::find(needed.begin(), needed.end(), entry.first) != needed.end();
  });
}

bool cheaper(const WorkloadRecord& a, const WorkloadRecord& b) {
  if (a.spec.priority != b.spec.priority) return a.spec.priority < b.spec.priority;
  constexpr Instant kNow{std::numeric_limits<std::int64_t>::max()};
  const Instant left = a.reserved_at.value_or(kNow);
  const Instant right = b.reserved_at.value_or(kNow);
  if (left != right) return left > right;
  return std::tie(a.spec.uid, a.spec.key) < std::tie(b.spec.uid, b.spec.key);
}

bool usage_orders(const State& state, const ClusterQueueName& queue) {
  const auto spec = state.queues.find(queue);
  return state.usage_history && spec != state.queues.end() && spec->second.usage_based;
}

CandidateOrder::CandidateOrder(const State& state, const ClusterQueueName& queue) {
  const auto holders = state.holders.find(queue);
  if (!usage_orders(state, queue) || holders == state.holders.end()) return;
  for (const WorkloadRecord* record : holders->second) {
    const LocalQueueKey local{record->spec.key.ns, record->spec.queue_name};
    if (!uses_.contains(local))
      uses_.emplace(local, state.usage_history->use(local, state.last_pass));
  }
}

bool CandidateOrder::operator()(const WorkloadRecord* a, const WorkloadRecord* b) const {
  if (!uses_.empty()) {
    const auto use = [&](const WorkloadRecord& record) -> const quota::WeightedUse& {
      return uses_.at(LocalQueueKey{record.spec.key.ns, record.spec.queue_name});
    };
    if (const auto order = use(*a).compare(use(*b)); order != 0) return order > 0;
  }
  return cheaper(*a, *b);
}

}  // namespace muster::engine

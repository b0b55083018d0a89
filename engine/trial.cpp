#include "engine/trial.hpp"

namespace muster::engine {

void each_use(
    const State& state, const WorkloadRecord& record,
    const std::function<void(topology::NodeIndex, topology::UseKind, const Resources&)>& visit) {
  for (const auto* slots : {&record.plan, &record.kept}) {
    for (const PlannedSlots& entry : *slots) {
      visit(entry.node, topology::UseKind::kPlanned,
            record.per_pod[entry.pod_set].times(entry.slots));
    }
  }
  const auto members = state.pods_by_owner.find(record.spec.owner_uid);
  if (members == state.pods_by_owner.end()) return;
  for (const Uid& uid : members->second) {
    const PodRecord& pod = state.pods.at(uid);
    if (!pod.foreign.is_zero()) visit(pod.node, topology::UseKind::kForeign, pod.foreign);
  }
}

void Trial::rollback_to(Checkpoint checkpoint) {
  state_.tree.restore(usage_log_, checkpoint.usage);
  state_.fleet.restore(use_log_, checkpoint.use);
}

void Trial::remove(const WorkloadRecord& record) {
  if (record.charged_to) discharge(*record.charged_to, record.charged);
  each_use(state_, record, [this](auto node, auto kind, const Resources& amount) {
    state_.fleet.release(node, kind, amount, 1, &use_log_);
  });
}

void Trial::put_back(const WorkloadRecord& record) {
  if (record.charged_to) charge(*record.charged_to, record.charged);
  each_use(state_, record, [this](auto node, auto kind, const Resources& amount) {
    state_.fleet.charge(node, kind, amount, 1, &use_log_);
  });
}

void Trial::remove_leaving() {
  const LeavingUse& leaving = state_.leaving_use();
  if (leaving.too_large) {
    for (const WorkloadRecord* const record : state_.evicting) remove(*record);
    return;
  }
  for (const auto& [queue, amounts] : leaving.quota) discharge(queue, amounts);
  for (const auto& [where, amount] : leaving.nodes) {
    state_.fleet.release(where.first, where.second, amount, 1, &use_log_);
  }
}

void Trial::remove_plans() {
  for (const auto& [key, record] : state_.workloads) {
    if (record.holds_quota()) remove(record);
  }
}

void Trial::remove(const Hold& hold) {
  discharge(hold.queue, hold.amounts);
  for (const topology::NodeUse& use : hold.room) release(use);
}

void Trial::put_back(const Hold& hold) {
  charge(hold.queue, hold.amounts);
  for (const topology::NodeUse& use : hold.room) charge(use);
}

void Trial::charge(const topology::NodeUse& use) {
  state_.fleet.charge(use.node, topology::UseKind::kPlanned, use.amount, 1, &use_log_);
}

void Trial::release(const topology::NodeUse& use) {
  state_.fleet.release(use.node, topology::UseKind::kPlanned, use.amount, 1, &use_log_);
}

void Trial::charge(quota::NodeIndex queue, const quota::FrAmounts& amounts) {
  state_.tree.add_usage(queue, amounts, &usage_log_);
}

void Trial::discharge(quota::NodeIndex queue, const quota::FrAmounts& amounts) {
  state_.tree.remove_usage(queue, amounts, &usage_log_);
}

}  // namespace muster::engine

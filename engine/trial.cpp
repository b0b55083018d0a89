#include "engine/trial.hpp"

namespace muster::engine {

void Trial::rollback_to(Checkpoint checkpoint) {
  state_.tree.restore(usage_log_, checkpoint.usage);
  state_.fleet.restore(use_log_, checkpoint.use);
}

void Trial::remove(const WorkloadRecord& record) {
  if (record.charged_to) discharge(*record.charged_to, record.charged);
  use_of(record, true);
}

void Trial::put_back(const WorkloadRecord& record) {
  if (record.charged_to) charge(*record.charged_to, record.charged);
  use_of(record, false);
}

void Trial::remove(const Hold& hold) {
  discharge(hold.queue, hold.amounts);
  for (const topology::NodeUse& use : hold.room) {
    state_.fleet.release(use.node, topology::UseKind::kPlanned, use.amount, &use_log_);
  }
}

void Trial::put_back(const Hold& hold) {
  charge(hold.queue, hold.amounts);
  for (const topology::NodeUse& use : hold.room) {
    state_.fleet.charge(use.node, topology::UseKind::kPlanned, use.amount, &use_log_);
  }
}

void Trial::charge(quota::NodeIndex queue, const quota::FrAmounts& amounts) {
  state_.tree.add_usage(queue, amounts, &usage_log_);
}

void Trial::discharge(quota::NodeIndex queue, const quota::FrAmounts& amounts) {
  state_.tree.remove_usage(queue, amounts, &usage_log_);
}

void Trial::use_of(const WorkloadRecord& record, bool release) {
  const auto change = [&](topology::NodeIndex node, topology::UseKind kind,
                          const Resources& amount) {
    if (release) {
      state_.fleet.release(node, kind, amount, &use_log_);
    } else {
      state_.fleet.charge(node, kind, amount, &use_log_);
    }
  };
  for (const PlannedSlots& entry : record.plan) {
    change(entry.node, topology::UseKind::kPlanned,
           record.per_pod[entry.pod_set].times(entry.slots));
  }
  const auto members = state_.pods_by_owner.find(record.spec.owner_uid);
  if (members == state_.pods_by_owner.end()) return;
  for (const Uid& uid : members->second) {
    const PodRecord& pod = state_.pods.at(uid);
    if (!pod.foreign.is_zero()) change(pod.node, topology::UseKind::kForeign, pod.foreign);
  }
}

}  // namespace muster::engine

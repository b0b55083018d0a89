// State: who may be preempted, and what is kept for whom.

#include "base/assert.hpp"
#include "engine/accelerators.hpp"
#include "engine/state.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::engine {
namespace {

/// Without overflow: an Instant that is too far is the last one.
Instant later(Instant at, Duration by) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() - by.count();
  return by.count() > 0 && at.us > most ? Instant{std::numeric_limits<std::int64_t>::max()}
                                        : at + by;
}

Amount accelerators_of(const WorkloadRecord& record) {
  Amount sum;
  for (std::size_t i = 0; i < record.spec.pod_sets.size(); ++i) {
    const PodSetSpec& pod_set = record.spec.pod_sets[i];
    std::int64_t count = pod_set.count;
    if (record.admission && i < record.admission->pod_sets.size()) {
      count = record.admission->pod_sets[i].count;
    }
    for (const auto& [name, amount] : pod_set.node_requests) {
      if (is_accelerator(name)) sum += amount * count;
    }
  }
  return sum;
}

}  // namespace

Protection State::protection_of(const WorkloadSpec& spec, const ClusterQueueName& queue) const {
  Protection result = spec.protection;
  const auto local = local_queues.find(LocalQueueKey{spec.key.ns, spec.queue_name});
  if (local != local_queues.end()) result = result.or_else(local->second.protection);
  const auto cluster = queues.find(queue);
  if (cluster != queues.end()) result = result.or_else(cluster->second.protection);
  return result;
}

const Standing& State::standing(const WorkloadRecord& record) const {
  if (!record.standing || record.standing->rules != protection_rules) {
    record.standing = Standing{protection_of(record.spec, record.queue), accelerators_of(record),
                               protection_rules};
  }
  return *record.standing;
}

std::optional<SparedWorkload> State::spared(const WorkloadRecord& victim,
                                            const WorkloadSpec& preemptor) {
  using Why = SparedWorkload::Why;
  const WorkloadKey& key = victim.spec.key;
  const Protection& protection = standing(victim).protection;
  if (!protection.preemptible.value_or(true)) {
    return SparedWorkload{key, Why::kNotPreemptible, std::nullopt};
  }
  std::optional<Instant> run_time_ended;
  if (protection.min_runtime && victim.reserved_at) {
    run_time_ended = later(*victim.reserved_at, *protection.min_runtime);
    if (*run_time_ended > last_pass) {
      ask_to_wake(*run_time_ended);
      return SparedWorkload{key, Why::kMinRuntime, run_time_ended};
    }
  }
  if (!options.improvements.no_loops || !victim.preempted_at) return std::nullopt;
  const auto since = [&](const std::optional<Instant>& at) {
    return at && *at > *victim.preempted_at;
  };
  const WorkloadRecord* asking = find(preemptor.key);
  if (since(asking != nullptr ? asking->arrived : preemptor.created) || since(disturbed_at)) {
    return std::nullopt;
  }
  // Whoever goes round in a loop was preempted itself. To it another arrival is no news, or every
  // arrival in a busy fleet would turn the loop once more.
  const bool fresh = asking == nullptr || !went_round(*asking);
  if (fresh && (since(last_arrival) || since(run_time_ended))) return std::nullopt;
  arrivals_matter = true;
  return SparedWorkload{key, Why::kPreemptedBefore, std::nullopt};
}

bool State::went_round(const WorkloadRecord& record) {
  return record.preempted_at && !(record.arrived && *record.arrived > *record.preempted_at);
}

void State::add_hold(const WorkloadKey& key, Hold hold) {
  tree.add_usage(hold.queue, hold.amounts);
  for (const topology::NodeUse& use : hold.room) {
    fleet.charge(use.node, topology::UseKind::kPlanned, use.amount);
  }
  const auto [position, is_new] = holds.emplace(key, std::move(hold));
  MUSTER_ASSERT(is_new, "room is kept for {} already", key);
  const Hold* const kept = &position->second;
  holds_by_queue_[kept->queue].emplace(key, kept);
  if (kept->own_only) own_only_holds_.emplace(key, kept);
}

void State::drop_hold(const WorkloadKey& key) {
  const auto position = holds.find(key);
  if (position == holds.end()) return;
  const Hold& hold = position->second;
  tree.remove_usage(hold.queue, hold.amounts);
  for (const topology::NodeUse& use : hold.room) {
    fleet.release(use.node, topology::UseKind::kPlanned, use.amount);
  }
  holds_by_queue_.at(hold.queue).erase(key);
  own_only_holds_.erase(key);
  holds.erase(position);
}

const State::HoldsByKey& State::holds_in(quota::NodeIndex queue) const {
  static const HoldsByKey kNone;
  const auto found = holds_by_queue_.find(queue);
  return found == holds_by_queue_.end() ? kNone : found->second;
}

void State::recall_preemptors() {
  std::map<Uid, Instant> left_for;  // The preemptor, and the last eviction for it.
  for (const auto& [key, record] : workloads) {
    if (record.spec.preempted_for.empty() || record.phase == Phase::kFinished) continue;
    const Instant at = record.spec.preempted_at.value_or(Instant{});
    const auto [known, is_new] = left_for.try_emplace(record.spec.preempted_for, at);
    if (!is_new) known->second = std::max(known->second, at);
  }
  if (left_for.empty()) return;
  for (const auto& [key, record] : workloads) {
    if (record.phase != Phase::kPending || record.spec.uid.empty()) continue;
    const auto found = left_for.find(record.spec.uid);
    if (found == left_for.end()) continue;
    // It ran and was evicted since: what was freed for it then is spent.
    if (record.spec.evicted_at && *record.spec.evicted_at >= found->second) continue;
    preemptors.emplace(key, found->second);
  }
}

void State::ask_to_wake(Instant at) {
  if (at > last_pass && (!wake_at || at < *wake_at)) wake_at = at;
}

void State::disturb(Instant now) {
  if (passed_once) disturbed_at = now;
}

}  // namespace muster::engine

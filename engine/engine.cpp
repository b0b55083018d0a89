#include "engine/engine.hpp"

#include "base/overloaded.hpp"
#include "engine/elastic.hpp"
#include "engine/invariants.hpp"
#include "engine/look_ahead.hpp"
#include "engine/pass.hpp"
#include "engine/publisher.hpp"
#include "engine/repair.hpp"
#include "engine/state.hpp"

#include <algorithm>
#include <utility>

namespace muster::engine {
namespace {

/// What stands for the place of a workload in the queues is not the same.
bool decided_otherwise(const WorkloadSpec& a, const WorkloadSpec& b) {
  return a.queue_name != b.queue_name || a.priority != b.priority || a.active != b.active ||
         a.pod_sets != b.pod_sets || a.protection != b.protection;
}

/// Somebody was admitted who waits for nodes.
bool admits_without_plan(const Effects& effects) {
  return std::any_of(effects.list.begin(), effects.list.end(), [](const Effect& effect) {
    const auto* const admit = std::get_if<Admit>(&effect);
    if (admit == nullptr) return false;
    const std::vector<PodSetAssignment>& pod_sets = admit->admission.pod_sets;
    return std::any_of(pod_sets.begin(), pod_sets.end(),
                       [](const PodSetAssignment& pod_set) { return pod_set.lacks_plan(); });
  });
}

/// Already there, and the same.
template <class Key, class Spec>
bool unchanged(const std::map<Key, Spec>& specs, const Key& key, const Spec& spec) {
  const auto found = specs.find(key);
  return found != specs.end() && found->second == spec;
}

}  // namespace

Engine::Engine(Options options)
    : options_(std::move(options)),
      state_(std::make_unique<State>()),
      publisher_(std::make_unique<Publisher>()) {
  state_->options = options_;
  if (options_.admission_fair_sharing) {
    state_->usage_history.emplace(*options_.admission_fair_sharing);
  }
}

Engine::~Engine() = default;

Effects Engine::step(const Event& event, Instant now) {
  if (std::holds_alternative<Settle>(event)) return settle(now);
  // What the pass holds belongs to the state it saw.
  if (pass_) {
    pass_.reset();
    state_->want_pass();
    ++cut_short_;
  }
  state_->forget_leaving_use();
  apply(event, now);
  state_->sync_usage(now);
  return {};
}

Effects Engine::settle(Instant now) {
  Effects effects;
  if (!pass_) {
    state_->ensure_tree();
    shrink_plans(*state_, effects.list);
    if (state_->usage_history && state_->usage_history->take_samples(now)) {
      state_->queues_dirty = true;
    }
    repair_plans(*state_, effects.list);
    place_held(*state_, effects.list);
    pass_ = std::make_unique<Pass>(*state_, now);
  }
  // The next pass begins at the front again. Where events never pause, it gets further each time:
  // who stands last has a turn as well.
  constexpr std::size_t kMostDoublings = 20;
  const std::size_t doublings = std::min(cut_short_, kMostDoublings);
  effects.more = !pass_->run(options_.settle_budget << doublings, effects.list);
  if (admits_without_plan(effects)) place_held(*state_, effects.list);
  state_->sync_usage(now);
  if (!effects.more) {
    pass_.reset();
    cut_short_ = 0;
  }
  return effects;
}

/// A change of what quota, or its nodes, are; saying the same again is none.
template <class Map, class Key, class Spec>
void Engine::set(Map& map, const Key& key, const Spec& spec, Instant now) {
  const auto known = map.find(key);
  if (known != map.end() && known->second == spec) return;
  state_->disturb(now);
  map.insert_or_assign(key, spec);
}

void Engine::apply(const Event& event, Instant now) {
  State& s = *state_;
  std::visit(Overloaded{
                 [&](const NodeUpserted& e) {
                   const auto known = s.fleet.find(e.node.name);
                   const bool usable = e.node.ready && !e.node.unschedulable;
                   if (known && s.fleet.present(*known) && !usable && s.fleet.facts(*known).ready &&
                       !s.fleet.facts(*known).unschedulable) {
                     s.disturb(now);
                   }
                   s.upsert_node(e.node);
                 },
                 [&](const NodeDeleted& e) {
                   if (const auto node = s.fleet.find(e.name); node && s.fleet.present(*node)) {
                     s.disturb(now);
                     s.remove_node(*node);
                   }
                 },
                 [&](const NamespaceUpserted& e) {
                   s.namespaces[e.ns.name] = e.ns.labels;
                   s.queues_dirty = true;
                   s.want_pass();
                 },
                 [&](const NamespaceDeleted& e) {
                   s.namespaces.erase(e.name);
                   s.queues_dirty = true;
                   s.want_pass();
                 },
                 [&](const FlavorUpserted& e) {
                   set(s.flavors, e.flavor.name, e.flavor, now);
                   s.queues_dirty = true;
                   s.want_pass();
                 },
                 [&](const FlavorDeleted& e) {
                   s.flavors.erase(e.name);
                   s.disturb(now);
                   s.queues_dirty = true;
                   s.want_pass();
                 },
                 [&](const TopologyUpserted& e) {
                   set(s.topologies, e.topology.name, e.topology, now);
                   s.queues_dirty = true;
                   s.want_pass();
                 },
                 [&](const TopologyDeleted& e) {
                   s.topologies.erase(e.name);
                   s.queues_dirty = true;
                   s.want_pass();
                 },
                 [&](const CohortUpserted& e) {
                   // A status that was written comes back; the tree is not built anew for it.
                   if (unchanged(s.cohorts, e.cohort.name, e.cohort)) return;
                   set(s.cohorts, e.cohort.name, e.cohort, now);
                   s.mark_tree_dirty();
                 },
                 [&](const CohortDeleted& e) {
                   s.cohorts.erase(e.name);
                   s.disturb(now);
                   s.mark_tree_dirty();
                 },
                 [&](const ClusterQueueUpserted& e) {
                   if (unchanged(s.queues, e.queue.name(), e.queue)) return;
                   set(s.queues, e.queue.name(), e.queue, now);
                   s.mark_tree_dirty();
                   s.file_all_of(e.queue.name());
                 },
                 [&](const ClusterQueueDeleted& e) {
                   s.queues.erase(e.name);
                   s.disturb(now);
                   s.mark_tree_dirty();
                   s.file_all_of(e.name);
                 },
                 [&](const LocalQueueUpserted& e) { upsert_local_queue(e.queue, now); },
                 [&](const LocalQueueDeleted& e) {
                   if (s.usage_history) s.usage_history->delete_queue(e.key);
                   s.local_queues.erase(e.key);
                   s.file_all_of(e.key);
                 },
                 [&](const WorkloadUpserted& e) { upsert_workload(e.workload, now); },
                 [&](const WorkloadDeleted& e) { s.erase_record(e.key); },
                 [&](const PodPlaced& e) { s.place_pod(e.pod); },
                 [&](const PodGone& e) { (void)s.remove_pod(e.uid); },
                 [&](const AdmissionRefused& e) {
                   WorkloadRecord* record = s.find(e.key);
                   if (record != nullptr && record->phase == Phase::kAssumed) {
                     s.release(*record, Phase::kPending);
                   }
                 },
                 [&](const EvictionRefused& e) {
                   WorkloadRecord* record = s.find(e.key);
                   if (record != nullptr && record->phase == Phase::kEvicting) {
                     s.set_phase(*record, Phase::kReserved);
                     record->preempted_at = record->spec.preempted_at;
                     s.want_pass();
                   }
                 },
                 [&](const QuotaReleased& e) {
                   WorkloadRecord* record = s.find(e.key);
                   if (record != nullptr && record->holds_quota())
                     s.release(*record, Phase::kPending);
                 },
                 [&](const NodesInDoubt& e) {
                   s.nodes_in_doubt.clear();
                   for (const NodeName& name : e.nodes) {
                     if (const auto node = s.fleet.find(name)) s.nodes_in_doubt.push_back(*node);
                   }
                 },
                 [&](const Settle&) {},
             },
             event);
}

void Engine::upsert_local_queue(LocalQueueSpec queue, Instant now) {
  State& s = *state_;
  if (s.usage_history) s.usage_history->upsert_queue(queue, now);
  queue.consumed.reset();  // The history goes on from there; later versions are echoes of it.
  if (unchanged(s.local_queues, queue.key, queue)) return;
  set(s.local_queues, queue.key, queue, now);
  s.file_all_of(queue.key);
}

void Engine::upsert_workload(const WorkloadSpec& spec, Instant now) {
  State& s = *state_;
  WorkloadRecord* known = s.find(spec.key);
  // A new object under an old name is another workload.
  if (known != nullptr && known->spec.uid != spec.uid) {
    s.erase_record(spec.key);
    known = nullptr;
  }
  if (known != nullptr && known->spec == spec) return;
  const bool arrives = known == nullptr || decided_otherwise(known->spec, spec);
  if (known != nullptr && known->spec.uncreated != spec.uncreated) s.want_pass();
  WorkloadRecord& record = s.upsert_record(spec);
  if (arrives) {
    record.arrived = s.passed_once ? MaybeInstant(now) : spec.created;
    s.last_arrival = std::max(s.last_arrival, std::optional<Instant>(record.arrived));
  }
  if (spec.preempted_at) {
    record.preempted_at = std::max(record.preempted_at.value_or(Instant{}), *spec.preempted_at);
  }

  if (spec.finished) {
    if (record.holds_quota()) {
      s.release(record, Phase::kFinished);
    } else if (record.phase != Phase::kFinished) {
      record.phase = Phase::kFinished;
      s.file(record);
      s.set_phase(record, Phase::kFinished);
    }
    record.spec.admission.reset();  // Objects of finished work stay for long; this would, too.
    return;
  }
  if (!spec.admission) {
    // Not written yet (Assumed), or cleared: by us after an eviction, or by hand.
    if (record.phase == Phase::kReserved || record.phase == Phase::kEvicting) {
      s.release(record, Phase::kPending);
    }
    return;
  }
  if (!spec.active) s.want_pass();  // Passes take back what is deactivated.
  const Phase phase = spec.evicted ? Phase::kEvicting : Phase::kReserved;
  const MaybeInstant since = spec.evicted ? spec.evicted_at : MaybeInstant();
  if (record.holds_quota() && *record.admission == *spec.admission &&
      *record.usage == State::usage_of(spec, *spec.admission)) {
    // An eviction that is decided but not written yet stays decided.
    if (record.phase != Phase::kEvicting) s.set_phase(record, phase, since);
    if (spec.quota_reserved_at) record.reserved_at = spec.quota_reserved_at;
    return;
  }
  const Phase next = record.phase == Phase::kEvicting ? Phase::kEvicting : phase;
  if (record.holds_quota()) s.release(record, Phase::kPending);
  s.hold(record, *spec.admission, next, spec.quota_reserved_at.value_or(now));
  if (next == Phase::kEvicting) s.set_phase(record, next, since);
}

bool Engine::wants_settle(Instant now) const {
  if (pass_ || state_->wants_pass || !state_->suspects.empty()) return true;
  const auto wakeup = next_wakeup();
  return wakeup && *wakeup <= now;
}

std::optional<Instant> Engine::next_wakeup() const {
  // Back-offs that ended before the last pass were considered by it.
  const auto next =
      state_->backing_off.upper_bound({state_->last_pass, WorkloadKey{Namespace("\x7f"), ""}});
  std::optional<Instant> wakeup = state_->wake_at;
  if (next != state_->backing_off.end() && (!wakeup || next->first < *wakeup)) {
    wakeup = next->first;
  }
  if (!state_->usage_history) return wakeup;
  const auto sample = state_->usage_history->next_sample();
  return sample && (!wakeup || *sample < *wakeup) ? sample : wakeup;
}

std::shared_ptr<const Snapshot> Engine::publish() {
  state_->ensure_tree();
  return publisher_->publish(*state_);
}

std::vector<LargestGang> Engine::largest_gangs() const {
  return engine::largest_gangs(*state_);
}

bool Engine::is_held(const WorkloadKey& key) const {
  const WorkloadRecord* record = state_->find(key);
  return record != nullptr && engine::is_held(*state_, *record);
}

std::optional<Explanation> Engine::explanation(const WorkloadKey& key) const {
  const WorkloadRecord* record = state_->find(key);
  if (record == nullptr || record->phase != Phase::kPending) return std::nullopt;
  if (record->pending_class == nullptr) return state_->homeless_reason(*record);
  return record->pending_class->verdict;
}

std::optional<Explanation> Engine::full_explanation(const WorkloadKey& key) const {
  auto why = explanation(key);
  // While a pass is open its holds stand where there will be room.
  if (why && pass_ == nullptr && !state_->tree_dirty) look_ahead(*state_, *state_->find(key), *why);
  return why;
}

std::vector<std::string> Engine::check_invariants() const {
  return check_state(*state_);
}

}  // namespace muster::engine

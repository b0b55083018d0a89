// One workload as it is -> the one write that brings it forward.

#include "controller/impl.hpp"
#include "controller/names.hpp"
#include "engine/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::controller {
namespace {

using kube::Json;

/// The garbage collector deletes the Workloads of deleted owners; we only step in after it.
constexpr Duration kGarbageCollectorGrace = std::chrono::seconds(5);
/// Somebody else's workload: time for its own manager to clear the admission.
constexpr Duration kForeignReleaseGrace = std::chrono::seconds(2);
/// A pod on a node that does not answer is given up this long after its grace.
constexpr Duration kUnreachableGrace = std::chrono::seconds(60);
constexpr Duration kUnreachablePoll = std::chrono::seconds(1);
constexpr Duration kOvertakenHold = std::chrono::seconds(1);
constexpr Duration kBarrierPoll = std::chrono::milliseconds(20);
/// Shortest times between two writes of why a workload waits: for a new reason, for new words. The
/// engine tells of new reasons; whether it has new words is looked up.
constexpr Duration kPendingReasonInterval = std::chrono::seconds(5);
constexpr Duration kPendingMessageInterval = std::chrono::seconds(30);

std::string workloads_path(const Namespace& ns) {
  return fmt::format("/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/workloads", ns);
}

std::string workload_path(const WorkloadKey& key) {
  return workloads_path(key.ns) + "/" + key.name;
}

InFlight about(const WorkloadEntry& entry) {
  InFlight what;
  what.workload = entry.key;
  return what;
}

// Reasons that somebody has to do something about.
bool is_warning(engine::PendingReason reason) {
  return reason == engine::PendingReason::kExceedsMaxQuota ||
         reason == engine::PendingReason::kNoMatchingFlavor ||
         reason == engine::PendingReason::kMisconfigured;
}

}  // namespace

void Controller::Impl::reconcile(WorkloadEntry& entry, Instant now) {
  update_window(entry);
  if (must_wait(entry, now)) return;
  at_barrier_.erase(entry.key);
  if (std::exchange(entry.eviction_refused, false)) send(engine::EvictionRefused{entry.key}, now);
  if (entry.leaving) {
    if (!members_gone(entry, now)) return let_leave(entry);
    entry.leaving = false;
    entry.fed.reset();
    send(engine::WorkloadDeleted{entry.key}, now);
    feed_workload(entry, now);
  }
  if (entry.surplus) return delete_workload_object(entry);
  if (entry.object && kube::is_true(entry.object->conditions, "Finished"))
    return forget_work(entry);
  switch (entry.owner_type) {
    case OwnerType::kNone:
      return reconcile_ownerless(entry, now);
    case OwnerType::kOwner:
      if (const OwnerState* const owner = owner_of(entry))
        return reconcile_owner(entry, *owner, now);
      return reconcile_unowned(entry, now);
    case OwnerType::kPod:
      if (const PodRecord* const pod = owning_pod_of(entry)) return reconcile_pod(entry, *pod, now);
      return reconcile_unowned(entry, now);
  }
}

void Controller::Impl::let_leave(WorkloadEntry& entry) {
  const OwnerState* const owner = owner_of(entry);
  if (owner == nullptr) return;
  // Who took the Workload away under a running owner did not stop it.
  const bool runs =
      !owner->suspended && owner->outcome == OwnerOutcome::kNone && !owner->meta.deleted;
  if (runs && is_managed(*owner)) suspend_owner(entry, *owner);
}

void Controller::Impl::forget_work(WorkloadEntry& entry) {
  // Finished objects stay in the cluster for long; what they were made of need not stay here.
  entry.pod_sets = Json();
  entry.written_pod_sets = Json();
  kube::Workload rest;
  rest.meta = std::move(entry.object->meta);
  rest.meta.labels.clear();
  rest.meta.annotations.clear();
  kube::Condition& finished = rest.conditions.emplace_back();
  finished.type = "Finished";
  finished.status = "True";
  entry.object = std::move(rest);
  if (entry.fed && entry.fed->finished) entry.fed->admission.reset();
  entry.admit_message = std::string();
  entry.pending.reset();
  entry.pending_event_reason = std::string();
  if (owner_of(entry) != nullptr) owners_.at(entry.owner_uid).pod_sets.clear();
}

bool Controller::Impl::must_wait(WorkloadEntry& entry, Instant now) {
  if (entry.in_flight) return true;
  if (entry.retry_at) {
    if (now < *entry.retry_at) {
      schedule(entry.key, *entry.retry_at);
      return true;
    }
    entry.retry_at.reset();
  }
  if (entry.conflict_until) {
    const OwnerState* const owner = owner_of(entry);
    const PodRecord* pod = pods_.find(entry.conflict_object);
    const bool unchanged =
        !entry.conflict_version.empty() &&
        ((entry.object && entry.object->meta.resource_version == entry.conflict_version) ||
         (owner != nullptr && owner->meta.resource_version == entry.conflict_version) ||
         (pod != nullptr && pod->resource_version == entry.conflict_version));
    if (unchanged && now < *entry.conflict_until) {
      schedule(entry.key, *entry.conflict_until);
      return true;
    }
    entry.conflict_until.reset();
  }
  return false;
}

void Controller::Impl::reconcile_unowned(WorkloadEntry& entry, Instant now) {
  if (!entry.object) return;
  if (!entry.owner_gone_at) entry.owner_gone_at = now;
  const bool evicted = entry.eviction || kube::is_true(entry.object->conditions, "Evicted");
  const Instant at = *entry.owner_gone_at + kGarbageCollectorGrace;
  if (!evicted && now < at) return schedule(entry.key, at);
  if (!entry.object->meta.deleted) return delete_workload_object(entry);
  // Somebody's finalizer keeps the object; the quota of what does not run any more is not kept.
  if (is_reserved(*entry.object) && members_gone(entry, now)) write_release(entry, now);
}

void Controller::Impl::reconcile_ownerless(WorkloadEntry& entry, Instant now) {
  if (!entry.object) return;
  if (settle_eviction(entry, now)) return;
  if (is_reserved(*entry.object)) {
    const kube::Condition* evicted = kube::find_condition(entry.object->conditions, "Evicted");
    if (evicted != nullptr && evicted->status == "True") {
      const Instant at = evicted->last_transition.value_or(now) + kForeignReleaseGrace;
      return now < at ? schedule(entry.key, at) : write_release(entry, now);
    }
  }
  if (entry.admit) return write_admission(entry, now);
  write_pending(entry, now);
}

bool Controller::Impl::settle_eviction(WorkloadEntry& entry, Instant now) {
  if (!entry.eviction) return false;
  if (!is_reserved(*entry.object)) {
    // Decided again before the admission was written: there is nothing to take back.
    const bool by_engine = entry.eviction->by_engine;
    entry.eviction.reset();
    entry.admit.reset();
    if (by_engine) {
      // Whoever needed the place goes first; without the pause the two could be decided for and
      // against for ever, as nothing that happens in the cluster is in between.
      entry.hold_until = std::max(entry.hold_until.value_or(now), now + kOvertakenHold);
      feed_workload(entry, now);
      send(engine::QuotaReleased{entry.key}, now);
    }
    return true;
  }
  if (kube::is_true(entry.object->conditions, "Evicted")) {
    entry.eviction.reset();
    return false;
  }
  write_eviction(entry, now);
  return true;
}

void Controller::Impl::patch_workload(WorkloadEntry& entry, WriteKind kind, const Json& patch) {
  entry.in_flight = outbox_.patch(kind, workload_path(entry.key) + "/status", patch, about(entry));
}

void Controller::Impl::write_admission(WorkloadEntry& entry, Instant now) {
  const kube::WorkloadAdmission admission = to_admission(*entry.admit, lookup());
  const bool held = engine_.is_held(entry.key);
  if (is_reserved(*entry.object)) {
    patch_workload(entry, WriteKind::kReplan, replan_patch(*entry.object, admission, held, now));
  } else {
    patch_workload(entry, WriteKind::kAdmit,
                   admit_patch(*entry.object, admission, entry.admit_message, held, now));
  }
  entry.writing = std::exchange(entry.admit, std::nullopt);
  entry.barrier_held = false;
}

void Controller::Impl::write_eviction(WorkloadEntry& entry, Instant now) {
  const EvictionWords& words = entry.eviction->words;
  patch_workload(entry, WriteKind::kEvict, evict_patch(*entry.object, words, now));
  // A plan that was to be mended is not needed any more.
  entry.admit.reset();
  event(entry, false, words.rule.empty() ? "EvictedDueTo" + words.reason : "Preempted",
        words.message, now);
}

void Controller::Impl::write_release(WorkloadEntry& entry, Instant now) {
  std::optional<Instant> requeue_at = entry.hold_until;
  if (requeue_at && *requeue_at <= now) requeue_at.reset();
  patch_workload(entry, WriteKind::kRelease, release_patch(*entry.object, requeue_at, now));
}

void Controller::Impl::write_finish(WorkloadEntry& entry, bool succeeded,
                                    const std::string& message, Instant now) {
  patch_workload(entry, WriteKind::kFinish, finish_patch(*entry.object, succeeded, message, now));
}

void Controller::Impl::write_pending(WorkloadEntry& entry, Instant now) {
  const bool is_its_turn = std::exchange(entry.pending_turn, false);
  if (!entry.pending || !entry.pending_since || is_reserved(*entry.object)) return;
  // Of another reason the engine would have told; what it has then is said of others of its kind.
  if (auto latest = engine_.explanation(entry.key);
      latest && latest->reason == entry.pending->reason) {
    entry.pending = std::move(latest);
  }
  const std::string_view reason = engine::to_string(entry.pending->reason);
  const kube::Condition* known = kube::find_condition(entry.object->conditions, "QuotaReserved");
  const bool new_reason = known == nullptr || known->status != "False" || known->reason != reason;
  Instant at = *entry.pending_since + options_.pending_delay;
  if (entry.pending_written_at) {
    at = std::max(at, *entry.pending_written_at +
                          (new_reason ? kPendingReasonInterval : kPendingMessageInterval));
  }
  // Whose end would make room is said when it is written, and alone is no reason to write.
  const auto runs = [this](const WorkloadKey& key) {
    const WorkloadEntry* const other = find(key);
    return other != nullptr && other->object && is_reserved(*other->object);
  };
  const bool as_written =
      !new_reason && engine::is_description(known->message, *entry.pending, runs);
  std::string message = as_written ? known->message : engine::describe(*entry.pending);
  Json patch = pending_patch(*entry.object, reason, message, now);
  if (!patch.present()) {
    if (!entry.pending_look_at || *entry.pending_look_at <= now) {
      entry.pending_look_at = now + kPendingMessageInterval;
      schedule(entry.key, *entry.pending_look_at);
    }
    return;
  }
  if (now < at) return schedule(entry.key, at);
  if (!is_its_turn) return pending_turns_.ask(entry.key, new_reason);
  pending_turns_.wrote(outbox_.busy(), now);
  if (const auto full = engine_.full_explanation(entry.key);
      full && full->reason == entry.pending->reason) {
    message = engine::describe(*full);
    patch = pending_patch(*entry.object, reason, message, now);
    if (!patch.present()) return;
  }
  patch_workload(entry, WriteKind::kPending, patch);
  entry.pending_written_at = now;
  if (is_warning(entry.pending->reason) && entry.pending_event_reason != reason) {
    event(entry, true, std::string(reason), message, now);
  }
  entry.pending_event_reason = reason;
}

void Controller::Impl::delete_workload_object(WorkloadEntry& entry) {
  entry.in_flight = outbox_.remove(WriteKind::kDeleteWorkload, workload_path(entry.key),
                                   entry.object->meta.uid, about(entry));
}

void Controller::Impl::create_workload(WorkloadEntry& entry, const Json& object) {
  entry.written_pod_sets = object.get("spec", "podSets");
  entry.in_flight =
      outbox_.post(WriteKind::kCreateWorkload, workloads_path(entry.key.ns), object, about(entry));
}

void Controller::Impl::update_workload(WorkloadEntry& entry, const Json& spec) {
  entry.written_pod_sets = spec.get("podSets");
  const Json metadata =
      Json::object({{"resourceVersion", Json::string(entry.object->meta.resource_version)}});
  entry.in_flight =
      outbox_.patch(WriteKind::kUpdateWorkload, workload_path(entry.key),
                    Json::object({{"metadata", metadata}, {"spec", spec}}), about(entry));
}

void Controller::Impl::evict_ourselves(WorkloadEntry& entry, EvictionWords words) {
  if (entry.eviction) return;
  entry.eviction = PlannedEviction{std::move(words), false};
  mark(entry.key);
}

EventSubject Controller::Impl::subject_of(const WorkloadEntry& entry) const {
  // Who asks what became of a job describes the job; the Workload says it in its conditions.
  if (const OwnerState* const owner = owner_of(entry)) {
    return {std::string(owner->kind->api_version), std::string(owner->kind->kind), entry.key.ns,
            owner->meta.name, owner->meta.uid};
  }
  if (const PodRecord* const pod = owning_pod_of(entry)) {
    return {"v1", "Pod", entry.key.ns, pod->key.name, pod->uid};
  }
  return {"kueue.x-k8s.io/v1beta2", "Workload", entry.key.ns, entry.key.name,
          entry.object ? entry.object->meta.uid : Uid()};
}

void Controller::Impl::event(const WorkloadEntry& entry, bool warning, const std::string& reason,
                             const std::string& message, Instant now) {
  const std::optional<Json> body = events_.make(subject_of(entry), warning, reason, message, now);
  if (!body) {
    ++stats_.events_dropped;
    return;
  }
  outbox_.post(WriteKind::kEvent, fmt::format("/api/v1/namespaces/{}/events", entry.key.ns), *body,
               InFlight{});
}

bool Controller::Impl::members_gone(const WorkloadEntry& entry, Instant now) {
  bool gone = true;
  for (const PodRecord* pod : pods_.members(entry.owner_uid, entry.key.ns)) {
    if (pod->terminal) continue;
    if (pod->deletion) {
      const Instant given_up = *pod->deletion + kUnreachableGrace;
      if (now >= given_up && !ready_nodes_.contains(pod->node)) continue;
      // The node may stop answering later, and no event of the pod would tell.
      schedule(entry.key, std::max(given_up, now + kUnreachablePoll));
    }
    gone = false;
  }
  return gone;
}

bool Controller::Impl::has_live_member(const WorkloadEntry& entry) const {
  const auto members = pods_.members(entry.owner_uid, entry.key.ns);
  return std::any_of(members.begin(), members.end(),
                     [](const PodRecord* pod) { return !pod->terminal && !pod->deletion; });
}

bool Controller::Impl::may_start(WorkloadEntry& entry, Instant now) {
  BarrierQuery query;
  query.workload = entry.key;
  query.owner_uid = entry.owner_uid;
  query.generation = entry.plan_generation;
  const engine::WorkloadSpec& spec = *entry.fed;
  for (std::size_t i = 0; i < spec.admission->pod_sets.size() && i < spec.pod_sets.size(); ++i) {
    for (const engine::NodeCount& slots : spec.admission->pod_sets[i].nodes) {
      ResourceList& planned = query.planned[slots.node];
      for (const auto& [resource, amount] : spec.pod_sets[i].node_requests) {
        planned[resource] += amount * slots.count;
      }
    }
  }
  if (query.planned.empty()) return true;
  if (!entry.plan_written_at) entry.plan_written_at = now;
  if (entry.plan_generation != 0 && barrier_(query)) return true;
  const Instant deadline = *entry.plan_written_at + options_.barrier_timeout;
  if (now >= deadline) {
    ++stats_.barrier_timeouts;
    return true;
  }
  if (!std::exchange(entry.barrier_held, true)) ++stats_.barrier_waits;
  at_barrier_.insert(entry.key);
  schedule(entry.key, std::min(deadline, now + kBarrierPoll));
  return false;
}

std::optional<PodSetPins> Controller::Impl::pins_of(const WorkloadEntry& entry,
                                                    const std::string& pod_set) const {
  const engine::Admission& admission = *entry.fed->admission;
  const auto assigned = std::find_if(
      admission.pod_sets.begin(), admission.pod_sets.end(),
      [&](const engine::PodSetAssignment& known) { return known.name.value() == pod_set; });
  if (assigned == admission.pod_sets.end()) return std::nullopt;
  const engine::PodSetAssignment& assignment = *assigned;
  PodSetPins pins;
  pins.workload = entry.key.name;
  pins.local_queue = entry.fed->queue_name;
  pins.cluster_queue = admission.cluster_queue.value();
  pins.pod_set = pod_set;
  for (const auto& [resource, name] : assignment.flavors) {
    const auto flavor = flavors_.find(name);
    if (flavor == flavors_.end()) continue;
    pins.node_labels.insert(flavor->second.node_labels.begin(), flavor->second.node_labels.end());
    for (const Toleration& toleration : flavor->second.tolerations) {
      if (std::find(pins.tolerations.begin(), pins.tolerations.end(), toleration) ==
          pins.tolerations.end()) {
        pins.tolerations.push_back(toleration);
      }
    }
  }
  std::set<NodeName> seen;
  for (const engine::NodeCount& slots : assignment.nodes) {
    if (!seen.insert(slots.node).second) continue;
    const auto hostname = nodes_.find(slots.node);
    pins.nodes.push_back(
        PinnedNode{slots.node, hostname != nodes_.end() ? hostname->second : slots.node.value()});
  }
  return pins;
}

}  // namespace muster::controller

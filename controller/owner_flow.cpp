// Suspendable owners: create the Workload, follow changes, start, stop, restore.

#include "controller/impl.hpp"
#include "controller/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::controller {
namespace {

using kube::Json;

constexpr Duration kReclaimDelay = std::chrono::seconds(1);

Json with_path(const Json& object, std::span<const std::string_view> path, const Json& value) {
  if (path.empty()) return value;
  return object.with(path.front(), with_path(object.get(path.front()), path.subspan(1), value));
}

bool any_pinned_for(const OwnerState& owner, const std::string& workload) {
  return std::any_of(owner.pod_sets.begin(), owner.pod_sets.end(), [&](const OwnerPodSet& pod_set) {
    return is_pinned(pod_set.pod_template, workload);
  });
}

bool all_pinned_for(const OwnerState& owner, const std::string& workload) {
  return std::all_of(owner.pod_sets.begin(), owner.pod_sets.end(), [&](const OwnerPodSet& pod_set) {
    return is_pinned(pod_set.pod_template, workload);
  });
}

// Name, count and template of every pod set; the server may have filled in other fields.
bool same_pod_sets(const Json& desired, const Json& stored) {
  if (desired.size() != stored.size()) return false;
  for (std::size_t i = 0; i < desired.size(); ++i) {
    const Json want = desired.at(i);
    const Json have = stored.at(i);
    if (want.get("name").string_or("") != have.get("name").string_or("") ||
        want.get("count").int_or(1) != have.get("count").int_or(1) ||
        want.get("minCount").int_or(0) != have.get("minCount").int_or(0) ||
        !(want.get("template") == normal_template(have.get("template")))) {
      return false;
    }
  }
  return true;
}

/// The Workload asks for what the owner asks for, as we wrote it or as it is stored.
bool has_shape(const WorkloadEntry& entry, const Json& desired) {
  return same_pod_sets(desired, entry.pod_sets) || desired == entry.written_pod_sets;
}

/// With `count` pods in pod set `index`; as it was when it has them already.
Json with_count(Json changes, const OwnerState& owner, std::size_t index, std::int64_t count) {
  if (count == owner.pod_sets[index].count) return changes;
  if (changes.missing()) changes = Json::object({});
  for (const std::vector<std::string_view>& field : owner.kind->count_fields(owner.meta, index)) {
    changes = with_path(changes, field, Json::number(count));
  }
  return changes;
}

const kube::WorkloadPodSet* stored_pod_set(const WorkloadEntry& entry, const std::string& name) {
  const auto& stored = entry.object->pod_sets;
  const auto found = std::find_if(stored.begin(), stored.end(),
                                  [&](const auto& known) { return known.name == name; });
  return found == stored.end() ? nullptr : &*found;
}

/// The pods that were admitted; nothing when none were.
std::optional<std::int64_t> assigned_count(const WorkloadEntry& entry, const std::string& name) {
  if (!entry.fed || !entry.fed->admission) return std::nullopt;
  for (const engine::PodSetAssignment& assigned : entry.fed->admission->pod_sets) {
    if (assigned.name.value() == name) return assigned.count;
  }
  return std::nullopt;
}

/// The pods it may start with; other than what it asks for only where it allows fewer.
std::int64_t admitted_count(const WorkloadEntry& entry, const OwnerPodSet& pod_set) {
  const kube::WorkloadPodSet* stored = stored_pod_set(entry, pod_set.name);
  if (stored == nullptr || !stored->min_count) return pod_set.count;
  return assigned_count(entry, pod_set.name).value_or(pod_set.count);
}

/// Pods that ended well and whose quota was given back, for good.
std::int64_t reclaimed_count(const WorkloadEntry& entry, const std::string& name) {
  const auto found = entry.object->reclaimable_pods.find(name);
  return found == entry.object->reclaimable_pods.end() ? 0 : found->second;
}

/// The admission is about another number of pods than the Workload now has.
bool is_outdated(const WorkloadEntry& entry) {
  return std::any_of(entry.object->pod_sets.begin(), entry.object->pod_sets.end(),
                     [&](const kube::WorkloadPodSet& stored) {
                       const auto assigned = assigned_count(entry, stored.name);
                       if (stored.min_count || !assigned) return false;
                       const std::int64_t least =
                           stored.count - reclaimed_count(entry, stored.name);
                       return *assigned > stored.count || *assigned < least;
                     });
}

/// Its pods ask for more than those that were admitted.
bool asks_for_more(const OwnerPodSet& pod_set, const kube::WorkloadPodSet& admitted) {
  const auto spec = kube::decode_pod_spec(pod_set.pod_template.get("spec"));
  if (!spec) return true;
  const kube::QuantityMap held = kube::effective_requests(admitted.pod_template.spec);
  for (const auto& [resource, wanted] : kube::effective_requests(*spec)) {
    const auto found = held.find(resource);
    if (wanted.compare(found == held.end() ? Quantity() : found->second) > 0) return true;
  }
  return false;
}

/// More pods, or larger ones, are still to run than quota is held for.
bool has_outgrown_its_admission(const WorkloadEntry& entry, const OwnerState& owner) {
  for (std::size_t i = 0; i < owner.pod_sets.size(); ++i) {
    const OwnerPodSet& pod_set = owner.pod_sets[i];
    const kube::WorkloadPodSet* stored = stored_pod_set(entry, pod_set.name);
    const auto assigned = assigned_count(entry, pod_set.name);
    if (stored == nullptr || !assigned) continue;
    if (asks_for_more(pod_set, *stored)) return true;
    const std::int64_t wanted = std::min(pod_set.count, owner.pods_left[i].value_or(pod_set.count));
    const std::int64_t held =
        std::min(*assigned, stored->count - reclaimed_count(entry, pod_set.name));
    if (wanted > held) return true;
  }
  return false;
}

/// The pods it asked for before we started it with fewer; a number that somebody else wrote stays.
std::int64_t original_count(const WorkloadEntry& entry, const OwnerPodSet& pod_set) {
  const kube::WorkloadPodSet* stored = stored_pod_set(entry, pod_set.name);
  if (stored == nullptr || !stored->min_count) return pod_set.count;
  return pod_set.count == admitted_count(entry, pod_set) ? stored->count : pod_set.count;
}

LabelMap template_annotations(const OwnerState& owner) {
  LabelMap result;
  if (owner.pod_sets.empty()) return result;
  const Json annotations = owner.pod_sets.front().pod_template.get("metadata", "annotations");
  for (const auto& [key, value] : annotations.members()) {
    result.emplace(key, value.string_or(""));
  }
  return result;
}

}  // namespace

bool Controller::Impl::namespace_is_managed(const Namespace& ns) const {
  if (ns == Namespace("kube-system")) return false;
  if (!options_.managed_namespaces) return true;
  const auto labels = namespaces_.find(ns);
  return labels != namespaces_.end() && matches(*options_.managed_namespaces, labels->second);
}

bool Controller::Impl::is_managed(const OwnerState& owner) const {
  const std::string* queue = owner.meta.find_label(kQueueNameLabel);
  return queue != nullptr && !queue->empty() && namespace_is_managed(owner.meta.ns);
}

void Controller::Impl::reconcile_owner(WorkloadEntry& entry, const OwnerState& owner, Instant now) {
  if (!entry.object) return create_for_owner(entry, owner, now);
  if (owner.outcome != OwnerOutcome::kNone) {
    return write_finish(entry, owner.outcome == OwnerOutcome::kSucceeded, owner.outcome_message,
                        now);
  }
  if (settle_eviction(entry, now)) return;
  const bool reserved = is_reserved(*entry.object);
  if (reserved && kube::is_true(entry.object->conditions, "Evicted")) {
    return stop_owner(entry, owner, now);
  }
  if (owner.meta.deleted) return;  // nothing is started any more, and the rest goes with it
  if (follow_owner(entry, owner)) return;
  if (reserved && !entry.admit && !kube::is_true(entry.object->conditions, "Admitted")) {
    // Reserved by a former controller that did not get to the end.
    return patch_workload(entry, WriteKind::kAdmit,
                          admit_patch(*entry.object, *entry.object->admission,
                                      "The workload is admitted", engine_.is_held(entry.key), now));
  }
  if (entry.admit) return write_admission(entry, now);
  if (write_reclaimable(entry, owner, now)) return;
  if (!reserved) return write_pending(entry, now);
  if (owner.suspended) {
    start_owner(entry, owner, now);
  } else {
    watch_members(entry, owner, now);
  }
}

void Controller::Impl::create_for_owner(WorkloadEntry& entry, const OwnerState& owner,
                                        Instant now) {
  if (!is_managed(owner) || owner.outcome != OwnerOutcome::kNone || owner.meta.deleted ||
      is_unreadable(entry)) {
    return;
  }
  if (!owner.suspended) return suspend_owner(entry, owner);
  const std::optional<ResolvedPriority> priority = priority_of(entry, owner, now);
  if (!priority) return;
  std::vector<OwnerPodSet> pod_sets = owner.pod_sets;
  for (OwnerPodSet& pod_set : pod_sets) {
    if (is_pinned(pod_set.pod_template, "")) {
      pod_set.pod_template = unpinned_template(pod_set.pod_template);
    }
  }
  create_workload(entry, workload_object(OwnerIdentity{std::string(owner.kind->api_version),
                                                       std::string(owner.kind->kind), owner.meta},
                                         pod_sets, *priority));
}

std::optional<ResolvedPriority> Controller::Impl::priority_of(WorkloadEntry& entry,
                                                              const OwnerState& owner,
                                                              Instant now) {
  std::string pod_class;
  if (!owner.pod_sets.empty()) {
    pod_class = owner.pod_sets.front().pod_template.get("spec", "priorityClassName").string_or("");
  }
  ResolvedPriority priority =
      resolve_priority(owner.meta, template_annotations(owner), pod_class, priorities_);
  if (!priority.missing || priority.kind != "WorkloadPriorityClass") return priority;
  constexpr const char* kReason = "WorkloadPriorityClassNotFound";
  if (entry.pending_event_reason != kReason) {
    entry.pending_event_reason = kReason;
    event(entry, true, kReason, "There is no WorkloadPriorityClass " + priority.name, now);
  }
  return std::nullopt;
}

bool Controller::Impl::is_as_admitted(const WorkloadEntry& entry, const OwnerState& owner) const {
  if (!is_managed(owner) || *owner.meta.find_label(kQueueNameLabel) != entry.object->queue_name) {
    return false;
  }
  if (is_outdated(entry)) return false;
  if (any_pinned_for(owner, entry.key.name)) {
    // The start writes the pins anew; how many pods there are and how large is up to the owner.
    return std::all_of(owner.pod_sets.begin(), owner.pod_sets.end(), [&](const auto& pod_set) {
      const kube::WorkloadPodSet* stored = stored_pod_set(entry, pod_set.name);
      return stored != nullptr && original_count(entry, pod_set) == stored->count &&
             !asks_for_more(pod_set, *stored);
    });
  }
  return has_shape(entry, pod_sets_json(owner.pod_sets));
}

bool Controller::Impl::follow_owner(WorkloadEntry& entry, const OwnerState& owner) {
  const bool reserved = is_reserved(*entry.object);
  if (!owner.suspended) {
    if (reserved && all_pinned_for(owner, entry.key.name) &&
        !has_outgrown_its_admission(entry, owner)) {
      return false;
    }
    // It runs without our leave, with more pods than it has leave for, or not where its plan is.
    suspend_owner(entry, owner);
    return true;
  }
  if (reserved && is_as_admitted(entry, owner)) return false;
  if (const Json changes = restoration(entry, owner); changes.present()) {
    restore_owner(entry, owner, changes);
    return true;
  }
  if (reserved || !is_managed(owner)) {
    // What was admitted is not what would be started: begin anew, once the pods of a former start
    // are gone.
    if (members_gone(entry, now_)) delete_workload_object(entry);
    return true;
  }
  const std::optional<ResolvedPriority> priority = priority_of(entry, owner, now_);
  const Json desired = pod_sets_json(owner.pod_sets);
  const std::string& queue = *owner.meta.find_label(kQueueNameLabel);
  const bool same_shape = has_shape(entry, desired);
  const bool same_priority = !priority || (priority->value == entry.object->priority.value_or(0) &&
                                           priority->name == entry.object->priority_class_name);
  if (same_shape && same_priority && queue == entry.object->queue_name) return false;
  if (entry.admit) {
    entry.admit.reset();
    send(engine::AdmissionRefused{entry.key}, now_);
  }
  const Json object = workload_object(OwnerIdentity{std::string(owner.kind->api_version),
                                                    std::string(owner.kind->kind), owner.meta},
                                      owner.pod_sets, priority.value_or(ResolvedPriority{}));
  Json spec = Json::object({{"queueName", Json::string(queue)}});
  if (!same_shape) spec = spec.with("podSets", desired);
  if (!same_priority) {
    const Json class_ref = object.get("spec", "priorityClassRef");
    spec = spec.with("priority", object.get("spec", "priority"))
               .with("priorityClassRef", class_ref.present() ? class_ref : Json::null());
  }
  update_workload(entry, spec);
  return true;
}

bool Controller::Impl::write_reclaimable(WorkloadEntry& entry, const OwnerState& owner,
                                         Instant now) {
  std::map<std::string, std::int64_t> reclaimable;
  for (std::size_t i = 0; i < owner.pod_sets.size(); ++i) {
    const kube::WorkloadPodSet* stored = stored_pod_set(entry, owner.pod_sets[i].name);
    if (stored == nullptr || stored->count <= 1 || !owner.pods_left[i]) continue;
    const std::int64_t ended = stored->count - *owner.pods_left[i];
    if (ended > 0) reclaimable.emplace(stored->name, ended);
  }
  const auto& known = entry.object->reclaimable_pods;
  if (is_reserved(*entry.object)) {
    // Given back once, given back for good.
    for (const auto& [name, count] : known) {
      std::int64_t& now_ended = reclaimable[name];
      now_ended = std::max(now_ended, count);
    }
  }
  if (reclaimable == known) {
    entry.reclaim_at.reset();
    return false;
  }
  // Pods of a gang tend to end together, and then the whole workload is done.
  if (!entry.reclaim_at) entry.reclaim_at = now + kReclaimDelay;
  if (now < *entry.reclaim_at) {
    schedule(entry.key, *entry.reclaim_at);
    return false;
  }
  entry.reclaim_at.reset();
  patch_workload(entry, WriteKind::kReclaim, reclaim_patch(*entry.object, reclaimable));
  return true;
}

void Controller::Impl::stop_owner(WorkloadEntry& entry, const OwnerState& owner, Instant now) {
  if (!owner.suspended) {
    if (wait_for_checkpoint(entry, now)) return;
    return suspend_owner(entry, owner);
  }
  if (const Json changes = restoration(entry, owner); changes.present()) {
    return restore_owner(entry, owner, changes);
  }
  if (members_gone(entry, now)) write_release(entry, now);
}

void Controller::Impl::start_owner(WorkloadEntry& entry, const OwnerState& owner, Instant now) {
  // Pods of a former start must be on their way out, and the template free to be changed.
  if (!owner.templates_mutable() || has_live_member(entry)) return;
  if (!may_be_created(entry) || !may_start(entry, now)) return;
  Json changes = with_path(Json::object({}), owner.kind->suspend, Json::boolean(false));
  for (std::size_t i = 0; i < owner.pod_sets.size(); ++i) {
    const OwnerPodSet& pod_set = owner.pod_sets[i];
    const Json original = original_template(entry, pod_set);
    const std::optional<PodSetPins> pins = pins_of(entry, pod_set.name);
    if (!original.present() || !pins) return;
    const Json difference = merge_diff(pod_set.pod_template, pinned_template(original, *pins));
    if (difference.present()) {
      changes = with_path(changes, owner.kind->templates[i].path, difference);
    }
    changes = with_count(changes, owner, i, admitted_count(entry, pod_set));
  }
  if (forget_start(entry, owner)) return;
  patch_owner(entry, owner, WriteKind::kResume, changes);
}

void Controller::Impl::suspend_owner(WorkloadEntry& entry, const OwnerState& owner) {
  patch_owner(entry, owner, WriteKind::kSuspend,
              with_path(Json::object({}), owner.kind->suspend, Json::boolean(true)));
}

Json Controller::Impl::restoration(const WorkloadEntry& entry, const OwnerState& owner) const {
  Json changes;
  for (std::size_t i = 0; i < owner.pod_sets.size(); ++i) {
    const OwnerPodSet& pod_set = owner.pod_sets[i];
    const Json original = original_template(entry, pod_set);
    if (!is_pinned(pod_set.pod_template, entry.key.name) || !original.present()) continue;
    const Json difference = merge_diff(pod_set.pod_template, original);
    if (difference.present()) {
      changes = with_path(changes, owner.kind->templates[i].path, difference);
    }
    changes = with_count(changes, owner, i, original_count(entry, pod_set));
  }
  return changes;
}

void Controller::Impl::restore_owner(WorkloadEntry& entry, const OwnerState& owner,
                                     const Json& changes) {
  // The server takes changes of a template only from an owner that stands still.
  if (!owner.stopped || has_live_member(entry)) return;
  if (forget_start(entry, owner)) return;
  patch_owner(entry, owner, WriteKind::kRestore, changes);
}

bool Controller::Impl::forget_start(WorkloadEntry& entry, const OwnerState& owner) {
  if (!started_templates_are_fixed_ || !owner.has_start_time) return false;
  write_to_owner(entry, owner, WriteKind::kForgetStart, owner_path(owner) + "/status",
                 with_path(Json::object({}), owner.kind->start_time, Json::null()));
  return true;
}

void Controller::Impl::patch_owner(WorkloadEntry& entry, const OwnerState& owner, WriteKind kind,
                                   const Json& changes) {
  write_to_owner(entry, owner, kind, owner_path(owner), changes);
}

void Controller::Impl::write_to_owner(WorkloadEntry& entry, const OwnerState& owner, WriteKind kind,
                                      std::string path, const Json& changes) {
  const Json metadata =
      Json::object({{"resourceVersion", Json::string(owner.meta.resource_version)}});
  InFlight what;
  what.workload = entry.key;
  what.object = owner.meta.uid;
  entry.in_flight =
      outbox_.patch(kind, std::move(path), changes.with("metadata", metadata), std::move(what));
}

Json Controller::Impl::original_template(const WorkloadEntry& entry,
                                         const OwnerPodSet& pod_set) const {
  for (std::size_t i = 0; i < entry.pod_sets.size(); ++i) {
    const Json stored = entry.pod_sets.at(i);
    if (stored.get("name").string_or("") != pod_set.name) continue;
    const Json original = normal_template(stored.get("template"));
    Json spec = original.get("spec");
    for (const char* field : {"containers", "initContainers"}) {
      spec = spec.with(field, pod_set.pod_template.get("spec", field));
    }
    return original.with("spec", spec);
  }
  return {};
}

}  // namespace muster::controller

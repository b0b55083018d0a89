// Objects into the stores and the engine; effects into the entries.

#include "base/log.hpp"
#include "controller/impl.hpp"
#include "controller/names.hpp"
#include "engine/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace muster::controller {
namespace {

std::string_view name_of(const kube::Json& object) {
  return object.get("metadata", "name").string_or("");
}

std::string_view namespace_of(const kube::Json& object) {
  return object.get("metadata", "namespace").string_or("");
}

/// The owner whose Workload this was, when the reference to it is gone (`kubectl delete
/// --cascade=orphan`); empty for a Workload that never had one.
Uid orphaned_from(const kube::Workload& workload) {
  if (workload.meta.controller_owner() != nullptr) return {};
  const std::string* uid = workload.meta.find_label(kJobUidLabel);
  return uid != nullptr ? Uid(*uid) : Uid();
}

OwnerType owner_type_of(const kube::Workload& workload) {
  const kube::OwnerReference* owner = workload.meta.controller_owner();
  if (owner == nullptr) {
    return orphaned_from(workload).empty() ? OwnerType::kNone : OwnerType::kOwner;
  }
  if (owner->api_version == "v1" && owner->kind == "Pod") return OwnerType::kPod;
  for (const OwnerKind& kind : owner_kinds()) {
    if (owner->api_version == kind.api_version && owner->kind == kind.kind) {
      return OwnerType::kOwner;
    }
  }
  return OwnerType::kNone;
}

}  // namespace

template <class T>
bool Controller::Impl::decoded(const Result<T>& result, ResourceKind kind) {
  if (result) return true;
  ++stats_.decode_errors;
  log::warning("an object of {} is left out: {}", to_string(kind), result.error().message);
  return false;
}

void Controller::Impl::apply(ResourceKind kind, ChangeKind change, const kube::Json& object,
                             Instant now) {
  if (change == ChangeKind::kDelete) {
    apply_delete(kind, object, now);
  } else {
    apply_upsert(kind, object, now);
  }
}

void Controller::Impl::apply_upsert(ResourceKind kind, const kube::Json& object, Instant now) {
  switch (kind) {
    case ResourceKind::kNode:
      return upsert_node(object, now);
    case ResourceKind::kNamespace:
      return upsert_namespace(object, now);
    case ResourceKind::kLimitRange:
    case ResourceKind::kRuntimeClass:
      return upsert_request_defaults(kind, object, now);
    case ResourceKind::kPriorityClass:
    case ResourceKind::kWorkloadPriorityClass:
      return upsert_priority_class(kind, object);
    case ResourceKind::kResourceFlavor:
      return upsert_flavor(object, now);
    case ResourceKind::kTopology:
      if (const auto topology = kube::decode_topology(object); decoded(topology, kind)) {
        send(engine::TopologyUpserted{to_topology(*topology)}, now);
      }
      return;
    case ResourceKind::kCohort:
      if (const auto cohort = kube::decode_cohort(object); decoded(cohort, kind)) {
        queue_status_.on_stored(QueueId{Namespace(), cohort->meta.name, true}, object);
        send(engine::CohortUpserted{to_cohort(*cohort)}, now);
      }
      return;
    case ResourceKind::kClusterQueue:
      return upsert_cluster_queue(object, now);
    case ResourceKind::kLocalQueue:
      return upsert_local_queue(object, now);
    case ResourceKind::kJob:
      return upsert_owner(job_kind(), object, now);
    case ResourceKind::kWorkload:
      return upsert_workload(object, now);
    case ResourceKind::kPod:
      return upsert_pod(object, now);
  }
}

void Controller::Impl::apply_delete(ResourceKind kind, const kube::Json& object, Instant now) {
  const std::string name(name_of(object));
  const std::string ns(namespace_of(object));
  const Uid uid(object.get("metadata", "uid").string_or(""));
  switch (kind) {
    case ResourceKind::kNode: {
      const NodeName node(name);
      if (const auto known = nodes_.find(node); known != nodes_.end()) {
        hostnames_[known->second].erase(node);
        nodes_.erase(known);
      }
      ready_nodes_.erase(node);
      send(engine::NodeDeleted{node}, now);
      return;
    }
    case ResourceKind::kNamespace:
      namespaces_.erase(Namespace(name));
      return send(engine::NamespaceDeleted{Namespace(name)}, now);
    case ResourceKind::kLimitRange:
      request_defaults_.erase_limit_range(Namespace(ns), name);
      return requests_changed(Namespace(ns), now);
    case ResourceKind::kRuntimeClass:
      request_defaults_.erase_runtime_class(name);
      return requests_changed(std::nullopt, now);
    case ResourceKind::kPriorityClass:
      priorities_.erase_pod_class(name);
      return priorities_changed();
    case ResourceKind::kWorkloadPriorityClass:
      priorities_.erase_workload_class(name);
      return priorities_changed();
    case ResourceKind::kResourceFlavor:
      flavors_.erase(FlavorName(name));
      return send(engine::FlavorDeleted{FlavorName(name)}, now);
    case ResourceKind::kTopology:
      return send(engine::TopologyDeleted{TopologyName(name)}, now);
    case ResourceKind::kCohort:
      queue_status_.on_deleted(QueueId{Namespace(), name, true});
      return send(engine::CohortDeleted{CohortName(name)}, now);
    case ResourceKind::kClusterQueue:
      queue_status_.on_deleted(QueueId{Namespace(), name});
      return send(engine::ClusterQueueDeleted{ClusterQueueName(name)}, now);
    case ResourceKind::kLocalQueue:
      queue_status_.on_deleted(QueueId{Namespace(ns), name});
      return send(engine::LocalQueueDeleted{LocalQueueKey{Namespace(ns), name}}, now);
    case ResourceKind::kJob:
      return delete_owner(ObjectName(ns, name), uid, now);
    case ResourceKind::kWorkload:
      return delete_workload(WorkloadKey{Namespace(ns), name}, uid, now);
    case ResourceKind::kPod:
      return apply_pod_change(Namespace(ns), pods_.erase(PodKey{Namespace(ns), name}, uid), now);
  }
}

void Controller::Impl::upsert_node(const kube::Json& object, Instant now) {
  const auto node = kube::decode_node(object);
  if (!decoded(node, ResourceKind::kNode)) return;
  const NodeName name(node->meta.name);
  const std::string* label = node->meta.find_label(kHostnameLabel);
  const std::string hostname = label != nullptr ? *label : name.value();
  std::string& known = nodes_[name];
  if (known != hostname) {
    hostnames_[known].erase(name);
    hostnames_[hostname].insert(name);
    known = hostname;
  }
  if (node->ready) {
    ready_nodes_.insert(name);
  } else {
    ready_nodes_.erase(name);
  }
  send(engine::NodeUpserted{to_node(*node)}, now);
}

void Controller::Impl::upsert_namespace(const kube::Json& object, Instant now) {
  const auto ns = kube::decode_namespace(object);
  if (!decoded(ns, ResourceKind::kNamespace)) return;
  namespaces_[Namespace(ns->meta.name)] = ns->meta.labels;
  send(engine::NamespaceUpserted{to_namespace(*ns)}, now);
}

void Controller::Impl::upsert_flavor(const kube::Json& object, Instant now) {
  const auto flavor = kube::decode_resource_flavor(object);
  if (!decoded(flavor, ResourceKind::kResourceFlavor)) return;
  const engine::FlavorSpec spec = to_flavor(*flavor, options_.default_capacity);
  flavors_[spec.name] = spec;
  send(engine::FlavorUpserted{spec}, now);
}

void Controller::Impl::upsert_cluster_queue(const kube::Json& object, Instant now) {
  const auto queue = kube::decode_cluster_queue(object);
  if (!decoded(queue, ResourceKind::kClusterQueue)) return;
  queue_status_.on_stored(QueueId{Namespace(), queue->meta.name}, object);
  send(engine::ClusterQueueUpserted{to_cluster_queue(*queue)}, now);
}

void Controller::Impl::upsert_local_queue(const kube::Json& object, Instant now) {
  const auto queue = kube::decode_local_queue(object);
  if (!decoded(queue, ResourceKind::kLocalQueue)) return;
  queue_status_.on_stored(QueueId{queue->meta.ns, queue->meta.name}, object);
  send(engine::LocalQueueUpserted{to_local_queue(*queue)}, now);
}

void Controller::Impl::upsert_request_defaults(ResourceKind kind, const kube::Json& object,
                                               Instant now) {
  const std::string name(name_of(object));
  const Namespace ns(namespace_of(object));
  const bool limit_range = kind == ResourceKind::kLimitRange;
  const Result<void> read = limit_range ? request_defaults_.upsert_limit_range(ns, name, object)
                                        : request_defaults_.upsert_runtime_class(name, object);
  if (!decoded(read, kind)) return;
  requests_changed(limit_range ? std::optional(ns) : std::nullopt, now);
}

void Controller::Impl::requests_changed(const std::optional<Namespace>& ns, Instant now) {
  for (auto& [key, entry] : workloads_) {
    if ((ns && key.ns != *ns) || !entry.fed || entry.fed->admission) continue;
    feed_workload(entry, now);
  }
}

void Controller::Impl::upsert_priority_class(ResourceKind kind, const kube::Json& object) {
  const PriorityTable before = priorities_;
  if (kind == ResourceKind::kPriorityClass) {
    const auto cls = kube::decode_priority_class(object);
    if (!decoded(cls, kind)) return;
    priorities_.upsert(*cls);
  } else {
    const auto cls = kube::decode_workload_priority_class(object);
    if (!decoded(cls, kind)) return;
    priorities_.upsert(*cls);
  }
  if (priorities_ != before) priorities_changed();
}

void Controller::Impl::priorities_changed() {
  for (auto& [key, entry] : workloads_) {
    feed_workload(entry, now_);
    mark(key);
  }
}

const kube::ObjectMeta* Controller::Impl::owner_meta(const WorkloadEntry& entry) const {
  if (const OwnerState* const owner = owner_of(entry)) return &owner->meta;
  const PodRecord* const pod = owning_pod_of(entry);
  return pod != nullptr && pod->plain ? &*pod->meta : nullptr;
}

void Controller::Impl::upsert_owner(const OwnerKind& kind, const kube::Json& object, Instant now) {
  Result<OwnerState> owner = read_owner(kind, object);
  if (!decoded(owner, ResourceKind::kJob)) return;
  const ObjectName name(owner->meta.ns.value(), owner->meta.name);
  const Uid uid = owner->meta.uid;
  if (const auto named = owner_names_.find(name);
      named != owner_names_.end() && named->second != uid) {
    delete_owner(name, named->second, now);
  }
  if (const auto known = owners_.find(uid);
      known != owners_.end() &&
      older_version(owner->meta.resource_version, known->second.meta.resource_version)) {
    ++stats_.stale_dropped;
    return;
  }
  WorkloadEntry* entry = find_by_owner(owner->meta.ns, uid);
  if (entry == nullptr) {
    if (!is_managed(*owner) || owner->outcome != OwnerOutcome::kNone) return;
    const WorkloadKey key{owner->meta.ns, workload_name(kind.kind, owner->meta.name, uid)};
    entry = &workloads_[key];
    entry->key = key;
    entry->owner_uid = uid;
    entry->owner_type = OwnerType::kOwner;
    by_owner_[{key.ns, uid}] = key;
  }
  owner_names_[name] = uid;
  owners_[uid] = std::move(*owner);
  entry->owner_gone_at.reset();
  if (entry->object) feed_workload(*entry, now);
  mark(entry->key);
}

void Controller::Impl::delete_owner(const ObjectName& name, const Uid& uid, Instant now) {
  const auto named = owner_names_.find(name);
  if (named == owner_names_.end() || (!uid.empty() && named->second != uid)) return;
  const Uid gone = named->second;
  owner_names_.erase(named);
  owners_.erase(gone);
  if (WorkloadEntry* entry = find_by_owner(Namespace(name.first), gone)) {
    entry->owner_gone_at = now;
    mark(entry->key);
  }
}

void Controller::Impl::upsert_workload(const kube::Json& object, Instant now) {
  Result<kube::Workload> workload = kube::decode_workload(object);
  const WorkloadKey key{Namespace(namespace_of(object)), std::string(name_of(object))};
  if (!decoded(workload, ResourceKind::kWorkload)) {
    unreadable_[key] =
        Uid(object.get("metadata", "ownerReferences").at(0).get("uid").string_or(""));
    return;
  }
  unreadable_.erase(key);
  if (WorkloadEntry* known = find(key); known != nullptr && known->object) {
    if (known->object->meta.uid != workload->meta.uid) {
      delete_workload(key, known->object->meta.uid, now);
    } else if (older_version(workload->meta.resource_version,
                             known->object->meta.resource_version)) {
      ++stats_.stale_dropped;
      return;
    }
  }
  WorkloadEntry& entry = workloads_[key];
  entry.key = key;
  adopt(entry, *workload);
  entry.object = std::move(*workload);
  entry.pod_sets = object.get("spec", "podSets").detached();
  for (std::size_t i = 0; i < entry.object->pod_sets.size(); ++i) {
    entry.object->pod_sets[i].pod_template.raw = entry.pod_sets.at(i).get("template");
  }
  mark(key);
  if (!entry.surplus) feed_workload(entry, now);
}

void Controller::Impl::adopt(WorkloadEntry& entry, const kube::Workload& workload) {
  const kube::OwnerReference* owner = workload.meta.controller_owner();
  const Uid uid = owner != nullptr ? owner->uid : orphaned_from(workload);
  if (entry.object && entry.owner_uid == uid) return;
  // Whose work it is was settled when it was first seen: what runs for it is not handed over.
  if (entry.object && (owner_of(entry) != nullptr || owning_pod_of(entry) != nullptr)) return;
  forget_owner(entry);
  entry.owner_uid = uid;
  entry.owner_type = owner_type_of(workload);
  entry.surplus = false;
  if (uid.empty()) return;
  const auto [mapping, is_first] = by_owner_.try_emplace({entry.key.ns, uid}, entry.key);
  if (is_first || mapping->second == entry.key) return;
  // One owner, two Workloads. A place held for one that was not created yet gives way; of two
  // stored ones, the first seen stays.
  WorkloadEntry* other = find(mapping->second);
  if (other != nullptr && other->object) {
    entry.surplus = true;
    return;
  }
  if (other != nullptr && !other->in_flight) workloads_.erase(mapping->second);
  mapping->second = entry.key;
}

bool Controller::Impl::is_unreadable(const WorkloadEntry& entry) const {
  return std::any_of(unreadable_.begin(), unreadable_.end(), [&](const auto& known) {
    return known.first.ns == entry.key.ns && known.second == entry.owner_uid;
  });
}

bool Controller::Impl::owner_is_elsewhere(const WorkloadEntry& entry) const {
  if (owners_.contains(entry.owner_uid)) return owner_of(entry) == nullptr;
  return pods_.find(entry.owner_uid) != nullptr && owning_pod_of(entry) == nullptr;
}

void Controller::Impl::feed_workload(WorkloadEntry& entry, Instant now) {
  if (!entry.object || entry.surplus || entry.leaving) return;
  if (entry.fed && entry.fed->finished && kube::is_true(entry.object->conditions, "Finished")) {
    return;
  }
  engine::WorkloadSpec spec = to_workload(*entry.object, lookup());
  if (!spec.owner_uid.empty()) {
    spec.owner_uid = owner_is_elsewhere(entry) ? Uid() : entry.owner_uid;
  }
  add_protection(spec, owner_meta(entry), priorities_.protection_of(*entry.object));
  // The end of the work frees its quota at once; writing it down may take a while.
  if (const OwnerState* const owner = owner_of(entry)) {
    spec.finished = spec.finished || owner->outcome != OwnerOutcome::kNone;
  } else if (entry.owner_type == OwnerType::kPod) {
    const PodRecord* const pod = owning_pod_of(entry);
    spec.finished = spec.finished || (pod != nullptr && pod->terminal);
  }
  // What is on its way out (kept by somebody's finalizer) and belongs to nobody queues no more.
  if (entry.object->meta.deleted && !spec.admission && owner_meta(entry) == nullptr) {
    spec.finished = true;
  }
  if (entry.hold_until && (!spec.requeue_at || *spec.requeue_at < *entry.hold_until)) {
    spec.requeue_at = entry.hold_until;
  }
  // A plan that was decided but is not stored yet is not undone by what is stored.
  if (spec.admission && (entry.admit || entry.writing)) {
    spec.admission = entry.admit ? *entry.admit : *entry.writing;
  }
  if (const OwnerState* const owner = owner_of(entry); owner != nullptr && spec.admission) {
    const std::vector<engine::PodSetAssignment>& assigned = spec.admission->pod_sets;
    spec.uncreated =
        owner->suspended && std::any_of(assigned.begin(), assigned.end(),
                                        [](const auto& pod_set) { return pod_set.lacks_plan(); });
  }
  if (entry.fed == spec) return;
  // What was decided about other pods is not worth writing.
  const bool overtaken = entry.admit && entry.fed && !is_reserved(*entry.object) &&
                         entry.fed->pod_sets != spec.pod_sets;
  if (overtaken) entry.admit.reset();
  const bool released = entry.fed && entry.fed->admission && entry.fed->evicted && !spec.admission;
  if (spec.admission && entry.plan_generation == 0) unpublished_.insert(entry.key);
  if (released) entry.plan_generation = 0;
  entry.fed = std::move(spec);
  send(engine::WorkloadUpserted{*entry.fed}, now);
  if (released) send(engine::QuotaReleased{entry.key}, now);
  if (overtaken) send(engine::AdmissionRefused{entry.key}, now);
}

void Controller::Impl::delete_workload(const WorkloadKey& key, const Uid& uid, Instant now) {
  unreadable_.erase(key);
  WorkloadEntry* entry = find(key);
  if (entry == nullptr) return;
  if (!entry->object) {
    if (entry->in_flight) entry->deleted_while_creating = uid;
    return;
  }
  if (!uid.empty() && entry->object->meta.uid != uid) return;
  const bool was_surplus = entry->surplus;
  // Pods may take their time to end, as long as their grace period says: until then they use what
  // was admitted.
  const bool leaving = !was_surplus && entry->fed && entry->fed->admission &&
                       !entry->fed->finished && !members_gone(*entry, now);
  // Everything that was about the old object goes with it; the owner may still want a new one.
  WorkloadEntry fresh;
  fresh.key = key;
  fresh.owner_uid = entry->owner_uid;
  fresh.owner_type = entry->owner_type;
  fresh.owner_gone_at = entry->owner_gone_at;
  fresh.in_flight = entry->in_flight;
  // The answer to its creation may still be on its way.
  if (fresh.in_flight) fresh.deleted_while_creating = entry->object->meta.uid;
  fresh.replaced_at = std::move(entry->replaced_at);
  if (leaving) {
    fresh.leaving = true;
    fresh.fed = std::move(entry->fed);
    fresh.fed->evicted = true;
  }
  *entry = std::move(fresh);
  unpublished_.erase(key);
  at_barrier_.erase(key);
  mark(key);
  if (leaving) {
    send(engine::WorkloadUpserted{*entry->fed}, now);
  } else if (!was_surplus) {
    send(engine::WorkloadDeleted{key}, now);
  }
}

void Controller::Impl::upsert_pod(const kube::Json& object, Instant now) {
  const auto pod = kube::decode_pod(object);
  if (!decoded(pod, ResourceKind::kPod)) return;
  if (const PodRecord* known = pods_.find(pod->meta.uid);
      known != nullptr && older_version(pod->meta.resource_version, known->resource_version)) {
    ++stats_.stale_dropped;
    return;
  }
  apply_pod_change(pod->meta.ns, pods_.upsert(*pod, object, owner_lives(pod->meta.uid)), now);
  const PodRecord* record = pods_.find(pod->meta.uid);
  if (record != nullptr && record->scheduler_preempted) {
    if (WorkloadEntry* entry = find_by_owner(record->key.ns, record->member_of)) {
      entry->preempted.try_emplace(record->uid,
                                   PreemptedMember{record->key.name, *record->scheduler_preempted});
    }
  }
  if (record == nullptr || !record->plain ||
      find_by_owner(record->key.ns, record->uid) != nullptr || record->terminal ||
      record->meta->find_label(kQueueNameLabel) == nullptr ||
      !namespace_is_managed(record->key.ns)) {
    return;
  }
  const WorkloadKey key{record->key.ns, workload_name("Pod", record->key.name, record->uid)};
  WorkloadEntry& entry = workloads_[key];
  entry.key = key;
  entry.owner_uid = record->uid;
  entry.owner_type = OwnerType::kPod;
  by_owner_[{key.ns, record->uid}] = key;
  mark(key);
}

bool Controller::Impl::owner_lives(const Uid& pod) const {
  const PodRecord* known = pods_.find(pod);
  if (known == nullptr) return false;
  const auto owner = owners_.find(known->member_of);
  return owner != owners_.end() && !owner->second.meta.deleted;
}

void Controller::Impl::apply_pod_change(const Namespace& ns, const PodChange& change, Instant now) {
  if (change.replaced_had_use) send(engine::PodGone{*change.replaced}, now);
  if (change.gone) send(engine::PodGone{*change.gone}, now);
  if (change.placed) send(engine::PodPlaced{*change.placed}, now);
  for (const auto& member_of : {change.member_of, change.replaced_member_of}) {
    if (!member_of) continue;
    WorkloadEntry* entry = find_by_owner(ns, *member_of);
    if (entry == nullptr) continue;
    if (entry->owner_type == OwnerType::kPod) {
      if (owning_pod_of(*entry) == nullptr) entry->owner_gone_at = now;
      feed_workload(*entry, now);
    }
    mark(entry->key);
  }
}

ObjectLookup Controller::Impl::lookup() const {
  return ObjectLookup{
      .node_of_hostname = [this](const std::string& hostname) -> std::optional<NodeName> {
        const auto found = hostnames_.find(hostname);
        if (found == hostnames_.end() || found->second.empty()) return std::nullopt;
        // Where nodes share a hostname, each is written by its name.
        const NodeName named(hostname);
        return found->second.contains(named) ? named : *found->second.begin();
      },
      .hostname_of_node = [this](const NodeName& node) -> std::string {
        const auto found = nodes_.find(node);
        if (found == nodes_.end()) return node.value();
        return hostnames_.at(found->second).size() == 1 ? found->second : node.value();
      },
      .flavor_has_topology =
          [this](const FlavorName& flavor) {
            const auto found = flavors_.find(flavor);
            return found != flavors_.end() && found->second.topology.has_value();
          },
      .request_defaults = &request_defaults_,
      .resource_rules = &options_.resource_rules};
}

void Controller::Impl::send(const engine::Event& event, Instant now) {
  take_effects(engine_.step(event, now), now);
}

void Controller::Impl::take_effects(const engine::Effects& effects, Instant now) {
  for (const engine::Effect& effect : effects.list) {
    if (options_.on_effect) options_.on_effect(effect, now);
    if (const auto* admit = std::get_if<engine::Admit>(&effect)) {
      take(*admit);
    } else if (const auto* replan = std::get_if<engine::Replan>(&effect)) {
      take(*replan);
    } else if (const auto* evict = std::get_if<engine::Evict>(&effect)) {
      take(*evict);
    } else if (const auto* pending = std::get_if<engine::StillPending>(&effect)) {
      take(*pending, now);
    }
  }
}

void Controller::Impl::take(const engine::Admit& effect) {
  WorkloadEntry* entry = find(effect.workload);
  if (entry == nullptr) return;
  entry->admit = effect.admission;
  entry->admit_message = engine::describe(effect);
  entry->pending.reset();
  entry->pending_since.reset();
  entry->pending_turn = false;
  entry->plan_generation = 0;
  unpublished_.insert(entry->key);
  mark(entry->key);
}

void Controller::Impl::take(const engine::Replan& effect) {
  WorkloadEntry* entry = find(effect.workload);
  if (entry == nullptr) return;
  entry->admit = effect.admission;
  entry->plan_generation = 0;
  unpublished_.insert(entry->key);
  mark(entry->key);
}

void Controller::Impl::take(const engine::Evict& effect) {
  WorkloadEntry* entry = find(effect.workload);
  if (entry == nullptr) return;
  PlannedEviction eviction;
  eviction.words.reason = engine::to_string(effect.reason);
  if (effect.rule) eviction.words.rule = engine::to_string(*effect.rule);
  eviction.words.message = engine::describe(effect);
  entry->eviction = std::move(eviction);
  mark(entry->key);
}

void Controller::Impl::take(const engine::StillPending& effect, Instant now) {
  WorkloadEntry* entry = find(effect.workload);
  if (entry == nullptr) return;
  entry->pending = effect.explanation;
  for (const engine::Cause& cause : effect.explanation.causes) {
    const auto* awaiting = std::get_if<engine::AwaitingVictims>(&cause);
    if (awaiting == nullptr || !awaiting->again) continue;
    event(*entry, true, "PreemptionOverdue", engine::describe(effect.explanation), now);
  }
  if (!entry->pending_since) entry->pending_since = now;
  mark(entry->key);
}

}  // namespace muster::controller

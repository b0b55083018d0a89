#include "controller/pod_index.hpp"

#include "controller/names.hpp"
#include "controller/translate.hpp"

#include <algorithm>
#include <utility>

namespace muster::controller {
namespace {

bool has_gate(const kube::Pod& pod) {
  const auto& gates = pod.spec.scheduling_gates;
  return std::find(gates.begin(), gates.end(), kAdmissionGate) != gates.end();
}

// Groups of plain pods are not served; they keep their gate.
bool queues_for_itself(const kube::Pod& pod) {
  const std::string* managed = pod.meta.find_label(kManagedLabel);
  return (has_gate(pod) || (managed != nullptr && *managed == "true")) &&
         pod.meta.find_label(kPodGroupLabel) == nullptr &&
         pod.meta.find_annotation(kPodGroupLabel) == nullptr;
}

/// The same room, taken for another owner.
engine::PodUse use_for(const PodRecord& record, const Uid& owner) {
  engine::PodUse use = **record.use;
  use.owner_uid = owner;
  return use;
}

engine::PodUse presumed_use(const PodRecord& record) {
  engine::PodUse use = *record.to_come;
  use.node = *record.presumed;
  use.owner_uid = record.member_of;
  return use;
}

PodRecord make_record(const kube::Pod& pod, const kube::Json& object) {
  PodRecord record;
  record.uid = pod.meta.uid;
  record.key = PodKey{pod.meta.ns, pod.meta.name};
  record.resource_version = pod.meta.resource_version;
  record.member_of = member_uid(pod);
  record.plain = queues_for_itself(pod);
  record.gated = has_gate(pod);
  record.terminal = pod.terminal();
  record.phase = pod.phase;
  record.node = pod.spec.node_name;
  record.deletion = pod.meta.deleted;
  record.rank = pod.rank();
  if (const std::string* pod_set = pod.meta.find_label(kPodSetLabel)) record.pod_set = *pod_set;
  if (record.node.empty()) record.pins = pod.pins();
  record.finalizers = pod.meta.finalizers;
  if (const std::string* at = pod.meta.find_annotation(kEvictAtAnnotation)) record.evict_at = *at;
  record.placed = pod.meta.find_annotation(kPlacedAnnotation) != nullptr;
  const kube::Condition* scheduled = kube::find_condition(pod.conditions, "PodScheduled");
  record.unschedulable = scheduled != nullptr && scheduled->status == "False";
  const kube::Condition* disrupted = kube::find_condition(pod.conditions, "DisruptionTarget");
  if (disrupted != nullptr && disrupted->status == "True" &&
      disrupted->reason == "PreemptionByScheduler") {
    record.scheduler_preempted = disrupted->last_transition.value_or(Instant{});
  }
  if (auto use = to_pod_use(pod)) record.use = *std::move(use);
  if (!record.use && !record.terminal && pod.spec.scheduling_gates.empty()) {
    record.to_come = to_pod_use_on(NodeName(), pod);
  }
  if (record.plain) {
    record.meta = pod.meta;
    if (record.gated) record.object = object;
  }
  return record;
}

}  // namespace

PodChange PodIndex::upsert(const kube::Pod& pod, const kube::Json& object, bool owner_lives) {
  PodChange change;
  PodRecord record = make_record(pod, object);
  if (const auto named = by_key_.find(record.key);
      named != by_key_.end() && named->second != record.uid) {
    const PodRecord& old = pods_.at(named->second);
    change.replaced = old.uid;
    change.replaced_member_of = old.member_of;
    change.replaced_had_use = old.use.has_value();
    const Uid old_uid = old.uid;
    unlink(old);
    pods_.erase(old_uid);
  }
  std::optional<Shared<engine::PodUse>> told;
  if (const auto known = pods_.find(record.uid); known != pods_.end()) {
    told = known->second.use;
    record.delete_sent = known->second.delete_sent;
    // Once started, a pod that queues for itself stays one, whatever happens to its labels.
    if (known->second.plain) {
      record.plain = true;
      record.member_of = record.uid;
      record.meta = pod.meta;
      if (record.use) record.use = use_for(record, record.uid);
    } else if (pod.meta.controller_owner() == nullptr && known->second.member_of != record.uid) {
      record.member_of = known->second.member_of;
      record.released = owner_lives;
      if (record.use) record.use = use_for(record, record.member_of);
    }
    if (record.to_come && known->second.presumed) {
      record.presumed = known->second.presumed;
      record.use = presumed_use(record);
    }
    unlink(known->second);
  }
  if (record.use) {
    if (told == record.use) {
      record.use = told;  // One copy of it, not two that are the same.
    } else {
      change.placed = record.use;
    }
  } else if (told) {
    change.gone = record.uid;
  }
  change.member_of = record.member_of;
  by_key_[record.key] = record.uid;
  by_member_[record.member_of].insert(record.uid);
  pods_[record.uid] = std::move(record);
  return change;
}

PodChange PodIndex::erase(const PodKey& key, const Uid& uid) {
  PodChange change;
  const auto named = by_key_.find(key);
  if (named == by_key_.end() || (!uid.empty() && named->second != uid)) return change;
  const PodRecord& record = pods_.at(named->second);
  if (record.use) change.gone = record.uid;
  change.member_of = record.member_of;
  const Uid erased = record.uid;
  unlink(record);
  pods_.erase(erased);
  return change;
}

PodChange PodIndex::presume(const Uid& uid, std::optional<NodeName> node) {
  PodChange change;
  PodRecord* const record = find(uid);
  if (record == nullptr || !record->to_come || record->presumed == node) return change;
  record->presumed = std::move(node);
  if (record->presumed) {
    record->use = presumed_use(*record);
    change.placed = record->use;
  } else {
    record->use.reset();
    change.gone = uid;
  }
  change.member_of = record->member_of;
  return change;
}

const PodRecord* PodIndex::find(const Uid& uid) const {
  const auto found = pods_.find(uid);
  return found != pods_.end() ? &found->second : nullptr;
}

PodRecord* PodIndex::find(const Uid& uid) {
  const auto found = pods_.find(uid);
  return found != pods_.end() ? &found->second : nullptr;
}

const PodRecord* PodIndex::find(const PodKey& key) const {
  const auto named = by_key_.find(key);
  return named != by_key_.end() ? find(named->second) : nullptr;
}

std::vector<const PodRecord*> PodIndex::members(const Uid& member_of, const Namespace& ns) const {
  std::vector<const PodRecord*> result;
  const auto found = by_member_.find(member_of);
  if (found == by_member_.end()) return result;
  for (const Uid& uid : found->second) {
    const PodRecord& pod = pods_.at(uid);
    if (pod.key.ns == ns) result.push_back(&pod);
  }
  return result;
}

void PodIndex::unlink(const PodRecord& record) {
  by_key_.erase(record.key);
  const auto members = by_member_.find(record.member_of);
  if (members == by_member_.end()) return;
  members->second.erase(record.uid);
  if (members->second.empty()) by_member_.erase(members);
}

}  // namespace muster::controller

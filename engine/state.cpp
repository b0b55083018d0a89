#include "engine/state.hpp"

#include "base/assert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::engine {
std::int64_t WorkloadRecord::total_pods() const {
  std::int64_t total = 0;
  if (admission) {
    for (const PodSetAssignment& pod_set : admission->pod_sets) total += pod_set.count;
  } else {
    for (const PodSetSpec& pod_set : spec.pod_sets) total += pod_set.pods_left();
  }
  return total;
}

std::strong_ordering queue_order(const WorkloadSpec& a, const WorkloadSpec& b) {
  if (const auto order = b.priority <=> a.priority; order != 0) return order;
  const auto age = [](const WorkloadSpec& spec) {
    return spec.created ? spec.created->us : std::numeric_limits<std::int64_t>::max();
  };
  if (const auto order = age(a) <=> age(b); order != 0) return order;
  if (const auto order = a.uid <=> b.uid; order != 0) return order;
  return a.key <=> b.key;
}

// ---------------------------------------------------------------- nodes

topology::NodeIndex State::upsert_node(const NodeSpec& node) {
  const std::size_t known = resources.size();
  topology::NodeFacts facts{node.name,   node.labels,
                            node.taints, Resources::from_list(node.allocatable, resources),
                            node.ready,  node.unschedulable};
  const topology::NodeIndex index = fleet.upsert(std::move(facts));
  suspects.insert(index);
  touch_node(index);
  if (resources.size() > known) charge_learned();
  want_pass();
  return index;
}

void State::remove_node(topology::NodeIndex node) {
  touch_node(node);
  suspects.insert(node);
  fleet.remove(node);
  want_pass();
}

// ---------------------------------------------------------------- quota

namespace {

/// Of `amount` for all pods that were admitted, what those that are left use. A count that was
/// reduced at admission is not raised again.
Amount still_used(const WorkloadSpec& spec, const PodSetAssignment& assigned, Amount amount) {
  const auto pod_set =
      std::find_if(spec.pod_sets.begin(), spec.pod_sets.end(),
                   [&](const PodSetSpec& each) { return each.name == assigned.name; });
  if (pod_set == spec.pod_sets.end() || pod_set->reclaimable <= 0) return amount;
  if (assigned.count <= 0 || pod_set->pods_left() >= assigned.count) return amount;
  return Amount(amount.value() / assigned.count) * pod_set->pods_left();
}

/// What anybody holds. Who is charged in the tree as it was needs no look at names.
std::vector<quota::FlavorResource> held_resources(
    const quota::QuotaTree& before, const std::map<ClusterQueueName, RecordsByKey>& holders) {
  std::vector<bool> known(before.fr_count());
  std::set<quota::FlavorResource> held;
  for (const auto& [queue, records] : holders) {
    for (const WorkloadRecord* record : records) {
      if (record->charged_to) {
        for (const auto& [fr, amount] : record->charged) known[fr.value()] = true;
      } else {
        for (const auto& [what, amount] : *record->usage) held.insert(what);
      }
    }
  }
  for (std::uint32_t i = 0; i < before.fr_count(); ++i) {
    if (known[i]) held.insert(before.fr(quota::FrId(i)));
  }
  return {held.begin(), held.end()};
}

/// By former id, the present one (of what is not held any more: none that means anything). Nothing:
/// all are as they were.
std::optional<std::vector<quota::FrId>> ids_now(const quota::QuotaTree& before,
                                                const quota::QuotaTree& tree) {
  std::vector<quota::FrId> ids;
  bool same = true;
  for (std::uint32_t i = 0; i < before.fr_count(); ++i) {
    ids.push_back(tree.find_fr(before.fr(quota::FrId(i))).value_or(quota::FrId(0)));
    same = same && ids.back() == quota::FrId(i);
  }
  if (same) return std::nullopt;
  return ids;
}

}  // namespace

quota::FlavorAmounts State::usage_of(const WorkloadSpec& spec, const Admission& admission) {
  quota::FlavorAmounts usage;
  for (const PodSetAssignment& pod_set : admission.pod_sets) {
    for (const auto& [resource, amount] : pod_set.usage) {
      const auto flavor = pod_set.flavors.find(resource);
      // Usage of a resource that got no flavor is charged to nobody.
      if (flavor == pod_set.flavors.end()) continue;
      usage[quota::FlavorResource{flavor->second, resource}] += still_used(spec, pod_set, amount);
    }
  }
  return usage;
}

void State::mark_tree_dirty() {
  tree_dirty = true;
  held_use_.clear();
  parked.clear();
  queues_dirty = true;
  want_pass();
}

void State::ensure_tree() {
  if (!tree_dirty) return;
  tree_dirty = false;
  forget_leaving_use();
  std::vector<quota::CohortSpec> cohort_specs;
  for (const auto& [name, cohort] : cohorts) cohort_specs.push_back(cohort);
  std::vector<quota::QueueQuotaSpec> queue_specs;
  for (const auto& [name, queue] : queues) queue_specs.push_back(queue.quota);
  const quota::QuotaTree before = std::move(tree);
  tree = quota::QuotaTree::build(cohort_specs, queue_specs, held_resources(before, holders));
  tree.round_shares(options.peer.rounded_shares);
  shares.clear();
  const auto now = ids_now(before, tree);
  for (const auto& [queue, records] : holders) {
    // A deleted ClusterQueue has no place in the tree; its workloads still hold their nodes.
    const auto node = tree.find_queue(queue);
    for (WorkloadRecord* record : records) {
      if (!record->charged_to) {
        record->charged = tree.to_fr_amounts(*record->usage);
      } else if (now) {
        for (auto& [fr, amount] : record->charged) fr = now->at(fr.value());
        std::sort(record->charged.begin(), record->charged.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
      }
      record->charged_to = node;
      if (node) tree.add_usage(*node, record->charged);
    }
  }
}

std::optional<QueueProblem> State::problem_of(const ClusterQueueSpec& queue) const {
  if (queue.stop_policy != StopPolicy::kNone)
    return QueueProblem{"Stopped", "ClusterQueue is stopped",
                        fmt::format("ClusterQueue {} to be resumed", queue.name())};
  for (const quota::ResourceGroup& group : queue.quota.resource_groups) {
    for (const quota::FlavorQuotas& quotas : group.flavors) {
      const auto flavor = flavors.find(quotas.flavor);
      if (flavor == flavors.end()) {
        return QueueProblem{"FlavorNotFound",
                            fmt::format("ResourceFlavor {} does not exist", quotas.flavor),
                            fmt::format("ResourceFlavor {}", quotas.flavor)};
      }
      const auto& topology = flavor->second.topology;
      if (topology && !topologies.contains(*topology)) {
        return QueueProblem{"TopologyNotFound",
                            fmt::format("Topology {} of ResourceFlavor {} does not exist",
                                        *topology, quotas.flavor),
                            fmt::format("Topology {}", *topology)};
      }
    }
  }
  if (!queue.admission_checks.empty()) {
    return QueueProblem{
        "AdmissionCheckInactive",
        fmt::format("admission check {} has no controller here", queue.admission_checks.front()),
        fmt::format("ClusterQueue {} without admission checks", queue.name())};
  }
  const auto node = tree.find_queue(queue.name());
  if (node && tree.in_cycle(*node)) {
    return QueueProblem{"Unknown", "its cohort is part of, or hangs below, a cycle of cohorts",
                        "cohorts without a cycle"};
  }
  return std::nullopt;
}

quota::NodeIndex State::queue_node(const ClusterQueueName& queue) const {
  const auto node = tree.find_queue(queue);
  MUSTER_ASSERT(node.has_value(), "ClusterQueue {} is not in the tree", queue);
  return *node;
}

// ---------------------------------------------------------------- workloads

WorkloadRecord* State::find(const WorkloadKey& key) {
  const auto found = workloads.find(key);
  return found == workloads.end() ? nullptr : &found->second;
}

const WorkloadRecord* State::find(const WorkloadKey& key) const {
  const auto found = workloads.find(key);
  return found == workloads.end() ? nullptr : &found->second;
}

const HeldUse& State::held_use(quota::NodeIndex queue) {
  const ClusterQueueName& name = tree.queue_name(queue);
  const auto [position, is_new] = held_use_.try_emplace(name);
  HeldUse& use = position->second;
  if (!is_new) return use;
  if (const auto found = holders.find(name); found != holders.end()) {
    for (const WorkloadRecord* record : found->second) {
      if (record->phase != Phase::kEvicting) use.add(record->spec.priority, record->charged);
    }
  }
  use.sum_up();
  return use;
}

const LeavingUse& State::leaving_use() {
  if (!leaving_use_) {
    leaving_use_.emplace();
    for (const WorkloadRecord* const record : evicting) leaving_use_->add(*this, *record);
  }
  return *leaving_use_;
}

void State::touch(WorkloadRecord& record) {
  held_use_.erase(record.queue);
  if (record.holds_quota() && !record.spec.active) {
    deactivated.insert(record.spec.key);
  } else {
    deactivated.erase(record.spec.key);
  }
  if (!record.spec.owner_uid.empty()) dirty_owners.insert(record.spec.owner_uid);
  queues_dirty = true;
  if (usage_history) unsynced_usage_.insert(record.spec.key);
  uncount(record);
  if (record.phase == Phase::kFinished) return;
  record.counted_in =
      counts.try_emplace(LocalQueueKey{record.spec.key.ns, record.spec.queue_name}).first;
  LocalQueueCounts& total = (*record.counted_in)->second;
  if (!record.holds_quota()) {
    ++total.pending;
    return;
  }
  const std::int64_t admitted = record.phase == Phase::kEvicting ? 0 : 1;
  record.counted_holding = LocalQueueCounts{0, 1, admitted, *record.usage};
  ++total.reserving;
  total.admitted += admitted;
  for (const auto& [what, amount] : *record.usage) total.usage[what] += amount;
}

void State::uncount(WorkloadRecord& record) {
  if (!record.counted_in) return;
  const auto position = *record.counted_in;
  LocalQueueCounts& total = position->second;
  if (!record.counted_holding) {
    --total.pending;
  } else {
    total.reserving -= record.counted_holding->reserving;
    total.admitted -= record.counted_holding->admitted;
    for (const auto& [what, amount] : record.counted_holding->usage) {
      const auto entry = total.usage.find(what);
      entry->second -= amount;
      if (entry->second.is_zero()) total.usage.erase(entry);
    }
  }
  if (total == LocalQueueCounts{}) counts.erase(position);
  record.counted_holding.reset();
  record.counted_in.reset();
}

std::optional<UsagePart> State::usage_part(const WorkloadKey& key) const {
  const WorkloadRecord* record = find(key);
  if (record == nullptr || !record->holds_quota()) return std::nullopt;
  UsagePart part;
  part.queue = LocalQueueKey{key.ns, record->spec.queue_name};
  part.admitted = record->spec.admission && record->spec.admitted;
  const auto queue = queues.find(record->queue);
  if (queue != queues.end() && queue->second.usage_based) {
    for (const PodSetSpec& pod_set : record->spec.pod_sets) {
      for (const auto& [resource, amount] : pod_set.quota_requests) {
        part.entry[resource] += amount * pod_set.count;
      }
    }
  }
  for (const auto& [what, amount] : *record->usage) part.usage[what.resource] += amount;
  part.since = record->reserved_at.value_or(Instant{});
  return part;
}

void State::sync_usage(Instant now) {
  for (const WorkloadKey& key : unsynced_usage_) usage_history->set_part(key, usage_part(key), now);
  unsynced_usage_.clear();
}

WorkloadRecord& State::upsert_record(const WorkloadSpec& spec) {
  auto [position, created] = workloads.try_emplace(spec.key);
  WorkloadRecord& record = position->second;
  if (!created) {
    if (record.pending_class != nullptr) want_pass();  // Others may have waited behind it.
    unfile(record);
    if (record.spec.owner_uid != spec.owner_uid) adopt_owner(record, spec.owner_uid);
  }
  if (!created && record.spec.queue_name != spec.queue_name) {
    workloads_by_local_queue[LocalQueueKey{spec.key.ns, record.spec.queue_name}].erase(&record);
  }
  record.spec = spec;
  record.standing.reset();
  workloads_by_local_queue[LocalQueueKey{spec.key.ns, spec.queue_name}].insert(&record);
  index_owner(record);
  file(record);
  touch(record);
  return record;
}

void State::adopt_owner(WorkloadRecord& record, const Uid& owner) {
  // Members are recognised by their owner: seats are given up under the old one and taken again
  // under the new one.
  touch(record);
  if (record.holds_quota()) release_plan(record);
  unindex_owner(record);
  record.spec.owner_uid = owner;
  index_owner(record);
  if (record.holds_quota()) charge_plan(record);
}

WorkloadRecord* State::owned_by(const Uid& owner) const {
  const auto found = workload_by_owner.find(owner);
  return found == workload_by_owner.end() ? nullptr : *found;
}

void State::index_owner(WorkloadRecord& record) {
  if (record.spec.owner_uid.empty()) return;
  const auto [position, is_new] = workload_by_owner.insert(&record);
  if (is_new || *position == &record) return;
  workload_by_owner.erase(position);
  workload_by_owner.insert(&record);
}

void State::unindex_owner(WorkloadRecord& record) {
  if (owned_by(record.spec.owner_uid) == &record) workload_by_owner.erase(&record);
}

void State::erase_record(const WorkloadKey& key) {
  const auto position = workloads.find(key);
  if (position == workloads.end()) return;
  WorkloadRecord& record = position->second;
  if (record.holds_quota()) release(record, Phase::kFinished);
  if (record.pending_class != nullptr) want_pass();  // Others may have waited behind it.
  unfile(record);
  preemptors.erase(key);
  touch(record);
  uncount(record);
  unindex_owner(record);
  const auto local = workloads_by_local_queue.find(LocalQueueKey{key.ns, record.spec.queue_name});
  local->second.erase(&record);
  if (local->second.empty()) workloads_by_local_queue.erase(local);
  workloads.erase(position);
}

void State::hold(WorkloadRecord& record, const Admission& admission, Phase phase,
                 Instant reserved_at) {
  MUSTER_ASSERT(!record.holds_quota(), "{} holds quota already", record.spec.key);
  unfile(record);
  preemptors.erase(record.spec.key);
  record.admission = admission;
  record.reserved_at = reserved_at;
  record.usage = usage_of(record.spec, admission);
  record.queue = admission.cluster_queue;
  record.standing.reset();
  record.phase = phase;
  holders[record.queue].insert(&record);
  if (std::any_of(record.spec.pod_sets.begin(), record.spec.pod_sets.end(),
                  [](const PodSetSpec& pod_set) { return pod_set.reclaimable > 0; })) {
    shrinking.insert(record.spec.key);
  }
  if (phase == Phase::kEvicting) evicting.insert(&record);

  // A dirty tree is charged with everything when it is built.
  if (const auto node = tree.find_queue(record.queue); node && !tree_dirty) {
    const bool known =
        std::all_of(record.usage->begin(), record.usage->end(),
                    [&](const auto& entry) { return tree.find_fr(entry.first).has_value(); });
    if (known) {
      record.charged_to = node;
      record.charged = tree.to_fr_amounts(*record.usage);
      tree.add_usage(*node, record.charged);
    } else {
      mark_tree_dirty();  // It holds something that no quota names: give that a place.
    }
  }
  charge_plan(record);
  touch(record);
}

void State::unpark_tree(const ClusterQueueName& queue) {
  if (parked.empty()) return;
  const auto node = tree_dirty ? std::nullopt : tree.find_queue(queue);
  if (!node) {
    parked.clear();
    return;
  }
  for (const quota::NodeIndex below : tree.queues_below(tree.root(*node))) {
    parked.erase(tree.queue_name(below));
  }
}

void State::release(WorkloadRecord& record, Phase next) {
  MUSTER_ASSERT(record.holds_quota(), "{} holds no quota", record.spec.key);
  release_plan(record);
  if (record.charged_to && !tree_dirty) tree.remove_usage(*record.charged_to, record.charged);
  record.charged_to.reset();
  record.charged.clear();
  unpark_tree(record.queue);
  for (auto& [key, scan] : scans) {
    if (workloads.at(key).queue == record.queue) scan.next.clear();
  }
  held_use_.erase(record.queue);
  holders[record.queue].erase(&record);
  evicting.erase(&record);
  shrinking.erase(record.spec.key);
  record.usage.reset();
  record.admission.reset();
  record.reserved_at.reset();
  record.evicting_since.reset();
  record.phase = next;
  file(record);
  touch(record);
  want_pass();
}

void State::set_phase(WorkloadRecord& record, Phase phase, std::optional<Instant> now) {
  record.phase = phase;
  if (phase == Phase::kEvicting) {
    const bool is_new = evicting.insert(&record).second;
    if (is_new && leaving_use_) leaving_use_->add(*this, record);
    if (now) record.evicting_since = now;
  } else {
    if (evicting.erase(&record) > 0) forget_leaving_use();
    record.evicting_since.reset();
  }
  touch(record);
}

void State::change_plan(WorkloadRecord& record, const Admission& admission) {
  release_plan(record);
  record.standing.reset();
  record.admission = admission;
  charge_plan(record);
  touch(record);
  want_pass();  // The nodes it leaves have room.
}

void State::charge_plan(WorkloadRecord& record) {
  record.per_pod.clear();
  for (const PodSetSpec& pod_set : record.spec.pod_sets) {
    record.per_pod.push_back(Resources::from_list_known(pod_set.node_requests, resources));
    if (resources.first_unknown(pod_set.node_requests) != nullptr) {
      plans_of_unknown.insert(record.spec.key);
    }
  }
  for (std::size_t i = 0; i < record.admission->pod_sets.size(); ++i) {
    // An admission written by others may name pod sets that the spec does not have.
    if (i >= record.per_pod.size()) break;
    for (const NodeCount& entry : record.admission->pod_sets[i].nodes) {
      if (entry.count <= 0) continue;
      const topology::NodeIndex node = fleet.ensure(entry.node);
      fleet.charge(node, topology::UseKind::kPlanned, record.per_pod[i], entry.count);
      record.plan.push_back(PlannedSlots{node, i, entry.count, 0});
      plans_by_node[node].insert(record.spec.key);
      if (!fleet.present(node)) suspects.insert(node);
      touch_node(node);
    }
  }
  const std::vector<PodSetAssignment>& assigned = record.admission->pod_sets;
  if (record.total_pods() > 1 &&
      std::any_of(assigned.begin(), assigned.end(),
                  [](const PodSetAssignment& pod_set) { return pod_set.lacks_plan(); })) {
    unplanned.insert(record.spec.key);
  }
  seat_pods(record);
}

void State::keep(WorkloadRecord& record, std::vector<PlannedSlots> slots) {
  if (record.kept == slots) return;
  for (const PlannedSlots& entry : record.kept) {
    fleet.release(entry.node, topology::UseKind::kPlanned, record.per_pod[entry.pod_set],
                  entry.slots);
    touch_node(entry.node);
  }
  if (!record.kept.empty()) want_pass();
  record.kept = std::move(slots);
  for (const PlannedSlots& entry : record.kept) {
    fleet.charge(entry.node, topology::UseKind::kPlanned, record.per_pod[entry.pod_set],
                 entry.slots);
    touch_node(entry.node);
  }
  if (record.kept.empty()) {
    keepers.erase(record.spec.key);
  } else {
    keepers.insert(record.spec.key);
  }
}

void State::release_plan(WorkloadRecord& record) {
  keep(record, {});
  unplanned.erase(record.spec.key);
  plans_of_unknown.erase(record.spec.key);
  const auto members = pods_by_owner.find(record.spec.owner_uid);
  if (members != pods_by_owner.end()) {
    for (const Uid& uid : members->second) unseat(pods.at(uid));
  }
  const std::vector<PlannedSlots> plan = std::move(record.plan);
  record.plan.clear();
  for (const PlannedSlots& entry : plan) {
    fleet.release(entry.node, topology::UseKind::kPlanned, record.per_pod[entry.pod_set],
                  entry.slots);
    touch_node(entry.node);
    // A plan may have several entries of one node: of two pod sets, say.
    const auto position = plans_by_node.find(entry.node);
    if (position == plans_by_node.end()) continue;
    position->second.erase(record.spec.key);
    if (position->second.empty()) plans_by_node.erase(position);
  }
  if (members != pods_by_owner.end()) {
    for (const Uid& uid : members->second) seat(pods.at(uid));
  }
}

// ---------------------------------------------------------------- pending order

std::string pending_class_key(const WorkloadSpec& spec, const ClusterQueueName& queue) {
  fmt::memory_buffer buffer;
  const auto out = std::back_inserter(buffer);
  fmt::format_to(out, "{}|{}|{}|{}", queue, spec.key.ns, spec.queue_name, spec.priority);
  if (spec.protection.preemptible) fmt::format_to(out, "|p{}", *spec.protection.preemptible);
  for (const PodSetSpec& pod_set : spec.pod_sets) {
    fmt::format_to(out, "|{};{};{};{};g{};u{}", pod_set.name, pod_set.count,
                   pod_set.min_count.value_or(-1), pod_set.reclaimable, pod_set.group,
                   pod_set.unfit);
    for (const auto& [name, amount] : pod_set.quota_requests)
      fmt::format_to(out, ";q{}={}", name, amount);
    for (const auto& [name, amount] : pod_set.node_requests)
      fmt::format_to(out, ";n{}={}", name, amount);
    for (const auto& [key, value] : pod_set.constraints.node_selector) {
      fmt::format_to(out, ";s{}={}", key, value);
    }
    for (const Toleration& t : pod_set.constraints.tolerations) {
      fmt::format_to(out, ";t{}/{}/{}/{}", t.key, static_cast<int>(t.op), t.value,
                     t.effect ? static_cast<int>(*t.effect) : -1);
    }
    if (pod_set.constraints.required_affinity) {
      for (const NodeSelectorTerm& term : *pod_set.constraints.required_affinity) {
        fmt::format_to(out, ";a(");
        const auto add = [&](char kind, const SelectorRequirement& r) {
          fmt::format_to(out, "{}{}:{}:{},", kind, r.key, static_cast<int>(r.op),
                         fmt::join(r.values, "/"));
        };
        for (const SelectorRequirement& r : term.match_expressions) add('e', r);
        for (const SelectorRequirement& r : term.match_fields) add('f', r);
        fmt::format_to(out, ")");
      }
    }
    if (pod_set.topology) {
      fmt::format_to(out, ";T{}:{}", static_cast<int>(pod_set.topology->mode),
                     pod_set.topology->level);
      for (const topology::SliceLayer& layer : pod_set.topology->slices) {
        fmt::format_to(out, "/{}x{}", layer.level, layer.size);
      }
    }
  }
  return fmt::to_string(buffer);
}

void State::unfile(WorkloadRecord& record) {
  homeless.erase(record.spec.key);
  homeless_unannounced.erase(record.spec.key);
  if (record.spec.requeue_at) backing_off.erase({*record.spec.requeue_at, record.spec.key});
  if (record.pending_class == nullptr) return;
  if (const auto queue = parked.find(record.queue); queue != parked.end()) {
    queue->second.erase(record.spec.key);
  }
  if (const auto queue = sticky.find(record.queue);
      queue != sticky.end() && queue->second == record.spec.key) {
    sticky.erase(queue);
  }
  scans.erase(record.spec.key);
  PendingClass& same = *std::exchange(record.pending_class, nullptr);
  same.members.erase(&record);
  same.unannounced.erase(&record);
  if (!same.members.empty()) return;
  const auto queue = pending.find(record.queue);
  queue->second.erase(queue->second.find(*same.key));
  if (queue->second.empty()) pending.erase(queue);
}

void State::file(WorkloadRecord& record) {
  unfile(record);
  if (record.phase != Phase::kPending) {
    preemptors.erase(record.spec.key);
    return;
  }
  const auto local = local_queues.find(LocalQueueKey{record.spec.key.ns, record.spec.queue_name});
  record.queue = local == local_queues.end() ? ClusterQueueName() : local->second.cluster_queue;
  wants_pass = true;  // A look at its class will do.
  if (!record.spec.active || record.queue.empty() || !queues.contains(record.queue)) {
    homeless.insert(record.spec.key);
    homeless_unannounced.insert(record.spec.key);
    return;
  }
  if (record.spec.requeue_at) backing_off.insert({*record.spec.requeue_at, record.spec.key});
  const auto position =
      pending[record.queue].try_emplace(pending_class_key(record.spec, record.queue)).first;
  PendingClass& same = position->second;
  same.key = &position->first;
  record.pending_class = &same;
  // One copy serves the whole class.
  if (!same.members.empty()) {
    const PodSets& shared = (*same.members.begin())->spec.pod_sets;
    if (shared == record.spec.pod_sets) record.spec.pod_sets = shared;
  }
  same.members.insert(&record);
  same.unannounced.insert(&record);
  fresh_classes[record.queue].insert(*same.key);
}

Explanation State::homeless_reason(const WorkloadRecord& record) const {
  if (!record.spec.active) {
    return {PendingReason::kDeactivated,
            {QueueUnusable{"the workload is deactivated", "to be activated"}}};
  }
  QueueUnusable why;
  if (record.queue.empty()) {
    why.needs = fmt::format("LocalQueue {}", record.spec.queue_name);
    why.detail = fmt::format("{} does not exist in namespace {}", why.needs, record.spec.key.ns);
  } else {
    why.needs = fmt::format("ClusterQueue {}", record.queue);
    why.detail = fmt::format("{} does not exist", why.needs);
  }
  return {PendingReason::kMisconfigured, {why}};
}

void State::file_all_of(const LocalQueueKey& queue) {
  ++protection_rules;
  const auto members = workloads_by_local_queue.find(queue);
  queues_dirty = true;
  want_pass();
  if (members == workloads_by_local_queue.end()) return;
  for (WorkloadRecord* const record : members->second) {
    if (record->phase == Phase::kPending) file(*record);
  }
}

void State::file_all_of(const ClusterQueueName& queue) {
  ++protection_rules;
  for (const auto& [key, local] : local_queues) {
    if (local.cluster_queue == queue) file_all_of(key);
  }
}

// ---------------------------------------------------------------- pods

void State::place_pod(const Shared<PodUse>& shared) {
  const PodUse& use = *shared;
  const auto known = pods.find(use.uid);
  if (known != pods.end()) {
    if (known->second.use == shared) return;
    remove_pod(use.uid);
  }
  PodRecord& pod = pods[use.uid];
  pod.use = shared;
  pod.requests = Resources::from_list_known(use.requests, resources);
  if (resources.first_unknown(use.requests) != nullptr) pods_of_unknown.insert(use.uid);
  pod.node = fleet.ensure(use.node);
  pods_by_node[pod.node].insert(use.uid);
  if (!use.owner_uid.empty()) pods_by_owner[use.owner_uid].insert(use.uid);
  seat(pod);
  touch_node(pod.node);
  if (owned_by(use.owner_uid) != nullptr) dirty_owners.insert(use.owner_uid);
}

bool State::remove_pod(const Uid& uid) {
  const auto position = pods.find(uid);
  if (position == pods.end()) return false;
  PodRecord& pod = position->second;
  const bool freed_slot = pod.slot.has_value();
  unseat(pod);
  suspects.insert(pod.node);
  touch_node(pod.node);
  const auto on_node = pods_by_node.find(pod.node);
  on_node->second.erase(uid);
  if (on_node->second.empty()) pods_by_node.erase(on_node);
  pods_of_unknown.erase(uid);
  const Uid owner = pod.use->owner_uid;
  if (const auto members = pods_by_owner.find(owner); members != pods_by_owner.end()) {
    members->second.erase(uid);
    if (members->second.empty()) pods_by_owner.erase(members);
  }
  pods.erase(position);
  want_pass();
  WorkloadRecord* const record = owned_by(owner);
  if (record == nullptr) return true;
  dirty_owners.insert(owner);
  // A member that found no slot before may take the one that is free now.
  if (freed_slot) seat_pods(*record);
  return true;
}

void State::charge_learned() {
  // Plans first: a slot has to cover what its pod asks for.
  for (const WorkloadKey& key : std::exchange(plans_of_unknown, {})) {
    WorkloadRecord& record = workloads.at(key);
    release_plan(record);
    charge_plan(record);
    for (const PlannedSlots& entry : record.plan) suspects.insert(entry.node);
    touch(record);
  }
  for (const Uid& uid : std::exchange(pods_of_unknown, {})) {
    PodRecord& pod = pods.at(uid);
    unseat(pod);
    pod.requests = Resources::from_list_known(pod.use->requests, resources);
    if (resources.first_unknown(pod.use->requests) != nullptr) pods_of_unknown.insert(uid);
    seat(pod);
  }
}

void State::seat_pods(WorkloadRecord& record) {
  const auto members = pods_by_owner.find(record.spec.owner_uid);
  if (members == pods_by_owner.end()) return;
  for (const Uid& uid : members->second) {
    PodRecord& pod = pods.at(uid);
    if (pod.slot) continue;
    unseat(pod);
    seat(pod);
  }
}

void State::seat(PodRecord& pod) {
  WorkloadRecord* const record = owned_by(pod.use->owner_uid);
  // Anybody may write any owner reference; owners own nothing in other namespaces.
  const bool is_member = record != nullptr && record->spec.key.ns == pod.use->key.ns;
  if (is_member && !pod.use->nominated) {
    for (std::size_t i = 0; i < record->plan.size(); ++i) {
      PlannedSlots& entry = record->plan[i];
      if (entry.node != pod.node || entry.claimed >= entry.slots) continue;
      const PodSetName& pod_set = record->spec.pod_sets[entry.pod_set].name;
      if (!pod.use->pod_set.empty() && pod.use->pod_set != pod_set.value()) continue;
      ++entry.claimed;
      pod.slot = i;
      break;
    }
  }
  pod.foreign = pod.requests;
  if (pod.slot) {
    // The slot covers what was planned for it; a pod that grew since charges the rest.
    const Resources& covered = record->per_pod[record->plan[*pod.slot].pod_set];
    Resources beyond;
    for (std::size_t i = 0; i < pod.requests.extent(); ++i) {
      const ResourceId id(static_cast<std::uint16_t>(i));
      if (pod.requests[id] > covered[id]) beyond.set(id, pod.requests[id] - covered[id]);
    }
    pod.foreign = beyond;
  }
  fleet.charge(pod.node, topology::UseKind::kForeign, pod.foreign);
  if (!pod.foreign.is_zero()) suspects.insert(pod.node);
  touch_node(pod.node);
}

void State::unseat(PodRecord& pod) {
  fleet.release(pod.node, topology::UseKind::kForeign, pod.foreign);
  pod.foreign = Resources();
  if (!pod.slot) return;
  if (WorkloadRecord* const record = owned_by(pod.use->owner_uid)) {
    if (*pod.slot < record->plan.size()) --record->plan[*pod.slot].claimed;
  }
  pod.slot.reset();
}

}  // namespace muster::engine

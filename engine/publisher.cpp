#include "engine/publisher.hpp"

#include "engine/elastic.hpp"
#include "engine/slots.hpp"
#include "quota/fair_share.hpp"

#include <algorithm>

namespace muster::engine {
namespace {

NodeView view_of(const State& state, topology::NodeIndex node) {
  NodeView view;
  const topology::Fleet& fleet = state.fleet;
  view.name = fleet.name(node);
  view.foreign = fleet.use(node, topology::UseKind::kForeign);
  view.planned = fleet.use(node, topology::UseKind::kPlanned);
  view.usable = false;
  if (fleet.present(node)) {
    const topology::NodeFacts& facts = fleet.facts(node);
    view.hostname = fleet.hostname(node);
    view.usable = facts.ready && !facts.unschedulable;
    view.allocatable = facts.allocatable;
  }
  const auto pods = state.pods_by_node.find(node);
  if (pods == state.pods_by_node.end()) return view;
  for (const Uid& uid : pods->second) {
    const PodRecord& pod = state.pods.at(uid);
    view.pods.push_back(PodView{pod.use, pod.requests, pod.slot.has_value()});
  }
  return view;
}

WorkloadPhase phase_of(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return WorkloadPhase::kPending;
    case Phase::kAssumed:
    case Phase::kReserved:
      return WorkloadPhase::kAdmitted;
    case Phase::kEvicting:
      return WorkloadPhase::kEvicting;
    case Phase::kFinished:
      return WorkloadPhase::kFinished;
  }
  return WorkloadPhase::kFinished;
}

void add_flavors(const State& state, const PodSetAssignment& assignment, PodSetView& view) {
  std::set<FlavorName> flavors;
  for (const auto& [resource, flavor] : assignment.flavors) flavors.insert(flavor);
  for (const FlavorName& name : flavors) {
    const auto flavor = state.flavors.find(name);
    if (flavor == state.flavors.end()) continue;
    view.node_labels.insert(flavor->second.node_labels.begin(), flavor->second.node_labels.end());
    for (const Toleration& toleration : flavor->second.tolerations) {
      if (std::find(view.tolerations.begin(), view.tolerations.end(), toleration) ==
          view.tolerations.end()) {
        view.tolerations.push_back(toleration);
      }
    }
  }
}

void add_bound_pods(const State& state, const WorkloadRecord& record, WorkloadView& view) {
  const auto members = state.pods_by_owner.find(record.spec.owner_uid);
  if (members == state.pods_by_owner.end()) return;
  for (const Uid& uid : members->second) {
    const PodUse& pod = *state.pods.at(uid).use;
    if (pod.nominated) continue;
    for (PodSetView& pod_set : view.pod_sets) {
      if (!pod.pod_set.empty() && pod.pod_set != pod_set.name.value()) continue;
      if (!pod.rank) {
        ++pod_set.bound_rankless[pod.node];
      } else if (!pod.terminating || !pod_set.bound_ranks.contains(*pod.rank)) {
        // While a replacement starts beside its terminating forerunner, the live one counts.
        pod_set.bound_ranks.insert_or_assign(*pod.rank, pod.node);
      }
      break;
    }
  }
}

void add_potential(const State& state, const ClusterQueueSpec& queue, LocalQueueView& view) {
  const auto node = state.tree.find_queue(queue.name());
  if (!node) return;
  for (const quota::ResourceGroup& group : queue.quota.resource_groups) {
    for (const quota::FlavorQuotas& quotas : group.flavors) {
      for (const auto& [resource, entry] : quotas.resources) {
        const auto fr = state.tree.find_fr({quotas.flavor, resource});
        const Amount possible = fr ? state.tree.potential(*node, *fr) : Amount();
        Amount& most = view.potential[resource];
        most = std::max(most, possible);
      }
    }
  }
}

ClusterQueueView view_of(const State& state, const ClusterQueueSpec& queue) {
  ClusterQueueView view;
  view.name = queue.name();
  view.cohort = queue.quota.cohort;
  const auto problem = state.problem_of(queue);
  view.active = !problem;
  if (problem) {
    view.inactive_reason = problem->reason;
    view.inactive_message = problem->message;
  }
  if (const auto pending = state.pending.find(view.name); pending != state.pending.end()) {
    for (const auto& [key, same] : pending->second) {
      view.pending += static_cast<std::int64_t>(same.members.size());
    }
  }
  if (const auto holders = state.holders.find(view.name); holders != state.holders.end()) {
    view.reserving = static_cast<std::int64_t>(holders->second.size());
    view.admitted = static_cast<std::int64_t>(std::count_if(
        holders->second.begin(), holders->second.end(),
        [](const WorkloadRecord* record) { return record->phase != Phase::kEvicting; }));
  }
  const auto node = state.tree.find_queue(view.name);
  if (!node) return view;
  for (std::uint32_t i = 0; i < state.tree.fr_count(); ++i) {
    const quota::FrId fr(i);
    const Amount nominal = state.tree.nominal(*node, fr);
    const Amount usage = state.tree.usage(*node, fr);
    const Amount borrowed = state.tree.borrowed(*node, fr);
    if (!nominal.is_zero()) view.nominal.emplace(state.tree.fr(fr), nominal);
    if (!usage.is_zero()) view.usage.emplace(state.tree.fr(fr), usage);
    if (borrowed > Amount()) view.borrowed.emplace(state.tree.fr(fr), borrowed);
  }
  view.weighted_share = quota::dominant_share(state.tree, *node).status_value();
  return view;
}

}  // namespace

std::shared_ptr<const WorkloadView> view_of(const State& state, const WorkloadRecord& record) {
  auto view = std::make_shared<WorkloadView>();
  view->key = record.spec.key;
  view->owner_uid = record.spec.owner_uid;
  view->queue_name = record.spec.queue_name;
  view->phase = phase_of(record.phase);
  view->total_pods = record.total_pods();
  view->held = is_held(state, record);
  for (std::size_t i = 0; i < record.spec.pod_sets.size(); ++i) {
    const PodSetSpec& pod_set = record.spec.pod_sets[i];
    PodSetView out;
    out.name = pod_set.name;
    out.count = pod_set.count;
    out.per_pod = Resources::from_list_known(pod_set.node_requests, state.resources);
    if (record.admission && i < record.admission->pod_sets.size()) {
      const PodSetAssignment& assignment = record.admission->pod_sets[i];
      out.count = assignment.count;
      out.slots = expand_slots(assignment.nodes);
      add_flavors(state, assignment, out);
    }
    view->pod_sets.push_back(std::move(out));
  }
  add_bound_pods(state, record, *view);
  return view;
}

std::shared_ptr<const QueuesView> view_of_queues(const State& state) {
  auto view = std::make_shared<QueuesView>();
  view->fair_sharing = state.options.fair_sharing.has_value();
  view->namespaces = state.namespaces;
  view->local_queue_counts = state.counts;
  for (const auto& [name, queue] : state.queues) {
    view->cluster_queues.emplace(name, view_of(state, queue));
  }
  if (state.options.fair_sharing) {
    for (const auto& [name, cohort] : state.cohorts) {
      const auto node = state.tree.find_cohort(name);
      if (!node) continue;  // Part of a cycle.
      view->cohort_shares.emplace(name, quota::dominant_share(state.tree, *node).status_value());
    }
  }
  for (const auto& [key, local] : state.local_queues) {
    LocalQueueView out;
    out.cluster_queue = local.cluster_queue;
    const auto queue = view->cluster_queues.find(local.cluster_queue);
    if (local.stop_policy != StopPolicy::kNone) {
      out.inactive_reason = "Stopped";
    } else if (queue == view->cluster_queues.end()) {
      out.inactive_reason = "ClusterQueueDoesNotExist";
    } else if (!queue->second.active) {
      out.inactive_reason = "ClusterQueueIsInactive";
    } else {
      out.active = true;
    }
    if (queue != view->cluster_queues.end()) {
      add_potential(state, state.queues.at(local.cluster_queue), out);
    }
    if (state.usage_history) {
      if (const ConsumedResources* sample = state.usage_history->sample(key)) {
        out.consumed = *sample;
      }
    }
    view->local_queues.emplace(key, std::move(out));
  }
  return view;
}

std::shared_ptr<const Snapshot> Publisher::publish(State& state) {
  const bool changed =
      !last_ || !state.dirty_nodes.empty() || !state.dirty_owners.empty() || state.queues_dirty;
  if (!changed) return last_;
  auto next = last_ ? std::make_shared<Snapshot>(*last_) : std::make_shared<Snapshot>();
  ++next->generation;
  if (!next->resources || next->resources->size() != state.resources.size()) {
    next->resources = std::make_shared<const ResourceTable>(state.resources);
  }
  next->holds_gangs =
      std::any_of(state.unplanned.begin(), state.unplanned.end(),
                  [&](const WorkloadKey& key) { return is_held(state, state.workloads.at(key)); });
  if (!state.dirty_nodes.empty() || !next->node_index) publish_nodes(state, *next);
  if (!state.dirty_owners.empty()) publish_workloads(state, *next);
  if (state.queues_dirty || !next->queues) next->queues = view_of_queues(state);
  state.dirty_nodes.clear();
  state.dirty_owners.clear();
  state.queues_dirty = false;
  last_ = next;
  return last_;
}

void Publisher::publish_nodes(State& state, Snapshot& next) {
  const std::size_t slots = state.fleet.slots();
  const std::size_t chunks = (slots + Snapshot::kChunkNodes - 1) / Snapshot::kChunkNodes;
  next.node_chunks.resize(chunks);
  std::map<std::size_t, std::vector<NodeView>> copies;
  bool moved = !next.node_index;
  for (const topology::NodeIndex node : state.dirty_nodes) {
    // A node that is gone and free may have left the fleet's end.
    if (node.value() >= slots) continue;
    const std::size_t chunk = node.value() / Snapshot::kChunkNodes;
    const std::size_t offset = node.value() % Snapshot::kChunkNodes;
    const auto [position, is_new] = copies.try_emplace(chunk);
    std::vector<NodeView>& copy = position->second;
    if (is_new) {
      if (next.node_chunks[chunk]) copy = next.node_chunks[chunk]->nodes;
      copy.resize(std::min(Snapshot::kChunkNodes, slots - chunk * Snapshot::kChunkNodes));
    }
    const NodeName before = copy[offset].name;
    copy[offset] = view_of(state, node);
    const NodeView& view = copy[offset];
    const bool listed = positions_.contains(view.name.value());
    if (before == view.name && state.fleet.present(node) == listed) continue;
    moved = true;
    const auto former = positions_.find(before.value());
    if (former != positions_.end() && former->second == node.value()) positions_.erase(former);
    if (state.fleet.present(node)) {
      positions_[view.name.value()] = node.value();
    } else {
      positions_.erase(view.name.value());
    }
  }
  for (auto& [chunk, copy] : copies) {
    next.node_chunks[chunk] = std::make_shared<const NodeChunk>(std::move(copy));
  }
  if (moved) next.node_index = std::make_shared<const NodeLookup>(positions_);
}

void Publisher::publish_workloads(State& state, Snapshot& next) {
  std::map<std::size_t, std::shared_ptr<Snapshot::WorkloadShard>> copies;
  for (const Uid& owner : state.dirty_owners) {
    auto& copy = copies[Snapshot::shard_of(owner)];
    if (!copy) {
      const auto& shard = next.workloads[Snapshot::shard_of(owner)];
      copy = shard ? std::make_shared<Snapshot::WorkloadShard>(*shard)
                   : std::make_shared<Snapshot::WorkloadShard>();
    }
    if (const WorkloadRecord* const record = state.owned_by(owner)) {
      (*copy)[owner] = view_of(state, *record);
    } else {
      copy->erase(owner);
    }
  }
  for (auto& [shard, copy] : copies) next.workloads[shard] = std::move(copy);
}

}  // namespace muster::engine

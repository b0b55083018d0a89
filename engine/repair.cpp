#include "engine/repair.hpp"

#include "engine/planner.hpp"
#include "engine/slots.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace muster::engine {
namespace {

/// Less than nothing is left of something the slot is made of. Of anything else there may be too
/// little because of pods alone (bound past the scheduler, say), and moving the slot mends nothing.
bool overbooked(const Resources& free, const Resources& slot) {
  for (std::size_t i = 0; i < slot.extent(); ++i) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    if (slot[id] > Amount() && free[id].is_negative()) return true;
  }
  return false;
}

/// Unclaimed slots of one pod set on one node.
struct Loose {
  WorkloadKey workload;
  std::size_t pod_set = 0;
  std::int64_t slots = 0;
};

std::vector<Loose> loose_slots(const State& state, topology::NodeIndex node) {
  std::vector<Loose> loose;
  const auto plans = state.plans_by_node.find(node);
  if (plans == state.plans_by_node.end()) return loose;
  for (const WorkloadKey& key : plans->second) {
    const WorkloadRecord& record = state.workloads.at(key);
    if (record.phase == Phase::kEvicting) continue;
    for (const PlannedSlots& entry : record.plan) {
      if (entry.node != node || entry.slots <= entry.claimed) continue;
      loose.push_back(Loose{key, entry.pod_set, entry.slots - entry.claimed});
    }
  }
  // The least important gives way first.
  std::stable_sort(loose.begin(), loose.end(), [&](const Loose& a, const Loose& b) {
    const WorkloadRecord& left = state.workloads.at(a.workload);
    const WorkloadRecord& right = state.workloads.at(b.workload);
    return std::tuple(left.spec.priority, -left.reserved_at->us, left.spec.uid) <
           std::tuple(right.spec.priority, -right.reserved_at->us, right.spec.uid);
  });
  return loose;
}

/// Binds the request to the domain of `level` that the node of one of `kept` is in, if one is
/// there.
void stay_near(const State& state, const std::vector<NodeName>& kept, const std::string& level,
               topology::PlaceRequest& request) {
  for (const NodeName& name : kept) {
    const auto node = state.fleet.find(name);
    if (!node || !state.fleet.present(*node)) continue;
    const LabelMap& labels = state.fleet.facts(*node).labels;
    for (const std::string& above : request.nodes.levels) {
      const auto label = labels.find(above);
      if (label != labels.end()) {
        request.nodes.constraints.node_selector.insert_or_assign(above, label->second);
      }
      if (above == level) return;
    }
    return;
  }
}

/// Where the replacement for the slots at `lost` (of `slots`) has to be. The part of a slice must
/// be where the rest of it is; else a required domain binds it too, where the rest of the pod set
/// is, or who shares its domain (on `beside`).
void stay_in_domain(const State& state, const PodSetSpec& pod_set,
                    const std::vector<NodeName>& slots, const std::set<std::size_t>& lost,
                    const std::vector<NodeName>& beside, topology::PlaceRequest& request) {
  if (!pod_set.topology) return;
  const std::vector<topology::SliceLayer>& layers = pod_set.topology->slices;
  // The innermost first. What it contains was lost as a whole, and is placed as such.
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (layers[i].size < 1) continue;
    const auto size = static_cast<std::size_t>(layers[i].size);
    std::vector<NodeName> kept;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (lost.contains(slot)) continue;
      const auto next = lost.lower_bound(slot / size * size);
      if (next != lost.end() && *next / size == slot / size) kept.push_back(slots[slot]);
    }
    if (kept.empty()) continue;
    stay_near(state, kept, layers[i].level, request);
    request.mode = topology::Mode::kUnconstrained;
    request.slices.assign(layers.begin() + static_cast<std::ptrdiff_t>(i) + 1, layers.end());
    return;
  }
  if (pod_set.topology->mode != TopologyRequest::Mode::kRequired) return;
  std::vector<NodeName> kept = beside;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (!lost.contains(slot)) kept.push_back(slots[slot]);
  }
  stay_near(state, kept, pod_set.topology->level, request);
}

/// Of the other pod sets of its group.
std::vector<NodeName> nodes_of_group(const WorkloadRecord& record, const Admission& admission,
                                     std::size_t index) {
  std::vector<NodeName> nodes;
  const std::string& group = record.spec.pod_sets[index].group;
  for (std::size_t i = 0; i < admission.pod_sets.size() && i < record.spec.pod_sets.size(); ++i) {
    if (i == index || group.empty() || record.spec.pod_sets[i].group != group) continue;
    for (const NodeCount& entry : admission.pod_sets[i].nodes) nodes.push_back(entry.node);
  }
  return nodes;
}

/// The last `count` slots on the node: pods that are bound there took the first ones.
std::set<std::size_t> last_slots_on(const std::vector<NodeName>& slots, const NodeName& node,
                                    std::int64_t count) {
  std::set<std::size_t> found;
  for (std::size_t slot = slots.size(); slot-- > 0 && std::ssize(found) < count;) {
    if (slots[slot] == node) found.insert(slot);
  }
  return found;
}

/// The admission with `count` slots of `node` in pod set `index` planned elsewhere; nothing when
/// there is no room. The record's own plan must already lack these slots.
std::optional<Admission> replace_slots(State& state, const WorkloadRecord& record,
                                       const Admission& before, std::size_t index,
                                       topology::NodeIndex node, std::int64_t count) {
  const PodSetSpec& pod_set = record.spec.pod_sets[index];
  PlacementScope scope = scope_of(state, pod_set, before.pod_sets[index]);
  scope.request.count = count;
  const std::vector<NodeName> slots = expand_slots(before.pod_sets[index].nodes);
  stay_in_domain(state, pod_set, slots, last_slots_on(slots, state.fleet.name(node), count),
                 nodes_of_group(record, before, index), scope.request);
  const auto placed = topology::place(scope.request, state.fleet);
  if (!placed) return std::nullopt;

  Admission after = before;
  std::vector<NodeCount>& nodes = after.pod_sets[index].nodes;
  const NodeName& lost = state.fleet.name(node);
  std::int64_t rest = count;
  // From the back: pods that are bound there took the first slots.
  for (std::size_t i = nodes.size(); i-- > 0 && rest > 0;) {
    if (nodes[i].node != lost) continue;
    const std::int64_t moved = std::min(rest, nodes[i].count);
    nodes[i].count -= moved;
    rest -= moved;
    const auto position = nodes.begin() + static_cast<std::ptrdiff_t>(i);
    if (rest > 0) {
      if (position->count == 0) nodes.erase(position);
      continue;
    }
    std::vector<NodeCount> replacement;
    for (const topology::NodeShare& share : *placed) {
      replacement.push_back(NodeCount{state.fleet.name(share.node), share.count});
    }
    const bool empty = position->count == 0;
    auto at = nodes.insert(position + 1, replacement.begin(), replacement.end());
    if (empty) nodes.erase(at - 1);
  }
  return after;
}

/// The admission without `count` slots of `node`: what is kept while a replacement is sought.
Admission without_slots(const Admission& before, std::size_t index, const NodeName& node,
                        std::int64_t count) {
  Admission reduced = before;
  std::vector<NodeCount>& nodes = reduced.pod_sets[index].nodes;
  for (std::size_t i = nodes.size(); i-- > 0 && count > 0;) {
    if (nodes[i].node != node) continue;
    const std::int64_t moved = std::min(count, nodes[i].count);
    nodes[i].count -= moved;
    count -= moved;
    if (nodes[i].count == 0) nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return reduced;
}

void move(State& state, const Loose& loose, topology::NodeIndex node,
          std::vector<Effect>& effects) {
  WorkloadRecord& record = state.workloads.at(loose.workload);
  const Admission before = *record.admission;
  state.change_plan(record,
                    without_slots(before, loose.pod_set, state.fleet.name(node), loose.slots));
  const auto after = replace_slots(state, record, before, loose.pod_set, node, loose.slots);
  if (after) {
    state.change_plan(record, *after);
    effects.emplace_back(Replan{record.spec.key, *after});
    return;
  }
  state.change_plan(record, before);
  state.set_phase(record, Phase::kEvicting);
  effects.emplace_back(Evict{record.spec.key, record.queue, EvictionReason::kNodeFailures,
                             std::nullopt, std::nullopt, ClusterQueueName()});
}

/// What the node gets back from plans of workloads that are on their way out.
Resources leaving_use(const State& state, topology::NodeIndex node) {
  Resources leaving;
  const auto plans = state.plans_by_node.find(node);
  if (plans == state.plans_by_node.end()) return leaving;
  for (const WorkloadKey& key : plans->second) {
    const WorkloadRecord& record = state.workloads.at(key);
    if (record.phase != Phase::kEvicting) continue;
    for (const PlannedSlots& entry : record.plan) {
      if (entry.node == node) leaving += record.per_pod[entry.pod_set].times(entry.slots);
    }
  }
  return leaving;
}

bool can_honour(const State& state, const Loose& loose, topology::NodeIndex node) {
  if (!state.fleet.present(node)) return false;
  const WorkloadRecord& record = state.workloads.at(loose.workload);
  const PlacementScope scope = scope_of(state, record.spec.pod_sets[loose.pod_set],
                                        record.admission->pod_sets[loose.pod_set]);
  // A plan from before a restart may need what no node offers now.
  if (!scope.request.per_pod[ResourceTable::kUnoffered].is_zero()) return false;
  return !topology::judge(scope.request.nodes, state.fleet.facts(node)).has_value();
}

}  // namespace

void repair_plans(State& state, std::vector<Effect>& effects) {
  // Moving slots makes other nodes suspect only where room is taken that was free: a fixpoint is
  // reached in one round, later rounds look at what the changes themselves marked.
  std::set<topology::NodeIndex> suspects;
  suspects.swap(state.suspects);
  for (const topology::NodeIndex node : suspects) {
    Resources leaving = leaving_use(state, node);
    for (const Loose& loose : loose_slots(state, node)) {
      if (state.workloads.at(loose.workload).phase == Phase::kEvicting) continue;
      Resources free = state.fleet.free(node);
      free += leaving;
      const Resources& slot = state.workloads.at(loose.workload).per_pod[loose.pod_set];
      if (can_honour(state, loose, node) && !overbooked(free, slot)) continue;
      move(state, loose, node, effects);
      leaving = leaving_use(state, node);
    }
  }
}

void shrink_plans(State& state, std::vector<Effect>& effects) {
  const std::set<WorkloadKey> keys = state.shrinking;
  for (const WorkloadKey& key : keys) {
    WorkloadRecord& record = state.workloads.at(key);
    if (record.phase == Phase::kEvicting) continue;
    bool complete = true;
    bool changed = false;
    Admission after = *record.admission;
    const std::size_t pod_sets = std::min(after.pod_sets.size(), record.spec.pod_sets.size());
    for (std::size_t i = 0; i < pod_sets; ++i) {
      const std::int64_t left =
          std::min(after.pod_sets[i].count, record.spec.pod_sets[i].pods_left());
      if (left <= 0) continue;  // The workload is about to finish, and an empty plan is none.
      std::vector<PlannedSlots> slots;
      std::int64_t surplus = -left;
      for (const PlannedSlots& entry : record.plan) {
        if (entry.pod_set != i) continue;
        slots.push_back(entry);
        surplus += entry.slots;
      }
      if (surplus <= 0) continue;
      for (auto entry = slots.rbegin(); entry != slots.rend() && surplus > 0; ++entry) {
        const std::int64_t dropped = std::min(surplus, entry->slots - entry->claimed);
        entry->slots -= dropped;
        surplus -= dropped;
        changed = changed || dropped > 0;
      }
      // The rest is still sat in by pods whose end was not seen yet.
      complete = complete && surplus == 0;
      std::vector<NodeCount>& nodes = after.pod_sets[i].nodes;
      nodes.clear();
      for (const PlannedSlots& entry : slots) {
        if (entry.slots > 0) nodes.push_back(NodeCount{state.fleet.name(entry.node), entry.slots});
      }
    }
    if (complete) state.shrinking.erase(key);
    if (!changed) continue;
    state.change_plan(record, after);
    effects.emplace_back(Replan{key, after});
  }
}

}  // namespace muster::engine

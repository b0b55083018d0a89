#include "engine/repair.hpp"

#include "engine/planner.hpp"
#include "engine/slots.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
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

/// The least important first.
bool gives_way_before(const State& state, const Loose& a, const Loose& b) {
  const WorkloadRecord& left = state.workloads.at(a.workload);
  const WorkloadRecord& right = state.workloads.at(b.workload);
  return std::tuple(left.spec.priority, -left.reserved_at->us, left.spec.uid) <
         std::tuple(right.spec.priority, -right.reserved_at->us, right.spec.uid);
}

/// Those that give way first come first.
std::vector<Loose> loose_slots(const State& state, topology::NodeIndex node) {
  std::vector<Loose> loose;
  const auto plans = state.plans_by_node.find(node);
  if (plans == state.plans_by_node.end()) return loose;
  for (const WorkloadKey& key : plans->second) {
    const WorkloadRecord& record = state.workloads.at(key);
    if (record.phase == Phase::kEvicting) continue;
    for (const PlannedSlots& entry : record.plan) {
      if (entry.node != node || entry.slots <= entry.claimed) continue;
      const std::int64_t slots = entry.slots - entry.claimed;
      const auto known = std::find_if(loose.begin(), loose.end(), [&](const Loose& other) {
        return other.workload == key && other.pod_set == entry.pod_set;
      });
      if (known == loose.end()) {
        loose.push_back(Loose{key, entry.pod_set, slots});
      } else {
        known->slots += slots;
      }
    }
  }
  std::stable_sort(loose.begin(), loose.end(),
                   [&](const Loose& a, const Loose& b) { return gives_way_before(state, a, b); });
  return loose;
}

/// The nodes of these slots that are there: where an absent one was, nobody knows any more.
std::vector<NodeName> present(const State& state, const std::vector<NodeName>& slots,
                              const std::vector<std::size_t>& which) {
  std::vector<NodeName> nodes;
  for (const std::size_t slot : which) {
    const auto node = state.fleet.find(slots[slot]);
    if (node && state.fleet.present(*node)) nodes.push_back(slots[slot]);
  }
  return nodes;
}

/// Binds the request to the domain of `level` that the node is in.
void stay_near(const State& state, const NodeName& node, const std::string& level,
               topology::PlaceRequest& request) {
  const LabelMap& labels = state.fleet.facts(*state.fleet.find(node)).labels;
  for (const std::string& above : request.nodes.levels) {
    const auto label = labels.find(above);
    if (label != labels.end()) {
      request.nodes.constraints.node_selector.insert_or_assign(above, label->second);
    }
    if (above == level) return;
  }
}

/// Where the replacement for the slots at `lost` (of `slots`) has to be. The part of a slice must
/// be where the rest of it is; a required domain binds it to where the rest of the pod set is, or
/// who shares its domain (on `beside`).
void stay_in_domain(const State& state, const PodSetSpec& pod_set,
                    const std::vector<NodeName>& slots, const std::set<std::size_t>& lost,
                    const std::vector<NodeName>& beside, topology::PlaceRequest& request) {
  if (!pod_set.topology) return;
  if (pod_set.topology->mode == TopologyRequest::Mode::kRequired) {
    std::vector<std::size_t> rest;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (!lost.contains(slot)) rest.push_back(slot);
    }
    std::vector<NodeName> kept = present(state, slots, rest);
    for (const NodeName& name : beside) {
      const auto node = state.fleet.find(name);
      if (node && state.fleet.present(*node)) kept.push_back(name);
    }
    if (!kept.empty()) stay_near(state, kept.front(), pod_set.topology->level, request);
  }
  const std::vector<topology::SliceLayer>& layers = pod_set.topology->slices;
  // Slices that were lost as a whole are placed as such. Of larger ones a part was lost: it stands
  // together, wherever the rest is.
  std::optional<std::size_t> broken;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].size < 1 || request.count % layers[i].size != 0) broken = i;
  }
  const auto inside = [&](std::size_t first) {
    std::vector<topology::SliceLayer> result;
    if (broken && *broken >= first) result.push_back({layers[*broken].level, request.count});
    for (std::size_t i = std::max(first, broken ? *broken + 1 : 0); i < layers.size(); ++i) {
      result.push_back(layers[i]);
    }
    return result;
  };
  request.slices = inside(0);
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (layers[i].size < 1) continue;
    const auto size = static_cast<std::size_t>(layers[i].size);
    std::vector<std::size_t> rest;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (lost.contains(slot)) continue;
      const auto next = lost.lower_bound(slot / size * size);
      if (next != lost.end() && *next / size == slot / size) rest.push_back(slot);
    }
    const std::vector<NodeName> kept = present(state, slots, rest);
    if (kept.empty()) continue;
    stay_near(state, kept.front(), layers[i].level, request);
    request.mode = topology::Mode::kUnconstrained;
    request.slices = inside(i + 1);
    return;
  }
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

/// expand_slots() back again.
std::vector<NodeCount> counted(const std::vector<NodeName>& slots) {
  std::vector<NodeCount> nodes;
  for (const NodeName& node : slots) {
    if (nodes.empty() || nodes.back().node != node) nodes.push_back(NodeCount{node, 0});
    ++nodes.back().count;
  }
  return nodes;
}

/// The admission with `count` slots of `node` in pod set `index` planned elsewhere, each slot in
/// its place of the order; nothing when there is no room, or there are more slots than any Job can
/// have. The record's own plan must already lack these slots.
std::optional<Admission> replace_slots(State& state, const WorkloadRecord& record,
                                       const Admission& before, std::size_t index,
                                       topology::NodeIndex node, std::int64_t count) {
  const PodSetSpec& pod_set = record.spec.pod_sets[index];
  std::vector<NodeName> slots = expand_slots(before.pod_sets[index].nodes);
  std::int64_t all = 0;
  for (const NodeCount& entry : before.pod_sets[index].nodes) all += entry.count;
  if (std::ssize(slots) != all) return std::nullopt;

  PlacementScope scope = scope_of(state, pod_set, before.pod_sets[index]);
  scope.request.count = count;
  const std::set<std::size_t> lost = last_slots_on(slots, state.fleet.name(node), count);
  stay_in_domain(state, pod_set, slots, lost, nodes_of_group(record, before, index), scope.request);
  const auto candidates = state.candidates.get(scope.request.nodes, state.fleet);
  const auto placed = topology::place(scope.request, *candidates, state.fleet);
  if (!placed) return std::nullopt;
  auto next = lost.begin();
  for (const topology::NodeShare& share : *placed) {
    for (std::int64_t i = 0; i < share.count && next != lost.end(); ++i) {
      slots[*next++] = state.fleet.name(share.node);
    }
  }
  Admission after = before;
  after.pod_sets[index].nodes = counted(slots);
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
  Evict effect;
  effect.workload = record.spec.key;
  effect.cluster_queue = record.queue;
  effect.reason = EvictionReason::kNodeFailures;
  effect.node = state.fleet.name(node);
  effects.emplace_back(std::move(effect));
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
  // By name, not by index: in which order nodes came decides nothing.
  std::vector<topology::NodeIndex> by_name(suspects.begin(), suspects.end());
  std::sort(by_name.begin(), by_name.end(), [&](topology::NodeIndex a, topology::NodeIndex b) {
    return state.fleet.name(a) < state.fleet.name(b);
  });
  // What cannot stay at all comes first, and of that the most important: room is scarce.
  std::vector<std::pair<Loose, topology::NodeIndex>> homeless;
  for (const topology::NodeIndex node : by_name) {
    for (const Loose& loose : loose_slots(state, node)) {
      if (!can_honour(state, loose, node)) homeless.emplace_back(loose, node);
    }
  }
  std::stable_sort(homeless.begin(), homeless.end(), [&](const auto& a, const auto& b) {
    return gives_way_before(state, b.first, a.first);
  });
  for (const auto& [loose, node] : homeless) {
    if (state.workloads.at(loose.workload).phase != Phase::kEvicting) {
      move(state, loose, node, effects);
    }
  }
  for (const topology::NodeIndex node : by_name) {
    Resources leaving = leaving_use(state, node);
    for (const Loose& loose : loose_slots(state, node)) {
      if (state.workloads.at(loose.workload).phase == Phase::kEvicting) continue;
      Resources free = state.fleet.free(node);
      free += leaving;
      const Resources& slot = state.workloads.at(loose.workload).per_pod[loose.pod_set];
      if (!overbooked(free, slot)) continue;
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

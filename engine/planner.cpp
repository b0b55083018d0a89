#include "engine/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace muster::engine {

PlacementScope scope_of(const State& state, const PodSetSpec& pod_set,
                        const PodSetAssignment& assignment) {
  PlacementScope scope;
  topology::PlaceRequest& request = scope.request;
  request.count = assignment.count;
  request.per_pod = Resources::from_request(pod_set.node_requests, state.resources);
  request.nodes.constraints = pod_set.constraints;
  request.avoid = state.nodes_in_doubt;
  request.pack = state.options.improvements.pack_domains;

  std::set<FlavorName> flavors;
  for (const auto& [resource, flavor] : assignment.flavors) flavors.insert(flavor);
  for (const FlavorName& name : flavors) {
    const auto found = state.flavors.find(name);
    if (found == state.flavors.end()) continue;
    const FlavorSpec& flavor = found->second;
    request.nodes.flavor_labels.insert(flavor.node_labels.begin(), flavor.node_labels.end());
    request.nodes.flavor_tolerations.insert(request.nodes.flavor_tolerations.end(),
                                            flavor.tolerations.begin(), flavor.tolerations.end());
    if (flavor.capacity == Capacity::kFixed) scope.elastic = false;
    if (!flavor.topology) continue;
    scope.topology = true;
    scope.elastic = false;
    const auto topology = state.topologies.find(*flavor.topology);
    if (topology != state.topologies.end()) request.nodes.levels = topology->second.levels;
  }
  if (pod_set.topology) {
    switch (pod_set.topology->mode) {
      case TopologyRequest::Mode::kRequired:
        request.mode = topology::Mode::kRequired;
        break;
      case TopologyRequest::Mode::kPreferred:
        request.mode = topology::Mode::kPreferred;
        break;
      case TopologyRequest::Mode::kUnconstrained:
        break;
    }
    request.level = pod_set.topology->level;
    request.slices = pod_set.topology->slices;
  }
  return scope;
}

namespace {

/// With a full table nodes may well offer what the pods ask for: say why it does not help.
void note_uncounted(const ResourceTable& table, const PodSetSpec& pod_set,
                    NodesShortfall& shortfall) {
  if (!table.full()) return;
  const ResourceName* const name = table.first_unknown(pod_set.node_requests);
  if (name == nullptr) return;
  std::int64_t rest = shortfall.nodes;
  for (const auto& [cause, count] : shortfall.excluded) rest -= count;
  if (rest <= 0) return;
  shortfall.excluded[fmt::format("whose {} is beyond the {} resources that are counted", *name,
                                 ResourceTable::kMost)] = rest;
}

NodesShortfall shortfall_of(const State& state, const PodSetSpec& pod_set,
                            const PodSetAssignment& assignment,
                            const topology::Unplaceable& unplaceable) {
  NodesShortfall shortfall;
  shortfall.pod_set = pod_set.name;
  if (!assignment.flavors.empty()) shortfall.flavor = assignment.flavors.begin()->second;
  shortfall.asked = unplaceable.asked;
  shortfall.fitting = unplaceable.fitting;
  shortfall.level = unplaceable.level;
  shortfall.best_domain = fmt::format("{}", fmt::join(unplaceable.best_domain, "/"));
  shortfall.slice_size = unplaceable.slice_size;
  shortfall.slice_level = unplaceable.slice_level;
  shortfall.unknown_level = unplaceable.unknown_level;
  shortfall.indivisible = unplaceable.indivisible;
  shortfall.nodes = unplaceable.nodes;
  for (const auto& [cause, count] : unplaceable.excluded) {
    shortfall.excluded[std::string(topology::to_string(cause))] += count;
  }
  // What no node offers has no name in the table, the pod set knows it. Where the table is full
  // that is no fault of the nodes.
  const ResourceName* const unoffered =
      state.resources.full() ? nullptr : state.resources.first_unknown(pod_set.node_requests);
  const auto add = [&](const auto& by_id, std::map<ResourceName, std::int64_t>& by_name) {
    for (const auto& [id, count] : by_id) {
      const ResourceName* const name =
          id == ResourceTable::kUnoffered ? unoffered : &state.resources.name(id);
      if (name != nullptr) by_name[*name] += count;
    }
  };
  add(unplaceable.too_small, shortfall.too_small);
  add(unplaceable.short_of, shortfall.full);
  note_uncounted(state.resources, pod_set, shortfall);
  return shortfall;
}

/// Pod sets that are placed at once.
struct PlacedTogether {
  std::size_t pod_set = 0;            ///< The workers; their request counts.
  std::optional<std::size_t> leader;  ///< One pod that shares their domain.
};

/// Whatever flavors the one has, the other has as well.
bool shares_flavors(const PodSetAssignment& one, const PodSetAssignment& other) {
  return std::all_of(one.flavors.begin(), one.flavors.end(), [&](const auto& mine) {
    return std::any_of(other.flavors.begin(), other.flavors.end(),
                       [&](const auto& theirs) { return theirs.second == mine.second; });
  });
}

/// Pods that ended well leave slices that are not whole: these are placed as if they were, and what
/// is beyond `count` is cut off again. The number of pods to place.
std::int64_t whole_slices(const PodSetSpec& pod_set, std::int64_t count) {
  if (!pod_set.topology || pod_set.topology->slices.empty()) return count;
  const std::int64_t size = pod_set.topology->slices.front().size;
  if (size < 1 || pod_set.count % size != 0 || pod_set.pods_left() == pod_set.count) return count;
  return (count + size - 1) / size * size;
}

/// Of a group of two on a topology, the one with fewer pods, or the second, leads (semantics f). In
/// order of the first pod set.
std::vector<PlacedTogether> placed_together(const State& state, const WorkloadSpec& workload,
                                            const Admission& admission) {
  const std::size_t count = std::min(admission.pod_sets.size(), workload.pod_sets.size());
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& group = workload.pod_sets[i].group;
    if (!group.empty() && admission.pod_sets[i].count > 0) groups[group].push_back(i);
  }
  std::vector<PlacedTogether> result;
  std::set<std::size_t> done;
  for (std::size_t i = 0; i < count; ++i) {
    if (!done.insert(i).second) continue;
    PlacedTogether next{i, std::nullopt};
    const auto group = groups.find(workload.pod_sets[i].group);
    if (group != groups.end() && group->second.size() == 2 && group->second.front() == i) {
      const std::size_t other = group->second.back();
      const bool first_leads = workload.pod_sets[i].count < workload.pod_sets[other].count;
      const std::size_t workers = first_leads ? other : i;
      const std::size_t leader = first_leads ? i : other;
      const PodSetAssignment& led = admission.pod_sets[workers];
      if (workload.pod_sets[leader].count == 1 && shares_flavors(admission.pod_sets[leader], led) &&
          scope_of(state, workload.pod_sets[workers], led).topology) {
        next = {workers, leader};
        done.insert(other);
      }
    }
    result.push_back(next);
  }
  return result;
}

tl::expected<topology::Placement, topology::Unplaceable> place_one(
    State& state, const topology::PlaceRequest& request) {
  const auto as_peer = state.options.peer.place_with_leader;
  if (as_peer == nullptr || !request.leader || !request.slices.empty() ||
      request.nodes.levels.empty()) {
    const auto candidates = state.candidates.get(request.nodes, state.fleet);
    return topology::place(request, *candidates, state.fleet);
  }
  auto placed = as_peer(request, state.fleet);
  if (placed) return *std::move(placed);
  topology::Unplaceable why;
  why.asked = request.count;
  return tl::unexpected(std::move(why));
}

/// Plans pods that are placed at once beside what is `assumed`, to which it adds what they take.
bool place_next(State& state, const WorkloadSpec& workload, const PlacedTogether& next,
                PlacementScope& scope, Admission& admission,
                std::vector<topology::NodeUse>& assumed, NodesShortfall* why) {
  const auto assume = [&](topology::NodeIndex node, Resources amount) {
    if (state.options.peer.earlier_are_no_pods) amount.set(ResourceTable::kPods, Amount());
    assumed.push_back({node, std::move(amount)});
  };
  PodSetAssignment& assignment = admission.pod_sets[next.pod_set];
  topology::PlaceRequest& request = scope.request;
  request.assumed = assumed;
  if (next.leader) {
    admission.pod_sets[*next.leader].topology = scope.topology;
    const PodSetSpec& leader = workload.pod_sets[*next.leader];
    request.leader = Resources::from_request(leader.node_requests, state.resources);
    request.leader_nodes = scope_of(state, leader, admission.pod_sets[*next.leader]).request.nodes;
    request.leader_nodes.levels.clear();
  }
  if (scope.topology) {
    request.count = whole_slices(workload.pod_sets[next.pod_set], assignment.count);
  }
  const auto placed = place_one(state, request);
  if (!placed) {
    if (why != nullptr) {
      *why = shortfall_of(state, workload.pod_sets[next.pod_set], assignment, placed.error());
    }
    return false;
  }
  std::int64_t left = assignment.count;
  for (const topology::NodeShare& share : *placed) {
    const NodeName& name = state.fleet.name(share.node);
    if (const std::int64_t count = std::min(share.count, left); count > 0) {
      assignment.nodes.push_back(NodeCount{name, count});
      assume(share.node, request.per_pod.times(count));
      left -= count;
    }
    if (share.leader) {
      PodSetAssignment& leader = admission.pod_sets[*next.leader];
      leader.nodes = {NodeCount{name, 1}};
      assume(share.node, *request.leader);
    }
  }
  return true;
}

}  // namespace

bool place_all(State& state, const WorkloadSpec& workload, Admission& admission,
               NodesShortfall* why) {
  for (PodSetAssignment& assignment : admission.pod_sets) assignment.nodes.clear();
  std::vector<std::pair<PlacedTogether, PlacementScope>> fixed;
  std::vector<std::pair<PlacedTogether, PlacementScope>> elastic;
  for (const PlacedTogether& next : placed_together(state, workload, admission)) {
    PodSetAssignment& assignment = admission.pod_sets[next.pod_set];
    // Pods that get no flavor (nothing asked that is counted) are the scheduler's business.
    if (assignment.flavors.empty() || assignment.count <= 0) continue;
    PlacementScope scope = scope_of(state, workload.pod_sets[next.pod_set], assignment);
    assignment.topology = scope.topology;
    (scope.elastic ? elastic : fixed).emplace_back(next, std::move(scope));
  }
  std::vector<topology::NodeUse> assumed;
  for (auto& [next, scope] : fixed) {
    if (!place_next(state, workload, next, scope, admission, assumed, why)) return false;
  }
  for (auto& [next, scope] : elastic) {
    if (place_next(state, workload, next, scope, admission, assumed, nullptr)) continue;
    for (const auto& entry : elastic) admission.pod_sets[entry.first.pod_set].nodes.clear();
    break;
  }
  return true;
}

std::vector<topology::NodeUse> room_of(const State& state, const WorkloadSpec& workload,
                                       const Admission& planned) {
  std::vector<topology::NodeUse> room;
  for (std::size_t i = 0; i < planned.pod_sets.size(); ++i) {
    const Resources per_pod =
        Resources::from_list_known(workload.pod_sets[i].node_requests, state.resources);
    for (const NodeCount& entry : planned.pod_sets[i].nodes) {
      room.push_back({*state.fleet.find(entry.node), per_pod.times(entry.count)});
    }
  }
  return room;
}

}  // namespace muster::engine

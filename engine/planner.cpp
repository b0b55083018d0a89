#include "engine/planner.hpp"

#include <fmt/format.h>

#include <set>

namespace muster::engine {

PlacementScope scope_of(const State& state, const PodSetSpec& pod_set,
                        const PodSetAssignment& assignment) {
  PlacementScope scope;
  topology::PlaceRequest& request = scope.request;
  request.count = assignment.count;
  request.per_pod = Resources::from_request(pod_set.node_requests, state.resources);
  request.nodes.constraints = pod_set.constraints;
  request.avoid = state.nodes_in_doubt;

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

}  // namespace

bool place_all(State& state, const WorkloadSpec& workload, Admission& admission,
               NodesShortfall* why) {
  std::vector<topology::NodeUse> assumed;
  for (std::size_t i = 0; i < admission.pod_sets.size() && i < workload.pod_sets.size(); ++i) {
    PodSetAssignment& assignment = admission.pod_sets[i];
    assignment.nodes.clear();
    // Pods that get no flavor (nothing asked that is counted) are the scheduler's business.
    if (assignment.flavors.empty() || assignment.count <= 0) continue;
    PlacementScope scope = scope_of(state, workload.pod_sets[i], assignment);
    assignment.topology = scope.topology;
    scope.request.assumed = assumed;
    const auto candidates = state.candidates.get(scope.request.nodes, state.fleet);
    const auto placed = topology::place(scope.request, *candidates, state.fleet);
    if (!placed) {
      if (scope.elastic) continue;
      if (why != nullptr) {
        *why = shortfall_of(state, workload.pod_sets[i], assignment, placed.error());
      }
      return false;
    }
    for (const topology::NodeShare& share : *placed) {
      assignment.nodes.push_back(NodeCount{state.fleet.name(share.node), share.count});
      assumed.push_back({share.node, scope.request.per_pod.times(share.count)});
    }
  }
  return true;
}

}  // namespace muster::engine

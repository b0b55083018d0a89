#include "engine/fragmentation.hpp"

#include "engine/accelerators.hpp"
#include "engine/state.hpp"
#include "topology/node_filter.hpp"

#include <cstddef>
#include <utility>

namespace muster::engine {
namespace {

topology::NodeQuery query_of(const State& state, const FlavorSpec& flavor) {
  topology::NodeQuery query;
  query.flavor_labels = flavor.node_labels;
  query.flavor_tolerations = flavor.tolerations;
  for (const Taint& taint : flavor.node_taints) {
    Toleration own;
    own.key = taint.key;
    own.op = Toleration::Operator::kExists;
    query.flavor_tolerations.push_back(own);
  }
  if (flavor.topology) {
    const auto topology = state.topologies.find(*flavor.topology);
    if (topology != state.topologies.end()) query.levels = topology->second.levels;
  }
  return query;
}

/// By id, whether it is an accelerator.
std::vector<bool> accelerators(const ResourceTable& resources) {
  std::vector<bool> result;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    result.push_back(is_accelerator(resources.name(ResourceId(static_cast<std::uint16_t>(i)))));
  }
  return result;
}

bool is_whole(const topology::Fleet& fleet, topology::NodeIndex node,
              const std::vector<bool>& is_accelerator_id) {
  if (!fleet.use(node, topology::UseKind::kPlanned).is_zero()) return false;
  const Resources& offered = fleet.facts(node).allocatable;
  const Resources used = fleet.use(node, topology::UseKind::kForeign);
  bool any = false;
  for (std::size_t i = 0; i < offered.extent() && i < is_accelerator_id.size(); ++i) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    if (!is_accelerator_id[i] || offered[id] <= Amount()) continue;
    any = true;
    if (used[id] > Amount()) return false;
  }
  if (any) return true;
  for (std::size_t i = 0; i < used.extent(); ++i) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    if (id != ResourceTable::kPods && used[id] > Amount()) return false;
  }
  return true;
}

std::string path_of(const topology::Fleet& fleet, const topology::Candidates& candidates,
                    const topology::Domain& domain, std::size_t level) {
  const LabelMap& labels = fleet.facts(candidates.nodes[domain.nodes_begin]).labels;
  std::string path;
  for (std::size_t i = 0; i <= level; ++i) {
    path += (i == 0 ? "" : "/") + labels.at(candidates.levels[i]);
  }
  return path;
}

}  // namespace

std::vector<LargestGang> largest_gangs(State& state) {
  const std::vector<bool> is_accelerator_id = accelerators(state.resources);
  std::vector<LargestGang> result;
  for (const auto& [name, flavor] : state.flavors) {
    const auto candidates = state.candidates.get(query_of(state, flavor), state.fleet);
    std::vector<std::int64_t> before{0};  // Whole hosts in front of each place.
    for (const topology::NodeIndex node : candidates->nodes) {
      before.push_back(before.back() + (is_whole(state.fleet, node, is_accelerator_id) ? 1 : 0));
    }
    result.push_back({name, "", "", before.back()});
    for (std::size_t level = 0; level < candidates->levels.size(); ++level) {
      if (candidates->levels[level] == kHostnameLabel) continue;
      LargestGang largest{name, candidates->levels[level], "", 0};
      for (const topology::Domain& domain : candidates->domains[level]) {
        const std::int64_t hosts = before[domain.nodes_end] - before[domain.nodes_begin];
        if (hosts <= largest.hosts) continue;
        largest.hosts = hosts;
        largest.domain = path_of(state.fleet, *candidates, domain, level);
      }
      result.push_back(std::move(largest));
    }
  }
  return result;
}

}  // namespace muster::engine

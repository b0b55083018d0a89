#include "engine/flavor_match.hpp"

#include "topology/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace muster::engine {
namespace {

// A term of which nothing is left without the keys that the flavor does not set is no restriction,
// and terms are alternatives.
bool selects_flavor(const NodeConstraints& constraints, const LabelMap& flavor_labels) {
  for (const auto& [key, wanted] : constraints.node_selector) {
    const auto found = flavor_labels.find(key);
    if (found != flavor_labels.end() && found->second != wanted) return false;
  }
  if (!constraints.required_affinity || constraints.required_affinity->empty()) return true;
  for (const NodeSelectorTerm& term : *constraints.required_affinity) {
    bool any = false;
    bool all = true;
    for (const SelectorRequirement& requirement : term.match_expressions) {
      const auto found = flavor_labels.find(requirement.key);
      if (found == flavor_labels.end()) continue;
      any = true;
      all = all && matches(requirement, std::string_view(found->second));
    }
    if (!any || all) return true;
  }
  return false;
}

std::optional<std::string> topology_mismatch(const State& state, const PodSetSpec& pod_set,
                                             const FlavorSpec& flavor, const FlavorPlace& place) {
  if (!pod_set.topology) {
    if (!flavor.topology || place.topology_only) return std::nullopt;
    return "it has a topology and the pods ask for none";
  }
  if (!place.asked_by_pods) return std::nullopt;
  if (!flavor.topology) return "it has no topology and the pods ask for one";
  const auto topology = state.topologies.find(*flavor.topology);
  if (topology == state.topologies.end()) {
    return fmt::format("its topology {} does not exist", *flavor.topology);
  }
  const auto& levels = topology->second.levels;
  std::vector<std::string> asked;
  if (pod_set.topology->mode != TopologyRequest::Mode::kUnconstrained) {
    asked.push_back(pod_set.topology->level);
  }
  for (const topology::SliceLayer& layer : pod_set.topology->slices) asked.push_back(layer.level);
  for (const std::string& level : asked) {
    if (std::find(levels.begin(), levels.end(), level) != levels.end()) continue;
    return fmt::format("its topology has no level {}", topology::level_in_words(level));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> flavor_mismatch(const State& state, const PodSetSpec& pod_set,
                                           const FlavorSpec& flavor, const FlavorPlace& place) {
  std::vector<Toleration> tolerations = pod_set.constraints.tolerations;
  tolerations.insert(tolerations.end(), flavor.tolerations.begin(), flavor.tolerations.end());
  if (const Taint* taint = find_untolerated(flavor.node_taints, tolerations)) {
    return fmt::format("untolerated taint {}={}:{}", taint->key, taint->value,
                       to_string(taint->effect));
  }
  if (!selects_flavor(pod_set.constraints, flavor.node_labels)) {
    return "the node selector or affinity excludes its labels";
  }
  return topology_mismatch(state, pod_set, flavor, place);
}

}  // namespace muster::engine

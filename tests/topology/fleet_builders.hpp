#pragma once
// Short spellings of nodes and requests for tests. Nodes offer `gpu` and 110 pods.

#include "topology/placement.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::topology::testing {

inline constexpr ResourceId kGpu{4};

inline Resources gpus(std::int64_t count, std::int64_t pods) {
  Resources resources;
  resources.set(kGpu, Amount(count));
  resources.set(ResourceTable::kPods, Amount(pods));
  return resources;
}

inline NodeFacts node(const std::string& name, std::int64_t gpu, const LabelMap& labels = {}) {
  NodeFacts facts;
  facts.name = NodeName(name);
  facts.labels = labels;
  facts.allocatable = gpus(gpu, 110);
  return facts;
}

/// One gpu a pod.
inline PlaceRequest request(std::int64_t count) {
  PlaceRequest asked;
  asked.count = count;
  asked.per_pod = gpus(1, 1);
  return asked;
}

using Counts = std::vector<std::pair<std::string, std::int64_t>>;

inline Counts counts(const Fleet& fleet, const Placement& placement) {
  Counts named;
  for (const NodeShare& share : placement) {
    named.emplace_back(fleet.name(share.node).value(), share.count);
  }
  return named;
}

/// Empty when it does not fit.
inline Counts placed(const PlaceRequest& asked, const Fleet& fleet) {
  const auto placement = place(asked, fleet);
  return placement ? counts(fleet, *placement) : Counts{};
}

}  // namespace muster::topology::testing

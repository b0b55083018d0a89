#pragma once
// Which nodes: turns pod sets with their flavors into placement requests and back into plans.

#include "engine/reason.hpp"
#include "engine/state.hpp"
#include "topology/placement.hpp"

#include <vector>

namespace muster::engine {

/// The nodes of all flavors a pod set got, and how its pods must stand on them.
struct PlacementScope {
  topology::PlaceRequest request;
  bool elastic = true;  ///< No flavor makes room on real nodes a condition.
  bool topology = false;
};
[[nodiscard]] PlacementScope scope_of(const State& state, const PodSetSpec& pod_set,
                                      const PodSetAssignment& assignment);

/// Plans all pod sets of an admission whose flavors are chosen; false when the nodes do not suffice
/// (then `why`, if given, says what is short). Pod sets on elastic flavors never fail: they are
/// planned when all of them fit, and otherwise none of them is.
[[nodiscard]] bool place_all(State& state, const WorkloadSpec& workload, Admission& admission,
                             NodesShortfall* why);

/// What such a plan takes.
[[nodiscard]] std::vector<topology::NodeUse> room_of(const State& state,
                                                     const WorkloadSpec& workload,
                                                     const Admission& planned);

}  // namespace muster::engine

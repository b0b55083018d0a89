#pragma once
// Small random worlds with nodes, for the differential test of placement: at most four queues, two
// cohort levels, two flavors, all with a topology, twelve nodes and eight workloads, which ask for
// their nodes in every way there is. As with `world_of` a seed is a world for ever as long as this
// file's generator stays the same.

#include "tests/differential/worlds.hpp"

#include <cstdint>

namespace muster::differential {

/// Beside the objects of `world_of`: nodes `x1`, `x2`, …, topologies and foreign pods.
[[nodiscard]] World topology_world_of(std::uint64_t seed);

}  // namespace muster::differential

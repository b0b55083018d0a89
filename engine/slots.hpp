#pragma once
// The slot of a rank: one pure function used by webhook, extender, controller and tests.

#include "engine/specs.hpp"

#include <map>
#include <optional>
#include <vector>

namespace muster::engine {

/// The plan's nodes, one entry a slot, in slot order; the first million.
[[nodiscard]] std::vector<NodeName> expand_slots(const std::vector<NodeCount>& nodes);

/// The node of every rank 0..slots.size()-1. Ranks with a bound live pod keep that pod's node (a
/// slot of the plan there is used up when there is one); the others, ascending, take the remaining
/// slots in the order of the plan. A rank beyond the slots has no node.
[[nodiscard]] std::map<std::int64_t, NodeName> assign_ranks(
    const std::vector<NodeName>& slots, const std::map<std::int64_t, NodeName>& bound);

/// assign_ranks for one rank; nothing when the rank is surplus.
[[nodiscard]] std::optional<NodeName> node_of_rank(const std::vector<NodeName>& slots,
                                                   const std::map<std::int64_t, NodeName>& bound,
                                                   std::int64_t rank);

}  // namespace muster::engine

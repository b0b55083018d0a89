#pragma once
// For people who wait for room on nodes: whose end would make it.

#include "engine/reason.hpp"
#include "engine/state.hpp"

namespace muster::engine {

/// Where quota would do and the nodes do not, notes the smallest running workload (by the room it
/// would give) after whose end alone the pending one would start, quota included: RoomAfter of the
/// shortfall. Looks at a bounded number of them; absent: none of these would do. The state is as
/// before on return; no pass may be open.
void look_ahead(State& state, const WorkloadRecord& pending, Explanation& why);

}  // namespace muster::engine

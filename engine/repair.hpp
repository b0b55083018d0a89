#pragma once
// Plans that do not hold any more: a planned node was lost or cordoned, or somebody took the room.

#include "engine/effect.hpp"
#include "engine/state.hpp"

#include <vector>

namespace muster::engine {

/// Looks at every suspect node. Slots without a pod that the node cannot honour are planned anew in
/// the same place of the slot order (other ranks keep their nodes); where that is impossible the
/// workload is evicted as a whole. Slots with a live pod are left alone: the pod keeps its node.
void repair_plans(State& state, std::vector<Effect>& effects);

/// Slots that pods which ended well left behind are given back, those behind first that nobody sits
/// in: the plan keeps one for each pod that is left to run.
void shrink_plans(State& state, std::vector<Effect>& effects);

}  // namespace muster::engine

#pragma once
// Elastic gangs that wait for nodes (design section 2, flavors without a topology): admitted on
// quota, held until all of their pods fit, then placed as a whole.

#include "engine/effect.hpp"
#include "engine/state.hpp"

#include <vector>

namespace muster::engine {

/// True for a gang (more than one pod) that holds quota, does not leave, has no nodes planned for
/// some pods whose flavors are all elastic, and of which no pod is bound. One of which some pods
/// run already (it was started by others, or has lost its plan) is not held: who runs is not to
/// wait.
[[nodiscard]] bool is_held(const State& state, const WorkloadRecord& record);

/// Those that wait for nodes, in order: those whose pods exist first, as an autoscaler brings nodes
/// for them only; then by priority, then by how long they hold their quota.
[[nodiscard]] std::vector<const WorkloadRecord*> held_gangs(const State& state);

/// Gives every held gang that fits as a whole its plan (a Replan each), in order. Of those that do
/// not fit, the first one of each flavor keeps what room there is for its pods, so that nodes that
/// come one by one are there when the last one does; no other keeps any.
void place_held(State& state, std::vector<Effect>& effects);

}  // namespace muster::engine

#pragma once
// The state counted again from its parts, to be compared with what is kept incrementally.

#include "engine/state.hpp"

#include <string>
#include <vector>

namespace muster::engine {

/// One line per violated invariant of state.hpp and per node whose plan and pods exceed what it can
/// hold *by a decision of ours*; empty when all is well. Call between steps, not inside a trial.
[[nodiscard]] std::vector<std::string> check_state(const State& state);

}  // namespace muster::engine

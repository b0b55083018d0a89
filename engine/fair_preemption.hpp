#pragma once
// Preemption under fair sharing: queueing semantics (d). What is short is taken from the queue that
// has the largest share of the cohort, as long as that makes shares more equal, not less.

#include "engine/preemption.hpp"

#include <optional>
#include <vector>

namespace muster::engine {

/// As find_victims, for a state with `fair_sharing`. The set is also legal as a whole: taken one by
/// one in the given order, every victim of rule InCohortFairSharing satisfies one of the strategies
/// at its turn; and irreducible: whoever is put back breaks the fit or that.
[[nodiscard]] std::optional<std::vector<Victim>> find_fair_victims(State& state,
                                                                   const PreemptionRequest& request,
                                                                   std::size_t& tried);

}  // namespace muster::engine

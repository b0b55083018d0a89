#pragma once
// Which of the possible victims: those whose loss is least (design section 5).
//
// In this order: the highest victim priority, the number of gangs, GPU-seconds lost (since the
// reservation, or the last checkpoint, times GPUs), the newest reservation, uid. Sets of one size
// and one loss are compared by their members, each list in that order.

#include "engine/preemption_trial.hpp"

#include <optional>
#include <vector>

namespace muster::engine {

/// Takes the victims away from the trial; nothing, and nothing taken, when no legal set was found.
/// The set is legal as a whole (there is an order in which each may be taken) and irreducible. The
/// search is exact up to a number of steps, greedy beyond.
[[nodiscard]] std::optional<std::vector<Candidate>> take_least_loss(PreemptionTrial& trial,
                                                                    const Candidates& candidates,
                                                                    bool borrow);

/// `a` is better by what comes before the newest reservation. Holds cost nothing.
[[nodiscard]] bool loses_less(const State& state, const std::vector<Candidate>& a,
                              const std::vector<Candidate>& b);

}  // namespace muster::engine

#pragma once
// Whether victims could make a request fit at all. Most requests that wait wait in vain: sums tell
// it at a hundredth of the cost of a search among all who run.

#include "engine/preemption_trial.hpp"

namespace muster::engine {

/// False: no set of victims that the policies allow, and no holds, make room in the quota. True:
/// some may, and only a search can tell. Nodes and protected workloads are not looked at. The
/// state is as before on return.
[[nodiscard]] bool may_find_victims(PreemptionTrial& trial);

}  // namespace muster::engine

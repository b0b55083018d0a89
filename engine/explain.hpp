#pragma once
// The one place that turns reasons into words: decide, conditions, events and metrics use it.

#include "engine/effect.hpp"
#include "engine/reason.hpp"

#include <string>

namespace muster::engine {

/// One sentence: what keeps the workload pending.
[[nodiscard]] std::string describe(const Explanation& explanation);

/// The smallest change that would admit it: `2 more nvidia.com/gpu in cohort root`; empty when no
/// change of capacity would (a stopped queue, a missing flavor).
[[nodiscard]] std::string needs(const Explanation& explanation);

/// Who, where, borrowed how much.
[[nodiscard]] std::string describe(const Admit& admit);

/// Who had to go, by which rule, for whom.
[[nodiscard]] std::string describe(const Evict& evict);

}  // namespace muster::engine

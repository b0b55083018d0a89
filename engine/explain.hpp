#pragma once
// The one place that turns reasons into words: decide, conditions, events and metrics use it.

#include "engine/effect.hpp"
#include "engine/reason.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace muster::engine {

/// One sentence: what keeps the workload pending.
[[nodiscard]] std::string describe(const Explanation& explanation);

/// Whether `text` is what describe() said of this explanation, or of the same with NodesShortfall::
/// after, if the workload that was named then still `runs`.
[[nodiscard]] bool is_description(std::string_view text, const Explanation& explanation,
                                  const std::function<bool(const WorkloadKey&)>& runs);

/// The smallest change that would admit it: `2 nvidia.com/gpu in cohort root`, `ClusterQueue a to
/// be resumed`; empty when none can be named.
[[nodiscard]] std::string needs(const Explanation& explanation);

/// Who, where, borrowed how much from whom.
[[nodiscard]] std::string describe(const Admit& admit);

/// Who had to go, by which rule, for whom.
[[nodiscard]] std::string describe(const Evict& evict);

}  // namespace muster::engine

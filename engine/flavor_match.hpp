#pragma once
// Whether the pods of a pod set may use a flavor at all: queueing semantics (b), step 3.

#include "engine/state.hpp"

#include <optional>
#include <string>

namespace muster::engine {

/// Where a flavor stands in its ClusterQueue.
struct FlavorPlace {
  /// Every flavor of the queue has a topology: pods that ask for none get one implicitly.
  bool topology_only = false;
  /// Its resource group covers something the pods themselves ask for; false: it only counts what
  /// was derived from that (transformations, `pods`), so where the pods stand is not its business.
  bool asked_by_pods = true;
};

/// Why not; nothing: they may. Node selector and affinity judge a flavor only on keys that the
/// flavor itself sets.
[[nodiscard]] std::optional<std::string> flavor_mismatch(const State& state,
                                                         const PodSetSpec& pod_set,
                                                         const FlavorSpec& flavor,
                                                         const FlavorPlace& place);

}  // namespace muster::engine

#pragma once
// How Kueue 0.17.0 places pods with a leader (semantics (f), row f2), for the comparison with it:
// what the leader displaces is counted over domains that have no room for it, too, and the domain
// that fits best is taken whether the leader fits it or not. So the leader, and pods with it, may
// end up nowhere.

#include "topology/placement.hpp"

#include <optional>

namespace muster::differential {

/// As `place` for a request with a leader and without slices, on a topology down to hosts. Nothing:
/// it does not fit. Without nodes: it is taken to fit, but pods or leader were lost on the way
/// down.
[[nodiscard]] std::optional<topology::Placement> place_with_stray_leader(
    const topology::PlaceRequest& request, const topology::Fleet& fleet);

}  // namespace muster::differential

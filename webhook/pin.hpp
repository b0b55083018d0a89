#pragma once
// Pins: the one planned node of a pod whose rank is fixed, as required node affinity (design 2.5).

#include "base/ids.hpp"
#include "engine/snapshot.hpp"
#include "kube/codec/objects.hpp"

#include <optional>

namespace muster::webhook {

/// The node that a new member is planned on; nothing for a pod that is no member of an admitted
/// workload with a plan, has no rank, or is surplus: filter deals with those.
[[nodiscard]] std::optional<NodeName> find_pinned_node(const kube::ObjectMeta& meta,
                                                       const engine::Snapshot& snapshot);

/// The pod with its required node affinity narrowed to `node`: of terms that name nodes, those of
/// this node stay; terms that name none get it as well. When the terms name only other nodes (the
/// slot moved since the template was written), they follow. All else of the user's terms is kept.
/// Terms without any requirement, which match no node, are left out where another one is kept.
[[nodiscard]] kube::Json pin_pod(const kube::Json& pod, const NodeName& node);

}  // namespace muster::webhook

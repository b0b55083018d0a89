#pragma once
// prioritize: packs accelerators, so that whole nodes stay free for gangs.

#include "engine/snapshot.hpp"
#include "kube/codec/objects.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::extender {

/// The range that kube-scheduler multiplies by its weight.
inline constexpr std::int64_t kHighestScore = 10;

/// One score per offered node, 0 to 10. For a pod that asks for extended resources: how full the
/// node would be of the fullest of them (planned room counts as used), and 0 where none of them is
/// in use yet. For any other pod: 10 on a node without extended resources, else how full the node
/// is. An unknown node has 0.
[[nodiscard]] std::vector<std::int64_t> prioritize(const kube::Pod& pod,
                                                   std::span<const std::string_view> nodes,
                                                   const engine::Snapshot& snapshot);

}  // namespace muster::extender

#pragma once
// filter: which of the offered nodes a pod may take beside the plans (design 2.6).

#include "base/time.hpp"
#include "engine/snapshot.hpp"
#include "extender/ledger.hpp"
#include "extender/membership.hpp"
#include "kube/codec/objects.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::extender {

/// Why a node was refused. Each has one constant text: a text that changes makes kube-scheduler try
/// again at once, for ever (reference: extender protocol, P4).
enum class Refusal {
  kRoomIsPlanned,   ///< The room that is left is planned for others.
  kNotItsNode,      ///< The pod's slot is on another node.
  kNoFreeSlot,      ///< Surplus: its workload has no slot for it.
  kNotAdmitted,     ///< Its workload waits.
  kBeingEvicted,    ///< Its workload is on its way out.
  kWorkloadIsOver,  ///< Its workload has finished.
  kGangIsHeld,      ///< Its gang waits until there are nodes for all of its pods.
};
[[nodiscard]] std::string_view to_string(Refusal refusal);

/// Why a member of this workload gets no node at all; nothing: it may get one, or is foreign.
[[nodiscard]] std::optional<Refusal> refusal_of(const Membership& membership);

struct FilterResult {
  /// Positions in the offered names, ascending.
  std::vector<std::size_t> passed;
  std::vector<std::pair<std::size_t, Refusal>> refused;
};

/// Free of side effects but for the ledger, which may be written again and again for one pod.
[[nodiscard]] FilterResult filter(const kube::Pod& pod, std::span<const std::string_view> nodes,
                                  const engine::Snapshot& snapshot, Ledger& ledger, Instant now);

}  // namespace muster::extender

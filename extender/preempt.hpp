#pragma once
// preempt: which of the scheduler's candidates may lose their victims (design 2.6). Candidates are
// only dropped; their victims are never changed.

#include "base/time.hpp"
#include "engine/snapshot.hpp"
#include "extender/ledger.hpp"
#include "kube/codec/objects.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace muster::extender {

/// A node, and the pods that would have to die there for the preemptor.
struct PreemptionCandidate {
  std::string_view node;
  std::vector<Uid> victims;
};

/// Positions of the candidates that stay, ascending.
///
/// A candidate goes when it has no victims, when they are part of a gang but not all of it, when
/// one of them sits in a planned slot (the slot stays its workload's, so its death makes no room
/// for another), and when the room after them would not do beside the plans: victims must not die
/// for a node that filter then refuses. A member of a gang may only make room on the node of its
/// own slot. For pods that planned room yields to, candidates that tear no gang come first; when
/// there is none, all stay: their gangs are then evicted whole. A victim or node that we do not
/// know never speaks against a candidate.
[[nodiscard]] std::vector<std::size_t> preempt(const kube::Pod& pod,
                                               std::span<const PreemptionCandidate> candidates,
                                               const engine::Snapshot& snapshot, Ledger& ledger,
                                               Instant now);

}  // namespace muster::extender

#pragma once
// Pods that were refused and need not wait any longer. kube-scheduler tries a refused pod again
// after an event of its own world (a pod or node changed); that a plan was given up is no such
// event, and an event that we saw later than the scheduler did was answered from an old picture.
// Without a push such a pod waits for up to five minutes (reference: extender protocol, P3).

#include "base/ids.hpp"
#include "base/time.hpp"
#include "engine/snapshot.hpp"
#include "extender/ledger.hpp"

#include <vector>

namespace muster::extender {

struct PodToWake {
  PodKey key;
  Uid uid;
};

/// Refused pods that would get a node by now, oldest refusal first, at most `limit`; each is
/// counted as woken. Any change of the pod's own annotations wakes it in the scheduler. Cheap while
/// nobody is refused; else about a look at each node it was refused on, so not for every snapshot.
[[nodiscard]] std::vector<PodToWake> take_pods_to_wake(const engine::Snapshot& snapshot,
                                                       Ledger& ledger, Instant now,
                                                       std::size_t limit = 64);

}  // namespace muster::extender

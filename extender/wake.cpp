#include "extender/wake.hpp"

#include "engine/slots.hpp"
#include "extender/filter.hpp"
#include "extender/membership.hpp"
#include "extender/room.hpp"

#include <algorithm>

namespace muster::extender {
namespace {

using engine::Snapshot;

/// Its slot is free, as far as bound pods tell, and was among what the scheduler offered.
bool has_free_slot(const RefusedPod& refused, const Membership& membership) {
  const engine::PodSetView& pod_set = *membership.pod_set;
  if (const auto rank = refused.pod.rank()) {
    if (pod_set.bound_ranks.contains(*rank)) return false;
    if (const auto node = engine::node_of_rank(pod_set.slots, pod_set.bound_ranks, *rank)) {
      return refused.nodes.contains(node->value());
    }
  }
  const std::vector<NodeName> free = free_slots(pod_set);
  return std::any_of(free.begin(), free.end(),
                     [&](const NodeName& node) { return refused.nodes.contains(node.value()); });
}

bool would_pass(const RefusedPod& refused, const Snapshot& snapshot, Ledger& ledger, Instant now) {
  const Membership membership = find_membership(refused.pod, snapshot);
  if (refusal_of(membership)) return false;
  if (has_plan(membership)) return has_free_slot(refused, membership);
  const RoomCheck room(refused.pod, snapshot,
                       ledger.open_answers(refused.pod.meta.uid, snapshot.generation, now));
  return refused.nodes.any_of(snapshot, [&](const FoundNode& node) { return room.fits(node); });
}

}  // namespace

std::vector<PodToWake> take_pods_to_wake(const Snapshot& snapshot, Ledger& ledger, Instant now,
                                         std::size_t limit) {
  std::vector<PodToWake> pods;
  for (const auto& refused : ledger.refusals_before(snapshot.generation, now)) {
    if (pods.size() >= limit) break;
    if (!would_pass(*refused, snapshot, ledger, now)) continue;
    const kube::ObjectMeta& meta = refused->pod.meta;
    ledger.mark_woken(meta.uid, now);
    pods.push_back(PodToWake{PodKey{meta.ns, meta.name}, meta.uid});
  }
  return pods;
}

}  // namespace muster::extender

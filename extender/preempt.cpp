#include "extender/preempt.hpp"

#include "extender/filter.hpp"
#include "extender/membership.hpp"
#include "extender/room.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace muster::extender {
namespace {

using engine::NodeView;
using engine::PodView;
using engine::Snapshot;
using engine::WorkloadView;

/// What the death of a candidate's victims would mean.
struct Toll {
  bool splits_gang = false;
  bool takes_planned_slot = false;
  bool has_unknown = false;  ///< A victim we have not seen: what it frees cannot be told.
  Resources freed;           ///< Room outside the plans.
};

Toll toll_of(const PreemptionCandidate& candidate, const NodeView& node, const Snapshot& snapshot) {
  Toll toll;
  std::map<Uid, std::int64_t> dying;  // Per workload.
  for (const Uid& uid : candidate.victims) {
    const auto victim = std::find_if(node.pods.begin(), node.pods.end(),
                                     [&](const PodView& pod) { return pod.use->uid == uid; });
    if (victim == node.pods.end()) {
      toll.has_unknown = true;
      continue;
    }
    if (victim->planned)
      toll.takes_planned_slot = true;
    else
      toll.freed += victim->requests;
    if (!victim->use->owner_uid.empty()) ++dying[victim->use->owner_uid];
  }
  for (const auto& [owner, count] : dying) {
    const std::shared_ptr<const WorkloadView> workload = snapshot.find_workload(owner);
    if (workload && count < workload->total_pods) toll.splits_gang = true;
  }
  return toll;
}

/// May a pod of this membership make room on this node at all?
bool may_preempt_on(const Membership& membership, const std::optional<NodeName>& slot,
                    std::string_view node) {
  if (!membership.workload) return true;
  if (refusal_of(membership)) return false;
  return !has_plan(membership) || (slot && slot->value() == node);
}

}  // namespace

std::vector<std::size_t> preempt(const kube::Pod& pod,
                                 std::span<const PreemptionCandidate> candidates,
                                 const Snapshot& snapshot, Ledger& ledger, Instant now) {
  const Membership membership = find_membership(pod, snapshot);
  const bool planned = has_plan(membership);
  std::optional<NodeName> slot;
  if (planned) {
    slot = find_slot(pod, membership, snapshot, ledger, [&](const NodeName& node) {
      return std::any_of(candidates.begin(), candidates.end(),
                         [&](const auto& c) { return c.node == node.value(); });
    });
  }
  const bool yielded_to = !membership.workload && is_yielded_to(pod);
  const RoomCheck room(pod, snapshot, ledger.open_answers(pod.meta.uid, snapshot.generation, now));
  NodeFinder finder(snapshot);
  std::vector<std::size_t> kept;
  std::vector<std::size_t> tearing;  // Only for want of others.
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const PreemptionCandidate& candidate = candidates[i];
    if (candidate.victims.empty() || !may_preempt_on(membership, slot, candidate.node)) continue;
    const FoundNode found = finder.find(candidate.node);
    if (found.node == nullptr) {
      kept.push_back(i);
      continue;
    }
    const Toll toll = toll_of(candidate, *found.node, snapshot);
    if (toll.splits_gang || toll.takes_planned_slot) {
      if (yielded_to) tearing.push_back(i);
      continue;
    }
    if (planned || yielded_to || toll.has_unknown || room.fits(found, toll.freed)) {
      kept.push_back(i);
    }
  }
  return kept.empty() ? tearing : kept;
}

}  // namespace muster::extender

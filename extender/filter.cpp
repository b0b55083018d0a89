#include "extender/filter.hpp"

#include "extender/membership.hpp"
#include "extender/room.hpp"

#include <algorithm>

namespace muster::extender {
namespace {

using engine::Snapshot;
using engine::WorkloadPhase;

FilterResult refuse_all(std::size_t count, Refusal why) {
  FilterResult result;
  result.refused.reserve(count);
  for (std::size_t i = 0; i < count; ++i) result.refused.emplace_back(i, why);
  return result;
}

FilterResult filter_planned(const kube::Pod& pod, const Membership& membership,
                            std::span<const std::string_view> nodes, const Snapshot& snapshot,
                            Ledger& ledger) {
  std::vector<std::string_view> sorted;  // Made when first asked for: a rank needs no look.
  const auto is_offered = [&](const NodeName& node) {
    if (sorted.empty()) {
      sorted.assign(nodes.begin(), nodes.end());
      std::sort(sorted.begin(), sorted.end());
    }
    return std::binary_search(sorted.begin(), sorted.end(), std::string_view(node.value()));
  };
  const auto slot = find_slot(pod, membership, snapshot, ledger, is_offered);
  if (!slot) return refuse_all(nodes.size(), Refusal::kNoFreeSlot);
  FilterResult result;
  result.refused.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] == slot->value())
      result.passed.push_back(i);
    else
      result.refused.emplace_back(i, Refusal::kNotItsNode);
  }
  return result;
}

FilterResult filter_unplanned(const kube::Pod& pod, std::span<const std::string_view> nodes,
                              const Snapshot& snapshot, Ledger& ledger, Instant now) {
  const bool yielded_to = is_yielded_to(pod);
  const RoomCheck check(pod, snapshot, ledger.open_answers(pod.meta.uid, snapshot.generation, now));
  NodeFinder finder(snapshot);
  AnsweredNodes answered(snapshot.node_index);
  FilterResult result;
  result.passed.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const FoundNode found = finder.find(nodes[i]);
    if (!yielded_to && !check.fits(found)) {
      result.refused.emplace_back(i, Refusal::kRoomIsPlanned);
      continue;
    }
    result.passed.push_back(i);
    if (found.node != nullptr)
      answered.add_position(found.position);
    else
      answered.add_unknown(nodes[i]);
  }
  ledger.record(ForeignAnswer{.uid = pod.meta.uid,
                              .requests = check.request(),
                              .nodes = std::move(answered),
                              .generation = snapshot.generation,
                              .at = now,
                              .resource_version = pod.meta.resource_version,
                              .verdict = scheduling_verdict(pod),
                              .expires = std::nullopt});
  return result;
}

FilterResult judge(const kube::Pod& pod, std::span<const std::string_view> nodes,
                   const Snapshot& snapshot, Ledger& ledger, Instant now) {
  const Membership membership = find_membership(pod, snapshot);
  const auto refusal = refusal_of(membership);
  if (!refusal && !has_plan(membership)) {
    return filter_unplanned(pod, nodes, snapshot, ledger, now);
  }
  ledger.retract(pod.meta.uid);
  if (refusal) return refuse_all(nodes.size(), *refusal);
  return filter_planned(pod, membership, nodes, snapshot, ledger);
}

void remember_refusal(const kube::Pod& pod, std::span<const std::string_view> nodes,
                      const Snapshot& snapshot, Ledger& ledger) {
  NodeFinder finder(snapshot);
  AnsweredNodes offered(snapshot.node_index);
  for (const std::string_view name : nodes) {
    const FoundNode found = finder.find(name);
    if (found.node != nullptr)
      offered.add_position(found.position);
    else
      offered.add_unknown(name);
  }
  ledger.record_refusal(RefusedPod{pod, std::move(offered), snapshot.generation});
}

}  // namespace

std::optional<Refusal> refusal_of(const Membership& membership) {
  if (!membership.workload) return std::nullopt;
  switch (membership.workload->phase) {
    case WorkloadPhase::kPending:
      return Refusal::kNotAdmitted;
    case WorkloadPhase::kEvicting:
      return Refusal::kBeingEvicted;
    case WorkloadPhase::kFinished:
      return Refusal::kWorkloadIsOver;
    case WorkloadPhase::kAdmitted:
      break;
  }
  if (membership.pod_set == nullptr) return Refusal::kNoFreeSlot;
  if (membership.workload->held) return Refusal::kGangIsHeld;
  return std::nullopt;
}

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::kRoomIsPlanned:
      return "muster: the free room is planned for queued workloads";
    case Refusal::kNotItsNode:
      return "muster: the pod is planned on another node";
    case Refusal::kNoFreeSlot:
      return "muster: no slot of its workload is free for the pod";
    case Refusal::kNotAdmitted:
      return "muster: its workload is not admitted";
    case Refusal::kBeingEvicted:
      return "muster: its workload is being evicted";
    case Refusal::kWorkloadIsOver:
      return "muster: its workload has finished";
    case Refusal::kGangIsHeld:
      return "muster: its gang waits for nodes for all of its pods";
  }
  return "muster: refused";
}

FilterResult filter(const kube::Pod& pod, std::span<const std::string_view> nodes,
                    const Snapshot& snapshot, Ledger& ledger, Instant now) {
  FilterResult result = judge(pod, nodes, snapshot, ledger, now);
  // The controller wakes the members of a gang that was held: not before the plan is safe.
  const bool held =
      !result.refused.empty() && result.refused.front().second == Refusal::kGangIsHeld;
  if (result.passed.empty() && !nodes.empty() && !held) {
    remember_refusal(pod, nodes, snapshot, ledger);
  }
  return result;
}

}  // namespace muster::extender

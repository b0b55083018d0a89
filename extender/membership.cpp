#include "extender/membership.hpp"

#include "engine/slots.hpp"
#include "kube/codec/names.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::extender {
namespace {

using engine::PodSetView;
using engine::Snapshot;
using engine::WorkloadView;
using kube::kManagedLabel;
using kube::kPodSetLabel;

constexpr std::int64_t kLowestSystemPriority = 2'000'000'000;

const PodSetView* find_pod_set(const kube::Pod& pod, const WorkloadView& workload) {
  if (workload.pod_sets.size() == 1) return &workload.pod_sets.front();
  const std::string* const label = pod.meta.find_label(kPodSetLabel);
  if (label == nullptr) return nullptr;
  const auto found =
      std::find_if(workload.pod_sets.begin(), workload.pod_sets.end(),
                   [&](const PodSetView& pod_set) { return pod_set.name.value() == *label; });
  return found == workload.pod_sets.end() ? nullptr : &*found;
}

}  // namespace

Membership find_membership(const kube::Pod& pod, const Snapshot& snapshot) {
  Membership membership;
  const kube::OwnerReference* const owner = pod.meta.controller_owner();
  const std::string* const managed = pod.meta.find_label(kManagedLabel);
  // A pod that queues for itself says so; one that a queued pod controls (a Spark executor) is not
  // a member of that pod's workload.
  const bool own_first = owner == nullptr || owner->kind == "Pod" || managed != nullptr;
  if (own_first) membership.workload = snapshot.find_workload(pod.meta.uid);
  if (!membership.workload && owner != nullptr && owner->kind != "Pod") {
    membership.workload = snapshot.find_workload(owner->uid);
  }
  if (!membership.workload && !own_first) {
    membership.workload = snapshot.find_workload(pod.meta.uid);
  }
  // Anybody may write any owner reference; owners own nothing in other namespaces.
  if (membership.workload && membership.workload->key.ns != pod.meta.ns) return Membership{};
  if (membership.workload) membership.pod_set = find_pod_set(pod, *membership.workload);
  return membership;
}

bool has_plan(const Membership& membership) {
  return membership.workload && membership.workload->phase == engine::WorkloadPhase::kAdmitted &&
         membership.pod_set != nullptr && !membership.pod_set->slots.empty();
}

bool is_yielded_to(const kube::Pod& pod) {
  return pod.is_daemon() || pod.is_mirror() ||
         pod.spec.priority.value_or(0) >= kLowestSystemPriority;
}

std::vector<NodeName> free_slots(const PodSetView& pod_set) {
  std::map<NodeName, std::int64_t> bound = pod_set.bound_rankless;
  for (const auto& [rank, node] : pod_set.bound_ranks) ++bound[node];
  std::vector<NodeName> free;
  for (const NodeName& slot : pod_set.slots) {
    const auto found = bound.find(slot);
    if (found != bound.end() && found->second > 0)
      --found->second;
    else
      free.push_back(slot);
  }
  return free;
}

std::optional<NodeName> find_slot(const kube::Pod& pod, const Membership& membership,
                                  const Snapshot& snapshot, Ledger& ledger,
                                  const std::function<bool(const NodeName&)>& is_offered) {
  const PodSetView& pod_set = *membership.pod_set;
  const auto is_bound = [&](const Uid& uid, const NodeName& name) {
    const engine::NodeView* const node = snapshot.find_node(name.value());
    return node != nullptr &&
           std::any_of(node->pods.begin(), node->pods.end(),
                       [&](const engine::PodView& bound) { return bound.use->uid == uid; });
  };
  SlotRequest request{.owner = membership.workload->owner_uid,
                      .pod_set = pod_set.name,
                      .pod = pod.meta.uid,
                      .rank = pod.rank(),
                      .free = {},
                      .is_bound = is_bound,
                      .is_offered = is_offered};
  if (request.rank) {
    const auto taken = pod_set.bound_ranks.find(*request.rank);
    if (taken != pod_set.bound_ranks.end()) {
      // Bound by now although the scheduler asks (it may have missed its own success), or the
      // place of another pod.
      if (is_bound(pod.meta.uid, taken->second)) return taken->second;
      return std::nullopt;
    }
    if (auto node = engine::node_of_rank(pod_set.slots, pod_set.bound_ranks, *request.rank)) {
      request.free.push_back(std::move(*node));
      return ledger.reserve_slot(request);
    }
    // An Indexed Job with more completions than pods at a time goes through ranks beyond the plan:
    // they take whatever slot is free.
    request.rank.reset();
  }
  request.free = free_slots(pod_set);
  return ledger.reserve_slot(request);
}

std::optional<NodeName> find_refused_slot(const kube::Pod& pod, const engine::Snapshot& snapshot,
                                          Ledger& ledger) {
  if (!pod.spec.node_name.empty() || !pod.spec.scheduling_gates.empty() || pod.terminal()) {
    return std::nullopt;
  }
  const kube::Condition* const scheduled = kube::find_condition(pod.conditions, "PodScheduled");
  if (scheduled == nullptr || scheduled->status != "False") return std::nullopt;
  const Membership membership = find_membership(pod, snapshot);
  if (membership.pod_set == nullptr || !has_plan(membership)) return std::nullopt;
  // Pinned to where its slot was before, it says nothing of where that is now.
  const std::set<NodeName> pins = pod.pins();
  const auto is_tried = [&](const NodeName& node) { return pins.contains(node); };
  const auto slot = find_slot(pod, membership, snapshot, ledger, is_tried);
  return slot && is_tried(*slot) ? slot : std::nullopt;
}

}  // namespace muster::extender

#pragma once
// To whom a pod belongs, and where its slot is: the questions that all three verbs start from.

#include "base/ids.hpp"
#include "engine/snapshot.hpp"
#include "extender/ledger.hpp"
#include "kube/codec/objects.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace muster::extender {

/// A pod of a workload that we queue. Membership is ownership: the workload's owner is the pod's
/// controller, or the pod itself. Labels and annotations alone give nothing (design 2.5).
struct Membership {
  std::shared_ptr<const engine::WorkloadView> workload;  ///< Null: the pod is not ours.
  /// Which of its pod sets; null: none can be told, the pod is surplus. Points into `workload`.
  const engine::PodSetView* pod_set = nullptr;
};

[[nodiscard]] Membership find_membership(const kube::Pod& pod, const engine::Snapshot& snapshot);

/// A member of an admitted workload without a plan (elastic capacity) takes room like any foreign
/// pod; one with a plan has a slot.
[[nodiscard]] bool has_plan(const Membership& membership);

/// Planned room yields to these: static pods, DaemonSet pods and system priorities (design 2.6).
[[nodiscard]] bool is_yielded_to(const kube::Pod& pod);

/// Slots without a bound pod of the pod set, in the order of the plan.
[[nodiscard]] std::vector<NodeName> free_slots(const engine::PodSetView& pod_set);

/// The node of a planned member's slot, or nothing when it is surplus: one that no other pod sits
/// in or was sent to. A rank inside the plan has its node by engine/slots.hpp, offered or not;
/// every other member gets the first free slot that `is_offered`. Kept in the ledger.
[[nodiscard]] std::optional<NodeName> find_slot(
    const kube::Pod& pod, const Membership& membership, const engine::Snapshot& snapshot,
    Ledger& ledger, const std::function<bool(const NodeName&)>& is_offered);

/// The slot of a member that kube-scheduler found no room for (PodScheduled is False). Nothing:
/// that is not what the pod says, or it has no slot.
[[nodiscard]] std::optional<NodeName> find_refused_slot(const kube::Pod& pod,
                                                        const engine::Snapshot& snapshot,
                                                        Ledger& ledger);

}  // namespace muster::extender

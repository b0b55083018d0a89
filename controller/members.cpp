// Gangs that something outside tore, and pods that cannot follow their plan.

#include "controller/impl.hpp"
#include "engine/slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::controller {
namespace {

using kube::Json;

/// How long an unbound member may wait for a node that is not there before its gang goes.
constexpr Duration kMissingNodePatience = std::chrono::seconds(5);

struct Seats {
  std::vector<NodeName> slots;
  std::map<std::int64_t, NodeName> bound_ranks;
  std::vector<NodeName> bound_rankless;
  std::vector<const PodRecord*> unbound;
};

Seats seats_of(const engine::PodSetAssignment& assignment,
               const std::vector<const PodRecord*>& members, bool fixed_ranks) {
  Seats seats;
  seats.slots = engine::expand_slots(assignment.nodes);
  for (const PodRecord* pod : members) {
    if (pod->terminal || pod->deletion || pod->pod_set != assignment.name.value()) continue;
    if (pod->node.empty()) {
      seats.unbound.push_back(pod);
    } else if (fixed_ranks && pod->rank) {
      seats.bound_ranks[*pod->rank] = pod->node;
    } else {
      seats.bound_rankless.push_back(pod->node);
    }
  }
  return seats;
}

/// Slots that no bound pod sits in, in the order of the plan.
std::vector<NodeName> free_slots(const Seats& seats) {
  std::vector<NodeName> free = seats.slots;
  const auto take = [&free](const NodeName& node) {
    const auto found = std::find(free.begin(), free.end(), node);
    if (found != free.end()) free.erase(found);
  };
  for (const auto& [rank, node] : seats.bound_ranks) take(node);
  for (const NodeName& node : seats.bound_rankless) take(node);
  return free;
}

}  // namespace

void Controller::Impl::watch_members(WorkloadEntry& entry, const OwnerState& owner, Instant now) {
  entry.barrier_held = false;
  if (const PreemptedMember* torn = torn_member(entry)) {
    ++stats_.gangs_torn;
    for (auto& [uid, member] : entry.preempted) member.handled = true;
    evict_ourselves(entry, {"Preempted", "",
                            fmt::format("kube-scheduler preempted its pod {}; the gang goes as a "
                                        "whole",
                                        torn->name)});
    return;
  }
  take_back_released(entry);
  if (!entry.in_flight) replace_misplaced(entry, owner, now);
  if (!entry.in_flight) watch_missing_nodes(entry, now);
  if (!entry.in_flight) tell_placed(entry, now);
}

const PreemptedMember* Controller::Impl::torn_member(const WorkloadEntry& entry) const {
  // A preempted pod may stay as a failed one for long after its gang was admitted again. Times have
  // whole seconds: when in doubt the gang goes, a torn one must not stay.
  const Instant reserved_at = entry.fed->quota_reserved_at.value_or(Instant{});
  for (const auto& [uid, member] : entry.preempted) {
    if (!member.handled && member.at >= reserved_at) return &member;
  }
  return nullptr;
}

void Controller::Impl::replace_misplaced(WorkloadEntry& entry, const OwnerState& owner,
                                         Instant now) {
  const std::vector<const PodRecord*> members = pods_.members(entry.owner_uid, entry.key.ns);
  for (const engine::PodSetAssignment& assignment : entry.fed->admission->pod_sets) {
    if (assignment.nodes.empty()) continue;
    const Seats seats = seats_of(assignment, members, owner.fixed_ranks);
    const auto node_of_rank = engine::assign_ranks(seats.slots, seats.bound_ranks);
    std::vector<NodeName> free = free_slots(seats);
    std::int64_t rankless = 0;
    for (const PodRecord* pod : seats.unbound) {
      if (owner.fixed_ranks && pod->rank) {
        const auto slot = node_of_rank.find(*pod->rank);
        if (slot == node_of_rank.end() || pod->pins.empty() || pod->pins.contains(slot->second)) {
          continue;
        }
        replace_pod(entry, owner, *pod, *pod->rank, now);
      } else {
        const std::int64_t slot_key = -1 - rankless++;
        const auto slot = std::find_if(free.begin(), free.end(), [pod](const NodeName& node) {
          return pod->pins.empty() || pod->pins.contains(node);
        });
        if (slot != free.end()) {
          free.erase(slot);
          continue;
        }
        if (free.empty()) continue;  // surplus: the extender refuses it
        replace_pod(entry, owner, *pod, slot_key, now);
      }
      if (entry.in_flight) return;
    }
  }
}

void Controller::Impl::replace_pod(WorkloadEntry& entry, const OwnerState& owner,
                                   const PodRecord& pod, std::int64_t slot_key, Instant now) {
  if (!hook_answers_ || pod.delete_sent) return;
  const bool counted = std::find(pod.finalizers.begin(), pod.finalizers.end(),
                                 owner.kind->pod_finalizer) != pod.finalizers.end();
  if (!counted) {
    // The finalizer went in the step before, within the same replacement.
    ++stats_.pods_replaced;
    entry.replaced_at[slot_key] = now;
    return delete_pod(entry, pod);
  }
  if (const auto last = entry.replaced_at.find(slot_key); last != entry.replaced_at.end()) {
    const Instant at = last->second + options_.replace_interval;
    if (now < at) return schedule(entry.key, at);
  }
  entry.replaced_at[slot_key] = now;
  std::vector<Json> kept;
  for (const std::string& finalizer : pod.finalizers) {
    if (finalizer != owner.kind->pod_finalizer) kept.push_back(Json::string(finalizer));
  }
  const Json metadata =
      Json::object({{"resourceVersion", Json::string(pod.resource_version)},
                    {"uid", Json::string(pod.uid.value())},
                    {"finalizers", kept.empty() ? Json::null() : Json::array(kept)}});
  InFlight what;
  what.workload = entry.key;
  what.object = pod.uid;
  entry.in_flight =
      outbox_.patch(WriteKind::kUnfinalizePod,
                    fmt::format("/api/v1/namespaces/{}/pods/{}", pod.key.ns, pod.key.name),
                    Json::object({{"metadata", metadata}}), std::move(what));
}

void Controller::Impl::take_back_released(WorkloadEntry& entry) {
  // The owner makes another pod in its place; with both running there would be one too many.
  for (const PodRecord* pod : pods_.members(entry.owner_uid, entry.key.ns)) {
    if (!pod->released || pod->terminal || pod->deletion || pod->delete_sent) continue;
    return delete_pod(entry, *pod);
  }
}

void Controller::Impl::watch_missing_nodes(WorkloadEntry& entry, Instant now) {
  bool missing = false;
  const std::vector<const PodRecord*> members = pods_.members(entry.owner_uid, entry.key.ns);
  const bool any_unbound = std::any_of(members.begin(), members.end(), [](const PodRecord* pod) {
    return !pod->terminal && !pod->deletion && pod->node.empty();
  });
  if (any_unbound) {
    for (const engine::PodSetAssignment& assignment : entry.fed->admission->pod_sets) {
      for (const engine::NodeCount& slots : assignment.nodes) {
        missing = missing || !nodes_.contains(slots.node);
      }
    }
  }
  if (!missing) {
    entry.node_missing_since.reset();
    return;
  }
  if (!entry.node_missing_since) entry.node_missing_since = now;
  const Instant at = *entry.node_missing_since + kMissingNodePatience;
  if (now < at) return schedule(entry.key, at);
  entry.node_missing_since.reset();
  evict_ourselves(entry, {"NodeFailures", "", "A node of its plan is gone and was not replaced"});
}

}  // namespace muster::controller

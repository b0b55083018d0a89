// Elastic gangs that wait for nodes: whose pods are created, and what their members are told when
// the gang has its plan.

#include "controller/impl.hpp"
#include "controller/names.hpp"

#include <fmt/format.h>

#include <utility>

namespace muster::controller {
namespace {

using kube::Json;

std::int64_t pods_of(const engine::Admission& admission) {
  std::int64_t pods = 0;
  for (const engine::PodSetAssignment& pod_set : admission.pod_sets) pods += pod_set.count;
  return pods;
}

bool has_plan(const engine::Admission& admission, const std::string& pod_set) {
  for (const engine::PodSetAssignment& assigned : admission.pod_sets) {
    if (assigned.name.value() == pod_set) return !assigned.nodes.empty();
  }
  return false;
}

}  // namespace

void Controller::Impl::update_window(const WorkloadEntry& entry) {
  const OwnerState* const owner = owner_of(entry);
  const bool held = owner != nullptr && entry.object && entry.fed && entry.fed->admission &&
                    is_reserved(*entry.object) && engine_.is_held(entry.key);
  // Who cannot be started yet does not keep those behind it waiting.
  const bool stuck =
      held && owner->suspended && (!owner->templates_mutable() || has_live_member(entry));
  if (!held || stuck) {
    window_.forget(entry.key);
  } else if (owner->suspended) {
    window_.wait(
        HeldTurn{-entry.fed->priority, entry.fed->quota_reserved_at.value_or(Instant{}), entry.key},
        pods_of(*entry.fed->admission));
  } else {
    window_.open(entry.key, pods_of(*entry.fed->admission));
  }
  if (const auto next = window_.next(); next && *next != entry.key) mark(*next);
}

bool Controller::Impl::may_be_created(const WorkloadEntry& entry) const {
  return !engine_.is_held(entry.key) || window_.next() == entry.key;
}

void Controller::Impl::tell_placed(WorkloadEntry& entry, Instant now) {
  for (const PodRecord* const pod : pods_.members(entry.owner_uid, entry.key.ns)) {
    // One that is pinned to its node was asked about with its plan; kube-scheduler looks at one
    // that it found no node for only after an event, and a change of the pod is one.
    const bool is_told = pod->placed || !pod->unschedulable || !pod->pins.empty();
    if (is_told || pod->terminal || pod->deletion || !pod->node.empty()) continue;
    if (!has_plan(*entry.fed->admission, pod->pod_set)) continue;
    if (!may_start(entry, now)) return;
    const Json metadata = Json::object(
        {{"uid", Json::string(pod->uid.value())},
         {"annotations", Json::object({{kPlacedAnnotation, Json::string(format_rfc3339(now))}})}});
    InFlight what;
    what.workload = entry.key;
    what.object = pod->uid;
    entry.in_flight =
        outbox_.patch(WriteKind::kTellPlaced,
                      fmt::format("/api/v1/namespaces/{}/pods/{}", pod->key.ns, pod->key.name),
                      Json::object({{"metadata", metadata}}), std::move(what));
    return;
  }
}

}  // namespace muster::controller

// Plain pods: they wait behind our gate, start by losing it, and stop by being deleted.

#include "controller/impl.hpp"
#include "controller/names.hpp"

#include <fmt/format.h>

#include <utility>

namespace muster::controller {
namespace {

using kube::Json;

std::string pod_path(const PodKey& key) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", key.ns, key.name);
}

}  // namespace

void Controller::Impl::reconcile_pod(WorkloadEntry& entry, const PodRecord& pod, Instant now) {
  if (!entry.object) return create_for_pod(entry, pod);
  if (pod.terminal) {
    return write_finish(entry, pod.phase == "Succeeded", "The pod ended: " + pod.phase, now);
  }
  if (settle_eviction(entry, now)) return;
  const bool reserved = is_reserved(*entry.object);
  if (reserved && kube::is_true(entry.object->conditions, "Evicted")) {
    if (pod.gated) return write_release(entry, now);  // never started: it goes on waiting
    if (!pod.deletion && !pod.delete_sent) {
      if (wait_for_checkpoint(entry, now)) return;
      return delete_pod(entry, pod);
    }
    // On a node that does not answer the pod may stay for long; its quota need not.
    if (members_gone(entry, now)) delete_workload_object(entry);
    return;
  }
  if (pod.deletion) return;
  if (!pod.gated && !reserved) {
    // It got past its gate without our leave.
    if (!pod.delete_sent) delete_pod(entry, pod);
    return;
  }
  if (follow_pod(entry, pod)) return;
  if (entry.admit) return write_admission(entry, now);
  if (!reserved) return write_pending(entry, now);
  if (pod.gated) return start_pod(entry, pod, now);
  if (!pod.node.empty() || pod.pins.empty()) return;
  for (const engine::PodSetAssignment& assignment : entry.fed->admission->pod_sets) {
    for (const engine::NodeCount& slots : assignment.nodes) {
      if (pod.pins.contains(slots.node)) continue;
      // A pin cannot be taken back: only a new pod can follow the new plan.
      return evict_ourselves(entry, {"NodeFailures", "", "Its plan moved and its pin cannot"});
    }
  }
}

void Controller::Impl::create_for_pod(WorkloadEntry& entry, const PodRecord& pod) {
  if (pod.terminal || pod.deletion || pod.delete_sent || is_unreadable(entry)) return;
  if (!pod.gated) return delete_pod(entry, pod);  // its Workload is gone, and with it its quota
  const auto decoded_pod = kube::decode_pod(pod.object);
  if (!decoded_pod) return;
  create_workload(entry, workload_for_pod(*decoded_pod, pod.object, priorities_));
}

bool Controller::Impl::follow_pod(WorkloadEntry& entry, const PodRecord& pod) {
  if (!pod.gated) return false;
  const auto decoded_pod = kube::decode_pod(pod.object);
  if (!decoded_pod) return false;
  const Json desired = workload_for_pod(*decoded_pod, pod.object, priorities_);
  const auto wanted = kube::decode_workload(desired);
  if (!wanted || wanted->pod_sets.empty() || entry.object->pod_sets.empty()) return false;
  const bool same_shape = to_pod_set(pod.key.ns, wanted->pod_sets.front(), lookup()) ==
                          to_pod_set(pod.key.ns, entry.object->pod_sets.front(), lookup());
  const Json pod_sets = desired.get("spec", "podSets");
  if (is_reserved(*entry.object)) {
    if (same_shape) return false;
    // A resize while it waited: the plan is not for this pod any more.
    delete_workload_object(entry);
    return true;
  }
  if ((same_shape || pod_sets == entry.written_pod_sets) &&
      wanted->queue_name == entry.object->queue_name &&
      wanted->priority == entry.object->priority) {
    return false;
  }
  if (entry.admit) {
    entry.admit.reset();
    send(engine::AdmissionRefused{entry.key}, now_);
  }
  const Json class_ref = desired.get("spec", "priorityClassRef");
  update_workload(
      entry, Json::object({{"podSets", pod_sets},
                           {"queueName", desired.get("spec", "queueName")},
                           {"priority", desired.get("spec", "priority")},
                           {"priorityClassRef", class_ref.present() ? class_ref : Json::null()}}));
  return true;
}

void Controller::Impl::start_pod(WorkloadEntry& entry, const PodRecord& pod, Instant now) {
  const std::optional<PodSetPins> pins = pins_of(entry, kMainPodSet);
  if (!pins || !may_start(entry, now)) return;
  const Json patch = ungate_patch(pod.object, *pins);
  const Json metadata =
      patch.get("metadata").with("resourceVersion", Json::string(pod.resource_version));
  InFlight what;
  what.workload = entry.key;
  what.object = pod.uid;
  entry.in_flight = outbox_.patch(WriteKind::kUngatePod, pod_path(pod.key),
                                  patch.with("metadata", metadata), std::move(what));
}

void Controller::Impl::delete_pod(WorkloadEntry& entry, const PodRecord& pod) {
  if (PodRecord* record = pods_.find(pod.uid)) record->delete_sent = true;
  InFlight what;
  what.workload = entry.key;
  what.object = pod.uid;
  entry.in_flight =
      outbox_.remove(WriteKind::kDeletePod, pod_path(pod.key), pod.uid, std::move(what));
}

}  // namespace muster::controller

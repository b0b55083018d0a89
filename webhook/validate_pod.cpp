// Pod: ways round the quota, at creation and later.

#include "webhook/fit.hpp"
#include "webhook/labels.hpp"
#include "webhook/scope.hpp"
#include "webhook/syntax.hpp"
#include "webhook/validate.hpp"

#include <fmt/format.h>

#include <memory>

namespace muster::webhook {
namespace {

using engine::Snapshot;
using engine::WorkloadView;
using kube::Json;

std::string at_label(const char* key) {
  return fmt::format("metadata.labels[{}]", key);
}
std::string at_annotation(const char* key) {
  return fmt::format("metadata.annotations[{}]", key);
}

bool has_gate(const Json& pod) {
  const Json gates = pod.get("spec", "schedulingGates");
  for (std::size_t i = 0; i < gates.size(); ++i) {
    if (gates.at(i).get("name").string_or("") == kAdmissionGate) return true;
  }
  return false;
}

std::string_view label(const Json& pod, const char* key) {
  return pod.get("metadata", "labels", key).string_or("");
}

void check_scheduling(const Json& pod, const WebhookOptions& options, FieldErrors& errors) {
  const std::string_view node = pod.get("spec", "nodeName").string_or("");
  if (!node.empty()) {
    errors.push_back({"spec.nodeName", FieldErrorCode::kForbidden,
                      fmt::format("\"{}\": a queued pod gets its node when it is admitted; leave "
                                  "nodeName out (to choose among nodes use nodeSelector)",
                                  node)});
  }
  const std::string scheduler(pod.get("spec", "schedulerName").string_or(""));
  if (!scheduler.empty() && !options.scheduler_names.contains(scheduler) &&
      scheduler != options.second_scheduler) {
    errors.push_back(
        {"spec.schedulerName", FieldErrorCode::kForbidden,
         fmt::format("\"{}\" does not follow muster's plans; leave schedulerName out", scheduler)});
  }
}

/// The marks of a started workload on a pod that is not one of its members.
void check_copies(const kube::ObjectMeta& meta, const std::shared_ptr<const WorkloadView>& owner,
                  FieldErrors& errors) {
  const std::string* const pod_set = meta.find_label(kPodSetLabel);
  const std::string* const workload = meta.find_annotation(kWorkloadAnnotation);
  constexpr const char* kWhy =
      "marks the pods of an admitted workload, which its owner's controller creates; leave it out "
      "and give the pod a queue of its own";
  if (!owner) {
    if (pod_set != nullptr) {
      errors.push_back({at_label(kPodSetLabel), FieldErrorCode::kForbidden, kWhy});
    }
    if (workload != nullptr) {
      errors.push_back({at_annotation(kWorkloadAnnotation), FieldErrorCode::kForbidden, kWhy});
    }
    return;
  }
  if (workload != nullptr && *workload != owner->key.name) {
    errors.push_back({at_annotation(kWorkloadAnnotation), FieldErrorCode::kForbidden,
                      fmt::format("\"{}\" is not the workload of the pod's owner", *workload)});
  }
}

/// A pod that somebody else than the Job controller puts into a queued Job: it would take the slot,
/// and the quota, of one that was admitted. `before`: the pod as it was; nullptr: it is new.
void check_owner(const AdmissionRequest& request, const kube::ObjectMeta& meta,
                 const kube::ObjectMeta* before, const Snapshot& snapshot,
                 const WebhookOptions& options, FieldErrors& errors) {
  const kube::OwnerReference* const job = controlling_job(meta);
  if (job == nullptr || options.pod_controllers.contains(request.username)) return;
  const kube::OwnerReference* const former = before == nullptr ? nullptr : controlling_job(*before);
  if (former != nullptr && former->uid == job->uid) return;
  if (!find_owner_workload(meta, snapshot) && !is_given_over(request.ns, snapshot)) return;
  errors.push_back(
      {"metadata.ownerReferences", FieldErrorCode::kForbidden,
       fmt::format("only the Job controller puts pods into Job {}; give the pod a queue "
                   "of its own",
                   job->name)});
}

void check_new_pod(const AdmissionRequest& request, const kube::ObjectMeta& meta,
                   const Snapshot& snapshot, const WebhookOptions& options, Validation& result) {
  const Json& pod = request.object;
  const auto owner = find_owner_workload(meta, snapshot);
  const Queueing queueing = queueing_of_pod(meta, request.ns, snapshot, options);
  if (queueing.managed || owner) check_scheduling(pod, options, result.errors);
  check_copies(meta, owner, result.errors);
  check_owner(request, meta, nullptr, snapshot, options, result.errors);
  const bool native_group = !pod.get("spec", "schedulingGroup").missing();
  if (!queueing.managed || native_group) return;
  if (!has_gate(pod) && pod.get("spec", "nodeName").string_or("").empty()) {
    result.errors.push_back({"spec.schedulingGates", FieldErrorCode::kForbidden,
                             fmt::format("a queued pod starts behind the gate {}, which muster "
                                         "sets; another webhook must have removed it",
                                         kAdmissionGate)});
  }
  const std::string queue = label_of(meta, kQueueNameLabel);
  if (!queue.empty() && !is_dns_subdomain(queue)) {
    result.errors.push_back({at_label(kQueueNameLabel), FieldErrorCode::kInvalid,
                             fmt::format("\"{}\" is no name of a LocalQueue", queue)});
  }
  check_muster_metadata(pod.get("metadata"), "metadata", result.errors);
  if (const auto decoded = kube::decode_pod(pod)) {
    result.warnings =
        warn_about_queue(request.ns, queueing.queue, decoded->spec, 1, snapshot, options);
  }
  if (!label_of(meta, kPodGroupLabel).empty()) {
    result.warnings.emplace_back(
        "groups of pods (kueue.x-k8s.io/pod-group-name) are not served yet: the pod waits behind "
        "its "
        "gate; use a Job with as many pods");
  }
  if (pod.get("spec", "resourceClaims").size() > 0) {
    result.warnings.emplace_back("spec.resourceClaims are not counted against any quota");
  }
}

/// Null, absent and empty are one to the API.
bool is_same(const Json& a, const Json& b) {
  const auto is_empty = [](const Json& value) {
    return value.missing() || ((value.is_array() || value.is_object()) && value.size() == 0);
  };
  return (is_empty(a) && is_empty(b)) || a == b;
}

void check_gated_pod(const AdmissionRequest& request, FieldErrors& errors) {
  if (!has_gate(request.object)) {
    errors.push_back({"spec.schedulingGates", FieldErrorCode::kForbidden,
                      "the pod waits in its queue; muster removes its gate when it is admitted"});
  }
  for (const char* field : {"nodeSelector", "affinity", "tolerations"}) {
    if (is_same(request.object.get("spec", field), request.old_object.get("spec", field))) continue;
    errors.push_back({fmt::format("spec.{}", field), FieldErrorCode::kForbidden,
                      "cannot change while the pod waits: its place is planned from it; create the "
                      "pod anew"});
  }
  if (label(request.object, kQueueNameLabel).empty() &&
      !label(request.old_object, kQueueNameLabel).empty()) {
    errors.push_back({at_label(kQueueNameLabel), FieldErrorCode::kForbidden,
                      "cannot be removed from a pod that waits; delete the pod instead"});
  }
}

void check_changed_pod(const AdmissionRequest& request, const kube::ObjectMeta& meta,
                       const Snapshot& snapshot, const WebhookOptions& options,
                       FieldErrors& errors) {
  const Json& now = request.object;
  const Json& before = request.old_object;
  const auto former = kube::decode_meta(before);
  check_owner(request, meta, former ? &*former : nullptr, snapshot, options, errors);
  const bool gated = has_gate(before);
  const bool queues_itself = gated || label(before, kManagedLabel) == "true";
  if (gated) check_gated_pod(request, errors);
  if (queues_itself && !gated && label(now, kQueueNameLabel) != label(before, kQueueNameLabel)) {
    errors.push_back({at_label(kQueueNameLabel), FieldErrorCode::kForbidden,
                      "cannot change while the pod runs"});
  }
  if (queues_itself && !gated) {
    check_same_protection(before, now, "cannot change while the pod runs", errors);
  }
  for (const char* key : {kManagedLabel, kPodSetLabel}) {
    if (now.get("metadata", "labels", key) == before.get("metadata", "labels", key)) continue;
    errors.push_back({at_label(key), FieldErrorCode::kForbidden, "is muster's to set and remove"});
  }
  const bool ours = queues_itself || find_owner_workload(meta, snapshot) ||
                    !label(before, kPodSetLabel).empty() || !label(now, kPodSetLabel).empty();
  // By these its Job knows it: without them it would run on beside its replacement.
  for (const char* key : {"batch.kubernetes.io/controller-uid", "controller-uid"}) {
    const Json mark = before.get("metadata", "labels", key);
    if (!ours || mark.missing() || now.get("metadata", "labels", key) == mark) continue;
    errors.push_back({at_label(key), FieldErrorCode::kForbidden,
                      "cannot change while the Job of the pod is queued by muster"});
  }
  const Json workload_now = now.get("metadata", "annotations", kWorkloadAnnotation);
  if (ours && !(workload_now == before.get("metadata", "annotations", kWorkloadAnnotation))) {
    errors.push_back({at_annotation(kWorkloadAnnotation), FieldErrorCode::kForbidden,
                      "is muster's to set and remove"});
  }
}

void check_resize(const AdmissionRequest& request, const kube::ObjectMeta& meta,
                  const Snapshot& snapshot, FieldErrors& errors) {
  const Json& before = request.old_object;
  const bool ours = has_gate(before) || label(before, kManagedLabel) == "true" ||
                    !label(before, kPodSetLabel).empty() || find_owner_workload(meta, snapshot) ||
                    snapshot.find_workload(meta.uid);
  if (!ours) return;
  const auto decoded_now = kube::decode_pod_spec(request.object.get("spec"));
  const auto decoded_before = kube::decode_pod_spec(before.get("spec"));
  if (!decoded_now || !decoded_before) {
    const Error& error = decoded_now ? decoded_before.error() : decoded_now.error();
    errors.push_back({"spec", FieldErrorCode::kInvalid, error.message});
    return;
  }
  const auto admitted = kube::effective_requests(*decoded_before);
  for (const auto& [resource, quantity] : kube::effective_requests(*decoded_now)) {
    const auto had = admitted.find(resource);
    const Quantity former = had == admitted.end() ? Quantity() : had->second;
    if (quantity.compare(former) <= 0) continue;
    errors.push_back(
        {"spec.containers", FieldErrorCode::kForbidden,
         fmt::format("{} {} in all, but {} were admitted; muster does not let a queued "
                     "pod grow",
                     quantity.to_string(), resource, former.to_string())});
  }
}

}  // namespace

void judge_pod(const AdmissionRequest& request, const Snapshot& snapshot,
               const WebhookOptions& options, Validation& result) {
  if (!request.sub_resource.empty() && request.sub_resource != "resize") return;
  if (!is_in_scope(request.ns, snapshot, options)) return;
  const auto meta = kube::decode_meta(request.object);
  if (!meta) {
    result.errors.push_back({"metadata", FieldErrorCode::kInvalid, meta.error().message});
    return;
  }
  if (request.operation == Operation::kCreate) {
    check_new_pod(request, *meta, snapshot, options, result);
    return;
  }
  // Who may write these is muster alone; while its own name is unknown nobody can be told apart.
  if (options.own_identities.empty()) return;
  if (request.sub_resource == "resize")
    check_resize(request, *meta, snapshot, result.errors);
  else
    check_changed_pod(request, *meta, snapshot, options, result.errors);
}

}  // namespace muster::webhook

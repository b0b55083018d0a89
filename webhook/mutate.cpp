#include "webhook/mutate.hpp"

#include "kube/codec/objects.hpp"
#include "webhook/json_edit.hpp"
#include "webhook/labels.hpp"
#include "webhook/pin.hpp"
#include "webhook/scope.hpp"

#include <array>
#include <string_view>

namespace muster::webhook {
namespace {

using engine::Snapshot;
using kube::Json;
using Path = std::initializer_list<std::string_view>;

Json get(const Json& root, Path path) {
  return get_path(root, std::span(path.begin(), path.size()));
}
Json set(const Json& root, Path path, const Json& value) {
  return with_path(root, std::span(path.begin(), path.size()), value);
}

constexpr std::array<std::string_view, 3> kJobPodSpec = {"spec", "template", "spec"};
constexpr std::array<std::string_view, 1> kPodSpec = {"spec"};
Json set_label(const Json& object, std::string_view key, std::string_view value) {
  return set(object, {"metadata", "labels", key}, Json::string(value));
}

/// The pod spec (at `spec` in `object`) with the class muster-managed. Priority and policy go: the
/// Priority plugin fills them in from the class and refuses any that differ (reference: extender
/// protocol, 5.1). The class that was there is kept in the object's own annotation.
Json protect_priority(const Json& object, std::span<const std::string_view> spec_path) {
  const Json spec = get_path(object, spec_path);
  const Json former = spec.get("priorityClassName");
  if (former.string_or("") == kManagedPriorityClass) return object;
  Json changed = with_path(object, spec_path,
                           spec.with("priorityClassName", Json::string(kManagedPriorityClass))
                               .with("priority", Json())
                               .with("preemptionPolicy", Json()));
  if (!former.string_or("").empty()) {
    changed = set(changed, {"metadata", "annotations", kOriginalPriorityClass}, former);
  }
  return changed;
}

bool has_scheduling_group(const Json& pod_spec) {
  return !pod_spec.get("schedulingGroup").missing();
}
constexpr const char* kSchedulingGroupWarning =
    "spec.schedulingGroup: pods of a native pod group are left to kube-scheduler; muster neither "
    "queues them nor counts them against a quota";

Mutation mutate_new_job(const AdmissionRequest& request, const kube::ObjectMeta& meta,
                        const Snapshot& snapshot, const WebhookOptions& options) {
  Mutation mutation{request.object, {}};
  const Queueing queueing = queueing_of_job(meta, request.ns, snapshot, options);
  if (!queueing.managed) return mutation;
  if (has_scheduling_group(get_path(request.object, kJobPodSpec))) {
    mutation.warnings.emplace_back(kSchedulingGroupWarning);
    return mutation;
  }
  Json& job = mutation.object;
  if (queueing.defaulted) job = set_label(job, kQueueNameLabel, queueing.queue);
  if (!get(job, {"spec", "suspend"}).bool_or(false)) {
    job = set(job, {"spec", "suspend"}, Json::boolean(true));
  }
  if (options.protect_priority) job = protect_priority(job, kJobPodSpec);
  return mutation;
}

Mutation mutate_changed_job(const AdmissionRequest& request, const WebhookOptions& options) {
  Mutation mutation{request.object, {}};
  const auto class_of = [](const Json& job) {
    return get_path(job, kJobPodSpec).get("priorityClassName").string_or("");
  };
  const bool was_protected = class_of(request.old_object) == kManagedPriorityClass &&
                             class_of(request.object) != kManagedPriorityClass;
  if (was_protected && options.protect_priority) {
    mutation.object = protect_priority(request.object, kJobPodSpec);
  }
  return mutation;
}

bool has_gate(const Json& pod) {
  const Json gates = get(pod, {"spec", "schedulingGates"});
  for (std::size_t i = 0; i < gates.size(); ++i) {
    if (gates.at(i).get("name").string_or("") == kAdmissionGate) return true;
  }
  return false;
}

Json add_gate(const Json& pod) {
  const Json gates = get(pod, {"spec", "schedulingGates"});
  std::vector<Json> list;
  for (std::size_t i = 0; i < gates.size(); ++i) list.push_back(gates.at(i));
  list.push_back(Json::object({{"name", Json::string(kAdmissionGate)}}));
  return set(pod, {"spec", "schedulingGates"}, Json::array(list));
}

Json queue_pod(const Json& object, const Queueing& queueing, const WebhookOptions& options) {
  Json pod = object;
  if (queueing.defaulted) pod = set_label(pod, kQueueNameLabel, queueing.queue);
  if (get(pod, {"metadata", "labels", kManagedLabel}).string_or("") != "true") {
    pod = set_label(pod, kManagedLabel, "true");
  }
  if (!has_gate(pod)) pod = add_gate(pod);
  if (options.protect_priority) pod = protect_priority(pod, kPodSpec);
  return pod;
}

bool lists_any(const Json& quantities, const std::set<ResourceName>& resources) {
  for (const auto& [name, quantity] : quantities.members()) {
    if (resources.contains(ResourceName(name))) return true;
  }
  return false;
}

/// As kube-scheduler decides whether to ask an extender: containers and init containers, requests
/// and limits (reference: extender protocol, 2.1).
bool asks_for_managed(const Json& pod, const std::set<ResourceName>& resources) {
  if (resources.empty()) return true;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Json containers = get(pod, {"spec", list});
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const Json wanted = containers.at(i).get("resources");
      if (lists_any(wanted.get("requests"), resources)) return true;
      if (lists_any(wanted.get("limits"), resources)) return true;
    }
  }
  return false;
}

Json give_to_second_scheduler(const Json& pod, const WebhookOptions& options) {
  const std::string_view now = get(pod, {"spec", "schedulerName"}).string_or("");
  const bool free_to_choose = now.empty() || now == "default-scheduler";
  const bool bound = !get(pod, {"spec", "nodeName"}).string_or("").empty();
  if (!free_to_choose || bound || !asks_for_managed(pod, options.managed_resources)) return pod;
  return set(pod, {"spec", "schedulerName"}, Json::string(options.second_scheduler));
}

Mutation mutate_new_pod(const AdmissionRequest& request, const kube::ObjectMeta& meta,
                        const Snapshot& snapshot, const WebhookOptions& options) {
  Mutation mutation{request.object, {}};
  Json& pod = mutation.object;
  const Queueing queueing = queueing_of_pod(meta, request.ns, snapshot, options);
  if (queueing.managed && has_scheduling_group(pod.get("spec"))) {
    mutation.warnings.emplace_back(kSchedulingGroupWarning);
  } else if (queueing.managed && get(pod, {"spec", "nodeName"}).string_or("").empty()) {
    // With a node preset the API server would refuse the gate in its own words; validate says why.
    pod = queue_pod(pod, queueing, options);
  } else if (const auto node = find_pinned_node(meta, snapshot)) {
    pod = pin_pod(pod, *node);
  }
  if (!options.second_scheduler.empty()) pod = give_to_second_scheduler(pod, options);
  return mutation;
}

}  // namespace

Result<Mutation> mutate(const AdmissionRequest& request, const Snapshot& snapshot,
                        const WebhookOptions& options) {
  const bool is_job = request.kind == GroupKind{"batch", "Job"};
  const bool is_pod = request.kind == GroupKind{"", "Pod"};
  if (!request.sub_resource.empty() || (!is_job && !is_pod)) return Mutation{request.object, {}};
  if (request.operation == Operation::kUpdate && is_job) {
    return mutate_changed_job(request, options);
  }
  if (request.operation != Operation::kCreate) return Mutation{request.object, {}};
  const auto meta = kube::decode_meta(request.object);
  if (!meta) return fail(meta.error().with_context("request.object"));
  return is_job ? mutate_new_job(request, *meta, snapshot, options)
                : mutate_new_pod(request, *meta, snapshot, options);
}

}  // namespace muster::webhook

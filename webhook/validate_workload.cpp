// Workload: what its CRD schema cannot say, and who may write its status.
// Rules: queueing semantics (i), webhooks.

#include "kube/codec/objects.hpp"
#include "webhook/labels.hpp"
#include "webhook/scope.hpp"
#include "webhook/syntax.hpp"
#include "webhook/validate.hpp"

#include <fmt/format.h>

#include <set>

namespace muster::webhook {
namespace {

using kube::Json;

void check_requests(const Json& container, const std::string& path, FieldErrors& errors) {
  for (const std::string_view list : {"requests", "limits"}) {
    for (const auto& [resource, quantity] : container.get("resources", list).members()) {
      const std::string at = fmt::format("{}.resources.{}[{}]", path, list, resource);
      check_quantity(quantity, at, errors);
      if (resource == "pods") {
        errors.push_back({at, FieldErrorCode::kForbidden,
                          "\"pods\" is counted by the queue itself and cannot be asked for"});
      }
    }
  }
}

void check_pod_set(const Json& pod_set, const std::string& path, FieldErrors& errors) {
  const Json pod_template = pod_set.get("template");
  check_labels(pod_template.get("metadata", "labels"), path + ".template.metadata.labels", errors);
  check_annotations(pod_template.get("metadata", "annotations"),
                    path + ".template.metadata.annotations", errors);
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Json containers = pod_template.get("spec", list);
    for (std::size_t i = 0; i < containers.size(); ++i) {
      check_requests(containers.at(i), fmt::format("{}.template.spec.{}[{}]", path, list, i),
                     errors);
    }
  }
}

void check_pod_sets(const Json& pod_sets, FieldErrors& errors) {
  std::set<std::string> names;
  bool has_min_count = false;
  for (std::size_t i = 0; i < pod_sets.size(); ++i) {
    const std::string path = fmt::format("spec.podSets[{}]", i);
    const Json pod_set = pod_sets.at(i);
    const std::string name(pod_set.get("name").string_or(""));
    if (!names.insert(name).second) {
      errors.push_back({path + ".name", FieldErrorCode::kDuplicate,
                        fmt::format("\"{}\" is the name of another pod set", name)});
    }
    if (!pod_set.get("minCount").missing()) {
      if (has_min_count) {
        errors.push_back({path + ".minCount", FieldErrorCode::kInvalid,
                          "only one pod set of a Workload can be admitted in part"});
      }
      has_min_count = true;
    }
    check_pod_set(pod_set, path, errors);
  }
}

bool has_quota(const Json& workload) {
  const Json conditions = workload.get("status", "conditions");
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.at(i).get("type").string_or("") == "QuotaReserved") {
      return conditions.at(i).get("status").string_or("") == "True";
    }
  }
  return false;
}

/// The Job or pod that controls it, whose Workload muster makes; empty: neither does.
Uid our_owner(const Json& workload) {
  const auto meta = kube::decode_meta(workload);
  if (!meta) return {};
  if (const kube::OwnerReference* const job = controlling_job(*meta)) return job->uid;
  const kube::OwnerReference* const owner = meta->controller_owner();
  const bool is_pod = owner != nullptr && owner->api_version == "v1" && owner->kind == "Pod";
  return is_pod ? owner->uid : Uid();
}

/// Order, queue and pods come from the owner; only whether it may run at all is said here.
void check_follows_owner(const AdmissionRequest& request, FieldErrors& errors) {
  const Json now = request.object.get("spec");
  const Json before = request.old_object.get("spec");
  std::set<std::string> fields;
  for (const Json& spec : {now, before}) {
    for (const auto& [name, value] : spec.members()) fields.emplace(name);
  }
  fields.erase("active");
  for (const std::string& field : fields) {
    if (now.get(field) == before.get(field)) continue;
    errors.push_back({fmt::format("spec.{}", field), FieldErrorCode::kForbidden,
                      "follows the owner of the Workload; change that instead (here only "
                      "spec.active is free)"});
  }
}

/// Controllers of admission checks report there; all else is decided by the engine.
Json without_checks(const Json& status) {
  return status.is_object() ? status.with("admissionChecks", Json()) : Json::object({});
}

}  // namespace

FieldErrors check_workload(const Json& object) {
  FieldErrors errors;
  check_pod_sets(object.get("spec", "podSets"), errors);
  return errors;
}

void judge_workload(const AdmissionRequest& request, const WebhookOptions& options,
                    Validation& result) {
  if (request.sub_resource == "status") {
    if (options.own_identities.empty()) return;
    if (without_checks(request.object.get("status")) ==
        without_checks(request.old_object.get("status"))) {
      return;
    }
    result.errors.push_back(
        {"status", FieldErrorCode::kForbidden,
         "only muster writes the status of a Workload (others: status.admissionChecks); to stop "
         "one set spec.active to false, to let it go first change the priority class of its "
         "owner"});
    return;
  }
  if (!request.sub_resource.empty()) return;
  if (request.operation == Operation::kUpdate && has_quota(request.old_object)) {
    check_same_protection(
        request.old_object, request.object,
        "cannot change while quota is reserved by it; set spec.active to false first",
        result.errors);
  }
  if (options.own_identities.empty()) return;
  const Uid owner = our_owner(request.object);
  const Uid former_owner = our_owner(request.old_object);
  if (!owner.empty() && owner != former_owner) {
    result.errors.push_back(
        {"metadata.ownerReferences", FieldErrorCode::kForbidden,
         "muster makes the Workload of a Job or pod; give that a queue instead"});
  }
  if (request.operation != Operation::kUpdate) return;
  const auto job_uid = [](const Json& workload) {
    return workload.get("metadata", "labels", kJobUidLabel).string_or("");
  };
  if (job_uid(request.object) != job_uid(request.old_object)) {
    result.errors.push_back({fmt::format("metadata.labels[{}]", kJobUidLabel),
                             FieldErrorCode::kForbidden, "is muster's to set and remove"});
  }
  if (!former_owner.empty()) {
    check_follows_owner(request, result.errors);
  } else if (has_quota(request.old_object) && !(request.object.get("spec", "podSets") ==
                                                request.old_object.get("spec", "podSets"))) {
    result.errors.push_back(
        {"spec.podSets", FieldErrorCode::kForbidden,
         "cannot change while quota is reserved for them; set spec.active to false first"});
  }
}

}  // namespace muster::webhook

// Workload: what its CRD schema cannot say, and who may write its status.
// Rules: queueing semantics (i), webhooks.

#include "kube/codec/objects.hpp"
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
         "one set spec.active to false, to let it go first change its priority class"});
    return;
  }
  if (!request.sub_resource.empty()) return;
  const Json pod_sets = request.object.get("spec", "podSets");
  const Json former = request.old_object.get("spec", "podSets");
  if (request.operation != Operation::kUpdate || pod_sets == former) return;
  const auto former_meta = kube::decode_meta(request.old_object);
  if (former_meta && former_meta->controller_owner() != nullptr) {
    result.errors.push_back({"spec.podSets", FieldErrorCode::kForbidden,
                             "follow the owner of the Workload; change that instead"});
  } else if (has_quota(request.old_object)) {
    result.errors.push_back(
        {"spec.podSets", FieldErrorCode::kForbidden,
         "cannot change while quota is reserved for them; set spec.active to false first"});
  }
}

}  // namespace muster::webhook

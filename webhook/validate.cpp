#include "webhook/validate.hpp"

#include "webhook/syntax.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::webhook {
namespace {

using engine::Snapshot;
using kube::Json;

FieldErrors check_queueing_object(const std::string& kind, const Json& object) {
  FieldErrors errors;
  if (!object.is_object()) return errors;
  if (kind == "ClusterQueue") errors = check_cluster_queue(object);
  if (kind == "Cohort") errors = check_cohort(object);
  if (kind == "LocalQueue") errors = check_local_queue(object);
  if (kind == "ResourceFlavor") errors = check_resource_flavor(object);
  if (kind == "Workload") errors = check_workload(object);
  check_muster_metadata(object.get("metadata"), "metadata", errors);
  return errors;
}

void warn_about_object(const AdmissionRequest& request, const Snapshot& snapshot,
                       std::vector<std::string>& warnings) {
  const Json spec = request.object.get("spec");
  if (request.kind.kind == "ClusterQueue" && !spec.get("concurrentAdmissionPolicy").missing()) {
    warnings.emplace_back(
        "spec.concurrentAdmissionPolicy is not served: workloads have one variant only");
  }
  if (request.kind.kind == "LocalQueue" && snapshot.queues) {
    const ClusterQueueName queue(spec.get("clusterQueue").string_or(""));
    if (!snapshot.queues->cluster_queues.contains(queue)) {
      warnings.push_back(
          fmt::format("ClusterQueue {} does not exist: what is queued here waits for it", queue));
    }
  }
}

void validate_queueing_object(const AdmissionRequest& request, const Snapshot& snapshot,
                              const WebhookOptions& options, Validation& result) {
  const std::string& kind = request.kind.kind;
  const bool own = options.own_identities.contains(request.username);
  if (kind == "Workload" && own) return;
  if (kind == "Workload") judge_workload(request, options, result);
  if (!request.sub_resource.empty()) return;
  add_news(check_queueing_object(kind, request.object),
           check_queueing_object(kind, request.old_object), result.errors);
  warn_about_object(request, snapshot, result.warnings);
}

}  // namespace

void add_news(const FieldErrors& now, const FieldErrors& before, FieldErrors& errors) {
  std::copy_if(now.begin(), now.end(), std::back_inserter(errors), [&](const FieldError& error) {
    return std::find(before.begin(), before.end(), error) == before.end();
  });
}

Validation validate(const AdmissionRequest& request, const Snapshot& snapshot,
                    const WebhookOptions& options) {
  Validation result;
  if (request.operation != Operation::kCreate && request.operation != Operation::kUpdate) {
    return result;
  }
  if (!request.object.get("metadata", "deletionTimestamp").missing()) return result;
  const bool own = options.own_identities.contains(request.username);
  if (request.kind == GroupKind{"batch", "Job"} && request.sub_resource.empty()) {
    if (!own) judge_job(request, snapshot, options, result);
  } else if (request.kind == GroupKind{"", "Pod"}) {
    if (!own) judge_pod(request, snapshot, options, result);
  } else if (request.kind.group == "kueue.x-k8s.io") {
    validate_queueing_object(request, snapshot, options, result);
  }
  return result;
}

}  // namespace muster::webhook

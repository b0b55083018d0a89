// Jobs and nodes.

#include "kube/codec/object_parts.hpp"

#include <algorithm>

namespace muster::kube {

Result<Job> decode_job(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    Job result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    const auto parallelism = spec.get("parallelism").optional_integer(0, Reader::kInt32Max);
    result.parallelism = parallelism.value_or(1);
    result.completions = spec.get("completions").optional_integer(0, Reader::kInt32Max);
    // The API server's default when neither is given; parallelism alone makes a work queue.
    if (!parallelism && !result.completions) result.completions = 1;
    result.indexed = spec.get("completionMode").string() == "Indexed";
    result.suspend = spec.get("suspend").boolean(false);
    result.managed_by = spec.get("managedBy").string();
    const Reader pod_template = spec.get("template");
    result.pod_template = read_pod_template(pod_template);
    const Reader status = root.get("status");
    result.active = status.get("active").count(0);
    result.ready = status.get("ready").count(0);
    result.succeeded = status.get("succeeded").count(0);
    result.failed = status.get("failed").count(0);
    result.terminating = status.get("terminating").count(0);
    result.start_time = status.get("startTime").time();
    const Reader conditions = status.get("conditions");
    result.conditions = read_conditions(conditions);
    return result;
  });
}

std::int64_t Job::pod_count() const {
  return completions ? std::min(parallelism, *completions) : parallelism;
}

bool Job::fixed_ranks() const {
  return indexed && completions && *completions == parallelism;
}

bool Job::finished() const {
  return is_true(conditions, "Complete") || is_true(conditions, "Failed");
}

Result<Node> decode_node(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    Node result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    result.unschedulable = spec.get("unschedulable").boolean(false);
    const Reader taints = spec.get("taints");
    result.taints = read_taints(taints);
    const Reader status = root.get("status");
    const Reader allocatable = status.get("allocatable");
    const Reader capacity = status.get("capacity");
    // The API server's default: a node that reports no allocatable offers its whole capacity.
    const Reader& offered = allocatable.missing() ? capacity : allocatable;
    for (const auto& [name, quantity] : offered.quantities())
      result.allocatable[name] = std::max(request_amount(name, quantity), Amount());
    const Reader conditions = status.get("conditions");
    result.ready = is_true(read_conditions(conditions), "Ready");
    return result;
  });
}

}  // namespace muster::kube

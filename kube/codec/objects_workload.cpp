// Workload, v1beta2 and v1beta1.

#include "kube/codec/object_parts.hpp"

namespace muster::kube {
namespace {

TopologyRequest read_topology_request(const Reader& request) {
  TopologyRequest result;
  result.required = request.get("required").optional_string();
  result.preferred = request.get("preferred").optional_string();
  const Reader unconstrained = request.get("unconstrained");
  if (!unconstrained.missing()) result.unconstrained = unconstrained.boolean(false);
  result.group = request.get("podSetGroupName").string();
  if (const auto level = request.get("podSetSliceRequiredTopology").optional_string()) {
    result.slices.push_back({*level, request.get("podSetSliceSize").count(1)});
  }
  const Reader layers = request.get("podsetSliceRequiredTopologyConstraints");
  layers.each([&](const Reader& layer) {
    result.slices.push_back({layer.get("topology").string(), layer.get("size").count(1)});
  });
  return result;
}

WorkloadPodSet read_pod_set(const Reader& pod_set) {
  WorkloadPodSet result;
  result.name = pod_set.get("name").string();
  if (result.name.empty()) result.name = "main";  // The API's default.
  result.count = pod_set.get("count").count(1);
  result.min_count = pod_set.get("minCount").optional_integer(0, Reader::kInt32Max);
  const Reader pod_template = pod_set.get("template");
  result.pod_template = read_pod_template(pod_template);
  const Reader request = pod_set.get("topologyRequest");
  if (!request.missing()) result.topology_request = read_topology_request(request);
  return result;
}

void read_priority_class(const Reader& spec, Workload& result) {
  const Reader reference = spec.get("priorityClassRef");
  result.priority_class_group = reference.get("group").string();
  result.priority_class_kind = reference.get("kind").string();
  result.priority_class_name = reference.get("name").string();
  if (!reference.missing()) return;
  // v1beta1: a name and a source that spells group and kind in one word.
  const std::string source =
      spec.get("priorityClassSource")
          .word({"kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass"});
  result.priority_class_name = spec.get("priorityClassName").string();
  if (source.empty()) return;
  const bool of_workload = source.starts_with("kueue");
  result.priority_class_group = of_workload ? "kueue.x-k8s.io" : "scheduling.k8s.io";
  result.priority_class_kind = of_workload ? "WorkloadPriorityClass" : "PriorityClass";
}

PodSetAssignment read_pod_set_assignment(const Reader& assignment) {
  PodSetAssignment result;
  result.name = assignment.get("name").string();
  if (result.name.empty()) result.name = "main";
  for (auto& [resource, flavor] : assignment.get("flavors").string_map())
    result.flavors.emplace(ResourceName(resource), std::move(flavor));
  result.resource_usage = assignment.get("resourceUsage").quantities();
  result.count = assignment.get("count").optional_integer(0, Reader::kInt32Max);
  const Reader topology = assignment.get("topologyAssignment");
  if (!topology.missing()) result.topology = read_topology_assignment(topology);
  return result;
}

WorkloadAdmission read_admission(const Reader& admission) {
  WorkloadAdmission result;
  result.cluster_queue = admission.get("clusterQueue").string();
  const Reader assignments = admission.get("podSetAssignments");
  assignments.each(
      [&](const Reader& each) { result.pod_sets.push_back(read_pod_set_assignment(each)); });
  return result;
}

Json encode_pod_set_assignment(const PodSetAssignment& assignment) {
  std::vector<std::pair<std::string, Json>> flavors;
  for (const auto& [resource, flavor] : assignment.flavors)
    flavors.emplace_back(resource.value(), Json::string(flavor));
  std::vector<std::pair<std::string, Json>> usage;
  for (const auto& [resource, quantity] : assignment.resource_usage)
    usage.emplace_back(resource.value(), Json::string(quantity.to_string()));
  return Json::object(
      {{"name", Json::string(assignment.name)},
       {"flavors", flavors.empty() ? Json() : Json::object(flavors)},
       {"resourceUsage", usage.empty() ? Json() : Json::object(usage)},
       {"count", assignment.count ? Json::number(*assignment.count) : Json()},
       {"topologyAssignment",
        assignment.topology ? encode_topology_assignment(*assignment.topology) : Json()}});
}

}  // namespace

Result<Workload> decode_workload(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    Workload result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    const Reader pod_sets = spec.get("podSets");
    pod_sets.each([&](const Reader& each) { result.pod_sets.push_back(read_pod_set(each)); });
    result.queue_name = spec.get("queueName").string();
    read_priority_class(spec, result);
    result.priority = spec.get("priority").priority();
    result.active = spec.get("active").boolean(true);
    const Reader status = root.get("status");
    const Reader admission = status.get("admission");
    if (!admission.missing()) result.admission = read_admission(admission);
    const Reader requeue = status.get("requeueState");
    result.requeue_at = requeue.get("requeueAt").time();
    result.requeue_count = requeue.get("count").count(0);
    const Reader reclaimable = status.get("reclaimablePods");
    reclaimable.each([&](const Reader& each) {
      result.reclaimable_pods.insert_or_assign(each.get("name").string(),
                                               each.get("count").count(0));
    });
    const Reader conditions = status.get("conditions");
    result.conditions = read_conditions(conditions);
    return result;
  });
}

Json encode_admission(const WorkloadAdmission& admission) {
  std::vector<Json> assignments;
  assignments.reserve(admission.pod_sets.size());
  for (const PodSetAssignment& each : admission.pod_sets)
    assignments.push_back(encode_pod_set_assignment(each));
  return Json::object({{"clusterQueue", Json::string(admission.cluster_queue)},
                       {"podSetAssignments", Json::array(assignments)}});
}

}  // namespace muster::kube

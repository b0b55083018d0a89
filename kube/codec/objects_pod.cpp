// Pods and their templates.

#include "kube/codec/object_parts.hpp"

#include <array>
#include <charconv>

namespace muster::kube {
namespace {

Container read_container(const Reader& container) {
  Container result;
  result.name = container.get("name").string();
  const Reader resources = container.get("resources");
  result.requests = resources.get("requests").quantities();
  result.limits = resources.get("limits").quantities();
  result.restart_always = container.get("restartPolicy").string() == "Always";
  return result;
}

std::optional<std::int64_t> to_index(const std::string& text) {
  std::int32_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

}  // namespace

PodSpec read_pod_spec(const Reader& spec) {
  PodSpec result;
  const Reader containers = spec.get("containers");
  containers.each([&](const Reader& each) { result.containers.push_back(read_container(each)); });
  const Reader init_containers = spec.get("initContainers");
  init_containers.each(
      [&](const Reader& each) { result.init_containers.push_back(read_container(each)); });
  result.overhead = spec.get("overhead").quantities();
  const Reader resources = spec.get("resources");
  const Reader requests = resources.get("requests");
  const Reader limits = resources.get("limits");
  if (!requests.missing()) result.pod_requests = requests.quantities();
  if (!limits.missing()) result.pod_limits = limits.quantities();
  result.constraints = read_constraints(spec);
  result.node_name = NodeName(spec.get("nodeName").string());
  result.scheduler_name = spec.get("schedulerName").string();
  result.priority_class_name = spec.get("priorityClassName").string();
  result.priority = spec.get("priority").priority();
  result.preemption_policy = spec.get("preemptionPolicy").string();
  result.runtime_class_name = spec.get("runtimeClassName").string();
  const Reader gates = spec.get("schedulingGates");
  gates.each(
      [&](const Reader& gate) { result.scheduling_gates.push_back(gate.get("name").string()); });
  result.has_scheduling_group = !spec.get("schedulingGroup").missing();
  return result;
}

PodTemplate read_pod_template(const Reader& pod_template) {
  PodTemplate result;
  const Reader meta = pod_template.get("metadata");
  result.labels = meta.get("labels").string_map();
  result.annotations = meta.get("annotations").string_map();
  const Reader spec = pod_template.get("spec");
  result.spec = read_pod_spec(spec);
  result.raw = pod_template.json();
  return result;
}

Result<PodSpec> decode_pod_spec(const Json& spec) {
  return decode_with(spec, read_pod_spec);
}

Result<Pod> decode_pod(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    Pod result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    result.spec = read_pod_spec(spec);
    const Reader status = root.get("status");
    result.phase = status.get("phase").string();
    result.nominated_node = NodeName(status.get("nominatedNodeName").string());
    const Reader conditions = status.get("conditions");
    result.conditions = read_conditions(conditions);
    return result;
  });
}

std::set<NodeName> Pod::pins() const {
  std::set<NodeName> names;
  if (!spec.constraints.required_affinity) return names;
  for (const NodeSelectorTerm& term : *spec.constraints.required_affinity) {
    for (const SelectorRequirement& field : term.match_fields) {
      if (field.op != SelectorRequirement::Operator::kIn) continue;
      for (const std::string& name : field.values) names.insert(NodeName(name));
    }
  }
  return names;
}

std::optional<std::int64_t> Pod::rank() const {
  // The more specific first: a pod of a leader-worker set also has its stateful set's pod-index,
  // which counts something else.
  static const std::array<std::string, 5> kIndexLabels{
      "batch.kubernetes.io/job-completion-index", "kueue.x-k8s.io/pod-group-pod-index",
      "training.kubeflow.org/replica-index", "leaderworkerset.sigs.k8s.io/worker-index",
      "apps.kubernetes.io/pod-index"};
  for (const auto& find : {&ObjectMeta::find_label, &ObjectMeta::find_annotation}) {
    for (const std::string& key : kIndexLabels) {
      if (const std::string* const text = (meta.*find)(key)) {
        if (const auto index = to_index(*text)) return index;
      }
    }
  }
  return std::nullopt;
}

bool Pod::is_mirror() const {
  return meta.find_annotation("kubernetes.io/config.mirror") != nullptr;
}

bool Pod::is_daemon() const {
  const OwnerReference* const owner = meta.controller_owner();
  return owner != nullptr && owner->kind == "DaemonSet" && owner->api_version.starts_with("apps/");
}

}  // namespace muster::kube

#include "controller/pins.hpp"

#include "controller/names.hpp"
#include "engine/specs.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::controller {
namespace {

using kube::Json;
using Members = std::vector<std::pair<std::string, Json>>;

constexpr std::size_t kMaxLabelValue = 63;
constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

std::vector<Json> elements(const Json& array) {
  std::vector<Json> result;
  for (std::size_t i = 0; i < array.size(); ++i) result.push_back(array.at(i));
  return result;
}

Json toleration_json(const Toleration& toleration) {
  const bool exists = toleration.op == Toleration::Operator::kExists;
  Members members;
  if (!toleration.key.empty()) members.emplace_back("key", Json::string(toleration.key));
  members.emplace_back("operator", Json::string(exists ? "Exists" : "Equal"));
  if (!exists && !toleration.value.empty()) {
    members.emplace_back("value", Json::string(toleration.value));
  }
  if (toleration.effect) {
    members.emplace_back("effect", Json::string(to_string(*toleration.effect)));
  }
  if (toleration.toleration_seconds) {
    members.emplace_back("tolerationSeconds", Json::number(*toleration.toleration_seconds));
  }
  return Json::object(members);
}

// `operator: Equal` is the default, so that the same toleration may be written in two ways.
Json with_operator(const Json& toleration) {
  return toleration.get("operator").missing() ? toleration.with("operator", Json::string("Equal"))
                                              : toleration;
}

Json tolerations_with(const Json& own, const std::vector<Toleration>& added) {
  std::vector<Json> list = elements(own);
  for (const Toleration& toleration : added) {
    const Json candidate = toleration_json(toleration);
    const bool known = std::any_of(list.begin(), list.end(), [&](const Json& present) {
      return with_operator(present) == candidate;
    });
    if (!known) list.push_back(candidate);
  }
  return list.empty() ? Json() : Json::array(list);
}

Json requirement(std::string_view key, const std::vector<Json>& values) {
  return Json::object({{"key", Json::string(key)},
                       {"operator", Json::string("In")},
                       {"values", Json::array(values)}});
}

Json term_with(const Json& term, std::string_view list, const Json& added) {
  std::vector<Json> requirements = elements(term.get(list));
  requirements.push_back(added);
  return term.with(list, Json::array(requirements));
}

Json term_for_node(const Json& term, const NodeName& node) {
  return term_with(term, "matchFields", requirement("metadata.name", {Json::string(node.value())}));
}

// A term without any requirement matches no node; combined with a pin it would match one.
bool matches_nothing(const Json& term) {
  return term.get("matchExpressions").size() == 0 && term.get("matchFields").size() == 0;
}

Json pinned_terms(const Json& own, const std::vector<PinnedNode>& nodes) {
  std::vector<Json> terms;
  for (const Json& term : elements(own)) {
    if (!matches_nothing(term)) terms.push_back(term);
  }
  if (terms.empty()) {
    if (own.size() > 0) return own;  // no node will ever do, with a plan or without
    terms.push_back(Json::object({}));
  }
  std::vector<Json> result;
  if (terms.size() * nodes.size() > kMaxPinTerms) {
    std::vector<Json> hostnames;
    for (const PinnedNode& node : nodes) hostnames.push_back(Json::string(node.hostname));
    const Json any_of_them = requirement(kHostnameLabel, hostnames);
    for (const Json& term : terms) {
      result.push_back(term_with(term, "matchExpressions", any_of_them));
    }
  } else {
    for (const Json& term : terms) {
      for (const PinnedNode& node : nodes) result.push_back(term_for_node(term, node.name));
    }
  }
  return Json::array(result);
}

Json with_required_terms(const Json& spec, const Json& terms) {
  const Json affinity = spec.get("affinity");
  const Json node_affinity = affinity.get("nodeAffinity");
  const Json required = node_affinity.get(kRequired).with("nodeSelectorTerms", terms);
  return spec.with("affinity",
                   affinity.with("nodeAffinity", node_affinity.with(kRequired, required)));
}

Json required_terms(const Json& spec) {
  return spec.get("affinity", "nodeAffinity", kRequired, "nodeSelectorTerms");
}

Json with_member(const Json& object, std::string_view list, std::string_view key,
                 std::string_view value) {
  return object.with(list, object.get(list).with(key, Json::string(value)));
}

Json with_marks(Json metadata, const PodSetPins& pins) {
  metadata = with_member(metadata, "labels", kPodSetLabel, pins.pod_set);
  // Queue names may be longer than a label's value.
  if (!pins.cluster_queue.empty() && pins.cluster_queue.size() <= kMaxLabelValue) {
    metadata = with_member(metadata, "labels", kClusterQueueLabel, pins.cluster_queue);
  }
  if (!pins.local_queue.empty() && pins.local_queue.size() <= kMaxLabelValue) {
    metadata = with_member(metadata, "labels", kLocalQueueLabel, pins.local_queue);
  }
  return with_member(metadata, "annotations", kWorkloadAnnotation, pins.workload);
}

Json with_selector_and_tolerations(Json spec, const PodSetPins& pins) {
  for (const auto& [key, value] : pins.node_labels) {
    spec = with_member(spec, "nodeSelector", key, value);
  }
  if (!pins.tolerations.empty()) {
    spec = spec.with("tolerations", tolerations_with(spec.get("tolerations"), pins.tolerations));
  }
  return spec;
}

}  // namespace

Json pinned_template(const Json& original, const PodSetPins& pins) {
  Json spec = with_selector_and_tolerations(original.get("spec"), pins);
  if (!pins.nodes.empty()) {
    spec = with_required_terms(spec, pinned_terms(required_terms(spec), pins.nodes));
  }
  return original.with("metadata", with_marks(original.get("metadata"), pins)).with("spec", spec);
}

bool is_pinned(const Json& pod_template, std::string_view workload) {
  const Json mark = pod_template.get("metadata", "annotations", kWorkloadAnnotation);
  return mark.is_string() && (workload.empty() || mark.string_or("") == workload);
}

Json unpinned_template(const Json& pod_template) {
  Json metadata = pod_template.get("metadata");
  Json labels = metadata.get("labels");
  for (const char* label : {kPodSetLabel, kClusterQueueLabel, kLocalQueueLabel}) {
    labels = labels.with(label, Json());
  }
  metadata = metadata.with("labels", labels.size() > 0 ? labels : Json());
  const Json annotations = metadata.get("annotations").with(kWorkloadAnnotation, Json());
  metadata = metadata.with("annotations", annotations.size() > 0 ? annotations : Json());

  const Json spec = pod_template.get("spec");
  std::vector<Json> terms;
  for (const Json& term : elements(required_terms(spec))) {
    std::vector<Json> fields;
    for (const Json& field : elements(term.get("matchFields"))) {
      if (field.get("key").string_or("") != "metadata.name") fields.push_back(field);
    }
    const Json bare = term.with("matchFields", fields.empty() ? Json() : Json::array(fields));
    if (matches_nothing(bare)) {
      // Nothing but the pin: the user had no term, and "anywhere" takes in all alternatives.
      terms.clear();
      break;
    }
    if (std::find(terms.begin(), terms.end(), bare) == terms.end()) terms.push_back(bare);
  }
  const Json result = pod_template.with("metadata", metadata);
  if (required_terms(spec).size() == 0) return result;
  if (!terms.empty()) {
    return result.with("spec", with_required_terms(spec, Json::array(terms)));
  }
  const Json node_affinity = spec.get("affinity", "nodeAffinity").with(kRequired, Json());
  const Json affinity =
      spec.get("affinity").with("nodeAffinity", node_affinity.size() > 0 ? node_affinity : Json());
  return result.with("spec", spec.with("affinity", affinity.size() > 0 ? affinity : Json()));
}

Json ungate_patch(const Json& pod, const PodSetPins& pins) {
  Json spec = with_selector_and_tolerations(pod.get("spec"), pins);
  if (!pins.nodes.empty()) {
    const Json own = required_terms(spec);
    std::vector<Json> terms;
    for (const Json& term : elements(own)) {
      terms.push_back(matches_nothing(term) ? term : term_for_node(term, pins.nodes.front().name));
    }
    if (terms.empty()) terms.push_back(term_for_node(Json::object({}), pins.nodes.front().name));
    spec = with_required_terms(spec, Json::array(terms));
  }
  std::vector<Json> gates;
  for (const Json& gate : elements(spec.get("schedulingGates"))) {
    if (gate.get("name").string_or("") != kAdmissionGate) gates.push_back(gate);
  }
  spec = spec.with("schedulingGates", gates.empty() ? Json() : Json::array(gates));
  const Json target =
      pod.with("metadata", with_marks(pod.get("metadata"), pins)).with("spec", spec);
  return merge_diff(pod, target);
}

Json merge_diff(const Json& from, const Json& to) {
  Members patch;
  for (const auto& [key, value] : to.members()) {
    const Json old = from.get(key);
    if (old == value) continue;
    if (old.is_object() && value.is_object()) {
      if (const Json inner = merge_diff(old, value); inner.present()) {
        patch.emplace_back(std::string(key), inner);
      }
    } else {
      patch.emplace_back(std::string(key), value);
    }
  }
  for (const auto& [key, value] : from.members()) {
    if (!to.get(key).present()) patch.emplace_back(std::string(key), Json::null());
  }
  return patch.empty() ? Json() : Json::object(patch);
}

}  // namespace muster::controller

#include "webhook/pin.hpp"

#include "engine/slots.hpp"
#include "webhook/json_edit.hpp"
#include "webhook/labels.hpp"
#include "webhook/scope.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace muster::webhook {
namespace {

using kube::Json;

constexpr std::array<std::string_view, 5> kTermsPath = {
    "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms"};
constexpr std::string_view kNameField = "metadata.name";

Json name_requirement(const NodeName& node) {
  return Json::object({{"key", Json::string(kNameField)},
                       {"operator", Json::string("In")},
                       {"values", Json::array({Json::string(node.value())})}});
}

bool is_name_requirement(const Json& requirement) {
  return requirement.get("key").string_or("") == kNameField &&
         requirement.get("operator").string_or("") == "In";
}

bool is_empty_term(const Json& term) {
  return term.get("matchExpressions").size() == 0 && term.get("matchFields").size() == 0;
}

bool names_some_node(const Json& term) {
  const Json fields = term.get("matchFields");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (is_name_requirement(fields.at(i))) return true;
  }
  return false;
}

/// Every name requirement of the term holds for the node.
bool allows_node(const Json& term, const NodeName& node) {
  const Json fields = term.get("matchFields");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!is_name_requirement(fields.at(i))) continue;
    const Json values = fields.at(i).get("values");
    if (values.size() != 1 || values.at(0).string_or("") != node.value()) return false;
  }
  return true;
}

Json with_name(const Json& term, const NodeName& node) {
  std::vector<Json> fields;
  const Json former = term.get("matchFields");
  for (std::size_t i = 0; i < former.size(); ++i) {
    if (!is_name_requirement(former.at(i))) fields.push_back(former.at(i));
  }
  fields.push_back(name_requirement(node));
  return term.with("matchFields", Json::array(fields));
}

void append_unique(std::vector<Json>& terms, const Json& term) {
  if (std::find(terms.begin(), terms.end(), term) == terms.end()) terms.push_back(term);
}

std::vector<Json> narrowed(const Json& terms, const NodeName& node) {
  std::vector<Json> kept;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Json term = terms.at(i);
    if (is_empty_term(term)) continue;
    if (!names_some_node(term))
      append_unique(kept, with_name(term, node));
    else if (allows_node(term, node))
      append_unique(kept, term);
  }
  if (!kept.empty()) return kept;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!is_empty_term(terms.at(i))) append_unique(kept, with_name(terms.at(i), node));
  }
  return kept;
}

}  // namespace

std::optional<NodeName> find_pinned_node(const kube::ObjectMeta& meta,
                                         const engine::Snapshot& snapshot) {
  const auto workload = find_owner_workload(meta, snapshot);
  if (!workload || workload->phase != engine::WorkloadPhase::kAdmitted) return std::nullopt;
  const std::string pod_set_name = label_of(meta, kPodSetLabel);
  const auto& pod_sets = workload->pod_sets;
  const auto pod_set = std::find_if(pod_sets.begin(), pod_sets.end(), [&](const auto& candidate) {
    return candidate.name.value() == pod_set_name;
  });
  if (pod_set == pod_sets.end() || pod_set->slots.empty()) return std::nullopt;
  kube::Pod pod;
  pod.meta = meta;
  const std::optional<std::int64_t> rank = pod.rank();
  if (!rank || *rank < 0) return std::nullopt;
  return engine::node_of_rank(pod_set->slots, pod_set->bound_ranks, *rank);
}

Json pin_pod(const Json& pod, const NodeName& node) {
  const Json terms = get_path(pod, kTermsPath);
  if (terms.size() == 0) {
    const Json term = Json::object({{"matchFields", Json::array({name_requirement(node)})}});
    return with_path(pod, kTermsPath, Json::array({term}));
  }
  const std::vector<Json> kept = narrowed(terms, node);
  // Nothing but terms that match no node: the user wants it nowhere.
  if (kept.empty()) return pod;
  return with_path(pod, kTermsPath, Json::array(kept));
}

}  // namespace muster::webhook

// Selectors, taints, tolerations, node affinity.

#include "kube/codec/object_parts.hpp"

namespace muster::kube {
namespace {

SelectorRequirement read_requirement(const Reader& requirement) {
  using Operator = SelectorRequirement::Operator;
  SelectorRequirement result;
  result.key = requirement.get("key").string();
  const Reader op = requirement.get("operator");
  const std::string word = op.word({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"});
  if (word.empty()) op.fail_unwanted("an operator");
  if (word == "NotIn") result.op = Operator::kNotIn;
  if (word == "Exists") result.op = Operator::kExists;
  if (word == "DoesNotExist") result.op = Operator::kDoesNotExist;
  if (word == "Gt") result.op = Operator::kGt;
  if (word == "Lt") result.op = Operator::kLt;
  result.values = requirement.get("values").strings();
  return result;
}

std::vector<SelectorRequirement> read_requirements(const Reader& requirements) {
  std::vector<SelectorRequirement> result;
  requirements.each([&](const Reader& each) { result.push_back(read_requirement(each)); });
  return result;
}

std::optional<TaintEffect> read_effect(const Reader& effect) {
  const std::string word = effect.word({"NoSchedule", "PreferNoSchedule", "NoExecute"});
  if (word == "NoSchedule") return TaintEffect::kNoSchedule;
  if (word == "PreferNoSchedule") return TaintEffect::kPreferNoSchedule;
  if (word == "NoExecute") return TaintEffect::kNoExecute;
  return std::nullopt;
}

}  // namespace

LabelSelector read_label_selector(const Reader& selector) {
  LabelSelector result;
  result.match_labels = selector.get("matchLabels").string_map();
  const Reader expressions = selector.get("matchExpressions");
  result.match_expressions = read_requirements(expressions);
  return result;
}

std::vector<Taint> read_taints(const Reader& taints) {
  std::vector<Taint> result;
  taints.each([&](const Reader& taint) {
    Taint read;
    read.key = taint.get("key").string();
    read.value = taint.get("value").string();
    const Reader effect = taint.get("effect");
    const std::optional<TaintEffect> known = read_effect(effect);
    if (!known) effect.fail_unwanted("an effect");
    read.effect = known.value_or(TaintEffect::kNoSchedule);
    result.push_back(std::move(read));
  });
  return result;
}

std::vector<Toleration> read_tolerations(const Reader& tolerations) {
  std::vector<Toleration> result;
  tolerations.each([&](const Reader& toleration) {
    Toleration read;
    read.key = toleration.get("key").string();
    read.value = toleration.get("value").string();
    const Reader effect = toleration.get("effect");
    read.effect = read_effect(effect);
    read.toleration_seconds =
        toleration.get("tolerationSeconds").optional_integer(-Reader::kInt64Max, Reader::kInt64Max);
    const std::string op = toleration.get("operator").string();
    if (op == "Exists") read.op = Toleration::Operator::kExists;
    // Newer servers compare taint values as numbers (Lt, Gt). An operator that we cannot evaluate
    // must not tolerate anything here; the scheduler still has the last word.
    if (op.empty() || op == "Equal" || op == "Exists") result.push_back(std::move(read));
  });
  return result;
}

NodeConstraints read_constraints(const Reader& pod_spec) {
  NodeConstraints result;
  result.node_selector = pod_spec.get("nodeSelector").string_map();
  const Reader tolerations = pod_spec.get("tolerations");
  result.tolerations = read_tolerations(tolerations);
  const Reader affinity = pod_spec.get("affinity");
  const Reader node_affinity = affinity.get("nodeAffinity");
  const Reader required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
  const Reader terms = required.get("nodeSelectorTerms");
  if (required.missing()) return result;
  result.required_affinity.emplace();
  terms.each([&](const Reader& term) {
    const Reader expressions = term.get("matchExpressions");
    const Reader fields = term.get("matchFields");
    result.required_affinity->push_back(
        NodeSelectorTerm{read_requirements(expressions), read_requirements(fields)});
  });
  return result;
}

}  // namespace muster::kube

#include "base/constraints.hpp"

#include "base/integer.hpp"

#include <algorithm>

namespace muster {
namespace {

std::optional<std::string_view> find_label(const LabelMap& labels, const std::string& key) {
  const auto found = labels.find(key);
  if (found == labels.end()) return std::nullopt;
  return std::string_view(found->second);
}

bool matches(const NodeSelectorTerm& term, const NodeName& node, const LabelMap& labels) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  for (const SelectorRequirement& requirement : term.match_expressions) {
    if (!matches(requirement, find_label(labels, requirement.key))) return false;
  }
  for (const SelectorRequirement& requirement : term.match_fields) {
    // The API server accepts no other field; an unknown one can only select nothing.
    if (requirement.key != "metadata.name") return false;
    if (!matches(requirement, std::string_view(node.value()))) return false;
  }
  return true;
}

}  // namespace

bool matches(const SelectorRequirement& requirement, const std::optional<std::string_view>& value) {
  using Operator = SelectorRequirement::Operator;
  const auto listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) !=
           requirement.values.end();
  };
  switch (requirement.op) {
    case Operator::kIn:
      return value && listed();
    case Operator::kNotIn:
      return !value || !listed();
    case Operator::kExists:
      return value.has_value();
    case Operator::kDoesNotExist:
      return !value.has_value();
    case Operator::kGt:
    case Operator::kLt: {
      if (!value || requirement.values.size() != 1) return false;
      const auto have = parse_integer(*value);
      const auto bound = parse_integer(requirement.values.front());
      if (!have || !bound) return false;
      return requirement.op == Operator::kGt ? *have > *bound : *have < *bound;
    }
  }
  return false;
}

bool matches(const LabelSelector& selector, const LabelMap& labels) {
  for (const auto& [key, wanted] : selector.match_labels) {
    if (find_label(labels, key) != std::optional<std::string_view>(wanted)) return false;
  }
  return std::all_of(
      selector.match_expressions.begin(), selector.match_expressions.end(),
      [&](const SelectorRequirement& r) { return matches(r, find_label(labels, r.key)); });
}

std::string_view to_string(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kNoSchedule:
      return "NoSchedule";
    case TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "NoSchedule";
}

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect && *toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  switch (toleration.op) {
    case Toleration::Operator::kExists:
      return true;
    case Toleration::Operator::kEqual:
      return !toleration.key.empty() && toleration.value == taint.value;
  }
  return false;
}

const Taint* find_untolerated(const std::vector<Taint>& taints,
                              const std::vector<Toleration>& tolerations) {
  for (const Taint& taint : taints) {
    if (taint.effect == TaintEffect::kPreferNoSchedule) continue;
    const bool tolerated =
        std::any_of(tolerations.begin(), tolerations.end(),
                    [&](const Toleration& toleration) { return tolerates(toleration, taint); });
    if (!tolerated) return &taint;
  }
  return nullptr;
}

bool selects(const NodeConstraints& constraints, const NodeName& node, const LabelMap& labels) {
  for (const auto& [key, wanted] : constraints.node_selector) {
    if (find_label(labels, key) != std::optional<std::string_view>(wanted)) return false;
  }
  if (!constraints.required_affinity) return true;
  return std::any_of(constraints.required_affinity->begin(), constraints.required_affinity->end(),
                     [&](const NodeSelectorTerm& term) { return matches(term, node, labels); });
}

}  // namespace muster

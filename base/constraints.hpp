#pragma once
// Labels, taints and node selection as the Kubernetes API defines them: vocabulary that the codecs
// decode and that topology and engine evaluate. Matching follows apimachinery's labels package and
// the scheduler's NodeAffinity and TaintToleration plugins.

#include "base/ids.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

using LabelMap = std::map<std::string, std::string>;

/// The label whose values stand for nodes in topology assignments. It may differ from the name.
inline constexpr const char* kHostnameLabel = "kubernetes.io/hostname";

/// One requirement on a label (or, in `match_fields`, on `metadata.name`).
struct SelectorRequirement {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;
  bool operator==(const SelectorRequirement&) const = default;
};

/// `value` is empty when the object has no such label. NotIn and DoesNotExist hold for an absent
/// label; Gt and Lt need both sides to be integers.
[[nodiscard]] bool matches(const SelectorRequirement& requirement,
                           const std::optional<std::string_view>& value);

/// metav1.LabelSelector. A *null* selector (absent optional of this type) selects nothing, an empty
/// one everything.
struct LabelSelector {
  LabelMap match_labels;
  std::vector<SelectorRequirement> match_expressions;
  bool operator==(const LabelSelector&) const = default;
};
[[nodiscard]] bool matches(const LabelSelector& selector, const LabelMap& labels);

enum class TaintEffect { kNoSchedule, kPreferNoSchedule, kNoExecute };

/// `NoSchedule`, `PreferNoSchedule`, `NoExecute`: the API's spelling.
[[nodiscard]] std::string_view to_string(TaintEffect effect);

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  bool operator==(const Taint&) const = default;
};

struct Toleration {
  enum class Operator { kEqual, kExists };
  std::string key;  ///< Empty with kExists: every key.
  Operator op = Operator::kEqual;
  std::string value;
  std::optional<TaintEffect> effect;  ///< Absent: every effect.
  std::optional<std::int64_t> toleration_seconds;
  bool operator==(const Toleration&) const = default;
};
[[nodiscard]] bool tolerates(const Toleration& toleration, const Taint& taint);

/// The first NoSchedule or NoExecute taint that none of the tolerations tolerates, or nullptr.
[[nodiscard]] const Taint* find_untolerated(const std::vector<Taint>& taints,
                                            const std::vector<Toleration>& tolerations);

/// One alternative of required node affinity: all requirements hold. A term with no requirement at
/// all matches no node (core/v1 NodeSelectorTerm).
struct NodeSelectorTerm {
  std::vector<SelectorRequirement> match_expressions;  ///< On labels.
  std::vector<SelectorRequirement> match_fields;       ///< On `metadata.name` only.
  bool operator==(const NodeSelectorTerm&) const = default;
};

/// Where a pod may run: `spec.nodeSelector`, required node affinity (terms are alternatives;
/// absent: anywhere) and `spec.tolerations`.
struct NodeConstraints {
  LabelMap node_selector;
  std::optional<std::vector<NodeSelectorTerm>> required_affinity;
  std::vector<Toleration> tolerations;
  bool operator==(const NodeConstraints&) const = default;
};

/// nodeSelector and required affinity only; taints are a question of their own.
[[nodiscard]] bool selects(const NodeConstraints& constraints, const NodeName& node,
                           const LabelMap& labels);

}  // namespace muster

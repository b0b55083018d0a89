#include "base/constraints.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Op = SelectorRequirement::Operator;

TEST(SelectorRequirement, HoldsAsInTheLabelsPackage) {
  const struct {
    const char* sentence;
    SelectorRequirement requirement;
    std::optional<std::string_view> value;
    bool holds;
  } cases[] = {
      {"In: a listed value", {"k", Op::kIn, {"a", "b"}}, "b", true},
      {"In: another value", {"k", Op::kIn, {"a", "b"}}, "c", false},
      {"In: no label", {"k", Op::kIn, {"a"}}, std::nullopt, false},
      {"NotIn: a listed value", {"k", Op::kNotIn, {"a"}}, "a", false},
      {"NotIn: another value", {"k", Op::kNotIn, {"a"}}, "b", true},
      {"NotIn: no label holds", {"k", Op::kNotIn, {"a"}}, std::nullopt, true},
      {"Exists: an empty value is a value", {"k", Op::kExists, {}}, "", true},
      {"Exists: no label", {"k", Op::kExists, {}}, std::nullopt, false},
      {"DoesNotExist: no label", {"k", Op::kDoesNotExist, {}}, std::nullopt, true},
      {"DoesNotExist: a label", {"k", Op::kDoesNotExist, {}}, "a", false},
      {"Gt: a greater number", {"k", Op::kGt, {"10"}}, "11", true},
      {"Gt: the same number", {"k", Op::kGt, {"10"}}, "10", false},
      {"Gt: numbers, not text", {"k", Op::kGt, {"9"}}, "10", true},
      {"Gt: no number", {"k", Op::kGt, {"10"}}, "x11", false},
      {"Gt: two bounds are none", {"k", Op::kGt, {"1", "2"}}, "3", false},
      {"Lt: a smaller number", {"k", Op::kLt, {"10"}}, "-3", true},
      {"Lt: no label", {"k", Op::kLt, {"10"}}, std::nullopt, false},
  };
  for (const auto& each : cases)
    EXPECT_EQ(matches(each.requirement, each.value), each.holds) << each.sentence;
}

TEST(LabelSelector, NeedsAllAndAnEmptyOneTakesEverything) {
  EXPECT_TRUE(matches(LabelSelector{}, {}));
  EXPECT_TRUE(matches(LabelSelector{}, {{"a", "1"}}));
  const LabelSelector selector{{{"a", "1"}}, {{"b", Op::kExists, {}}}};
  EXPECT_TRUE(matches(selector, {{"a", "1"}, {"b", ""}}));
  EXPECT_FALSE(matches(selector, {{"a", "2"}, {"b", ""}}));
  EXPECT_FALSE(matches(selector, {{"a", "1"}}));
}

TEST(Toleration, MatchesKeyValueAndEffect) {
  const Taint taint{"gpu", "h100", TaintEffect::kNoSchedule};
  const auto equal = Toleration::Operator::kEqual;
  const auto exists = Toleration::Operator::kExists;
  const struct {
    const char* sentence;
    Toleration toleration;
    bool holds;
  } cases[] = {
      {"key and value", {"gpu", equal, "h100", {}, {}}, true},
      {"another value", {"gpu", equal, "a100", {}, {}}, false},
      {"any value", {"gpu", exists, "", {}, {}}, true},
      {"everything", {"", exists, "", {}, {}}, true},
      {"no key with Equal is nothing", {"", equal, "h100", {}, {}}, false},
      {"the same effect", {"gpu", exists, "", TaintEffect::kNoSchedule, {}}, true},
      {"another effect", {"gpu", exists, "", TaintEffect::kNoExecute, {}}, false},
  };
  for (const auto& each : cases)
    EXPECT_EQ(tolerates(each.toleration, taint), each.holds) << each.sentence;
}

TEST(Taints, PreferenceNeverStandsInTheWay) {
  const std::vector<Taint> taints{{"soft", "", TaintEffect::kPreferNoSchedule},
                                  {"hard", "", TaintEffect::kNoExecute}};
  const Taint* const found = find_untolerated(taints, {});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->key, "hard");
  EXPECT_EQ(find_untolerated(taints, {{"hard", Toleration::Operator::kExists, "", {}, {}}}),
            nullptr);
}

TEST(NodeConstraints, SelectorAndOneTermMustHold) {
  NodeConstraints constraints;
  const NodeName node("n1");
  EXPECT_TRUE(selects(constraints, node, {}));
  constraints.node_selector = {{"zone", "a"}};
  EXPECT_TRUE(selects(constraints, node, {{"zone", "a"}}));
  EXPECT_FALSE(selects(constraints, node, {{"zone", "b"}}));

  // Affinity without a term, or with empty terms only, selects no node at all.
  constraints.required_affinity.emplace();
  EXPECT_FALSE(selects(constraints, node, {{"zone", "a"}}));
  constraints.required_affinity->push_back({});
  EXPECT_FALSE(selects(constraints, node, {{"zone", "a"}}));

  constraints.required_affinity->push_back({{}, {{"metadata.name", Op::kIn, {"n1"}}}});
  EXPECT_TRUE(selects(constraints, node, {{"zone", "a"}}));
  EXPECT_FALSE(selects(constraints, NodeName("n2"), {{"zone", "a"}}));

  constraints.required_affinity = {{{{}, {{"metadata.uid", Op::kNotIn, {"x"}}}}}};
  EXPECT_FALSE(selects(constraints, node, {{"zone", "a"}}));
}

}  // namespace
}  // namespace muster

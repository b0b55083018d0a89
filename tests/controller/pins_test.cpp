#include "controller/pins.hpp"

#include "tests/controller/model_api.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster::controller::testing {
namespace {

using kube::Json;

Toleration toleration(const char* key, Toleration::Operator op, const char* value = "",
                      std::optional<TaintEffect> effect = std::nullopt) {
  Toleration result;
  result.key = key;
  result.op = op;
  result.value = value;
  result.effect = effect;
  return result;
}

PodSetPins pins(int nodes) {
  PodSetPins result;
  result.workload = "job-a-12345";
  result.pod_set = "main";
  result.cluster_queue = "cq";
  result.local_queue = "lq";
  for (int i = 0; i < nodes; ++i) {
    result.nodes.push_back({NodeName(fmt::format("n{}", i)), fmt::format("h{}", i)});
  }
  return result;
}

Json terms_of(const Json& pod_template) {
  return pod_template.get("spec", "affinity", "nodeAffinity")
      .get("requiredDuringSchedulingIgnoredDuringExecution")
      .get("nodeSelectorTerms");
}

Json with_terms(const std::string& terms) {
  return json(fmt::format(R"({{"metadata":{{"labels":{{"app":"x"}}}},"spec":{{"affinity":{{
    "nodeAffinity":{{"preferredDuringSchedulingIgnoredDuringExecution":[{{"weight":1}}],
    "requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":{}}}}},
    "podAntiAffinity":{{"x":1}}}}}}}})",
                          terms));
}

TEST(Pins, EveryTermOfTheUserIsCombinedWithEveryPlannedNode) {
  const Json original = with_terms(R"([{"matchExpressions":[{"key":"a","operator":"Exists"}]},
                                       {"matchExpressions":[{"key":"b","operator":"Exists"}]}])");
  const Json pinned = pinned_template(original, pins(3));
  const Json terms = terms_of(pinned);
  ASSERT_EQ(terms.size(), 6U);  // 2 terms x 3 nodes
  for (std::size_t i = 0; i < terms.size(); ++i) {
    EXPECT_EQ(terms.at(i).get("matchExpressions").size(), 1U);
    ASSERT_EQ(terms.at(i).get("matchFields").size(), 1U);
    EXPECT_EQ(terms.at(i).get("matchFields").at(0).get("values").size(), 1U);
  }
  // What stands beside it is kept.
  EXPECT_EQ(pinned.get("spec", "affinity", "nodeAffinity")
                .get("preferredDuringSchedulingIgnoredDuringExecution")
                .size(),
            1U);
  EXPECT_TRUE(pinned.get("spec", "affinity", "podAntiAffinity").present());
}

TEST(Pins, Above512TermsTheNodesAreOneListOfHostnames) {
  const Json original = with_terms(R"([{"matchExpressions":[{"key":"a","operator":"Exists"}]},
                                       {"matchExpressions":[{"key":"b","operator":"Exists"}]}])");
  EXPECT_EQ(terms_of(pinned_template(original, pins(256))).size(), 512U);
  const Json terms = terms_of(pinned_template(original, pins(257)));  // 514
  ASSERT_EQ(terms.size(), 2U);
  const Json added = terms.at(0).get("matchExpressions").at(1);
  EXPECT_EQ(added.get("key").string_or(""), "kubernetes.io/hostname");
  EXPECT_EQ(added.get("values").size(), 257U);
  EXPECT_EQ(added.get("values").at(0).string_or(""), "h0");
}

TEST(Pins, AnEmptyTermMatchesNothingAndMustNotBecomeAPin) {
  const Json one = terms_of(pinned_template(
      with_terms(R"([{},{"matchExpressions":[{"key":"a","operator":"Exists"}]}])"), pins(2)));
  EXPECT_EQ(one.size(), 2U);
  const Json none = terms_of(pinned_template(with_terms("[{}]"), pins(2)));
  EXPECT_TRUE(none == json("[{}]"));
}

TEST(Pins, TolerationsThatAreThereAreNotRepeated) {
  PodSetPins with_tolerations = pins(1);
  with_tolerations.tolerations = {
      toleration("gpu", Toleration::Operator::kEqual, "yes", TaintEffect::kNoSchedule),
      toleration("spot", Toleration::Operator::kExists)};
  const Json pinned = pinned_template(
      json(R"({"spec":{"tolerations":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}})"),
      with_tolerations);
  EXPECT_EQ(pinned.get("spec", "tolerations").size(), 2U);
}

TEST(Pins, TheDifferenceBackRestoresTheTemplateExactly) {
  const Json original = with_terms(R"([{"matchExpressions":[{"key":"a","operator":"Exists"}]}])");
  PodSetPins all = pins(4);
  all.node_labels = {{"pool", "spot"}};
  all.tolerations = {toleration("spot", Toleration::Operator::kExists)};
  const Json pinned = pinned_template(original, all);
  EXPECT_TRUE(is_pinned(pinned, "job-a-12345"));
  EXPECT_FALSE(is_pinned(pinned, "job-b-12345"));
  EXPECT_FALSE(is_pinned(original, ""));
  EXPECT_TRUE(kube::merge_patch(pinned, merge_diff(pinned, original)) == original);
  EXPECT_TRUE(kube::merge_patch(original, merge_diff(original, pinned)) == pinned);
  EXPECT_FALSE(merge_diff(pinned, pinned).present());
}

TEST(Pins, UnpinningTakesOffMarksAndNamesOnly) {
  const Json original = with_terms(R"([{"matchExpressions":[{"key":"a","operator":"Exists"}]}])");
  EXPECT_TRUE(unpinned_template(pinned_template(original, pins(3))) == original);
  const Json plain = json(R"({"metadata":{"labels":{"app":"x"}},"spec":{"containers":[]}})");
  EXPECT_TRUE(unpinned_template(pinned_template(plain, pins(3))) == plain);
}

TEST(Pins, AGatedPodsTermsAreAppendedToAndNeverFewerOrMore) {
  const Json pod = json(R"({"metadata":{"labels":{"app":"x"}},"spec":{
    "schedulingGates":[{"name":"kueue.x-k8s.io/admission"},{"name":"other"}],
    "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
      "nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]},{}]}}}}})");
  const Json after = kube::merge_patch(pod, ungate_patch(pod, pins(1)));
  const Json terms = terms_of(after);
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms.at(0).get("matchExpressions").size(), 1U);
  EXPECT_EQ(terms.at(0).get("matchFields").size(), 1U);
  EXPECT_EQ(terms.at(1).size(), 0U);  // an empty old term must stay empty
  EXPECT_TRUE(after.get("spec", "schedulingGates") == json(R"([{"name":"other"}])"));
  EXPECT_EQ(after.get("metadata", "labels", "app").string_or(""), "x");
}

TEST(Pins, TheLastGateLeavesNoListBehind) {
  const Json pod = json(R"({"spec":{"schedulingGates":[{"name":"kueue.x-k8s.io/admission"}]}})");
  const Json after = kube::merge_patch(pod, ungate_patch(pod, pins(1)));
  EXPECT_FALSE(after.get("spec", "schedulingGates").present());
  EXPECT_EQ(terms_of(after).size(), 1U);
}

}  // namespace
}  // namespace muster::controller::testing

// Which of a pod's requests count against quota: queueing semantics section 0.

#include "kube/codec/quota_requests.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

namespace muster::kube {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

PodSpec pod_asking(const std::string& requests) {
  const auto json = Json::parse(
      fmt::format(R"({{"containers":[{{"name":"c","resources":{{"requests":{}}}}}]}})", requests));
  const auto spec = decode_pod_spec(json.value_or(Json()));
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
  return spec.value_or(PodSpec());
}

ResourceTransformation rule(const std::string& input, bool retain,
                            const std::map<std::string, std::string>& outputs,
                            const std::string& multiply_by = "") {
  ResourceTransformation result{ResourceName(input), retain, ResourceName(multiply_by), {}};
  for (const auto& [name, quantity] : outputs) {
    result.outputs.emplace(ResourceName(name), Quantity::parse(quantity).value_or(Quantity()));
  }
  return result;
}

std::string text_of(const ResourceList& requests) {
  std::string text;
  for (const auto& [name, amount] : requests) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, amount);
  }
  return text;
}

TEST(QuotaRequests, CountWhatTheRulesSay) {
  struct Case {
    const char* sentence;
    const char* requests;
    ResourceRules rules;
    const char* counted;
  };
  const std::vector<Case> cases = {
      {"without rules every request counts, rounded up per pod: 1000.1 milli, 0.5 units",
       R"({"cpu":"1.0001","example.com/foo":"500m"})",
       {},
       "cpu=1001 example.com/foo=1"},
      {"a negative request counts as nothing",
       R"({"cpu":"-1","memory":"1"})",
       {},
       "cpu=0 memory=1"},
      {"what begins with an excluded prefix does not count",
       R"({"cpu":"1","networking.example.com/vpc1":"1","networking.example.org/vpc1":"1"})",
       {{"networking.example.com/"}, {}},
       "cpu=1000 networking.example.org/vpc1=1"},
      {"what is excluded is no input of a transformation either",
       R"({"example.com/a":"1"})",
       {{"example.com/"}, {rule("example.com/a", true, {{"b", "1"}})}},
       ""},
      {"Replace counts the outputs only: 2 profiles of 5Gi and of one slice",
       R"({"nvidia.com/mig-1g.5gb":"2"})",
       {{},
        {rule("nvidia.com/mig-1g.5gb", false,
              {{"example.com/gpu-memory", "5Gi"}, {"example.com/gpu-slices", "1"}})}},
       "example.com/gpu-memory=10737418240 example.com/gpu-slices=2"},
      {"outputs of several inputs are added up: 2 x 1 + 1 x 7 slices",
       R"({"nvidia.com/mig-1g.10gb":"2","nvidia.com/mig-7g.80gb":"1"})",
       {{},
        {rule("nvidia.com/mig-1g.10gb", false, {{"slices", "1"}}),
         rule("nvidia.com/mig-7g.80gb", false, {{"slices", "7"}})}},
       "slices=9"},
      {"Retain counts the input as well",
       R"({"nvidia.com/gpu":"2"})",
       {{}, {rule("nvidia.com/gpu", true, {{"credits", "10"}})}},
       "credits=20 nvidia.com/gpu=2"},
      {"an output is added to what is asked for under that name: 1 + 2 x 1",
       R"({"credits":"1","nvidia.com/gpu":"2"})",
       {{}, {rule("nvidia.com/gpu", false, {{"credits", "1"}})}},
       "credits=3"},
      {"multiplyBy takes what the pod asks of another resource, and keeps the input: 4 x 10Gi",
       R"({"gpumem":"10","nvidia.com/gpu":"4"})",
       {{}, {rule("gpumem", true, {{"total", "1Gi"}}, "nvidia.com/gpu")}},
       "gpumem=10 nvidia.com/gpu=4 total=42949672960"},
      {"multiplyBy of something not asked for changes nothing",
       R"({"gpumem":"10"})",
       {{}, {rule("gpumem", false, {{"total", "1"}}, "nvidia.com/gpu")}},
       "total=10"},
      {"fractions are rounded once, at the end: 3 x 0.3 = 0.9",
       R"({"a":"300m","b":"300m","c":"300m"})",
       {{},
        {rule("a", false, {{"x", "1"}}), rule("b", false, {{"x", "1"}}),
         rule("c", false, {{"x", "1"}})}},
       "x=1"},
      {"billionths add up exactly",
       R"({"a":"1n","b":"999999999n"})",
       {{}, {rule("a", false, {{"x", "1"}}), rule("b", false, {{"x", "1"}})}},
       "x=1"},
      {"cpu is counted in milli: 500m x 1.0001 is 500.05 milli",
       R"({"a":"500m"})",
       {{}, {rule("a", false, {{"cpu", "1.0001"}})}},
       "cpu=501"},
      {"a negative total of outputs counts as nothing and takes nothing from requests",
       R"({"a":"5","credits":"3"})",
       {{}, {rule("a", false, {{"credits", "-1"}})}},
       "credits=3"},
      {"negative outputs take from other outputs: 5 x 2 - 3 x 1",
       R"({"a":"5","b":"3"})",
       {{}, {rule("a", false, {{"x", "2"}}), rule("b", false, {{"x", "-1"}})}},
       "x=7"},
      {"an output is no input: transformations do not chain",
       R"({"a":"1"})",
       {{}, {rule("a", false, {{"b", "1"}}), rule("b", false, {{"c", "1"}})}},
       "b=1"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(text_of(quota_requests(pod_asking(c.requests), c.rules)), c.counted) << c.sentence;
  }
}

TEST(QuotaRequests, SaturateAndNeverWrapOrShrink) {
  ResourceRules rules;
  rules.transformations = {rule("a", false, {{"x", "9223372036854775807"}}, "b")};
  const auto count = [&](const char* requests) {
    return quota_requests(pod_asking(requests), rules).at(ResourceName("x")).value();
  };
  EXPECT_EQ(count(R"({"a":"9223372036854775807","b":"9223372036854775807"})"), kMost);
  // Many decimals must not make a large product small: about 10^12 x 10^3 x 9.2 x 10^18.
  EXPECT_EQ(count(R"({"a":"1099511627776.000000001","b":"1000.000000001"})"), kMost);
  rules.transformations = {rule("a", false, {{"x", "0.123456789"}}, "b")};
  // 1099511627776.000000001 x 1000.000000001 x 0.123456789 = 135742175033523.9...
  EXPECT_EQ(count(R"({"a":"1099511627776.000000001","b":"1000.000000001"})"), 135742175033524);
}

}  // namespace
}  // namespace muster::kube

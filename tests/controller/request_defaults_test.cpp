// What the API server adds to pods, and what it refuses.

#include "controller/request_defaults.hpp"

#include "kube/codec/quota_requests.hpp"
#include "tests/controller/model_api.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster::controller::testing {
namespace {

std::string text_of(const ResourceList& requests) {
  std::string text;
  for (const auto& [name, amount] : requests) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, amount);
  }
  return text;
}

TEST(RequestDefaults, FillInWhatThePodLeavesOut) {
  RequestDefaults defaults;
  const Namespace ns("team");
  const auto limit_range = [&](const char* name, const char* item) {
    ASSERT_TRUE(defaults.upsert_limit_range(
        ns, name, json(fmt::format(R"({{"spec":{{"limits":[{}]}}}})", item))));
  };
  limit_range("b", R"({"type":"Container","defaultRequest":{"cpu":"4","memory":"4"}})");
  limit_range("a", R"({"type":"Container","default":{"cpu":"3"},"defaultRequest":{"cpu":"2"}})");
  ASSERT_TRUE(
      defaults.upsert_runtime_class("sandbox", json(R"({"overhead":{"podFixed":{"cpu":"1"}}})")));
  const auto counted = [&](const char* spec) {
    auto pod = kube::decode_pod_spec(json(spec)).value_or(kube::PodSpec());
    defaults.apply(ns, pod);
    return text_of(kube::quota_requests(pod, {}));
  };
  EXPECT_EQ(counted(R"({"containers":[{"name":"c"}]})"), "cpu=2000 memory=4")
      << "of two LimitRanges the first by name counts, resource by resource";
  EXPECT_EQ(counted(R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]})"),
            "cpu=1000 memory=4")
      << "what the pod asks for stays";
  EXPECT_EQ(counted(R"({"containers":[{"name":"c","resources":{"limits":{"cpu":"5"}}}]})"),
            "cpu=5000 memory=4")
      << "a limit of its own stands for the request before the LimitRange does";
  EXPECT_EQ(counted(R"({"runtimeClassName":"sandbox","containers":[{"name":"c"}]})"),
            "cpu=3000 memory=4")
      << "overhead of the RuntimeClass comes on top";
  EXPECT_EQ(counted(R"({"runtimeClassName":"sandbox","overhead":{"cpu":"2"},
                        "containers":[{"name":"c"}]})"),
            "cpu=4000 memory=4")
      << "unless the pod carries an overhead already";
  defaults.erase_limit_range(ns, "a");
  defaults.erase_runtime_class("sandbox");
  EXPECT_EQ(counted(R"({"runtimeClassName":"sandbox","containers":[{"name":"c"}]})"),
            "cpu=4000 memory=4");
  EXPECT_FALSE(defaults.upsert_limit_range(
      ns, "b", json(R"({"spec":{"limits":[{"type":"Container","default":{"cpu":"x"}}]}})")));
  EXPECT_EQ(counted(R"({"containers":[{"name":"c"}]})"), "cpu=4000 memory=4")
      << "what does not decode changes nothing";
}

TEST(RequestDefaults, SayWhatTheApiServerWouldRefuse) {
  RequestDefaults defaults;
  const Namespace ns("team");
  ASSERT_TRUE(defaults.upsert_limit_range(ns, "l", json(R"({"spec":{"limits":[
    {"type":"Container","max":{"gpu":"4"},"min":{"gpu":"2"}},
    {"type":"Pod","max":{"cpu":"3"}}]}})")));
  struct Case {
    const char* sentence;
    const char* containers;
    const char* says;  // empty: fine
  };
  const Case cases[] = {
      {"within all bounds", R"([{"name":"c","resources":{"requests":{"gpu":"3","cpu":"3"}}}])", ""},
      {"a request above its limit",
       R"([{"name":"c","resources":{"requests":{"x":"2"},"limits":{"x":"1"}}}])",
       "container c asks for 2 x, above its limit of 1"},
      {"a limit above the maximum of a container",
       R"([{"name":"c","resources":{"limits":{"gpu":"5"}}}])", "allows at most 4"},
      {"a request below the minimum", R"([{"name":"c","resources":{"requests":{"gpu":"1"}}}])",
       "wants at least 2"},
      {"together above the maximum of a pod",
       R"([{"name":"c","resources":{"requests":{"cpu":"2"}}},
           {"name":"d","resources":{"requests":{"cpu":"2"}}}])",
       "a pod has 4 cpu"},
  };
  for (const Case& c : cases) {
    auto pod = kube::decode_pod_spec(json(fmt::format(R"({{"containers":{}}})", c.containers)))
                   .value_or(kube::PodSpec());
    defaults.apply(ns, pod);
    const std::string why = defaults.violation(ns, pod).value_or("");
    EXPECT_EQ(why.empty(), std::string(c.says).empty()) << c.sentence << ": " << why;
    EXPECT_NE(why.find(c.says), std::string::npos) << c.sentence << ": " << why;
    if (std::string(c.sentence).find("maximum") == std::string::npos) continue;
    EXPECT_FALSE(defaults.violation(Namespace("other"), pod)) << "other namespaces are free";
  }
}

}  // namespace
}  // namespace muster::controller::testing

#include "kube/codec/objects.hpp"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

Json parsed(std::string_view text) {
  const Result<Json> json = Json::parse(text);
  EXPECT_TRUE(json) << text << ": " << (json ? "" : json.error().message);
  return json.value_or(Json());
}

Job job(std::string_view spec) {
  return decode_job(Json::object({{"spec", parsed(spec)}})).value();
}

TEST(DecodeJob, AppliesTheApiDefaults) {
  const struct {
    const char* sentence;
    const char* spec;
    std::int64_t pods;
    bool fixed_ranks;
  } cases[] = {
      {"neither given: one pod", R"({})", 1, false},
      {"indexed, neither given", R"({"completionMode":"Indexed"})", 1, true},
      {"a work queue", R"({"parallelism":5})", 5, false},
      {"fewer completions than parallelism", R"({"parallelism":5,"completions":3})", 3, false},
      {"indexed, all at once", R"({"parallelism":5,"completions":5,"completionMode":"Indexed"})", 5,
       true},
      {"indexed in waves", R"({"parallelism":2,"completions":5,"completionMode":"Indexed"})", 2,
       false},
      {"completions alone", R"({"completions":4})", 1, false},
      {"stopped", R"({"parallelism":0,"completions":4})", 0, false},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(job(each.spec).pod_count(), each.pods) << each.sentence;
    EXPECT_EQ(job(each.spec).fixed_ranks(), each.fixed_ranks) << each.sentence;
  }
}

TEST(DecodeJob, ReadsTemplateAndStatus) {
  const Job read = decode_job(parsed(R"({
    "metadata":{"name":"j"},
    "spec":{"suspend":true,"managedBy":"example.com/x","parallelism":2,
      "template":{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}},
                  "spec":{"containers":[{"name":"c"}],"restartPolicy":"Never","unknown":{"kept":1}}}},
    "status":{"active":2,"ready":1,"succeeded":3,"failed":4,"terminating":5,
              "startTime":"2026-11-29T16:00:00Z",
              "conditions":[{"type":"Complete","status":"True"}]}})"))
                       .value();
  EXPECT_TRUE(read.suspend);
  EXPECT_EQ(read.managed_by, "example.com/x");
  EXPECT_EQ(read.pod_template.labels.at("a"), "b");
  EXPECT_EQ(read.pod_template.annotations.at("c"), "d");
  EXPECT_EQ(read.pod_template.raw.get("spec", "unknown", "kept").int_or(0), 1);
  EXPECT_EQ(read.active, 2);
  EXPECT_EQ(read.ready, 1);
  EXPECT_EQ(read.succeeded, 3);
  EXPECT_EQ(read.failed, 4);
  EXPECT_EQ(read.terminating, 5);
  EXPECT_TRUE(read.start_time);
  EXPECT_TRUE(read.finished());
}

TEST(DecodeJob, RefusesCountsThatCannotBe) {
  const struct {
    const char* object;
    const char* message;
  } cases[] = {
      {R"({"spec":{"parallelism":-1}})",
       "spec.parallelism: got -1, want an integer from 0 to 2147483647"},
      {R"({"spec":{"completions":2147483648}})",
       "spec.completions: got 2147483648, want an integer from 0 to 2147483647"},
      {R"({"spec":{"parallelism":1e30}})",
       "spec.parallelism: got 1e+30, want an integer from 0 to 2147483647"},
      {R"({"spec":{"parallelism":"2"}})",
       "spec.parallelism: got string \"2\", want an integer from 0 to 2147483647"},
      {R"({"spec":{"suspend":"yes"}})", "spec.suspend: got string \"yes\", want true or false"},
      {R"({"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":{}}}}]}}}})",
       "spec.template.spec.containers[0].resources.limits.cpu: got an object, want a quantity"},
      {R"({"status":{"active":-3}})",
       "status.active: got -3, want an integer from 0 to 2147483647"},
  };
  for (const auto& each : cases) {
    const Result<Job> read = decode_job(parsed(each.object));
    ASSERT_FALSE(read) << each.object;
    EXPECT_EQ(read.error().message, each.message);
  }
}

TEST(DecodeNode, RoundsWhatItOffers) {
  const Node node = decode_node(parsed(R"({
    "metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"h1"}},
    "spec":{"unschedulable":true,"taints":[{"key":"k","value":"v","effect":"NoExecute",
                                            "timeAdded":"2026-11-29T16:00:00Z"}]},
    "status":{"capacity":{"cpu":"64"},
              "allocatable":{"cpu":"63500m","memory":"515000Mi","nvidia.com/gpu":"8","pods":"110"},
              "conditions":[{"type":"Ready","status":"True"}]}})"))
                        .value();
  EXPECT_TRUE(node.unschedulable);
  EXPECT_TRUE(node.ready);
  ASSERT_EQ(node.taints.size(), 1U);
  EXPECT_EQ(node.taints[0].effect, TaintEffect::kNoExecute);
  EXPECT_EQ(node.allocatable.at(ResourceName("cpu")), Amount(63'500));
  EXPECT_EQ(node.allocatable.at(ResourceName("memory")), Amount(515'000LL << 20));
  EXPECT_EQ(node.allocatable.at(ResourceName("nvidia.com/gpu")), Amount(8));
  EXPECT_EQ(node.allocatable.at(ResourceName("pods")), Amount(110));
}

TEST(DecodeNode, OffersItsCapacityWhereNothingElseIsSaid) {
  const Node node = decode_node(parsed(R"({"status":{"capacity":{"cpu":"4","x":"-3"}}})")).value();
  EXPECT_EQ(node.allocatable.at(ResourceName("cpu")), Amount(4000));
  EXPECT_EQ(node.allocatable.at(ResourceName("x")), Amount(0));
  EXPECT_FALSE(node.ready);
  EXPECT_TRUE(decode_node(parsed(R"({"status":{"capacity":{"cpu":"4"},"allocatable":{}}})"))
                  ->allocatable.empty());
}

TEST(DecodeNode, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(decode_node(parsed(R"({"spec":{"taints":[{"key":"k"}]}})")).error().message,
            "spec.taints[0].effect: got nothing, want an effect");
  EXPECT_EQ(decode_node(parsed(R"({"status":{"allocatable":{"cpu":"x"}}})")).error().message,
            "status.allocatable.cpu: bad quantity \"x\" (want e.g. \"500m\", \"2\", \"1.5Gi\")");
}

}  // namespace
}  // namespace muster::kube

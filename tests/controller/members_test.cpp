// What is done when something outside tears a gang or breaks its plan, and the commit barrier.

#include "tests/controller/cluster.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace muster::controller::testing {
namespace {

using kube::Json;
using ::testing::IsEmpty;

std::string text(const Json& value) {
  return std::string(value.string_or(""));
}

std::string pod_on(const Cluster& cluster, const std::string& node) {
  for (const Json& pod : cluster.api.list(ResourceKind::kPod)) {
    if (text(pod.get("spec", "nodeName")) == node) return text(pod.get("metadata", "name"));
  }
  return "";
}

void add_fleet(Cluster& cluster, int nodes) {
  cluster.add_nodes(nodes);
  cluster.add_flavor();
  cluster.add_queue("q", 800);
}

TEST(Members, AMemberPreemptedByTheSchedulerTakesItsWholeGangOutAndBackIn) {
  Cluster cluster;
  add_fleet(cluster, 3);
  cluster.add_job("gang", 3, "q", R"("backoffLimit": 0,)");
  cluster.add_job("other", 1, "q");
  ASSERT_TRUE(cluster.settle());
  ASSERT_EQ(cluster.bound_pods("gang"), 3);
  std::set<std::string> before;
  for (const Json& pod : cluster.api.list(ResourceKind::kPod)) {
    before.insert(text(pod.get("metadata", "uid")));
  }
  cluster.api.grace_steps = 5;
  const Json victim = cluster.api.list(ResourceKind::kPod).front();
  // The Job controller would count this one; what matters here is that no part of the gang stays.
  const Json job = kube::merge_patch(cluster.job("gang"), json(R"({"spec":{"backoffLimit":6}})"));
  cluster.api.store(ResourceKind::kJob, job);
  cluster.api.preempt_pod("team", text(victim.get("metadata", "name")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.controller->stats().gangs_torn, 1U);
  EXPECT_EQ(cluster.writes(WriteKind::kEvict), 1);
  for (const Json& pod : cluster.api.list(ResourceKind::kPod)) {
    EXPECT_FALSE(before.contains(text(pod.get("metadata", "uid")))) << "a pod of the torn gang";
  }
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(Members, APlannedNodeThatDiesBeforeTheBindIsReplacedAndTheJobDoesNotFail) {
  Cluster cluster;
  add_fleet(cluster, 4);
  cluster.api.scheduler_on = false;
  cluster.add_job("gang", 3, "q", R"("backoffLimit": 0,)");
  for (int i = 0; i < 30; ++i) cluster.step();
  ASSERT_EQ(cluster.pods("gang"), 3);
  const auto plan = cluster.workload_of("gang").admission->pod_sets.at(0).topology->domains;
  const std::string lost = plan.at(0).values.at(0).substr(5);  // host-n0 -> n0
  cluster.api.erase(ResourceKind::kNode, "", lost);
  for (int i = 0; i < 60; ++i) cluster.step();
  cluster.api.scheduler_on = true;
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("gang"), 3);
  EXPECT_EQ(cluster.writes(WriteKind::kReplan), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kUnfinalizePod), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kDeletePod), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kEvict), 0);
  EXPECT_FALSE(cluster.is_true("gang", "Finished"));
  EXPECT_EQ(cluster.controller->stats().pods_replaced, 1U);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(Members, APlanIsRepairedAroundAPodThatIsOnItsWayToOneOfItsNodes) {
  Cluster cluster;
  add_fleet(cluster, 4);
  cluster.api.scheduler_on = false;
  cluster.add_job("gang", 3, "q", R"("backoffLimit": 0,)");
  cluster.api.store(ResourceKind::kPod, json(R"({
      "apiVersion": "v1", "kind": "Pod",
      "metadata": {"namespace": "team", "name": "parked", "uid": "parked-uid"},
      "spec": {"containers": [{"name": "main", "image": "i", "resources": {
          "requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}]}})"));
  for (int i = 0; i < 30; ++i) cluster.step();
  const auto first_node = [&] {
    const auto plan = cluster.workload_of("gang").admission->pod_sets.at(0).topology->domains;
    return plan.at(0).values.at(0).substr(5);  // host-n0 -> n0
  };
  const std::string taken = first_node();
  cluster.controller->on_pod_presumed(Uid("parked-uid"), NodeName(taken), cluster.now());
  for (int i = 0; i < 60; ++i) cluster.step();
  EXPECT_EQ(cluster.writes(WriteKind::kReplan), 1);
  EXPECT_EQ(cluster.controller->stats().pods_replaced, 1U);
  EXPECT_NE(first_node(), taken);
  // Any news of the pod but where it is leaves it on its way.
  Json pod = cluster.api.get(ResourceKind::kPod, "team", "parked");
  cluster.api.store(ResourceKind::kPod,
                    kube::merge_patch(pod, json(R"({"metadata":{"labels":{"a":"b"}}})")));
  cluster.add_job("later", 1, "q");
  for (int i = 0; i < 60; ++i) cluster.step();
  EXPECT_FALSE(cluster.is_true("later", "Admitted")) << "there is no whole node left";
  cluster.controller->on_pod_presumed(Uid("parked-uid"), std::nullopt, cluster.now());
  for (int i = 0; i < 60; ++i) cluster.step();
  EXPECT_TRUE(cluster.is_true("later", "Admitted"));
  EXPECT_EQ(cluster.writes(WriteKind::kEvict), 0);
}

TEST(Members, PodsAreNotReplacedWhileOurPinWebhookDoesNotAnswer) {
  Cluster cluster;
  add_fleet(cluster, 4);
  cluster.api.scheduler_on = false;
  cluster.add_job("gang", 3, "q");
  for (int i = 0; i < 30; ++i) cluster.step();
  cluster.controller->on_hook_health(false);
  const auto plan = cluster.workload_of("gang").admission->pod_sets.at(0).topology->domains;
  cluster.api.erase(ResourceKind::kNode, "", plan.at(0).values.at(0).substr(5));
  for (int i = 0; i < 60; ++i) cluster.step();
  EXPECT_EQ(cluster.writes(WriteKind::kReplan), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kDeletePod), 0);
}

TEST(Members, ARankIsReplacedOnceInTenSecondsAtMost) {
  Cluster cluster;
  add_fleet(cluster, 6);
  cluster.api.scheduler_on = false;
  cluster.add_job("gang", 1, "q");
  for (int i = 0; i < 30; ++i) cluster.step();
  for (int round = 0; round < 3; ++round) {
    const auto plan = cluster.workload_of("gang").admission->pod_sets.at(0).topology->domains;
    cluster.api.erase(ResourceKind::kNode, "", plan.at(0).values.at(0).substr(5));
    for (int i = 0; i < 100; ++i) cluster.step();
  }
  // 3 nodes lost within 3 s.
  EXPECT_EQ(cluster.writes(WriteKind::kDeletePod), 1);
  cluster.pass_time(std::chrono::seconds(8));
  for (int i = 0; i < 30; ++i) cluster.step();
  EXPECT_EQ(cluster.writes(WriteKind::kDeletePod), 2);
}

TEST(Members, AGangWhoseNodeIsGoneAndCannotBeReplacedGoesAsAWhole) {
  Cluster cluster;
  add_fleet(cluster, 3);
  cluster.api.scheduler_on = false;
  cluster.add_job("gang", 3, "q");
  for (int i = 0; i < 30; ++i) cluster.step();
  cluster.api.erase(ResourceKind::kNode, "", "n1");
  cluster.api.scheduler_on = true;
  for (int i = 0; i < 700; ++i) cluster.step();  // 7 s
  EXPECT_EQ(cluster.pods("gang"), 0);
  EXPECT_FALSE(cluster.workload_of("gang").admission);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(Barrier, AStartWaitsForItAndIsAskedWithThePlanAndTheSnapshotThatShowsIt) {
  Cluster cluster;
  add_fleet(cluster, 2);
  bool clear = false;
  std::vector<BarrierQuery> asked;
  cluster.barrier = [&](const BarrierQuery& query) {
    asked.push_back(query);
    return clear;
  };
  cluster.add_job("gang", 2, "q");
  for (int i = 0; i < 50; ++i) cluster.step();  // 0.5 s
  EXPECT_TRUE(cluster.is_true("gang", "Admitted"));
  EXPECT_TRUE(cluster.suspended("gang"));
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.front().planned.size(), 2U);
  EXPECT_EQ(asked.front().planned.begin()->second.at(ResourceName("nvidia.com/gpu")), Amount(8));
  EXPECT_GT(asked.front().generation, 0U);
  EXPECT_LE(asked.front().generation, cluster.engine->publish()->generation);
  clear = true;
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("gang"), 2);
  EXPECT_EQ(cluster.controller->stats().barrier_waits, 1U);
  EXPECT_EQ(cluster.controller->stats().barrier_timeouts, 0U);
}

TEST(Barrier, NoWaitIsLongerThanTwoSeconds) {
  Cluster cluster;
  add_fleet(cluster, 1);
  cluster.barrier = [](const BarrierQuery&) { return false; };
  cluster.add_job("a", 1, "q");
  std::optional<Instant> admitted;
  std::optional<Instant> started;
  for (int i = 0; i < 300 && !started; ++i) {
    cluster.step();
    if (!admitted && cluster.has_workload("a") && cluster.is_true("a", "Admitted")) {
      admitted = cluster.now();
    }
    if (!cluster.suspended("a")) started = cluster.now();
  }
  ASSERT_TRUE(admitted && started);
  EXPECT_GE(*started - *admitted, std::chrono::milliseconds(1900));
  EXPECT_LE(*started - *admitted, std::chrono::milliseconds(2050));
  EXPECT_EQ(cluster.controller->stats().barrier_timeouts, 1U);
}

TEST(PlainPods, AreStartedBehindTheirGateAndKeepTheGatesOfOthers) {
  Cluster cluster;
  add_fleet(cluster, 1);
  cluster.add_gated_pod("p", "q");
  ASSERT_TRUE(cluster.settle());
  const Json pod = cluster.api.get(ResourceKind::kPod, "team", "p");
  ASSERT_EQ(pod.get("spec", "schedulingGates").size(), 1U);
  EXPECT_EQ(pod.get("spec", "schedulingGates").at(0).get("name").string_or(""),
            "example.com/other");
  EXPECT_EQ(cluster.writes(WriteKind::kUngatePod), 1);
  EXPECT_TRUE(cluster.is_true("p", "Admitted"));
  EXPECT_EQ(cluster.workload_writes(), 3);
}

TEST(PlainPods, AreDeletedOnEvictionAndTheirQuotaIsFreeWhenTheyAreGone) {
  Cluster cluster;
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("regular", 0, "org");
  cluster.add_queue("prod", 8, "org", R"({"reclaimWithinCohort": "Any"})");
  Json pod = cluster.add_gated_pod("p", "regular");
  cluster.api.store(ResourceKind::kPod, kube::merge_patch(pod, json(R"({"spec":{"schedulingGates":[
                      {"name":"kueue.x-k8s.io/admission"}]}})")));
  ASSERT_TRUE(cluster.settle());
  ASSERT_EQ(pod_on(cluster, "n0"), "p");
  cluster.add_job("owner", 1, "prod");
  ASSERT_TRUE(cluster.settle());
  EXPECT_FALSE(cluster.api.get(ResourceKind::kPod, "team", "p").present());
  EXPECT_FALSE(cluster.has_workload("p"));
  EXPECT_EQ(cluster.bound_pods("owner"), 1);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(PlainPods, ThatSlippedPastTheirGateAreDeleted) {
  Cluster cluster;
  add_fleet(cluster, 1);
  cluster.add_job("holder", 1, "q");
  ASSERT_TRUE(cluster.settle());
  const Json pod = cluster.add_gated_pod("p", "q");
  ASSERT_TRUE(cluster.settle());
  cluster.api.store(ResourceKind::kPod,
                    kube::merge_patch(pod, json(R"({"spec":{"schedulingGates":null}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_FALSE(cluster.api.get(ResourceKind::kPod, "team", "p").present());
}

TEST(PlainPods, EndWithTheirWorkload) {
  Cluster cluster;
  add_fleet(cluster, 1);
  cluster.add_gated_pod("p", "q");
  ASSERT_TRUE(cluster.settle());
  const Json pod = cluster.api.get(ResourceKind::kPod, "team", "p");
  cluster.api.store(ResourceKind::kPod,
                    kube::merge_patch(pod, json(R"({"status":{"phase":"Failed"}})")));
  ASSERT_TRUE(cluster.settle());
  const auto workload = cluster.workload_of("p");
  const kube::Condition* finished = kube::find_condition(workload.conditions, "Finished");
  ASSERT_NE(finished, nullptr);
  EXPECT_EQ(finished->reason, "Failed");
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

}  // namespace
}  // namespace muster::controller::testing

// Elastic gangs that wait for nodes, against the model API (design section 2).

#include "controller/elastic_window.hpp"
#include "engine/slots.hpp"
#include "tests/controller/cluster.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::controller::testing {
namespace {

using kube::Json;
using ::testing::IsEmpty;

WorkloadKey key(const std::string& name) {
  return {Namespace("team"), name};
}

TEST(ElasticWindow, OpensInOrderAndNoMorePodsThanItsLimit) {
  ElasticWindow window(8);
  window.wait({0, Instant{2}, key("second")}, 4);
  window.wait({0, Instant{1}, key("first")}, 4);
  window.wait({-5, Instant{3}, key("urgent")}, 4);
  EXPECT_EQ(window.next(), key("urgent"));
  window.open(key("urgent"), 4);
  EXPECT_EQ(window.next(), key("first"));
  window.open(key("first"), 4);
  EXPECT_EQ(window.next(), std::nullopt);
  EXPECT_EQ(window.open_pods(), 8);
  window.forget(key("urgent"));
  EXPECT_EQ(window.next(), key("second"));
  window.forget(key("second"));
  EXPECT_EQ(window.next(), std::nullopt);
  EXPECT_EQ(window.open_gangs(), 1U);
}

TEST(ElasticWindow, ALargerGangWaitsWithAllItsPodsAlone) {
  ElasticWindow window(8);
  window.wait({0, Instant{1}, key("huge")}, 100);
  EXPECT_EQ(window.next(), key("huge"));
  window.open(key("huge"), 100);
  window.wait({0, Instant{2}, key("small")}, 1);
  EXPECT_EQ(window.next(), std::nullopt);
  window.forget(key("huge"));
  EXPECT_EQ(window.next(), key("small"));
}

TEST(ElasticWindow, SaidAgainItCountsOnce) {
  ElasticWindow window(8);
  window.open(key("a"), 4);
  window.open(key("a"), 4);
  EXPECT_EQ(window.open_pods(), 4);
  window.wait({0, Instant{1}, key("a")}, 4);
  EXPECT_EQ(window.open_pods(), 0);
  EXPECT_EQ(window.waiting_gangs(), 1U);
}

/// The extender's answers, in short: no node while the gang is held, its own when it has a plan.
std::vector<std::string> nodes_for(Cluster& cluster, const Json& pod) {
  const auto snapshot = cluster.engine->publish();
  const Uid owner(pod.get("metadata", "ownerReferences").at(0).get("uid").string_or(""));
  const auto workload = snapshot->find_workload(owner);
  if (!workload || workload->held) return {};
  const engine::PodSetView& pod_set = workload->pod_sets.front();
  if (pod_set.slots.empty()) {
    std::vector<std::string> all;
    for (const Json& node : cluster.api.list(ResourceKind::kNode)) {
      all.emplace_back(node.get("metadata", "name").string_or(""));
    }
    return all;
  }
  const std::string index(
      pod.get("metadata", "labels", "batch.kubernetes.io/job-completion-index").string_or(""));
  const auto node =
      engine::node_of_rank(pod_set.slots, pod_set.bound_ranks, std::stoll("0" + index));
  if (!node) return {};
  return {node->value()};
}

class HeldGangs : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster.options.default_capacity = engine::Capacity::kElastic;
    cluster.options.elastic_window = 4;
    cluster.restart();
    cluster.api.extender = [this](const Json& pod) { return nodes_for(cluster, pod); };
    cluster.add_flavor();
    cluster.add_queue("q", 1000);
  }
  [[nodiscard]] std::string placed(const std::string& job) const {
    const kube::Workload workload = cluster.workload_of(job);
    const kube::Condition* found = kube::find_condition(workload.conditions, "muster.dev/Placed");
    return found == nullptr ? "" : found->status + " " + found->reason;
  }
  Cluster cluster;
};

TEST_F(HeldGangs, NoPodIsBoundBeforeAllOfThemHaveNodes) {
  cluster.add_job("gang", 3, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_TRUE(cluster.is_true("gang", "Admitted"));
  EXPECT_EQ(placed("gang"), "False WaitingForCapacity");
  EXPECT_EQ(cluster.pods("gang"), 3);
  EXPECT_EQ(cluster.bound_pods("gang"), 0);
  for (int i = 0; i < 2; ++i) {
    cluster.add_nodes(1, fmt::format("m{}-", i));
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.bound_pods("gang"), 0);
  }
  EXPECT_EQ(cluster.writes(WriteKind::kTellPlaced), 0);
  cluster.add_nodes(1, "last");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("gang"), 3);
  EXPECT_EQ(placed("gang"), "True Placed");
  EXPECT_EQ(cluster.writes(WriteKind::kReplan), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kTellPlaced), 3);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST_F(HeldGangs, WhatTheWindowHasNoRoomForKeepsItsQuotaAndHasNoPods) {
  cluster.add_job("one", 3, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("two", 2, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_TRUE(cluster.is_true("two", "Admitted"));
  EXPECT_TRUE(cluster.suspended("two"));
  EXPECT_EQ(cluster.controller->stats().gangs_held, 1U);
  EXPECT_EQ(cluster.controller->stats().gangs_waiting, 1U);
  cluster.add_nodes(3);
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("one"), 3);
  EXPECT_EQ(cluster.pods("two"), 2);
  EXPECT_EQ(cluster.bound_pods("two"), 0);
  cluster.add_nodes(2, "more");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("two"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST_F(HeldGangs, OneThatFitsBeforeItsTurnStartsPinned) {
  cluster.add_job("large", 4, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("pair", 2, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_TRUE(cluster.suspended("pair"));
  cluster.add_nodes(6);
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("large"), 4);
  EXPECT_EQ(cluster.bound_pods("pair"), 2);
  EXPECT_EQ(cluster.writes(WriteKind::kTellPlaced), 4);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST_F(HeldGangs, AHeldGangThatIsDeletedMakesRoomInTheWindow) {
  cluster.add_job("one", 3, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("two", 2, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.api.erase(ResourceKind::kJob, "team", "one");
  ASSERT_TRUE(cluster.settle());
  cluster.pass_time(std::chrono::seconds(10));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.pods("two"), 2);
  EXPECT_EQ(cluster.controller->stats().gangs_waiting, 0U);
}

TEST_F(HeldGangs, AnEvictedOneHoldsNothingAndWaitsLikeAnyOther) {
  cluster.add_job("gang", 3, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.api.store(ResourceKind::kClusterQueue,
                    kube::merge_patch(cluster.api.get(ResourceKind::kClusterQueue, "", "q"),
                                      json(R"({"spec": {"stopPolicy": "HoldAndDrain"}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(placed("gang"), "False NoReservation");
  EXPECT_EQ(cluster.pods("gang"), 0);
  cluster.api.store(ResourceKind::kClusterQueue,
                    kube::merge_patch(cluster.api.get(ResourceKind::kClusterQueue, "", "q"),
                                      json(R"({"spec": {"stopPolicy": "None"}})")));
  cluster.add_nodes(3);
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("gang"), 3);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST_F(HeldGangs, ACrashAfterAnyWriteLosesNothing) {
  for (int n = 0; n < 24; ++n) {
    Cluster fresh;
    fresh.options.default_capacity = engine::Capacity::kElastic;
    fresh.options.elastic_window = 4;
    fresh.restart();
    fresh.api.extender = [&fresh](const Json& pod) { return nodes_for(fresh, pod); };
    fresh.add_flavor();
    fresh.add_queue("q", 1000);
    fresh.crash_after = n;
    fresh.add_job("one", 3, "q");
    fresh.add_job("two", 2, "q");
    ASSERT_TRUE(fresh.settle()) << n;
    for (int i = 0; i < 5; ++i) {
      fresh.add_nodes(1, fmt::format("m{}-", i));
      ASSERT_TRUE(fresh.settle()) << n;
      for (const auto& [job, pods] : {std::pair("one", 3), std::pair("two", 2)}) {
        const int bound = fresh.bound_pods(job);
        EXPECT_TRUE(bound == 0 || bound == pods) << n << ": " << job << " " << bound;
      }
    }
    EXPECT_EQ(fresh.bound_pods("one") + fresh.bound_pods("two"), 5) << n;
    EXPECT_THAT(fresh.broken_promises(), IsEmpty()) << n;
  }
}

}  // namespace
}  // namespace muster::controller::testing

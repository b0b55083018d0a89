// Who may not be preempted: not preemptible, minimum run time; and what that costs.

#include "tests/engine/world.hpp"

namespace muster::engine::test {
namespace {

using std::chrono::seconds;
using Log = std::vector<std::string>;

constexpr PreemptionSpec kAll{PreemptionPolicy::kLowerPriority, PreemptionPolicy::kAny, {}};

std::string says(const World& world, const std::string& name) {
  const auto explanation = world.engine.explanation(World::key(name));
  return explanation ? describe(*explanation) : "";
}

void build(World& world, std::int64_t nominal = 8) {
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = nominal, .preemption = kAll});
}

TEST(Protection, WhatIsNotPreemptibleIsNeverAVictimAndTheOneThatWaitsIsTold) {
  World world;
  build(world);
  world.run("kept", {.gpus = 4, .priority = 0}, 1, {.preemptible = false});
  world.run("dear", {.gpus = 4, .priority = 5}, 1);
  world.submit("new", {.gpus = 4, .priority = 10, .created_s = 500});
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict dear InClusterQueue for new"}));
  world.submit("large", {.gpus = 8, .priority = 20, .created_s = 500});
  world.settle();
  EXPECT_EQ(world.log.size(), 1U);
  EXPECT_EQ(world.why("large"), "WaitingForQuota");
  EXPECT_NE(says(world, "large").find("not preempted: team/kept (not preemptible)"),
            std::string::npos)
      << says(world, "large");
}

TEST(Protection, EachPlaceYieldsToTheOneBefore) {
  for (const bool on_workload : {false, true}) {
    World world;
    build(world);
    ClusterQueueSpec queue = world.engine.state().queues.at(ClusterQueueName("a"));
    queue.protection.preemptible = false;
    queue.protection.min_runtime = seconds(10);
    world.send(ClusterQueueUpserted{queue});
    LocalQueueSpec local{{Namespace("team"), "a"}, ClusterQueueName("a"), StopPolicy::kNone, {}};
    local.protection.preemptible = true;
    world.send(LocalQueueUpserted{local});
    Protection own;
    if (on_workload) own.preemptible = false;
    world.run("low", {.gpus = 8}, 1, own);
    world.submit("new", {.gpus = 8, .priority = 10, .created_s = 500});
    world.settle();
    EXPECT_EQ(world.log.empty(), on_workload);
  }
}

TEST(Protection, NobodyIsPreemptedBeforeItsMinimumRunTimeAndTheEngineWakesWhenItEnds) {
  World world;  // Its time is 1000 s.
  build(world);
  world.run("young", {.gpus = 8}, 900, {.min_runtime = seconds(130)});
  world.submit("new", {.gpus = 8, .priority = 10, .created_s = 500});
  world.settle();
  EXPECT_EQ(world.log, Log{});
  EXPECT_NE(says(world, "new").find("team/young (may run until 1970-01-01T00:17:10Z)"),
            std::string::npos)
      << says(world, "new");
  ASSERT_EQ(world.engine.next_wakeup(), Instant{1030 * 1'000'000});
  world.pass_time(29);
  EXPECT_FALSE(world.engine.wants_settle(world.now));
  world.pass_time(1);
  EXPECT_TRUE(world.engine.wants_settle(world.now));
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict young InClusterQueue for new"}));
}

TEST(Protection, WithoutAnybodyWaitingNothingWakesTheEngine) {
  World world;
  build(world);
  world.run("young", {.gpus = 8}, 900, {.min_runtime = seconds(130)});
  world.settle();
  EXPECT_EQ(world.engine.next_wakeup(), std::nullopt);
}

TEST(Protection, WhatIsNotPreemptibleDoesNotBorrow) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.cohort = "org", .nominal = 8, .preemption = kAll});
  world.queue("b", {.cohort = "org", .nominal = 8});
  WorkloadSpec kept = world.job("kept", {.pods = 2, .gpus = 8, .created_s = 1});
  kept.protection.preemptible = false;
  world.send(WorkloadUpserted{kept});
  world.settle();
  EXPECT_EQ(world.log, Log{});
  EXPECT_EQ(world.why("kept"), "ExceedsMaxQuota");
  EXPECT_NE(says(world, "kept")
                .find("16 nvidia.com/gpu asked, 8 possible in flavor h100 of "
                      "ClusterQueue a itself (it is not preemptible"),
            std::string::npos)
      << says(world, "kept");
  world.submit("same-but-preemptible", {.pods = 2, .gpus = 8, .created_s = 2});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit same-but-preemptible"}));
}

TEST(Protection, ACohortBelowTheRootBindsItToo) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.cohort("left", "root");
  world.queue("a", {.cohort = "left", .nominal = 8});
  world.queue("lender", {.cohort = "root", .nominal = 8});
  world.queue("sibling", {.cohort = "left", .nominal = 0});
  world.run("borrows-in-left", {.queue = "sibling", .gpus = 8}, 1);
  WorkloadSpec kept = world.job("kept", {.gpus = 8, .created_s = 1});
  kept.protection.preemptible = false;
  world.send(WorkloadUpserted{kept});
  world.settle();
  // The root has 8 left, but left would be above its own 8.
  EXPECT_EQ(world.log, Log{});
  EXPECT_EQ(world.needs_of("kept"), "8 nvidia.com/gpu in cohort left");
}

TEST(Protection, ItTakesBackWhatIsItsOwn) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.cohort = "org", .nominal = 8, .preemption = kAll});
  world.queue("b", {.cohort = "org", .nominal = 0});
  world.run("lent", {.queue = "b", .gpus = 8, .priority = 50}, 1);
  WorkloadSpec kept = world.job("kept", {.gpus = 8, .created_s = 1});
  kept.protection.preemptible = false;
  world.specs[kept.key] = kept;
  world.send(WorkloadUpserted{kept});
  world.settle();
  world.let_leave();
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict lent InCohortReclamation for kept", "admit kept"}));
}

}  // namespace
}  // namespace muster::engine::test

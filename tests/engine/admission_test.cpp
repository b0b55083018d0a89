// Admission: quota, cohorts, order, plans on real nodes.

#include "tests/engine/world.hpp"

namespace muster::engine::test {
namespace {

using Log = std::vector<std::string>;

TEST(Admission, ADeactivatedRunningWorkloadGoesWithoutAnythingElseHappening) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a");
  world.submit("job");
  (void)world.settle();
  ASSERT_TRUE(world.admitted("job"));
  EXPECT_FALSE(world.engine.wants_settle(world.now));
  WorkloadSpec& spec = world.specs[World::key("job")];
  spec.active = false;
  world.send(WorkloadUpserted{spec});
  EXPECT_TRUE(world.engine.wants_settle(world.now));
  (void)world.settle();
  EXPECT_EQ(world.log.back(), "evict job");
}

TEST(Admission, AdmitsWhatFitsQuotaAndNodesAndSaysWhatTheRestLacks) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.nominal = 16});
  world.submit("first", {.pods = 2, .created_s = 1});
  world.submit("second", {.pods = 2, .created_s = 2});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit first"}));
  EXPECT_EQ(world.plan("first"), "n1 n2");
  // 16 of 16 used: the second asks for 16, 0 are free.
  EXPECT_EQ(world.why("second"), "WaitingForQuota");
  EXPECT_EQ(world.needs_of("second"), "16 nvidia.com/gpu in ClusterQueue a");
}

TEST(Admission, StartsTheNextWhenTheFirstFinishes) {
  World world;
  world.flavor("h100");
  world.nodes("n", 2);
  world.queue("a", {.nominal = 16});
  world.submit("first", {.pods = 2, .created_s = 1});
  world.submit("second", {.pods = 2, .created_s = 2});
  world.settle();
  EXPECT_FALSE(world.engine.wants_settle(world.now));
  world.finish("first");
  EXPECT_TRUE(world.engine.wants_settle(world.now));
  world.settle();
  EXPECT_TRUE(world.admitted("second"));
}

TEST(Admission, AFixedFlavorNeedsRoomOnNodesForTheWholeGang) {
  World world;
  world.flavor("h100");
  world.nodes("n", 3);
  world.queue("a", {.nominal = 1000});
  world.submit("gang", {.pods = 4});
  world.settle();
  EXPECT_FALSE(world.admitted("gang"));
  EXPECT_EQ(world.why("gang"), "TopologyPlacementFailed");
  EXPECT_EQ(world.needs_of("gang"), "room for 1 more pod of main on nodes of flavor h100");
  world.node("n4");
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n1 n2 n3 n4");
}

TEST(Admission, AnElasticFlavorAdmitsOnQuotaAlone) {
  World world;
  world.flavor("spot", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 1000, .flavor = "spot"});
  world.submit("gang", {.pods = 4});
  world.settle();
  EXPECT_TRUE(world.admitted("gang"));
  EXPECT_EQ(world.plan("gang"), "");
}

TEST(Admission, CountsForeignPodsOnTheNodes) {
  World world;
  world.flavor("h100");
  world.nodes("n", 2);
  world.queue("a", {.nominal = 1000});
  world.pod("other", "n1", 1);
  world.submit("gang", {.pods = 2});
  world.settle();
  EXPECT_FALSE(world.admitted("gang"));
  world.pod_gone("other");
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n1 n2");
}

TEST(Admission, TwoQueuesNeverGetTheSameSlot) {
  World world;
  world.flavor("h100");
  world.nodes("n", 3);
  world.queue("a", {.nominal = 1000});
  world.queue("b", {.nominal = 1000});
  world.submit("one", {.queue = "a", .pods = 2, .created_s = 1});
  world.submit("two", {.queue = "b", .pods = 2, .created_s = 2});
  world.settle();
  EXPECT_TRUE(world.admitted("one"));
  EXPECT_FALSE(world.admitted("two"));
}

TEST(Admission, BorrowsFromTheCohortUpToItsLimit) {
  World world;
  world.flavor("h100");
  world.nodes("n", 10);
  world.queue("a", {.cohort = "org", .nominal = 8, .borrowing_limit = 8});
  world.queue("b", {.cohort = "org", .nominal = 32});
  world.submit("fits", {.queue = "a", .pods = 2, .created_s = 1});
  world.submit("never", {.queue = "a", .pods = 3, .created_s = 2});
  const Effects effects = world.settle();
  EXPECT_TRUE(world.admitted("fits"));
  // 16 used of 8 own: 8 borrowed.
  const auto* admit = std::get_if<Admit>(&effects.list.front());
  ASSERT_NE(admit, nullptr);
  EXPECT_EQ(admit->borrowed.at({FlavorName("h100"), gpu()}), Amount(8));
  // 24 asked; own 8 plus at most 8 borrowed can never be more than 16.
  EXPECT_EQ(world.why("never"), "ExceedsMaxQuota");
}

TEST(Admission, LendsOnlyWhatTheLendingLimitAllows) {
  World world;
  world.flavor("h100");
  world.nodes("n", 10);
  world.queue("a", {.cohort = "org", .nominal = 0});
  world.queue("b", {.cohort = "org", .nominal = 16, .lending_limit = 8});
  world.submit("one", {.queue = "a", .pods = 1, .created_s = 1});
  world.submit("two", {.queue = "a", .pods = 1, .created_s = 2});
  world.settle();
  EXPECT_TRUE(world.admitted("one"));
  EXPECT_FALSE(world.admitted("two"));
}

TEST(Admission, OrdersByPriorityThenAge) {
  World world;
  world.flavor("h100");
  world.nodes("n", 3);
  world.queue("a", {.nominal = 24});
  world.submit("old", {.created_s = 1});
  world.submit("young", {.created_s = 5});
  world.submit("important", {.priority = 10, .created_s = 9});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit important", "admit old", "admit young"}));
}

TEST(Admission, WhoStaysWithinNominalGoesBeforeWhoBorrows) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a", {.cohort = "org", .nominal = 0});
  world.queue("b", {.cohort = "org", .nominal = 8});
  world.submit("borrower", {.queue = "a", .priority = 100, .created_s = 1});
  world.submit("owner", {.queue = "b", .priority = 0, .created_s = 2});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit owner"}));
}

TEST(Admission, BestEffortFifoSkipsABlockedHeadStrictFifoDoesNot) {
  for (const bool strict : {false, true}) {
    World world;
    world.flavor("h100");
    world.nodes("n", 4);
    world.queue("a", {.nominal = 16,
                      .strategy = strict ? QueueingStrategy::kStrictFifo
                                         : QueueingStrategy::kBestEffortFifo});
    world.submit("running", {.pods = 1, .created_s = 1});
    world.settle();
    world.submit("large", {.pods = 2, .created_s = 2});
    world.submit("small", {.pods = 1, .created_s = 3});
    world.settle();
    EXPECT_FALSE(world.admitted("large"));
    EXPECT_EQ(world.admitted("small"), !strict);
  }
}

TEST(Admission, AnArrivalWaitsBehindABlockedStrictFifoHeadOrStartsBeforeIt) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.nominal = 16, .strategy = QueueingStrategy::kStrictFifo});
  world.submit("running", {.pods = 1, .created_s = 1});
  world.submit("head", {.pods = 2, .created_s = 2});
  world.settle();
  world.submit("behind", {.pods = 1, .created_s = 3});
  world.settle();
  EXPECT_EQ(world.why("behind"), "WaitingForQuota");
  EXPECT_EQ(world.needs_of("behind"), "team/head to start");
  world.submit("too-late", {.pods = 1, .priority = -1, .created_s = 1});
  world.submit("before", {.pods = 1, .priority = 1, .created_s = 4});
  world.settle();
  EXPECT_FALSE(world.admitted("too-late"));
  EXPECT_TRUE(world.admitted("before"));
  world.finish("running");
  world.finish("before");
  world.settle();
  EXPECT_TRUE(world.admitted("head"));
  EXPECT_FALSE(world.admitted("behind"));
  EXPECT_EQ(world.needs_of("behind"), "8 nvidia.com/gpu in ClusterQueue a");
}

TEST(Admission, ARequestThatCanNeverFitBlocksNobodyBehindItInOtherQueues) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.nominal = 16, .strategy = QueueingStrategy::kStrictFifo});
  world.queue("b", {.nominal = 16});
  world.submit("impossible", {.queue = "a", .pods = 100, .created_s = 1});
  world.submit("fine", {.queue = "b", .created_s = 2});
  world.settle();
  EXPECT_EQ(world.why("impossible"), "ExceedsMaxQuota");
  EXPECT_TRUE(world.admitted("fine"));
}

TEST(Admission, AStoppedQueueAdmitsNothingAndSaysSo) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a", {.stop = StopPolicy::kHold});
  world.submit("job");
  world.settle();
  EXPECT_EQ(world.why("job"), "Suspended");
  world.queue("a");
  world.settle();
  EXPECT_TRUE(world.admitted("job"));
}

TEST(Admission, HoldAndDrainEvictsWhatRuns) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a");
  world.submit("job");
  world.settle();
  world.queue("a", {.stop = StopPolicy::kHoldAndDrain});
  world.settle();
  EXPECT_EQ(world.log.back(), "evict job");
  world.let_leave();
  world.settle();
  EXPECT_EQ(world.why("job"), "Suspended");
}

TEST(Admission, AMissingFlavorOrQueueIsNamed) {
  World world;
  world.nodes("n", 1);
  world.queue("a");
  world.submit("job");
  world.submit("lost", {.queue = "nowhere"});
  world.settle();
  EXPECT_EQ(world.why("job"), "Misconfigured");
  EXPECT_EQ(world.why("lost"), "Misconfigured");
  world.flavor("h100");
  world.settle();
  EXPECT_TRUE(world.admitted("job"));
}

TEST(Admission, ARequiredTopologyDomainIsKept) {
  World world;
  world.send(TopologyUpserted{{TopologyName("ib"), {"rack", kHostnameLabel}}});
  world.flavor("h100", {}, "ib");
  for (int i = 1; i <= 4; ++i) world.node("x" + std::to_string(i), 8, {{"rack", "r1"}});
  for (int i = 1; i <= 3; ++i) world.node("y" + std::to_string(i), 8, {{"rack", "r2"}});
  world.queue("a", {.nominal = 1000});
  const TopologyRequest rack{TopologyRequest::Mode::kRequired, "rack"};
  world.submit("three", {.pods = 3, .created_s = 1, .topology = rack});
  world.settle();
  EXPECT_EQ(world.plan("three"), "y1 y2 y3");  // Best fit: the rack with just 3.
  world.submit("five", {.pods = 5, .created_s = 2, .topology = rack});
  world.settle();
  EXPECT_EQ(world.why("five"), "TopologyPlacementFailed");
}

TEST(Admission, AWrittenAdmissionIsForgottenWhenRefusedAndTriedAgain) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a");
  world.submit("job");
  world.settle(false);
  EXPECT_TRUE(world.admitted("job"));
  world.send(AdmissionRefused{World::key("job")});
  EXPECT_FALSE(world.admitted("job"));
  world.settle();
  EXPECT_TRUE(world.admitted("job"));
}

TEST(Admission, AStaleObjectDoesNotUndoAnAdmissionThatIsBeingWritten) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a");
  world.submit("job");
  world.settle(false);
  WorkloadSpec stale = world.specs.at(World::key("job"));
  stale.priority = 7;
  world.send(WorkloadUpserted{stale});
  EXPECT_TRUE(world.admitted("job"));
}

TEST(Admission, SlicesGiveTheSameResultAsOneGo) {
  std::vector<Log> logs;
  for (const std::size_t budget : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    World world(budget);
    world.flavor("h100");
    world.nodes("n", 20);
    world.queue("a", {.cohort = "org", .nominal = 40});
    world.queue("b", {.cohort = "org", .nominal = 40});
    for (int i = 0; i < 30; ++i) {
      world.submit(
          "j" + std::to_string(i),
          {.queue = i % 3 == 0 ? "a" : "b", .pods = 1 + i % 4, .priority = i % 5, .created_s = i});
    }
    world.settle();
    logs.push_back(world.log);
  }
  EXPECT_FALSE(logs[0].empty());
  EXPECT_EQ(logs[0], logs[1]);
  EXPECT_EQ(logs[0], logs[2]);
}

TEST(Admission, TheLastInLineHasATurnWhereEventsNeverPause) {
  World world(1);
  world.flavor("h100");
  world.nodes("n", 20);
  world.queue("a", {.nominal = 8});
  for (int i = 0; i < 30; ++i) {
    world.submit("large" + std::to_string(i), {.pods = 2 + i, .priority = 100 - i});
  }
  world.submit("last", {.pods = 1});
  bool admitted = false;
  int slices = 0;
  for (; slices < 12 && !admitted; ++slices) {
    for (const Effect& effect : world.engine.step(Settle{}, world.now).list) {
      admitted = admitted || std::holds_alternative<Admit>(effect);
    }
    world.send(NamespaceUpserted{NamespaceSpec{Namespace("other"), {}}});
  }
  EXPECT_TRUE(admitted);
}

TEST(Admission, PodsThatEndedWellGiveTheirQuotaBack) {
  World world;
  world.flavor("spot", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 32, .flavor = "spot"});
  world.submit("gang", {.pods = 4, .created_s = 1});
  world.submit("next", {.pods = 3, .created_s = 2});
  world.settle();
  EXPECT_FALSE(world.admitted("next"));
  WorkloadSpec& gang = world.specs.at(World::key("gang"));
  gang.pod_sets.edit()[0].reclaimable = 2;
  world.send(WorkloadUpserted{gang});
  world.settle();
  // 4 pods of 8, 2 of them done: 16 of 32 are used, 24 asked.
  EXPECT_EQ(world.needs_of("next"), "8 nvidia.com/gpu in ClusterQueue a");
  gang.pod_sets.edit()[0].reclaimable = 3;
  world.send(WorkloadUpserted{gang});
  world.settle();
  EXPECT_TRUE(world.admitted("next"));
  EXPECT_TRUE(world.admitted("gang"));
}

TEST(Admission, ABackOffIsWaitedFor) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a");
  WorkloadSpec spec = world.job("job");
  spec.requeue_at = world.now + std::chrono::seconds(60);
  world.specs[spec.key] = spec;
  world.send(WorkloadUpserted{spec});
  world.settle();
  EXPECT_FALSE(world.admitted("job"));
  EXPECT_EQ(world.engine.next_wakeup(), spec.requeue_at);
  EXPECT_FALSE(world.engine.wants_settle(world.now));
  world.now = *spec.requeue_at;
  EXPECT_TRUE(world.engine.wants_settle(world.now));
  world.settle();
  EXPECT_TRUE(world.admitted("job"));
}

}  // namespace
}  // namespace muster::engine::test

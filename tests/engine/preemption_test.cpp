// Preemption: who goes, by which rule, and that nobody goes in vain.

#include "tests/engine/world.hpp"

namespace muster::engine::test {
namespace {

using Log = std::vector<std::string>;

PreemptionSpec lower_priority() {
  PreemptionSpec spec;
  spec.within_cluster_queue = PreemptionPolicy::kLowerPriority;
  return spec;
}
PreemptionSpec reclaim_any() {
  PreemptionSpec spec;
  spec.reclaim_within_cohort = PreemptionPolicy::kAny;
  return spec;
}

TEST(Preemption, AGuaranteedQueueTakesItsQuotaBackFromAWholeGang) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("prod", {.cohort = "org", .nominal = 32, .preemption = reclaim_any()});
  world.queue("regular", {.cohort = "org", .nominal = 0});
  world.submit("borrower", {.queue = "regular", .pods = 4, .created_s = 1});
  world.settle();
  world.submit("owner", {.queue = "prod", .pods = 1, .created_s = 2});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit borrower", "evict borrower InCohortReclamation for owner"}));
  EXPECT_EQ(world.why("owner"), "WaitingForPreemptedWorkloads");
  world.let_leave();
  world.settle();
  EXPECT_TRUE(world.admitted("owner"));
  // 24 of 32 are free; the gang of 4 x 8 does not fit beside the owner.
  EXPECT_FALSE(world.admitted("borrower"));
}

TEST(Preemption, NobodyIsEvictedTwiceWhileVictimsLeave) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("prod", {.cohort = "org", .nominal = 32, .preemption = reclaim_any()});
  world.queue("regular", {.cohort = "org", .nominal = 0});
  world.submit("one", {.queue = "regular", .pods = 2, .created_s = 1});
  world.submit("two", {.queue = "regular", .pods = 2, .created_s = 2});
  world.settle();
  world.submit("owner", {.queue = "prod", .pods = 2, .created_s = 3});
  world.settle();
  // Equal priority: the younger reservation goes; both were reserved at the same time, so the uid
  // decides.
  EXPECT_EQ(world.log.size(), 3U);
  world.pod("unrelated", "n1", 0);  // Something happens; the victim is still leaving.
  world.settle();
  world.settle();
  EXPECT_EQ(world.log.size(), 3U);
}

TEST(Preemption, WhatAPreemptorWaitsForGoesToNobodyBehindIt) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.nominal = 32, .preemption = lower_priority()});
  world.submit("low", {.pods = 3, .created_s = 1});
  world.settle();
  world.submit("high", {.pods = 4, .priority = 10, .created_s = 2});
  world.submit("small", {.pods = 1, .priority = 0, .created_s = 3});
  world.settle();
  // One node is free, but the gang of 4 needs it together with the three of `low`.
  EXPECT_FALSE(world.admitted("small"));
  world.let_leave();
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit low", "evict low InClusterQueue for high", "admit high"}));
}

TEST(Preemption, WhatWasFreedForAPreemptorIsNotTakenBackByItsVictim) {
  // `victim` is older and of higher priority, so it comes first in the order; but it borrowed, and
  // `owner` took its own back. Without a hold across passes the two would evict for ever.
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("prod", {.cohort = "org", .nominal = 32, .preemption = reclaim_any()});
  world.queue("regular", {.cohort = "org", .nominal = 32});
  world.submit("full", {.queue = "regular", .pods = 2, .priority = 100, .created_s = 1});
  world.submit("victim", {.queue = "regular", .pods = 2, .priority = 50, .created_s = 2});
  world.settle();
  world.submit("owner", {.queue = "prod", .pods = 2, .priority = 0, .created_s = 3});
  world.settle();
  for (int i = 0; i < 3; ++i) {
    world.let_leave();
    world.settle();
  }
  EXPECT_TRUE(world.admitted("owner") || world.log.size() == 2U);
  EXPECT_LE(std::count_if(world.log.begin(), world.log.end(),
                          [](const std::string& line) { return line.rfind("evict", 0) == 0; }),
            1);
}

TEST(Preemption, LowerPriorityOnlyAndOnlyAsManyAsNeeded) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.nominal = 32, .preemption = lower_priority()});
  for (int i = 0; i < 4; ++i) {
    world.submit("p" + std::to_string(i), {.priority = i, .created_s = i});
  }
  world.settle();
  world.submit("high", {.pods = 2, .priority = 2, .created_s = 9});
  world.settle();
  EXPECT_EQ(Log(world.log.begin() + 4, world.log.end()),
            (Log{"evict p0 InClusterQueue for high", "evict p1 InClusterQueue for high"}));
}

TEST(Preemption, EqualPriorityIsNotEnough) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a", {.nominal = 8, .preemption = lower_priority()});
  world.submit("first", {.created_s = 1});
  world.settle();
  world.submit("second", {.created_s = 2});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit first"}));
  EXPECT_EQ(world.why("second"), "WaitingForQuota");
}

TEST(Preemption, QueuesWithinTheirNominalQuotaAreLeftAlone) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.cohort = "org", .nominal = 8, .preemption = reclaim_any()});
  world.queue("b", {.cohort = "org", .nominal = 8});
  world.queue("c", {.cohort = "org", .nominal = 0});
  world.submit("own", {.queue = "b", .created_s = 1});
  world.submit("lent", {.queue = "c", .created_s = 2});
  world.settle();
  world.submit("taker", {.queue = "a", .created_s = 3});
  world.settle();
  EXPECT_EQ(world.log.back(), "evict lent InCohortReclamation for taker");
}

TEST(Preemption, VictimsMustFreeNodesToo) {
  // Quota alone would be satisfied by evicting either; only `west` frees nodes the taker may use.
  World world;
  world.flavor("h100");
  world.node("e1", 8, {{"zone", "east"}});
  world.node("w1", 8, {{"zone", "west"}});
  world.queue("a", {.nominal = 16, .preemption = lower_priority()});
  NodeConstraints east;
  east.node_selector = {{"zone", "east"}};
  NodeConstraints west;
  west.node_selector = {{"zone", "west"}};
  world.submit("east", {.priority = 0, .created_s = 1, .constraints = east});
  world.submit("west", {.priority = 1, .created_s = 1, .constraints = west});
  world.settle();
  world.submit("taker", {.priority = 5, .created_s = 3, .constraints = west});
  world.settle();
  EXPECT_EQ(world.log.back(), "evict west InClusterQueue for taker");
  EXPECT_TRUE(world.admitted("east"));
}

TEST(Preemption, BorrowWithinCohortTakesFromLowerPriorityUpToTheThreshold) {
  PreemptionSpec spec = reclaim_any();
  spec.reclaim_within_cohort = PreemptionPolicy::kLowerPriority;
  spec.borrow_within_cohort = {PreemptionPolicy::kLowerPriority, 50};
  World world;
  world.flavor("h100");
  world.nodes("n", 2);
  world.queue("a", {.cohort = "org", .nominal = 0, .preemption = spec});
  world.queue("b", {.cohort = "org", .nominal = 0});
  world.queue("bank", {.cohort = "org", .nominal = 16});
  world.submit("cheap", {.queue = "b", .priority = 10, .created_s = 1});
  world.submit("dear", {.queue = "b", .priority = 60, .created_s = 1});
  world.settle();
  world.submit("high", {.queue = "a", .priority = 100, .created_s = 2});
  world.settle();
  EXPECT_EQ(world.log.back(), "evict cheap InCohortReclaimWhileBorrowing for high");
}

}  // namespace
}  // namespace muster::engine::test

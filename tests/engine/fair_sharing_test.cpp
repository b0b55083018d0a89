// Fair sharing: whose turn it is, who has to go, and by which rule. Semantics (c.4), (d) and (e).

#include "tests/engine/world.hpp"

namespace muster::engine::test {
namespace {

using Log = std::vector<std::string>;
using Strategies = std::vector<FairStrategy>;

constexpr auto kFinal = FairStrategy::kLessThanOrEqualToFinalShare;
constexpr auto kInitial = FairStrategy::kLessThanInitialShare;

/// Quota of one flavor that an autoscaler would fill, so that only quota decides.
class FairWorld : public World {
 public:
  explicit FairWorld(const Strategies& strategies = {kFinal, kInitial}, std::size_t budget = 0,
                     Improvements improvements = {})
      : World(Options{.settle_budget = budget,
                      .improvements = improvements,
                      .fair_sharing = FairSharing{strategies}}) {
    flavor("h100", {}, "", Capacity::kElastic);
  }

  /// In cohort `org`, taking back from anyone; unset: 3 GPUs of its own.
  void fair_queue(const std::string& name, QueueOptions options = {.nominal = 3}) {
    if (options.cohort.empty()) options.cohort = "org";
    options.preemption.reclaim_within_cohort = PreemptionPolicy::kAny;
    queue(name, options);
  }

  /// Running workloads `<queue>1`, `<queue>2`, … of these sizes.
  void running(const std::string& queue, const std::vector<std::int64_t>& sizes,
               std::int64_t priority = 0) {
    for (const std::int64_t size : sizes) {
      const std::string name = queue + std::to_string(++started_[queue]);
      submit(name, {.queue = queue, .gpus = size, .priority = priority});
      settle();
      ASSERT_TRUE(admitted(name)) << name;
    }
    log.clear();
  }

  /// What a new workload of the queue brings about, at once and when all who must have left.
  Log ask(const std::string& queue, std::int64_t size, std::int64_t priority = 0) {
    submit("new", {.queue = queue, .gpus = size, .priority = priority, .created_s = 100});
    settle();
    let_leave();
    settle();
    return log;
  }

 private:
  std::map<std::string, int> started_;
};

TEST(FairSharing, TurnsGoToTheLowestShareNotToPriority) {
  FairWorld world;
  world.cohort("org", "", 4);
  world.fair_queue("a", {.nominal = 0});
  world.fair_queue("b", {.nominal = 0});
  world.running("a", {2});
  // a would have 3 of 4, b 1: b's turn, then 2 against 3, and nothing is left for a.
  world.submit("a-high", {.queue = "a", .gpus = 1, .priority = 100, .created_s = 1});
  world.submit("b-one", {.queue = "b", .gpus = 1, .created_s = 2});
  world.submit("b-two", {.queue = "b", .gpus = 1, .created_s = 3});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit b-one", "admit b-two"}));
  EXPECT_EQ(world.why("a-high"), "WaitingForQuota");
}

TEST(FairSharing, IsOffUnlessAskedFor) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.cohort("org", "", 1);
  world.queue("a", {.cohort = "org", .nominal = 0});
  world.queue("b", {.cohort = "org", .nominal = 0});
  world.submit("a-high", {.queue = "a", .gpus = 1, .priority = 100, .created_s = 2});
  world.submit("b-one", {.queue = "b", .gpus = 1, .created_s = 1});
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit a-high"}));
}

TEST(FairSharing, WeightsAreKept) {
  FairWorld world;
  world.cohort("org", "", 8);
  world.fair_queue("a", {.nominal = 0, .weight_nanos = 3'000'000'000});
  world.fair_queue("b", {.nominal = 0});
  for (int i = 0; i < 8; ++i) {
    world.submit("a" + std::to_string(i), {.queue = "a", .gpus = 1, .created_s = i});
    world.submit("b" + std::to_string(i), {.queue = "b", .gpus = 1, .created_s = i});
  }
  world.settle();
  int of_a = 0;
  for (const std::string& line : world.log) of_a += line.starts_with("admit a") ? 1 : 0;
  EXPECT_EQ(of_a, 6);
  EXPECT_EQ(world.log.size(), 8U);
}

TEST(FairSharing, WhatWasRefusedForItsShareIsLookedAtAgainAfterStarts) {
  FairWorld world;
  world.cohort("org", "", 4);
  world.fair_queue("a", {.nominal = 0});
  world.submit("a1", {.queue = "a", .gpus = 1});
  world.settle();
  EXPECT_TRUE(world.engine.wants_settle(world.now));
  world.settle();
  EXPECT_FALSE(world.engine.wants_settle(world.now));
}

TEST(FairSharing, SlicesMakeNoDifference) {
  std::optional<Log> whole;
  for (const std::size_t budget : {0U, 1U, 2U, 7U}) {
    SCOPED_TRACE(budget);
    FairWorld world({kFinal, kInitial}, budget);
    world.cohort("org", "", 7);
    world.cohort("left", "org", 1);
    world.fair_queue("a", {.cohort = "left", .nominal = 1, .weight_nanos = 500'000'000});
    world.fair_queue("b", {.cohort = "left", .nominal = 0});
    world.fair_queue("c", {.nominal = 2});
    for (int i = 0; i < 6; ++i) {
      for (const char* queue : {"a", "b", "c"}) {
        world.submit(queue + std::to_string(i), {.queue = queue, .gpus = 1, .created_s = i});
      }
    }
    for (int i = 0; i < 4; ++i) {
      world.settle();
      world.let_leave();
    }
    if (!whole) whole = world.log;
    EXPECT_EQ(world.log, *whole);
  }
  EXPECT_GE(whole->size(), 11U);
}

// ---------------------------------------------------------------- preemption: worked examples

TEST(FairSharing, BorrowersEvenOut) {
  // a, b, c have 3 each. a with one more has 4: (4-3) * 1000 / 9 = 111; b without one has 4: 111.
  FairWorld world;
  for (const char* name : {"a", "b", "c"}) world.fair_queue(name);
  world.running("a", {1, 1, 1});
  world.running("b", {1, 1, 1, 1, 1});
  world.running("c", {1});
  EXPECT_EQ(world.ask("a", 1), (Log{"evict b1 InCohortFairSharing for new", "admit new"}));
}

TEST(FairSharing, NobodyIsPreemptedToTurnTheImbalanceRound) {
  // a would have 5: 222; b without one 111, with it 222, which is not more than 222.
  FairWorld world;
  for (const char* name : {"a", "b", "c"}) world.fair_queue(name);
  world.running("a", {1, 1, 1});
  world.running("b", {1, 1, 1, 1, 1});
  EXPECT_EQ(world.ask("a", 2), Log{});
  EXPECT_EQ(world.why("new"), "WaitingForQuota");
}

TEST(FairSharing, WhoStaysWithinItsQuotaTakesItBack) {
  FairWorld world;
  for (const char* name : {"a", "b", "c"}) world.fair_queue(name);
  world.running("a", {1, 1, 1});
  world.running("b", {1, 1, 1, 1, 1});
  world.running("c", {1});
  EXPECT_EQ(world.ask("c", 1), (Log{"evict b1 InCohortReclamation for new", "admit new"}));
}

TEST(FairSharing, TheFirstStrategyLooksForAVictimThatLeavesEnough) {
  // b without b1 has 2: share 0 < 111; without b2 it has 4: 111.
  FairWorld world;
  for (const char* name : {"a", "b", "c"}) world.fair_queue(name);
  world.running("a", {1, 1, 1});
  world.running("b", {4});
  world.running("b", {2}, 10);
  EXPECT_EQ(world.ask("a", 1), (Log{"evict b2 InCohortFairSharing for new", "admit new"}));
}

TEST(FairSharing, TheSecondStrategyTakesWhatTheFirstLeft) {
  // b has one workload of 6, share 333; without it 0. 111 <= 0 does not hold, 111 < 333 does.
  struct Case {
    const char* says;
    Strategies strategies;
    Log expected;
  };
  const std::vector<Case> cases{
      {"the final share alone allows nothing", {kFinal}, {}},
      {"the initial share alone allows it",
       {kInitial},
       {"evict b1 InCohortFairSharing for new", "admit new"}},
      {"both in turn allow it",
       {kFinal, kInitial},
       {"evict b1 InCohortFairSharing for new", "admit new"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    FairWorld world(each.strategies);
    for (const char* name : {"a", "b", "c"}) world.fair_queue(name);
    world.running("a", {1, 1, 1});
    world.running("b", {6});
    EXPECT_EQ(world.ask("a", 1), each.expected);
  }
}

TEST(FairSharing, TheInitialShareTakesThePriorityThatIsLowest) {
  FairWorld world({kInitial});
  for (const char* name : {"a", "b", "c"}) world.fair_queue(name);
  world.running("a", {1, 1, 1});
  world.running("b", {2}, 10);
  world.running("b", {4});
  EXPECT_EQ(world.ask("a", 1), (Log{"evict b2 InCohortFairSharing for new", "admit new"}));
}

TEST(FairSharing, LowerPriorityReclaimSparesEqualsAndAbove) {
  FairWorld world;
  QueueOptions options{.cohort = "org", .nominal = 3};
  options.preemption.reclaim_within_cohort = PreemptionPolicy::kLowerPriority;
  for (const char* name : {"a", "b", "c"}) world.queue(name, options);
  world.running("a", {1, 1, 1});
  world.running("b", {1, 1, 1, 1, 1}, 5);
  world.running("c", {1});
  EXPECT_EQ(world.ask("a", 1, 5), Log{});
  world.finish("new");
  world.submit("higher", {.queue = "a", .gpus = 1, .priority = 6});
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict b1 InCohortFairSharing for higher"}));
}

TEST(FairSharing, BorrowWithinCohortIsNotAskedFor) {
  // Classical preemption would not let a borrower without it take anything.
  FairWorld world;
  world.cohort("org", "", 4);
  world.fair_queue("a", {.nominal = 0});
  world.fair_queue("b", {.nominal = 0});
  world.running("b", {1, 1, 1, 1});
  EXPECT_EQ(world.ask("a", 1), (Log{"evict b1 InCohortFairSharing for new", "admit new"}));
}

TEST(FairSharing, TheOwnQueueGivesWhereItsShareIsHighest) {
  FairWorld world;
  QueueOptions options{.cohort = "org", .nominal = 0};
  options.preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
  world.cohort("org", "", 6);
  world.fair_queue("a", options);
  world.fair_queue("b", {.nominal = 0});
  world.running("a", {1, 1, 1, 1});
  world.running("b", {1, 1});
  EXPECT_EQ(world.ask("a", 1, 10), (Log{"evict a1 InClusterQueue for new", "admit new"}));
}

TEST(FairSharing, AQueueWithoutACohortPreemptsInsideItself) {
  FairWorld world;
  QueueOptions options{.nominal = 2};
  options.preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
  world.queue("alone", options);
  world.running("alone", {1, 1});
  EXPECT_EQ(world.ask("alone", 2, 10), (Log{"evict alone1 InClusterQueue for new",
                                            "evict alone2 InClusterQueue for new", "admit new"}));
}

TEST(FairSharing, SharesAreComparedWhereTheTwoMeet) {
  // r's queue has 2 of the root's 12 and would have 4; a alone has less than that, but a and b
  // together, below left, have 10.
  FairWorld world;
  world.cohort("root", "", 12);
  world.cohort("left", "root");
  world.cohort("right", "root");
  for (const char* name : {"a", "b"}) world.fair_queue(name, {.cohort = "left", .nominal = 0});
  world.fair_queue("r", {.cohort = "right", .nominal = 0});
  world.running("r", {2});
  world.running("a", {3});
  world.running("b", {1, 1, 1, 1, 1, 1, 1});
  // left is the highest child of the root, b the highest of left: 4 <= 9, then 4 <= 8.
  EXPECT_EQ(world.ask("r", 2), (Log{"evict b1 InCohortFairSharing for new",
                                    "evict b2 InCohortFairSharing for new", "admit new"}));
}

TEST(FairSharing, WeightZeroGivesFirst) {
  FairWorld world;
  world.cohort("org", "", 6);
  world.fair_queue("a", {.nominal = 0});
  world.fair_queue("b", {.nominal = 0});
  world.fair_queue("spot", {.nominal = 0, .weight_nanos = 0});
  world.running("b", {1, 1, 1, 1});
  world.running("spot", {1, 1});  // One less is still above everything.
  EXPECT_EQ(world.ask("a", 1), (Log{"evict spot1 InCohortFairSharing for new", "admit new"}));
}

TEST(FairSharing, NobodyGoesInVain) {
  FairWorld world;
  world.cohort("org", "", 8);
  world.fair_queue("a", {.nominal = 0});
  world.fair_queue("b", {.nominal = 0});
  world.fair_queue("c", {.nominal = 0});
  world.running("b", {1});
  world.running("b", {3}, 5);
  world.running("c", {4});
  // a asks 3: 375. b without b1 has 375, so b1 goes; b without b2 has 0 and c without c1 has 0: the
  // first strategy ends. The second: 375 < 500 takes c1, which is enough, so b1 stays.
  EXPECT_EQ(world.ask("a", 3), (Log{"evict c1 InCohortFairSharing for new", "admit new"}));
}

TEST(FairSharing, NobodyIsPutBackWhoMakesTheOthersIllegal) {
  // a would have 7 - 3 of 7, as much as b: its own a1 goes, and then b1, since 1 < 4. They leave 7
  // for 4, so a1 is not needed; but with it a1 is back at 4, and b1 may not be taken for that.
  struct Case {
    const char* says;
    Improvements improvements;
    Log evicted;
  };
  const std::vector<Case> cases{
      {"a set is legal as a whole",
       {},
       {"evict a1 InClusterQueue for new", "evict b1 InCohortFairSharing for new"}},
      {"with profile kueue whoever is not needed is put back",
       Improvements::none(),
       {"evict b1 InCohortFairSharing for new"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    FairWorld world({kFinal, kInitial}, 0, each.improvements);
    world.fair_queue(
        "a",
        {.nominal = 3, .preemption = {.within_cluster_queue = PreemptionPolicy::kLowerPriority}});
    world.fair_queue("b", {.nominal = 0});
    world.fair_queue("lender", {.nominal = 4});
    world.running("a", {3});
    world.running("b", {4});
    Log evicted = world.ask("a", 4, 1);
    std::erase_if(evicted, [](const std::string& line) { return !line.starts_with("evict"); });
    EXPECT_EQ(evicted, each.evicted);
  }
}

TEST(FairSharing, VictimsAndPreemptorsDoNotTakeTurns) {
  FairWorld world;
  for (const char* name : {"a", "b", "c"}) world.fair_queue(name);
  world.running("a", {1, 1, 1});
  world.running("b", {6});
  EXPECT_EQ(world.ask("a", 1), (Log{"evict b1 InCohortFairSharing for new", "admit new"}));
  for (int i = 0; i < 5; ++i) {
    world.settle();
    world.let_leave();
  }
  EXPECT_EQ(world.log.size(), 2U);
  EXPECT_EQ(world.why("b1"), "WaitingForQuota");
}

TEST(FairSharing, NodesCountAsWell) {
  // There is quota left for 8, but no node: who borrows makes room.
  World world(Options{.settle_budget = 0, .fair_sharing = FairSharing{}});
  world.flavor("h100");
  world.nodes("n", 2);
  QueueOptions options{.cohort = "org", .nominal = 24};
  options.preemption.reclaim_within_cohort = PreemptionPolicy::kAny;
  world.queue("a", options);
  options.nominal = 0;
  world.queue("b", options);
  world.submit("b1", {.queue = "b", .gpus = 8, .created_s = 1});
  world.submit("b2", {.queue = "b", .gpus = 8, .created_s = 2});
  world.settle();
  world.submit("owner", {.queue = "a", .gpus = 8, .created_s = 3});
  world.settle();
  world.let_leave();
  world.settle();
  EXPECT_TRUE(world.admitted("owner"));
  EXPECT_EQ(world.log,
            (Log{"admit b1", "admit b2", "evict b1 InCohortReclamation for owner", "admit owner"}));
}

}  // namespace
}  // namespace muster::engine::test

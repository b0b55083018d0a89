#include "quota/quota_tree.hpp"

#include "tests/quota/tree_builders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace muster::quota::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

/// One tree, asked by name about flavor `f`, resource cpu.
class World {
 public:
  explicit World(const std::vector<CohortSpec>& cohorts, const std::vector<QueueQuotaSpec>& queues)
      : tree(QuotaTree::build(cohorts, queues)), cpu(fr(tree)) {}

  [[nodiscard]] std::int64_t quota(const std::string& name) const {
    return tree.subtree_quota(node(tree, name), cpu).value();
  }
  [[nodiscard]] std::int64_t guaranteed(const std::string& name) const {
    return tree.guaranteed(node(tree, name), cpu).value();
  }
  [[nodiscard]] std::int64_t usage(const std::string& name) const {
    return tree.usage(node(tree, name), cpu).value();
  }
  [[nodiscard]] std::int64_t available(const std::string& name) const {
    return tree.available(node(tree, name), cpu).value();
  }
  [[nodiscard]] std::int64_t potential(const std::string& name) const {
    return tree.potential(node(tree, name), cpu).value();
  }
  [[nodiscard]] BorrowLevel level(const std::string& name, std::int64_t amount) const {
    return tree.borrow_level(node(tree, name), cpu, Amount(amount));
  }
  [[nodiscard]] std::optional<Limit> limit(const std::string& name, std::int64_t amount) const {
    return tree.limiting_node(node(tree, name), cpu, Amount(amount));
  }
  [[nodiscard]] std::optional<Limit> limit_ever(const std::string& name,
                                                std::int64_t amount) const {
    return tree.limiting_node_ever(node(tree, name), cpu, Amount(amount));
  }
  void add(const std::string& name, std::int64_t amount, UsageLog* log = nullptr) {
    tree.add_usage(node(tree, name), {{cpu, Amount(amount)}}, log);
  }
  void remove(const std::string& name, std::int64_t amount, UsageLog* log = nullptr) {
    tree.remove_usage(node(tree, name), {{cpu, Amount(amount)}}, log);
  }

  QuotaTree tree;
  FrId cpu;
};

/// root (Q 0) > left (Q 10, BL 5) and right (Q 10); left > l1 (Q 10, LL 4), l2 (Q 10, BL 5);
/// right > r (Q 10). The worked example of semantics (a).
World worked_example() {
  World world({cohort("root"), cohort("left", "root", {{10, 5, std::nullopt}}),
               cohort("right", "root", {{10}})},
              {queue("l1", "left", {{10, std::nullopt, 4}}), queue("l2", "left", {{10, 5}}),
               queue("r", "right", {{10}})});
  world.add("l1", 8);
  world.add("r", 12);
  return world;
}

TEST(QuotaTree, SubtreeQuotaAndGuaranteedOfTheWorkedExample) {
  const World world = worked_example();
  EXPECT_EQ(world.guaranteed("l1"), 6);  // 10 - 4
  EXPECT_EQ(world.guaranteed("l2"), 0);  // no lending limit: all is lent
  EXPECT_EQ(world.quota("left"), 24);    // 10 + (10 - 6) + 10
  EXPECT_EQ(world.quota("right"), 20);   // 10 + 10
  EXPECT_EQ(world.quota("root"), 44);    // 24 + 20
}

TEST(QuotaTree, UsageClimbsAboveTheGuaranteedPart) {
  const World world = worked_example();
  EXPECT_EQ(world.usage("l1"), 8);
  EXPECT_EQ(world.usage("left"), 2);  // max(0, 8 - 6) + 0
  EXPECT_EQ(world.usage("right"), 12);
  EXPECT_EQ(world.usage("root"), 14);  // 2 + 12
  EXPECT_THAT(world.tree.check_usage(), IsEmpty());
}

TEST(QuotaTree, AvailableOfTheWorkedExample) {
  const World world = worked_example();
  EXPECT_EQ(world.available("root"), 30);  // 44 - 14
  EXPECT_EQ(world.available("left"), 27);  // min((24 - 0) - 2 + 5, 30)
  EXPECT_EQ(world.available("l1"), 27);    // max(0, 6 - 8) + 27
  EXPECT_EQ(world.available("l2"), 15);    // min(10 - 0 + 5, 27)
  EXPECT_EQ(world.available("right"), 30);
  EXPECT_EQ(world.available("r"), 30);
}

TEST(QuotaTree, PotentialOfTheWorkedExample) {
  const World world = worked_example();
  EXPECT_EQ(world.potential("root"), 44);
  EXPECT_EQ(world.potential("left"), 29);  // min(0 + 44, 24 + 5)
  EXPECT_EQ(world.potential("l1"), 35);    // 6 + 29
  EXPECT_EQ(world.potential("l2"), 15);    // min(29, 10 + 5)
  EXPECT_EQ(world.potential("r"), 44);
}

TEST(QuotaTree, AddAndRemoveOfTheWorkedExample) {
  World world = worked_example();
  world.add("l1", 3);  // nothing local is left: all 3 climb
  EXPECT_EQ(world.usage("left"), 5);
  EXPECT_EQ(world.usage("root"), 17);

  World again = worked_example();
  again.remove("l1", 5);  // 8 - 6 = 2 were above the guaranteed part
  EXPECT_EQ(again.usage("l1"), 3);
  EXPECT_EQ(again.usage("left"), 0);
  EXPECT_EQ(again.usage("root"), 12);
  EXPECT_THAT(again.tree.check_usage(), IsEmpty());
}

TEST(QuotaTree, BorrowLevelOfTheWorkedExample) {
  const World world = worked_example();
  // Asking 5: 8 + 5 > 10 borrows; left holds 2 + 5 <= 24 and has a parent.
  EXPECT_EQ(world.level("l1", 5), (BorrowLevel{1, true}));
  // Asking 25: left 2 + 25 > 24, root 14 + 25 <= 44, and the root has no parent.
  EXPECT_EQ(world.level("l1", 25), (BorrowLevel{2, false}));
  // Asking 31: not even the root holds 14 + 31; its height all the same.
  EXPECT_EQ(world.level("l1", 31), (BorrowLevel{2, false}));
  // Asking 2: 8 + 2 = 10, within nominal.
  EXPECT_EQ(world.level("l1", 2), (BorrowLevel{0, true}));
}

TEST(QuotaTree, BorrowLevelWithoutACohortIsZeroAndReclaimsNothing) {
  const World world({}, {queue("alone", "", {{10}})});
  EXPECT_EQ(world.level("alone", 5), (BorrowLevel{0, false}));
  EXPECT_EQ(world.level("alone", 50), (BorrowLevel{0, false}));
}

TEST(QuotaTree, BorrowLevelLeavesOutWhatIsStillGuaranteed) {
  // q keeps 6 of its 10 (LL 4) and asks 14: 14 > 10 borrows, 6 are local, 8 go to `in`, which has
  // T = 4 (lent by q) + 3 = 7 < 8, then to `out` with T = 7 + 5 = 12 >= 8.
  const World world({cohort("in", "out", {{3}}), cohort("out", "", {{5}})},
                    {queue("q", "in", {{10, std::nullopt, 4}})});
  EXPECT_EQ(world.level("q", 14), (BorrowLevel{2, false}));
  EXPECT_EQ(world.level("q", 13), (BorrowLevel{1, true}));  // 7 <= 7
}

TEST(QuotaTree, BorrowLevelLeavesOutWhatAnInnerCohortKeepsToo) {
  // q keeps 6 of 10 (LL 4). in: T = 3 + 4 = 7, keeps 5 (LL 2). out: T = 5 + 2 = 7.
  // Asking 14: 8 reach in, 8 > 7; in's own 5 leave 3 for out, 3 <= 7, and out has a parent.
  const World world(
      {cohort("in", "out", {{3, std::nullopt, 2}}), cohort("out", "top", {{5}}), cohort("top")},
      {queue("q", "in", {{10, std::nullopt, 4}})});
  EXPECT_EQ(world.level("q", 14), (BorrowLevel{2, true}));
}

TEST(QuotaTree, AnOversubscribedRootEatsASiblingsGuaranteedQuota) {
  // cohort Q 10; cq1 Q 10, usage 31; cq2 Q 10, BL 0, LL 0: nothing of cq2's is lent.
  World world({cohort("cohort", "", {{10}})},
              {queue("cq1", "cohort", {{10}}), queue("cq2", "cohort", {{10, 0, 0}})});
  world.add("cq1", 31);
  EXPECT_EQ(world.quota("cohort"), 20);       // 10 + 10 + (10 - 10)
  EXPECT_EQ(world.available("cohort"), -11);  // 20 - 31
  EXPECT_EQ(world.available("cq2"), -1);      // min(0 - 0 + 0, -11) + 10
  EXPECT_EQ(world.tree.available_clamped(node(world.tree, "cq2"), world.cpu), Amount());
  EXPECT_EQ(world.potential("cq2"), 10);
  EXPECT_EQ(world.available("cq1"), -11);
}

TEST(QuotaTree, LimitsOfARootAreIgnored) {
  World world({cohort("root", "", {{10, 0, 0}})}, {queue("q", "root", {{5}})});
  EXPECT_EQ(world.available("root"), 15);
  EXPECT_EQ(world.available("q"), 15);
  EXPECT_EQ(world.potential("q"), 15);
  World alone({}, {queue("alone", "", {{10, 0, 4}})});
  alone.add("alone", 8);
  EXPECT_EQ(alone.available("alone"), 2);
}

TEST(QuotaTree, UnlimitedQuotaIsNeverUsedUp) {
  World world({cohort("root")},
              {queue("big", "root", {{kInt64Max}}), queue("small", "root", {{1}})});
  EXPECT_EQ(world.quota("root"), kInt64Max);
  world.add("small", kInt64Max);
  world.add("small", kInt64Max);
  EXPECT_EQ(world.available("small"), kInt64Max);
  EXPECT_EQ(world.usage("small"), kInt64Max);  // clamped on the way out
  EXPECT_FALSE(world.tree.borrowing(node(world.tree, "root"), world.cpu));
  EXPECT_THAT(world.tree.check_usage(), IsEmpty());
  world.remove("small", kInt64Max);
  world.remove("small", kInt64Max);
  EXPECT_EQ(world.usage("small"), 0);  // exact inside
  EXPECT_EQ(world.usage("root"), 0);
}

TEST(QuotaTree, UsageBeyondBoundedQuotaSaturatesBelowZero) {
  World world({cohort("root")}, {queue("q", "root", {{1}})});
  world.add("q", kInt64Max);
  world.add("q", kInt64Max);
  EXPECT_EQ(world.available("q"), std::numeric_limits<std::int64_t>::min());
  world.remove("q", kInt64Max);
  world.remove("q", kInt64Max);
  EXPECT_EQ(world.available("q"), 1);
}

TEST(QuotaTree, QueuesOfOneTreeMayCoverDifferentFlavors) {
  // a has quota of x, b of y only; b can be charged with x all the same and takes it from a.
  const auto tree =
      QuotaTree::build({}, {queue("a", "c", {{10, std::nullopt, std::nullopt, "cpu", "x"}}),
                            queue("b", "c", {{10, std::nullopt, std::nullopt, "cpu", "y"}})});
  const NodeIndex a = node(tree, "a");
  const NodeIndex b = node(tree, "b");
  const NodeIndex c = node(tree, "c");
  EXPECT_TRUE(tree.covers(a, fr(tree, "cpu", "x")));
  EXPECT_FALSE(tree.covers(b, fr(tree, "cpu", "x")));
  EXPECT_TRUE(tree.covers(c, fr(tree, "cpu", "x")));
  EXPECT_EQ(tree.nominal(b, fr(tree, "cpu", "x")), Amount());
  EXPECT_EQ(tree.available(b, fr(tree, "cpu", "x")), Amount(10));
}

TEST(QuotaTree, FlavorResourcesAreSortedByResourceThenFlavor) {
  const auto tree = QuotaTree::build(
      {},
      {queue("a", "", {{1, {}, {}, "gpu", "x"}, {1, {}, {}, "cpu", "y"}, {1, {}, {}, "cpu", "x"}})},
      {FlavorResource{FlavorName("old"), ResourceName("gpu")}});
  ASSERT_EQ(tree.fr_count(), 4U);
  EXPECT_EQ(fr(tree, "cpu", "x"), FrId(0));
  EXPECT_EQ(fr(tree, "cpu", "y"), FrId(1));
  EXPECT_EQ(fr(tree, "gpu", "old"), FrId(2));  // no quota, but usage may be left of it
  EXPECT_EQ(fr(tree, "gpu", "x"), FrId(3));
  EXPECT_EQ(tree.resource_index(FrId(1)), 0U);
  EXPECT_EQ(tree.resource_index(FrId(2)), 1U);
  EXPECT_EQ(tree.find_fr(FlavorResource{FlavorName("no"), ResourceName("gpu")}), std::nullopt);
  const FrAmounts amounts =
      tree.to_fr_amounts({{FlavorResource{FlavorName("x"), ResourceName("gpu")}, Amount(2)},
                          {FlavorResource{FlavorName("y"), ResourceName("cpu")}, Amount(3)},
                          {FlavorResource{FlavorName("no"), ResourceName("cpu")}, Amount(4)}});
  EXPECT_EQ(amounts, (FrAmounts{{FrId(1), Amount(3)}, {FrId(3), Amount(2)}}));
}

TEST(QuotaTree, StructureIsByName) {
  const auto tree =
      QuotaTree::build({cohort("root"), cohort("left", "root"), cohort("deep", "left")},
                       {queue("z", "root"), queue("a", "left"), queue("b", "deep"),
                        queue("c", "implicit"), queue("alone")});
  const NodeIndex root = node(tree, "root");
  EXPECT_THAT(names(tree, tree.queues()), ElementsAre("a", "alone", "b", "c", "z"));
  EXPECT_THAT(names(tree, tree.children(root)), ElementsAre("left", "z"));
  EXPECT_THAT(names(tree, tree.queues_below(root)), ElementsAre("b", "a", "z"));
  EXPECT_THAT(names(tree, tree.queues_below(node(tree, "left"))), ElementsAre("b", "a"));
  EXPECT_THAT(names(tree, tree.queues_below(node(tree, "a"))), ElementsAre("a"));
  EXPECT_THAT(names(tree, tree.ancestors(node(tree, "b"))), ElementsAre("deep", "left", "root"));
  EXPECT_EQ(tree.root(node(tree, "b")), root);
  EXPECT_EQ(tree.root(node(tree, "c")), node(tree, "implicit"));
  EXPECT_EQ(tree.parent(node(tree, "alone")), std::nullopt);
  EXPECT_EQ(tree.height(root), 3);  // root > left > deep > b
  EXPECT_EQ(tree.height(node(tree, "deep")), 1);
  EXPECT_EQ(tree.height(node(tree, "b")), 0);
  EXPECT_EQ(tree.lowest_common_ancestor(node(tree, "a"), node(tree, "b")), node(tree, "left"));
  EXPECT_EQ(tree.lowest_common_ancestor(node(tree, "b"), node(tree, "z")), root);
  EXPECT_EQ(tree.lowest_common_ancestor(node(tree, "b"), node(tree, "b")), node(tree, "b"));
  EXPECT_EQ(tree.lowest_common_ancestor(node(tree, "b"), node(tree, "c")), std::nullopt);
  EXPECT_EQ(tree.child_towards(root, node(tree, "b")), node(tree, "left"));
  EXPECT_TRUE(tree.is_ancestor_or_self(root, node(tree, "b")));
  EXPECT_FALSE(tree.is_ancestor_or_self(node(tree, "deep"), node(tree, "a")));
  EXPECT_FALSE(tree.is_ancestor_or_self(node(tree, "implicit"), node(tree, "a")));
}

TEST(QuotaTree, AnEmptyCohortHasHeightZeroAndItsParentOne) {
  const auto tree = QuotaTree::build({cohort("empty", "above")}, {});
  EXPECT_EQ(tree.height(node(tree, "empty")), 0);
  EXPECT_EQ(tree.height(node(tree, "above")), 1);
}

TEST(QuotaTree, CohortsOnOrBelowACycleAreLeftOut) {
  // a -> b -> a is a cycle, below hangs on it, self is its own parent, fine is not concerned.
  const auto tree = QuotaTree::build(
      {cohort("a", "b", {{100}}), cohort("b", "a"), cohort("below", "b"), cohort("self", "self"),
       cohort("fine", "", {{1}})},
      {queue("qa", "a", {{5}}), queue("qbelow", "below", {{5}}), queue("qfine", "fine", {{5}})});
  EXPECT_THAT(
      tree.problems(),
      ElementsAre(
          TreeProblem{CohortName("a"), "its ancestors run into a cycle at cohort a"},
          TreeProblem{CohortName("b"), "its ancestors run into a cycle at cohort a"},
          TreeProblem{CohortName("below"), "its ancestors run into a cycle at cohort a"},
          TreeProblem{CohortName("self"), "its ancestors run into a cycle at cohort self"}));
  EXPECT_EQ(tree.find_cohort(CohortName("below")), std::nullopt);
  EXPECT_TRUE(tree.in_cycle(node(tree, "qa")));
  EXPECT_TRUE(tree.in_cycle(node(tree, "qbelow")));
  EXPECT_FALSE(tree.in_cycle(node(tree, "qfine")));
  EXPECT_EQ(tree.available(node(tree, "qa"), fr(tree)), Amount(5));
  EXPECT_EQ(tree.available(node(tree, "qfine"), fr(tree)), Amount(6));
}

TEST(QuotaTree, AVeryLongChainOfCohortsNeedsNoStack) {
  std::vector<CohortSpec> chain;
  constexpr int kLength = 50'000;
  for (int i = 1; i < kLength; ++i) {
    chain.push_back(cohort("c" + std::to_string(i), "c" + std::to_string(i - 1)));
  }
  World world(chain, {queue("q", "c" + std::to_string(kLength - 1), {{7}})});
  world.add("q", 3);
  EXPECT_EQ(world.available("q"), 4);
  EXPECT_EQ(world.tree.height(node(world.tree, "c0")), kLength);
}

TEST(QuotaTree, BorrowingAndWithinNominal) {
  const World world = worked_example();
  const std::vector<FrId> frs = {world.cpu};
  EXPECT_TRUE(world.tree.borrowing(node(world.tree, "r"), world.cpu));  // 10 < 12
  EXPECT_FALSE(world.tree.within_nominal(node(world.tree, "r"), frs));
  EXPECT_TRUE(world.tree.within_nominal(node(world.tree, "right"), frs));            // 20 >= 12
  EXPECT_FALSE(world.tree.borrowing(node(world.tree, "l1"), world.cpu, Amount(2)));  // 10 < 8 + 2
  EXPECT_TRUE(world.tree.borrowing(node(world.tree, "l1"), world.cpu, Amount(3)));
  EXPECT_EQ(world.tree.borrowed(node(world.tree, "r"), world.cpu), Amount(2));
  EXPECT_EQ(world.tree.borrowed(node(world.tree, "l1"), world.cpu), Amount(0));
}

TEST(QuotaTree, AQueueWithoutACohortBorrowsNothingHoweverMuchItUses) {
  World world({}, {queue("alone", "", {{10}})});
  world.add("alone", 12);
  EXPECT_EQ(world.tree.borrowed(node(world.tree, "alone"), world.cpu), Amount());
  EXPECT_EQ(world.available("alone"), -2);
}

TEST(QuotaTree, FitsComparesEveryFlavorResource) {
  auto tree = QuotaTree::build({}, {queue("q", "", {{4, {}, {}, "cpu"}, {2, {}, {}, "gpu"}})});
  const NodeIndex q = node(tree, "q");
  const FrId cpu = fr(tree, "cpu");
  const FrId gpu = fr(tree, "gpu");
  EXPECT_TRUE(tree.fits(q, {{cpu, Amount(4)}, {gpu, Amount(2)}}));
  EXPECT_FALSE(tree.fits(q, {{cpu, Amount(4)}, {gpu, Amount(3)}}));
  tree.add_usage(q, {{gpu, Amount(5)}});
  EXPECT_TRUE(tree.fits(q, {{cpu, Amount(4)}, {gpu, Amount(0)}}));  // 0 fits, however full
}

// What keeps an amount from fitting, for explanations.

TEST(QuotaTreeLimits, TheRootsQuotaBindsWhenNoLimitDoes) {
  const World world = worked_example();
  // r: 30 available at the root, 31 asked.
  EXPECT_EQ(world.limit("r", 31),
            (Limit{node(world.tree, "root"), false, Amount(31), Amount(30), Amount(1)}));
  EXPECT_EQ(world.limit("r", 30), std::nullopt);
}

TEST(QuotaTreeLimits, AnInnerCohortsBorrowingLimitBinds) {
  const World world = worked_example();
  // l1 has nothing local; left may use (24 - 0) - 2 + 5 = 27 of the root's 30.
  EXPECT_EQ(world.limit("l1", 29),
            (Limit{node(world.tree, "left"), true, Amount(29), Amount(27), Amount(2)}));
}

TEST(QuotaTreeLimits, AQueuesOwnBorrowingLimitBinds) {
  const World world = worked_example();
  // l2: 10 - 0 + 5 = 15 of left's 27.
  EXPECT_EQ(world.limit("l2", 16),
            (Limit{node(world.tree, "l2"), true, Amount(16), Amount(15), Amount(1)}));
}

TEST(QuotaTreeLimits, TheNearerOfTwoEqualLimitsIsNamed) {
  // a may have 10 + 5 = 15 by its limit, and the cohort has 10 + 5 = 15.
  const World world({}, {queue("a", "c", {{10, 5}}), queue("b", "c", {{5}})});
  EXPECT_EQ(world.limit("a", 16),
            (Limit{node(world.tree, "a"), true, Amount(16), Amount(15), Amount(1)}));
  EXPECT_EQ(world.limit_ever("a", 16), world.limit("a", 16));
}

TEST(QuotaTreeLimits, WhatIsGuaranteedDoesNotReachTheCohort) {
  World world = worked_example();
  world.remove("l1", 8);
  // l1 asks 60: 6 are its own, 54 reach left, which may use (24 - 0) - 0 + 5 = 29 of the root's 32.
  EXPECT_EQ(world.limit("l1", 60),
            (Limit{node(world.tree, "left"), true, Amount(54), Amount(29), Amount(25)}));
  EXPECT_EQ(world.available("l1"), 35);  // and 60 - 35 = 25
}

TEST(QuotaTreeLimits, AQueueThatNeverBorrowsIsLimitedByItsCohortWhenOthersHoldItsQuota) {
  World world({}, {queue("prod", "c", {{10, 0}}), queue("regular", "c", {{0}})});
  world.add("regular", 8);
  // prod may use 10 of its own, but the cohort has only 10 - 8 = 2 left.
  EXPECT_EQ(world.limit("prod", 10),
            (Limit{node(world.tree, "c"), false, Amount(10), Amount(2), Amount(8)}));
  // Asking 11 is the queue's own matter: 9 more for the cohort would not help it, 9 more for prod
  // do.
  EXPECT_EQ(world.limit("prod", 11),
            (Limit{node(world.tree, "prod"), true, Amount(11), Amount(2), Amount(9)}));
  EXPECT_EQ(world.limit_ever("prod", 11),
            (Limit{node(world.tree, "prod"), true, Amount(11), Amount(10), Amount(1)}));
  EXPECT_EQ(world.limit_ever("prod", 10), std::nullopt);
}

TEST(QuotaTreeLimits, ForEverTheWholeTreesQuotaBinds) {
  const World world = worked_example();
  EXPECT_EQ(world.limit_ever("r", 45),
            (Limit{node(world.tree, "root"), false, Amount(45), Amount(44), Amount(1)}));
  // l1: 6 guaranteed, so 30 of 36 reach left, which can have 24 + 5 = 29.
  EXPECT_EQ(world.limit_ever("l1", 36),
            (Limit{node(world.tree, "left"), true, Amount(30), Amount(29), Amount(1)}));
  EXPECT_EQ(world.limit_ever("l1", 35), std::nullopt);
}

TEST(QuotaTreeLimits, AnOversubscribedQueueAloneSaysHowMuchIsMissing) {
  World world({}, {queue("alone", "", {{10}})});
  world.add("alone", 12);
  EXPECT_EQ(world.limit("alone", 1),
            (Limit{node(world.tree, "alone"), false, Amount(1), Amount(-2), Amount(3)}));
  EXPECT_EQ(world.limit("alone", 0), std::nullopt);
}

// Undo.

TEST(QuotaTreeUndo, RestoreGoesBackToTheMarkOnly) {
  World world = worked_example();
  UsageLog log;
  world.add("l1", 3, &log);
  const QuotaTree after_first = world.tree;
  const std::size_t mark = log.size();
  world.remove("r", 12, &log);
  world.add("l2", 40, &log);
  world.tree.restore(log, mark);
  EXPECT_TRUE(world.tree.same_usage(after_first));
  world.tree.restore(log, 0);
  EXPECT_TRUE(world.tree.same_usage(worked_example().tree));
  EXPECT_THAT(log, IsEmpty());
}

TEST(QuotaTreeUndo, ANegativeReservationStaysAtTheQueueAndIsUndone) {
  World world = worked_example();
  UsageLog log;
  world.add("l1", -5, &log);
  EXPECT_EQ(world.usage("l1"), 3);
  EXPECT_EQ(world.usage("left"), 2);
  world.tree.restore(log, 0);
  EXPECT_TRUE(world.tree.same_usage(worked_example().tree));
}

TEST(QuotaTreeCheck, AnUnmatchedRemovalIsReported) {
  World world = worked_example();
  world.add("l1", -5);
  EXPECT_THAT(world.tree.check_usage(),
              ElementsAre("cohort left counts 2 of f/cpu but its children pass up 0"));
}

}  // namespace
}  // namespace muster::quota::testing

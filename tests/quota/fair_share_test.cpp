#include "quota/fair_share.hpp"

#include "tests/quota/tree_builders.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>
#include <vector>

namespace muster::quota::testing {
namespace {

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

FairWeight weight(std::int64_t nanos) {
  return FairWeight{nanos};
}
constexpr std::int64_t kOne = 1'000'000'000;

/// cq: on-demand 20, spot 80; peer: default 100; lendable cpu = 20 + 80 + 100 = 200.
QuotaTree multiple_flavors(FairWeight of_cq, std::int64_t on_demand, std::int64_t spot) {
  QueueQuotaSpec cq =
      queue("cq", "c", {{20, {}, {}, "cpu", "on-demand"}, {80, {}, {}, "cpu", "spot"}});
  cq.fair_weight = of_cq;
  QuotaTree tree =
      QuotaTree::build({}, {cq, queue("peer", "c", {{100, {}, {}, "cpu", "default"}})});
  tree.add_usage(node(tree, "cq"), {{fr(tree, "cpu", "on-demand"), Amount(on_demand)},
                                    {fr(tree, "cpu", "spot"), Amount(spot)}});
  return tree;
}

TEST(FairShare, CountsWhatIsAboveNominalOverAllThatCouldBeLent) {
  // on-demand 15 + 10 = 25, 5 above 20; spot 5 of 80: 5 * 1000 / 200 = 25
  const QuotaTree tree = multiple_flavors(weight(kOne), 25, 5);
  const FairShare share = dominant_share(tree, node(tree, "cq"));
  EXPECT_EQ(share.status_value(), 25);
  EXPECT_TRUE(share.borrowing());
  EXPECT_EQ(lendable(tree, node(tree, "c"), fr(tree, "cpu", "spot")), Amount(200));
}

TEST(FairShare, SumsTheFlavorsOfAResource) {
  // (5 + 10) * 1000 / 200 = 75
  const QuotaTree tree = multiple_flavors(weight(kOne), 25, 90);
  EXPECT_EQ(dominant_share(tree, node(tree, "cq")).status_value(), 75);
}

TEST(FairShare, IsDividedByTheWeightAndRoundedUpForStatusOnly) {
  // 75 / 2 = 37.5
  const QuotaTree tree = multiple_flavors(weight(2 * kOne), 25, 90);
  const FairShare share = dominant_share(tree, node(tree, "cq"));
  EXPECT_EQ(share.status_value(), 38);
  EXPECT_LT(share, FairShare(Amount(38), Amount(1000), weight(kOne), true, std::nullopt));
  EXPECT_EQ(share, FairShare(Amount(75), Amount(1000), weight(2 * kOne), true, std::nullopt));
}

TEST(FairShare, IsInfiniteWithWeightZeroWhenSomethingIsBorrowed) {
  const QuotaTree tree = multiple_flavors(weight(0), 25, 90);
  const FairShare share = dominant_share(tree, node(tree, "cq"));
  EXPECT_TRUE(share.is_infinite());
  EXPECT_EQ(share.status_value(), kInt64Max);
  const QuotaTree idle = multiple_flavors(weight(0), 20, 80);
  EXPECT_FALSE(dominant_share(idle, node(idle, "cq")).is_infinite());
  EXPECT_EQ(dominant_share(idle, node(idle, "cq")).status_value(), 0);
}

TEST(FairShare, LendableIsWhatTheParentCouldHave) {
  // root (50) > child (Q 0, BL 10) > cq (Q 0) uses 10.
  // cq sees potential(child) = min(50, 0 + 10) = 10: 10 * 1000 / 10; child sees 50: 10 * 1000 / 50.
  QuotaTree tree =
      QuotaTree::build({cohort("root", "", {{50}}), cohort("child", "root", {{0, 10}})},
                       {queue("cq", "child", {{0}})});
  tree.add_usage(node(tree, "cq"), {{fr(tree), Amount(10)}});
  EXPECT_EQ(dominant_share(tree, node(tree, "cq")).status_value(), 1000);
  EXPECT_EQ(dominant_share(tree, node(tree, "child")).status_value(), 200);
  EXPECT_EQ(dominant_share(tree, node(tree, "root")).status_value(), 0);  // no parent
}

TEST(FairShare, TheMostBorrowedResourceDominates) {
  QuotaTree tree =
      QuotaTree::build({}, {queue("a", "c", {{10, {}, {}, "cpu"}, {4, {}, {}, "gpu"}}),
                            queue("b", "c", {{90, {}, {}, "cpu"}, {4, {}, {}, "gpu"}})});
  const FrId cpu = fr(tree, "cpu");
  const FrId gpu = fr(tree, "gpu");
  // cpu (30 - 10) / 100 = 0.2; gpu (6 - 4) / 8 = 0.25
  tree.add_usage(node(tree, "a"), {{cpu, Amount(30)}, {gpu, Amount(6)}});
  EXPECT_EQ(dominant_share(tree, node(tree, "a")).status_value(), 250);
  EXPECT_EQ(dominant_share(tree, node(tree, "a")).dominant(), gpu);
  // cpu (35 - 10) / 100 = 0.25, a tie: the name decides
  tree.add_usage(node(tree, "a"), {{cpu, Amount(5)}});
  EXPECT_EQ(dominant_share(tree, node(tree, "a")).dominant(), cpu);
}

TEST(FairShare, UsageOfWhatTheSubtreeHasNoQuotaForIsNotSeen) {
  QuotaTree tree = QuotaTree::build(
      {}, {queue("a", "c", {{1, {}, {}, "cpu", "x"}}), queue("b", "c", {{9, {}, {}, "cpu", "y"}})});
  tree.add_usage(node(tree, "a"), {{fr(tree, "cpu", "y"), Amount(5)}});
  EXPECT_FALSE(dominant_share(tree, node(tree, "a")).borrowing());
}

TEST(FairShare, NothingLendableCountsAsBorrowingWithShareZero) {
  QueueQuotaSpec cq = queue("a", "c", {{0}});
  cq.fair_weight = weight(0);
  QuotaTree tree = QuotaTree::build({}, {cq});
  tree.add_usage(node(tree, "a"), {{fr(tree), Amount(5)}});
  const FairShare share = dominant_share(tree, node(tree, "a"));
  EXPECT_TRUE(share.borrowing());
  EXPECT_TRUE(share.is_zero());
  EXPECT_FALSE(share.is_infinite());
}

/// a, b, c with 3 each, 9 lendable: the examples of S2-a and S2-b.
FairShare share_of(const std::string& who, std::int64_t usage) {
  QuotaTree tree = QuotaTree::build(
      {}, {queue("a", "r", {{3}}), queue("b", "r", {{3}}), queue("c", "r", {{3}})});
  tree.add_usage(node(tree, who), {{fr(tree), Amount(usage)}});
  return dominant_share(tree, node(tree, who));
}

TEST(FairShare, ComparesThirdsExactly) {
  EXPECT_EQ(share_of("a", 4).status_value(), 112);  // 1 * 1000 / 9 = 111.1
  EXPECT_LE(share_of("a", 4), share_of("b", 4));    // 111.1 <= 111.1
  EXPECT_FALSE(share_of("a", 5) <= share_of("b", 4));
  EXPECT_FALSE(share_of("a", 5) < share_of("b", 5));  // 222.2 < 222.2
}

TEST(FairShare, RoundsOnlyWhereAskedTo) {
  // 3 / 18 / 3 = 1 / 18, but 3000.0 / 18 / 3 = 55.55555555555555 and 1000.0 / 18 is ...56.
  const auto share = [](std::int64_t over, std::int64_t nanos, bool rounded) {
    return FairShare(Amount(over), Amount(18), weight(nanos), true, std::nullopt, rounded);
  };
  EXPECT_EQ(share(3, 3 * kOne, false), share(1, kOne, false));
  EXPECT_LT(share(3, 3 * kOne, true), share(1, kOne, true));
  EXPECT_EQ(share(2, 2 * kOne, true), share(1, kOne, true));
  EXPECT_LT(share(2, kOne, true), share(1, 0, true));
}

TEST(FairShare, OrdersZeroFiniteAndInfinite) {
  const auto share = [](std::int64_t over, std::int64_t lendable, std::int64_t nanos) {
    return FairShare(Amount(over), Amount(lendable), weight(nanos), over > 0, std::nullopt);
  };
  EXPECT_EQ(share(0, 10, 0), share(0, 7, kOne));
  EXPECT_LT(share(0, 10, 0), share(1, kInt64Max, kOne));
  EXPECT_LT(share(kInt64Max, 1, 1), share(1, kInt64Max, 0));
  EXPECT_LT(share(1, 3, 0), share(2, 3, 0));  // two infinite ones, by their ratio
  EXPECT_EQ(share(1, 3, 0), share(2, 6, 0));
  // Products beyond 128 bits: over * lendable * weight around 2^189.
  EXPECT_LT(share(kInt64Max - 1, kInt64Max, kInt64Max), share(kInt64Max, kInt64Max, kInt64Max));
  EXPECT_LT(share(kInt64Max, kInt64Max, kInt64Max), share(kInt64Max, kInt64Max, kInt64Max - 1));
  EXPECT_LT(share(kInt64Max, kInt64Max, kOne), share(kInt64Max, kInt64Max - 1, kOne));
}

TEST(FairShareProperty, ComparesAsTheFractionsDo) {
  RC_ASSERT(rc::check([] {
    struct Numbers {
      std::int64_t over = *rc::gen::inRange(0, 8);
      std::int64_t lendable = *rc::gen::inRange(1, 8);
      std::int64_t weight = *rc::gen::inRange(0, 5);
      [[nodiscard]] FairShare share() const {
        return FairShare(Amount(over), Amount(lendable), FairWeight{weight}, over > 0,
                         std::nullopt);
      }
    };
    const Numbers a;
    const Numbers b;
    // Over a common denominator: over / (lendable * weight), with a weight of 0 as one so small
    // that it is above all others (8 * 8 * 5 < 1000).
    const auto scaled = [](const Numbers& n, const Numbers& other) {
      const auto thousandths = [](std::int64_t weight) { return weight == 0 ? 1 : weight * 1000; };
      return n.over * other.lendable * thousandths(other.weight);
    };
    RC_ASSERT((a.share() < b.share()) == (scaled(a, b) < scaled(b, a)));
    RC_ASSERT((a.share() == b.share()) == (scaled(a, b) == scaled(b, a)));
  }));
}

TEST(FairShare, StatusIsCappedRatherThanWrapped) {
  // (2^63 - 1) * 1000 / 1 at weight 10^-9
  const FairShare share(Amount(kInt64Max), Amount(1), weight(1), true, std::nullopt);
  EXPECT_EQ(share.status_value(), kInt64Max);
  EXPECT_FALSE(share.is_infinite());
}

TEST(FairShare, UnlimitedQuotaInTheCohortMakesSharesTiny) {
  QuotaTree tree = QuotaTree::build({}, {queue("a", "r", {{3}}), queue("b", "r", {{kInt64Max}})});
  tree.add_usage(node(tree, "a"), {{fr(tree), Amount(1'000'000)}});
  EXPECT_EQ(dominant_share(tree, node(tree, "a")).status_value(), 1);  // above zero, rounded up
  EXPECT_EQ(dominant_share(tree, node(tree, "b")).status_value(), 0);
}

}  // namespace
}  // namespace muster::quota::testing

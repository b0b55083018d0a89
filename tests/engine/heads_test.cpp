// Whose turn it is under fair sharing.

#include "engine/heads.hpp"

#include "tests/quota/tree_builders.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

namespace muster::engine::test {
namespace {

using namespace quota::testing;
using quota::NodeIndex;
using quota::QuotaTree;

quota::QueueQuotaSpec weighted(quota::QueueQuotaSpec spec, std::int64_t nanos) {
  spec.fair_weight = quota::FairWeight{nanos};
  return spec;
}
quota::CohortSpec weighted(quota::CohortSpec spec, std::int64_t nanos) {
  spec.fair_weight = quota::FairWeight{nanos};
  return spec;
}

struct Ask {
  std::string queue;
  std::int64_t amount = 1;
  std::int64_t priority = 0;
  std::int64_t created_us = 0;
  std::string flavor = "f";
};

/// `record` becomes its workload.
Head head(const QuotaTree& tree, const Ask& ask, WorkloadRecord& record) {
  record.spec.priority = ask.priority;
  record.spec.created = Instant{ask.created_us};
  record.spec.uid = Uid("uid-" + ask.queue);
  Head result;
  result.record = &record;
  result.queue = ClusterQueueName(ask.queue);
  if (ask.amount != 0) result.amounts = {{fr(tree, "cpu", ask.flavor), Amount(ask.amount)}};
  return result;
}

void use(QuotaTree& tree, const std::string& queue, std::int64_t amount,
         const std::string& flavor = "f") {
  tree.add_usage(*tree.find_queue(ClusterQueueName(queue)),
                 {{fr(tree, "cpu", flavor), Amount(amount)}});
}

std::string turns(QuotaTree& tree, const std::vector<Ask>& asks) {
  Tournament tournament(tree);
  std::deque<WorkloadRecord> records;
  for (const Ask& ask : asks) tournament.enter(head(tree, ask, records.emplace_back()));
  std::string order;
  while (const auto next = tournament.pop()) {
    order += (order.empty() ? "" : " ") + next->queue.value();
  }
  return order;
}

TEST(Tournament, TheLowestShareWithTheHeadGoesFirst) {
  // Lendable 10. a would have 3 of it, b 2, c 4.
  QuotaTree tree = QuotaTree::build(
      {cohort("org", "", {{10}})},
      {queue("a", "org", {{0}}), queue("b", "org", {{0}}), queue("c", "org", {{0}})});
  use(tree, "a", 2);
  use(tree, "b", 1);
  EXPECT_EQ(turns(tree, {{"a"}, {"b"}, {"c", 4}}), "b a c");
}

TEST(Tournament, WeightsDivideTheShare) {
  // a: 4 * 1000 / 10 / 4 = 100; b: 2 * 1000 / 10 / 1 = 200.
  QuotaTree tree = QuotaTree::build(
      {cohort("org", "", {{10}})},
      {weighted(queue("a", "org", {{0}}), 4'000'000'000), queue("b", "org", {{0}})});
  EXPECT_EQ(turns(tree, {{"a", 4}, {"b", 2}}), "a b");
}

TEST(Tournament, WeightZeroGoesLastAndByItsRatioAmongEquals) {
  QuotaTree tree =
      QuotaTree::build({cohort("org", "", {{10}})},
                       {weighted(queue("a", "org", {{0}}), 0),
                        weighted(queue("b", "org", {{0}}), 0), queue("c", "org", {{0}})});
  EXPECT_EQ(turns(tree, {{"a", 2}, {"b", 1}, {"c", 7}}), "c b a");
}

TEST(Tournament, WhoStaysWithinItsQuotaOfWhatItAsksForGoesFirst) {
  // a borrows 8 of flavor y but asks for x, of which it has quota; b has the lower share but
  // borrows what it asks for.
  QuotaTree tree =
      QuotaTree::build({cohort("org", "", {{10, {}, {}, "cpu", "y"}})},
                       {queue("a", "org", {{2, {}, {}, "cpu", "x"}, {0, {}, {}, "cpu", "y"}}),
                        queue("b", "org", {{0, {}, {}, "cpu", "x"}, {0, {}, {}, "cpu", "y"}})});
  use(tree, "a", 8, "y");
  EXPECT_EQ(turns(tree, {{"a", 1, 0, 0, "x"}, {"b", 1, 0, 0, "y"}}), "a b");
}

TEST(Tournament, EqualSharesGoByPriorityThenAge) {
  QuotaTree tree = QuotaTree::build(
      {cohort("org", "", {{10}})},
      {queue("a", "org", {{0}}), queue("b", "org", {{0}}), queue("c", "org", {{0}})});
  EXPECT_EQ(turns(tree, {{"a", 1, 0, 7}, {"b", 1, 0, 5}, {"c", 1, 9, 9}}), "c b a");
}

TEST(Tournament, EachLevelComparesItsOwnChildren) {
  // Left holds 6 of the root's 12 already, right nothing; inside left, a has less than b. So
  // right's head goes first though its queue alone would have 4, then a, then b.
  QuotaTree tree = QuotaTree::build(
      {cohort("root", "", {{12}}), cohort("left", "root"), cohort("right", "root")},
      {queue("a", "left", {{0}}), queue("b", "left", {{0}}), queue("r", "right", {{0}})});
  use(tree, "b", 6);
  EXPECT_EQ(turns(tree, {{"a"}, {"b"}, {"r", 4}}), "r a b");
}

TEST(Tournament, TheWeightOfACohortCountsForAllBelowIt) {
  QuotaTree tree =
      QuotaTree::build({cohort("root", "", {{12}}),
                        weighted(cohort("left", "root"), 10'000'000'000), cohort("right", "root")},
                       {queue("a", "left", {{0}}), queue("r", "right", {{0}})});
  use(tree, "a", 6);
  // left: 7 * 1000 / 12 / 10 = 58; right: 1 * 1000 / 12 = 83.
  EXPECT_EQ(turns(tree, {{"a"}, {"r"}}), "a r");
}

TEST(Tournament, TreesOfTheirOwnTakeTurnsByPriorityAndAge) {
  QuotaTree tree = QuotaTree::build(
      {cohort("org", "", {{10}})},
      {queue("a", "org", {{0}}), queue("alone", "", {{4}}), queue("b", "org", {{0}})});
  EXPECT_EQ(turns(tree, {{"a", 1, 0, 1}, {"alone", 1, 0, 2}, {"b", 2, 0, 0}}), "a b alone");
}

// ---------------------------------------------------------------- against the definition

struct Entry {
  NodeIndex queue;
  Head head;
};

/// The recursion of semantics (c.4), written down literally, nothing remembered.
class Plain {
 public:
  explicit Plain(QuotaTree& tree) : tree_(tree) {}

  const Entry* winner(NodeIndex node, const std::vector<Entry>& entries) const {
    if (tree_.is_queue(node)) {
      for (const Entry& entry : entries) {
        if (entry.queue == node) return &entry;
      }
      return nullptr;
    }
    const Entry* best = nullptr;
    NodeIndex best_child;
    for (const NodeIndex child : tree_.children(node)) {
      const Entry* candidate = winner(child, entries);
      if (candidate == nullptr) continue;
      if (best == nullptr || less(child, *candidate, best_child, *best)) {
        best = candidate;
        best_child = child;
      }
    }
    return best;
  }

 private:
  bool less(NodeIndex x, const Entry& a, NodeIndex y, const Entry& b) const {
    const auto value = [&](NodeIndex node, const Entry& entry) {
      quota::UsageLog log;
      tree_.add_usage(entry.queue, entry.head.amounts, &log);
      bool borrowing = false;
      for (const auto& [id, amount] : entry.head.amounts) {
        borrowing = borrowing || (amount > Amount() && tree_.borrowing(node, id));
      }
      const auto share = quota::dominant_share(tree_, node);
      tree_.restore(log, 0);
      return std::pair(borrowing, share);
    };
    const auto [a_borrows, a_share] = value(x, a);
    const auto [b_borrows, b_share] = value(y, b);
    if (a_borrows != b_borrows) return b_borrows;
    if (!(a_share == b_share)) return a_share < b_share;
    return goes_before(a.head, b.head);
  }

  QuotaTree& tree_;
};

TEST(TournamentProperty, RemembersOnlyWhatStillHolds) {
  EXPECT_TRUE(rc::check("the same turns as counting everything anew each time", [] {
    const auto any_line = [](const char* flavor) {
      Line line;
      line.flavor = flavor;
      line.nominal = *rc::gen::inRange(0, 6);
      if (*rc::gen::inRange(0, 3) == 0) line.lending_limit = *rc::gen::inRange(0, 4);
      return line;
    };
    std::vector<quota::CohortSpec> cohorts;
    const int cohort_count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < cohort_count; ++i) {
      const int parent = *rc::gen::inRange(-1, i);
      cohorts.push_back(
          weighted(cohort("c" + std::to_string(i), parent < 0 ? "" : "c" + std::to_string(parent),
                          {any_line("x"), any_line("y")}),
                   *rc::gen::inRange(0, 3) * 1'000'000'000LL));
    }
    std::vector<quota::QueueQuotaSpec> queues;
    const int queue_count = *rc::gen::inRange(1, 7);
    for (int i = 0; i < queue_count; ++i) {
      const int parent = *rc::gen::inRange(-1, cohort_count);
      queues.push_back(
          weighted(queue("q" + std::to_string(i), parent < 0 ? "" : "c" + std::to_string(parent),
                         {any_line("x"), any_line("y")}),
                   *rc::gen::inRange(0, 3) * 500'000'000LL));
    }
    QuotaTree tree = QuotaTree::build(cohorts, queues);
    Tournament tournament(tree);
    Plain plain(tree);
    std::vector<Entry> entries;
    std::deque<WorkloadRecord> records;
    const auto enter = [&](int i) {
      const std::string name = "q" + std::to_string(i);
      const NodeIndex node = *tree.find_queue(ClusterQueueName(name));
      if (std::any_of(entries.begin(), entries.end(),
                      [&](const Entry& entry) { return entry.queue == node; })) {
        return;
      }
      const Head next = head(tree,
                             {name, *rc::gen::inRange(0, 4), *rc::gen::inRange(0, 2),
                              *rc::gen::inRange(0, 3), *rc::gen::arbitrary<bool>() ? "x" : "y"},
                             records.emplace_back());
      entries.push_back({node, next});
      tournament.enter(next);
    };
    for (int i = 0; i < queue_count; ++i) enter(i);
    for (int step = 0; step < 12; ++step) {
      if (*rc::gen::arbitrary<bool>()) {
        use(tree, "q" + std::to_string(*rc::gen::inRange(0, queue_count)), *rc::gen::inRange(0, 5),
            *rc::gen::arbitrary<bool>() ? "x" : "y");
      }
      const auto taken = tournament.pop();
      RC_ASSERT(taken.has_value() == !entries.empty());
      if (taken) {
        const Entry* best = nullptr;
        for (std::uint32_t i = 0; i < tree.size(); ++i) {
          if (tree.parent(NodeIndex(i))) continue;
          const Entry* of_root = plain.winner(NodeIndex(i), entries);
          if (of_root != nullptr && (best == nullptr || goes_before(of_root->head, best->head))) {
            best = of_root;
          }
        }
        RC_ASSERT(taken->queue == best->head.queue);
        std::erase_if(entries, [&](const Entry& entry) { return &entry == best; });
      }
      enter(*rc::gen::inRange(0, queue_count));
    }
  }));
}

}  // namespace
}  // namespace muster::engine::test

// Random trees and random traffic against the recursive formulas of semantics (a), written down
// literally here.

#include "quota/quota_tree.hpp"
#include "tests/quota/tree_builders.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace muster::quota::testing {
namespace {

struct Input {
  std::vector<CohortSpec> cohorts;
  std::vector<QueueQuotaSpec> queues;
};

std::vector<Line> any_lines() {
  std::vector<Line> lines;
  for (const char* flavor : {"x", "y"}) {
    if (!*rc::gen::arbitrary<bool>()) continue;
    Line line;
    line.flavor = flavor;
    line.nominal = *rc::gen::inRange(0, 20);
    if (*rc::gen::arbitrary<bool>()) line.borrowing_limit = *rc::gen::inRange(0, 12);
    if (*rc::gen::arbitrary<bool>()) line.lending_limit = *rc::gen::inRange(0, 20);
    lines.push_back(line);
  }
  return lines;
}

/// Up to five cohorts, each under one with a smaller number or none, and up to five queues. Some
/// cohorts are only referred to.
Input any_input() {
  Input input;
  const int cohorts = *rc::gen::inRange(1, 6);
  for (int i = 0; i < cohorts; ++i) {
    if (*rc::gen::inRange(0, 4) == 0) continue;
    const int parent = *rc::gen::inRange(-1, i);
    input.cohorts.push_back(cohort("c" + std::to_string(i),
                                   parent < 0 ? "" : "c" + std::to_string(parent), any_lines()));
  }
  const int queues = *rc::gen::inRange(1, 6);
  for (int i = 0; i < queues; ++i) {
    const int parent = *rc::gen::inRange(-1, cohorts);
    input.queues.push_back(queue("q" + std::to_string(i),
                                 parent < 0 ? "" : "c" + std::to_string(parent), any_lines()));
  }
  // Every flavor resource exists, so that traffic can name it.
  input.queues.push_back(queue("all", "", {{1, {}, {}, "cpu", "x"}, {1, {}, {}, "cpu", "y"}}));
  return input;
}

/// The formulas, recursive and by name, for one flavor.
class Oracle {
 public:
  Oracle(const QuotaTree& tree, FrId fr) : tree_(tree), fr_(fr) {}

  std::int64_t potential(NodeIndex n) const {
    const std::int64_t t = tree_.subtree_quota(n, fr_).value();
    const auto parent = tree_.parent(n);
    if (!parent) return t;
    const std::int64_t v = tree_.guaranteed(n, fr_).value() + potential(*parent);
    const auto limit = tree_.borrowing_limit(n, fr_);
    return limit ? std::min(v, t + limit->value()) : v;
  }
  std::int64_t local(NodeIndex n) const {
    return std::max<std::int64_t>(0, tree_.guaranteed(n, fr_).value() - usage.at(n));
  }
  std::int64_t available(NodeIndex n) const {
    const std::int64_t t = tree_.subtree_quota(n, fr_).value();
    const auto parent = tree_.parent(n);
    if (!parent) return t - usage.at(n);
    std::int64_t p = available(*parent);
    if (const auto limit = tree_.borrowing_limit(n, fr_)) {
      const std::int64_t g = tree_.guaranteed(n, fr_).value();
      p = std::min(p, (t - g) - std::max<std::int64_t>(0, usage.at(n) - g) + limit->value());
    }
    return local(n) + p;
  }
  void add(NodeIndex n, std::int64_t v) {
    const std::int64_t la = local(n);
    usage[n] += v;
    if (tree_.parent(n) && v > la) add(*tree_.parent(n), v - la);
  }
  void remove(NodeIndex n, std::int64_t v) {
    const std::int64_t s = usage.at(n) - tree_.guaranteed(n, fr_).value();
    usage[n] -= v;
    if (s > 0 && tree_.parent(n)) remove(*tree_.parent(n), std::min(v, s));
  }

  std::map<NodeIndex, std::int64_t> usage;

 private:
  const QuotaTree& tree_;
  FrId fr_;
};

/// T and G straight from the specs.
class SpecOracle {
 public:
  SpecOracle(const Input& input, const std::string& flavor) : input_(input), flavor_(flavor) {}

  std::int64_t queue_subtree(const QueueQuotaSpec& queue) const {
    const auto own = find(queue.resource_groups);
    return own ? own->nominal.value() : 0;
  }
  std::int64_t cohort_subtree(const CohortName& name) const {
    std::int64_t total = 0;
    for (const CohortSpec& cohort : input_.cohorts) {
      if (cohort.name == name) {
        if (const auto own = find(cohort.resource_groups)) total += own->nominal.value();
      }
      if (cohort.parent == name) {
        total += lent(cohort_subtree(cohort.name), find(cohort.resource_groups));
      }
    }
    for (const QueueQuotaSpec& queue : input_.queues) {
      if (queue.cohort == name) total += lent(queue_subtree(queue), find(queue.resource_groups));
    }
    return total;
  }

 private:
  static std::int64_t lent(std::int64_t subtree, const std::optional<Quota>& own) {
    if (!own || !own->lending_limit) return subtree;
    return subtree - std::max<std::int64_t>(0, subtree - own->lending_limit->value());
  }
  std::optional<Quota> find(const std::vector<ResourceGroup>& groups) const {
    for (const ResourceGroup& group : groups) {
      for (const FlavorQuotas& flavor : group.flavors) {
        if (flavor.flavor.value() == flavor_) return flavor.resources.begin()->second;
      }
    }
    return std::nullopt;
  }

  const Input& input_;
  std::string flavor_;
};

NodeIndex index(std::size_t i) {
  return NodeIndex(static_cast<std::uint32_t>(i));
}

TEST(QuotaTreeProperty, SubtreeQuotaIsWhatTheSpecsAddUpTo) {
  RC_ASSERT(rc::check([] {
    const Input input = any_input();
    const QuotaTree tree = QuotaTree::build(input.cohorts, input.queues);
    const SpecOracle oracle(input, "x");
    const FrId fr = testing::fr(tree, "cpu", "x");
    for (std::size_t i = 0; i < tree.cohort_count(); ++i) {
      RC_ASSERT(tree.subtree_quota(index(i), fr).value() ==
                oracle.cohort_subtree(tree.cohort_name(index(i))));
    }
    for (const QueueQuotaSpec& queue : input.queues) {
      RC_ASSERT(tree.subtree_quota(*tree.find_queue(queue.name), fr).value() ==
                oracle.queue_subtree(queue));
    }
  }));
}

TEST(QuotaTreeProperty, TrafficFollowsTheFormulas) {
  RC_ASSERT(rc::check([] {
    const Input input = any_input();
    QuotaTree tree = QuotaTree::build(input.cohorts, input.queues);
    const FrId fr = testing::fr(tree, "cpu", "x");
    Oracle oracle(tree, fr);
    for (std::size_t i = 0; i < tree.size(); ++i) oracle.usage[index(i)] = 0;
    std::vector<std::pair<NodeIndex, std::int64_t>> held;
    const int steps = *rc::gen::inRange(0, 30);
    for (int step = 0; step < steps; ++step) {
      if (held.empty() || *rc::gen::arbitrary<bool>()) {
        const NodeIndex queue =
            tree.queues()[*rc::gen::inRange<std::size_t>(0, tree.queues().size())];
        const std::int64_t amount = *rc::gen::inRange(0, 15);
        tree.add_usage(queue, {{fr, Amount(amount)}});
        oracle.add(queue, amount);
        held.emplace_back(queue, amount);
      } else {
        const std::size_t which = *rc::gen::inRange<std::size_t>(0, held.size());
        tree.remove_usage(held[which].first, {{fr, Amount(held[which].second)}});
        oracle.remove(held[which].first, held[which].second);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
      RC_ASSERT(tree.check_usage().empty());
      for (std::size_t i = 0; i < tree.size(); ++i) {
        RC_ASSERT(tree.usage(index(i), fr).value() == oracle.usage[index(i)]);
        RC_ASSERT(tree.available(index(i), fr).value() == oracle.available(index(i)));
        RC_ASSERT(tree.potential(index(i), fr).value() == oracle.potential(index(i)));
        RC_ASSERT(tree.available(index(i), fr) <= tree.potential(index(i), fr));
      }
    }
    for (const auto& [queue, amount] : held) tree.remove_usage(queue, {{fr, Amount(amount)}});
    RC_ASSERT(tree.same_usage(QuotaTree::build(input.cohorts, input.queues)));
  }));
}

TEST(QuotaTreeProperty, WhatFitsBreaksNoQuotaAboveTheQueue) {
  RC_ASSERT(rc::check([] {
    const Input input = any_input();
    QuotaTree tree = QuotaTree::build(input.cohorts, input.queues);
    const FrId fr = testing::fr(tree, "cpu", "x");
    for (int step = 0; step < 20; ++step) {
      const NodeIndex queue =
          tree.queues()[*rc::gen::inRange<std::size_t>(0, tree.queues().size())];
      const FrAmounts amounts = {{fr, Amount(*rc::gen::inRange(0, 15))}};
      if (tree.fits(queue, amounts)) tree.add_usage(queue, amounts);
      for (std::size_t i = 0; i < tree.size(); ++i) {
        const NodeIndex n = index(i);
        const std::int64_t most =
            tree.parent(n) ? tree.borrowing_limit(n, fr).value_or(Amount(1000)).value() : 0;
        RC_ASSERT(tree.usage(n, fr).value() <= tree.subtree_quota(n, fr).value() + most);
      }
    }
  }));
}

TEST(QuotaTreeProperty, TheLimitingNodeMissesExactlyWhatIsMissing) {
  RC_ASSERT(rc::check([] {
    const Input input = any_input();
    QuotaTree tree = QuotaTree::build(input.cohorts, input.queues);
    const FrId fr = testing::fr(tree, "cpu", "x");
    for (const NodeIndex queue : tree.queues()) {
      tree.add_usage(queue, {{fr, Amount(*rc::gen::inRange(0, 25))}});
    }
    for (const NodeIndex queue : tree.queues()) {
      const Amount amount(*rc::gen::inRange(0, 60));
      const auto now = tree.limiting_node(queue, fr, amount);
      RC_ASSERT(now.has_value() == (amount > tree.available_clamped(queue, fr)));
      if (now) {
        RC_ASSERT(now->missing == amount - tree.available(queue, fr));
        RC_ASSERT(now->missing > Amount());
        RC_ASSERT(tree.is_ancestor_or_self(now->node, queue));
      }
      const auto ever = tree.limiting_node_ever(queue, fr, amount);
      RC_ASSERT(ever.has_value() == (amount > tree.potential(queue, fr)));
      if (ever) RC_ASSERT(ever->missing == amount - tree.potential(queue, fr));
    }
  }));
}

TEST(QuotaTreeProperty, RestoreAfterEveryPrefixIsTheStateBefore) {
  RC_ASSERT(rc::check([] {
    const Input input = any_input();
    QuotaTree tree = QuotaTree::build(input.cohorts, input.queues);
    const FrId x = testing::fr(tree, "cpu", "x");
    const FrId y = testing::fr(tree, "cpu", "y");
    UsageLog log;
    std::vector<QuotaTree> states = {tree};
    std::vector<std::size_t> marks = {0};
    const int steps = *rc::gen::inRange(1, 15);
    for (int step = 0; step < steps; ++step) {
      const NodeIndex queue =
          tree.queues()[*rc::gen::inRange<std::size_t>(0, tree.queues().size())];
      const FrAmounts amounts = {{x, Amount(*rc::gen::inRange(-5, 15))},
                                 {y, Amount(*rc::gen::inRange(0, 15))}};
      if (*rc::gen::arbitrary<bool>()) {
        tree.add_usage(queue, amounts, &log);
      } else {
        tree.remove_usage(queue, amounts, &log);
      }
      states.push_back(tree);
      marks.push_back(log.size());
    }
    for (std::size_t i = states.size(); i-- > 0;) {
      tree.restore(log, marks[i]);
      RC_ASSERT(tree.same_usage(states[i]));
    }
  }));
}

TEST(QuotaTreeProperty, TheOrderOfTheInputDoesNotMatter) {
  RC_ASSERT(rc::check([] {
    const Input input = any_input();
    Input reversed = input;
    std::reverse(reversed.cohorts.begin(), reversed.cohorts.end());
    std::rotate(reversed.queues.begin(), reversed.queues.begin() + 1, reversed.queues.end());
    const QuotaTree one = QuotaTree::build(input.cohorts, input.queues);
    const QuotaTree two = QuotaTree::build(reversed.cohorts, reversed.queues);
    RC_ASSERT(one.size() == two.size());
    RC_ASSERT(one.fr_count() == two.fr_count());
    for (std::size_t i = 0; i < one.size(); ++i) {
      RC_ASSERT(one.name(index(i)) == two.name(index(i)));
      RC_ASSERT(one.parent(index(i)) == two.parent(index(i)));
      RC_ASSERT(names(one, one.queues_below(index(i))) == names(two, two.queues_below(index(i))));
      for (std::uint32_t f = 0; f < one.fr_count(); ++f) {
        RC_ASSERT(one.potential(index(i), FrId(f)) == two.potential(index(i), FrId(f)));
        RC_ASSERT(one.subtree_quota(index(i), FrId(f)) == two.subtree_quota(index(i), FrId(f)));
      }
    }
  }));
}

}  // namespace
}  // namespace muster::quota::testing

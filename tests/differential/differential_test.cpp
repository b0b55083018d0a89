// The engine beside Kueue 0.17.0 over small random worlds. The peer's answers are stored
// (answers.txt, made by tests/differential/run), so that no Go program is needed here.

#include "tests/differential/comparison.hpp"
#include "tests/differential/worlds.hpp"
#include "tests/rounds.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace muster::differential {
namespace {

TEST(Differential, WorldsEndAsWithThePeer) {
  const std::vector<Stored> all = stored_answers("answers.txt");
  EXPECT_GE(all.size(), 5000U);
  Tally tally = compare(all, 1, world_of);
  EXPECT_GE(tally.share(tally.preempted), 30.0);
  EXPECT_GE(tally.share(tally.by_end[kSame]), 99.0);
  EXPECT_EQ(tally.by_end[kUnexplained], 0U);
  for (const Fact& fact : quota_facts()) EXPECT_GE(tally.by_end[fact.name], 1U) << fact.name;
}

TEST(Differential, WithAllFactsWorldsEndAsWithThePeer) {
  const std::size_t step = test::is_full_run() ? 1 : 9;
  EXPECT_GE(compare_with_all_facts(stored_answers("answers.txt"), step, world_of), 600U);
}

}  // namespace
}  // namespace muster::differential

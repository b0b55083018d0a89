// The engine beside Kueue 0.17.0 over small random worlds with nodes: who runs, on which nodes.
// The peer's answers are stored (topology_answers.txt, made by tests/differential/run).

#include "tests/differential/comparison.hpp"
#include "tests/differential/topology_worlds.hpp"
#include "tests/rounds.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace muster::differential {
namespace {

/// Two pod sets with four pods in all stand on a node that takes two; the peer then counts -2 there
/// and 1 beside it, and finds room for "-1 out of 1 pod(s)" in a rack that has room for one.
const std::set<std::uint64_t> kNegativeRoomSeeds = {628};

TEST(TopologyDifferential, WorldsEndAsWithThePeer) {
  const std::vector<Stored> all = stored_answers("topology_answers.txt");
  EXPECT_GE(all.size(), 3000U);
  Tally tally = compare(all, test::is_full_run() ? 1 : 4, topology_world_of, kNegativeRoomSeeds);
  EXPECT_GE(tally.share(tally.preempted), 30.0);
  EXPECT_LE(tally.share(tally.different), 15.0);
  EXPECT_EQ(tally.by_end[kUnexplained], 0U);
  if (!test::is_full_run()) return;
  for (const Fact& fact : node_facts()) EXPECT_GE(tally.by_end[fact.name], 1U) << fact.name;
}

TEST(TopologyDifferential, WithAllFactsWorldsEndAsWithThePeer) {
  const std::size_t step = test::is_full_run() ? 1 : 32;
  EXPECT_GE(compare_with_all_facts(stored_answers("topology_answers.txt"), step, topology_world_of,
                                   kNegativeRoomSeeds),
            100U);
}

}  // namespace
}  // namespace muster::differential

// Loop freedom (design section 5) over all generated worlds, whatever their policies, classical and
// fair: every world comes to rest, and nobody goes twice, for nothing arrives in between, no node
// is lost, no quota changes and no protected run time ends.

#include "tests/differential/outcome.hpp"
#include "tests/differential/worlds.hpp"
#include "tests/rounds.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

namespace muster::differential {
namespace {

TEST(Loops, NobodyGoesTwiceInAnyWorldAndEveryWorldComesToRest) {
  const std::uint64_t seeds = test::rounds(400, 10'000);
  std::uint64_t with_preemption = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    World world = world_of(seed);
    for (const bool fair : {false, true}) {
      world.fair_sharing = fair;
      SCOPED_TRACE("seed " + std::to_string(seed) + (fair ? ", fair sharing" : ""));
      const Decided decided = decide_world(world.manifests, configuration_of(world, "muster"));
      EXPECT_NE(decided.outcome, "endless");
      EXPECT_TRUE(decided.violations.empty()) << decided.violations.front();
      std::map<std::string, int> times;
      for (const cli::Decision& decision : decided.decisions) {
        if (decision.type != cli::DecisionType::kPreempted) continue;
        EXPECT_EQ(++times[decision.workload], 1) << decision.workload;
      }
      if (!times.empty()) ++with_preemption;
    }
  }
  EXPECT_GE(with_preemption * 10, seeds * 2 * 3);
}

}  // namespace
}  // namespace muster::differential

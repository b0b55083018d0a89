// The order of the input is no input: with ages that differ, the same objects in another order give
// the same report, byte for byte.

#include "tests/differential/outcome.hpp"
#include "tests/differential/worlds.hpp"
#include "tests/rounds.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace muster::differential {
namespace {

TEST(OrderOfInput, DecidesNothing) {
  const std::uint64_t seeds = test::rounds(400, 5'000);
  std::uint64_t compared = 0;
  std::uint64_t decided = 0;
  // The last one: victims that were admitted in the same second.
  for (std::uint64_t each = 0; each <= seeds; ++each) {
    const std::uint64_t seed = each < seeds ? each + 1 : 3153;
    const World world = world_of(seed);
    // Among equals the input's order is all there is to go by.
    if (world.ties) continue;
    const std::string configuration = configuration_of(world, "muster");
    const Decided one = decide_world(world.manifests, configuration);
    const Decided other = decide_world(shuffled(world, seed), configuration);
    ASSERT_EQ(other.report, one.report) << "seed " << seed;
    ++compared;
    if (one.report.find("Admitted\",") != std::string::npos) ++decided;
  }
  EXPECT_GE(compared, seeds / 2);
  EXPECT_GE(decided, compared / 2) << "worlds in which nothing happens show nothing";
}

}  // namespace
}  // namespace muster::differential

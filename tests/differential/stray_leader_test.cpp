// What Kueue 0.17.0 does with leaders (semantics f, row f2), beside what is right.

#include "tests/differential/stray_leader.hpp"

#include "tests/topology/fleet_builders.hpp"

#include <gtest/gtest.h>

namespace muster::topology::testing {
namespace {

using differential::place_with_stray_leader;

constexpr const char* kRack = "rack";
constexpr const char* kHost = "kubernetes.io/hostname";

NodeFacts host(const std::string& name, const std::string& rack, std::int64_t gpu) {
  return node(name, gpu, {{kRack, rack}, {kHost, name}});
}

/// Workers of one gpu each, and a leader of one, in one rack.
PlaceRequest with_leader(std::int64_t workers) {
  PlaceRequest asked = request(workers);
  asked.leader = gpus(1, 1);
  asked.mode = Mode::kRequired;
  asked.level = kRack;
  asked.nodes.levels = {kRack, kHost};
  return asked;
}

TEST(StrayLeader, PlacesAsEverWhereEveryNodeHasRoomForIt) {
  Fleet fleet;
  fleet.upsert(host("x1", "r1", 2));
  fleet.upsert(host("x2", "r1", 3));
  fleet.upsert(host("x3", "r2", 9));
  const PlaceRequest asked = with_leader(4);
  const auto astray = place_with_stray_leader(asked, fleet);
  ASSERT_TRUE(astray.has_value());
  EXPECT_EQ(*astray, place(asked, fleet).value());
  EXPECT_EQ(counts(fleet, *astray), (Counts{{"x1", 2}, {"x2", 2}}));
  EXPECT_FALSE(place_with_stray_leader(with_leader(9), fleet).has_value());
}

TEST(StrayLeader, LosesThemWhereAFullNodeHidesWhatItDisplaces) {
  Fleet fleet;
  fleet.upsert(host("x1", "r1", 4));
  fleet.upsert(host("x2", "r1", 0));
  // 4 in the rack, 3 beside the leader; a full node displaces nothing: min(4 - 3, 0 - 0) = 0.
  const auto astray = place_with_stray_leader(with_leader(4), fleet);
  ASSERT_TRUE(astray.has_value());
  EXPECT_TRUE(astray->empty());
  EXPECT_FALSE(place(with_leader(4), fleet).has_value());
}

}  // namespace
}  // namespace muster::topology::testing

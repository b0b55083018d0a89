// Whose end would make room, and how it is told from what was said before.

#include "engine/explain.hpp"
#include "tests/engine/world.hpp"

namespace muster::engine::test {
namespace {

/// `big` runs on n1 to n3, `small` on n4; `waits` needs two of the four.
void fill_four_nodes(World& world) {
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.nominal = 80});
  world.submit("big", {.pods = 3});
  world.settle();
  world.submit("small", {.pods = 1, .created_s = 1});
  world.settle();
  world.submit("waits", {.pods = 2, .created_s = 2});
  world.settle();
}

const NodesShortfall& shortfall_in(const Explanation& why) {
  return std::get<NodesShortfall>(why.causes.front());
}

TEST(LookAhead, NamesTheSmallestWorkloadWhoseEndIsEnough) {
  World world;
  fill_four_nodes(world);
  const auto why = world.engine.full_explanation(World::key("waits"));
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(shortfall_in(*why).after, (RoomAfter{World::key("big"), 3}));
  EXPECT_NE(describe(*why).find("; fits after team/big (3 hosts) ends"), std::string::npos);
  // The plain verdict is not searched for.
  EXPECT_FALSE(shortfall_in(*world.engine.explanation(World::key("waits"))).after.has_value());
}

TEST(LookAhead, SaysNothingWhereNobodysEndAloneWouldDo) {
  World world;
  fill_four_nodes(world);
  world.submit("all", {.pods = 4, .created_s = 3});
  world.settle();
  const auto why = world.engine.full_explanation(World::key("all"));
  ASSERT_TRUE(why.has_value());
  EXPECT_FALSE(shortfall_in(*why).after.has_value());
}

TEST(LookAhead, WhatWasSaidIsKnownAgainAsLongAsTheOneNamedRuns) {
  World world;
  fill_four_nodes(world);
  const Explanation plain = *world.engine.explanation(World::key("waits"));
  const std::string said = describe(*world.engine.full_explanation(World::key("waits")));
  const auto runs = [](const WorkloadKey& key) { return key == World::key("big"); };
  const auto gone = [](const WorkloadKey&) { return false; };
  EXPECT_TRUE(is_description(said, plain, runs));
  EXPECT_FALSE(is_description(said, plain, gone));
  EXPECT_TRUE(is_description(describe(plain), plain, gone));
  EXPECT_FALSE(is_description(describe(plain) + "; and more", plain, runs));
  EXPECT_FALSE(is_description(describe(plain) + "; fits after nobody", plain, runs));
  EXPECT_FALSE(is_description("", plain, runs));
}

}  // namespace
}  // namespace muster::engine::test

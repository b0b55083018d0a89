// The largest gang of whole hosts that would fit now.

#include "engine/fragmentation.hpp"

#include "tests/engine/world.hpp"

namespace muster::engine::test {
namespace {

/// Flavor h100 on racks r1 (2 hosts) and r2 (3 hosts) of 8 GPUs.
void add_racks(World& world) {
  world.send(TopologyUpserted{{TopologyName("racks"), {"rack", kHostnameLabel}}});
  world.flavor("h100", {{"pool", "gpu"}}, "racks");
  world.nodes("a", 2, 8, {{"rack", "r1"}, {"pool", "gpu"}});
  world.nodes("b", 3, 8, {{"rack", "r2"}, {"pool", "gpu"}});
  world.queue("a", {.nominal = 40});
}

LargestGang all(std::int64_t hosts) {
  return {FlavorName("h100"), "", "", hosts};
}
LargestGang in_rack(const std::string& rack, std::int64_t hosts) {
  return {FlavorName("h100"), "rack", rack, hosts};
}
using Gangs = std::vector<LargestGang>;

TEST(LargestGangs, AreCountedByLevel) {
  World world;
  add_racks(world);
  EXPECT_EQ(world.engine.largest_gangs(), (Gangs{all(5), in_rack("r2", 3)}));
}

TEST(LargestGangs, AnAcceleratorInUseCostsTheHostAndACpuPodDoesNot) {
  World world;
  add_racks(world);
  world.pod("daemon", "b1", 0);
  EXPECT_EQ(world.engine.largest_gangs(), (Gangs{all(5), in_rack("r2", 3)}));
  world.pod("notebook", "b1", 1);
  world.pod("other", "b2", 1);
  EXPECT_EQ(world.engine.largest_gangs(), (Gangs{all(3), in_rack("r1", 2)}));
}

TEST(LargestGangs, PlannedSlotsCostTheHost) {
  World world;
  add_racks(world);
  world.submit("one", {.pods = 1, .gpus = 1, .topology = TopologyRequest{}});
  world.settle();
  ASSERT_EQ(world.plan("one"), "a1");
  EXPECT_EQ(world.engine.largest_gangs(), (Gangs{all(4), in_rack("r2", 3)}));
}

TEST(LargestGangs, OnlyHostsThatTakeTheFlavorsPodsCount) {
  World world;
  add_racks(world);
  world.node("b1", 8, {{"rack", "r2"}, {"pool", "gpu"}}, false);
  world.node("b2", 8, {{"rack", "r2"}, {"pool", "other"}});
  world.node("stray", 8, {{"pool", "gpu"}});  // In no rack.
  EXPECT_EQ(world.engine.largest_gangs(), (Gangs{all(3), in_rack("r1", 2)}));
}

TEST(LargestGangs, WithoutAWholeHostNoDomainIsNamed) {
  World world;
  world.send(TopologyUpserted{{TopologyName("racks"), {"rack", kHostnameLabel}}});
  world.flavor("h100", {}, "racks");
  EXPECT_EQ(world.engine.largest_gangs(), (Gangs{all(0), in_rack("", 0)}));
}

}  // namespace
}  // namespace muster::engine::test

#include "topology/fleet.hpp"

#include "tests/topology/fleet_builders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace muster::topology::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> listed(const Fleet& fleet) {
  std::vector<std::string> names;
  for (const NodeIndex index : fleet.by_name()) names.push_back(fleet.name(index).value());
  return names;
}

TEST(Fleet, ListsPresentNodesByName) {
  Fleet fleet;
  fleet.upsert(node("b", 1));
  const NodeIndex c = fleet.upsert(node("c", 1));
  fleet.upsert(node("a", 1));
  EXPECT_THAT(listed(fleet), ElementsAre("a", "b", "c"));
  fleet.remove(c);
  EXPECT_THAT(listed(fleet), ElementsAre("a", "b"));
  fleet.remove(c);  // once more changes nothing
  EXPECT_THAT(listed(fleet), ElementsAre("a", "b"));
}

TEST(Fleet, FreeIsAllocatableWithoutForeignAndPlannedUse) {
  Fleet fleet;
  const NodeIndex a = fleet.upsert(node("a", 8));
  fleet.charge(a, UseKind::kForeign, gpus(2, 1));
  fleet.charge(a, UseKind::kPlanned, gpus(4, 4));
  EXPECT_EQ(fleet.free(a), gpus(2, 105));  // 8 - 2 - 4; 110 - 1 - 4
  fleet.release(a, UseKind::kPlanned, gpus(1, 1));
  EXPECT_EQ(fleet.use(a, UseKind::kPlanned), gpus(3, 3));
  EXPECT_EQ(fleet.free(a), gpus(3, 106));
}

TEST(Fleet, HugeChargesLeaveNothingBehind) {
  Fleet fleet;
  const NodeIndex a = fleet.upsert(node("a", 8));
  const Resources half = gpus(std::int64_t{1} << 62, 1);
  fleet.charge(a, UseKind::kPlanned, gpus(3, 3));
  fleet.charge(a, UseKind::kPlanned, half, 4);
  fleet.charge(a, UseKind::kPlanned, half);
  EXPECT_TRUE(fleet.free(a).any_negative());
  for (int i = 0; i < 5; ++i) fleet.release(a, UseKind::kPlanned, half);
  EXPECT_EQ(fleet.use(a, UseKind::kPlanned), gpus(3, 3));
  EXPECT_EQ(fleet.free(a), gpus(5, 107));
}

TEST(Fleet, AnUpdateKeepsIndexAndCharges) {
  Fleet fleet;
  const NodeIndex a = fleet.upsert(node("a", 8));
  fleet.charge(a, UseKind::kPlanned, gpus(4, 4));
  EXPECT_EQ(fleet.upsert(node("a", 6)), a);  // two GPUs have died
  EXPECT_EQ(fleet.free(a), gpus(2, 106));
}

TEST(Fleet, ChargesSurviveTheNodeAndItsReturn) {
  Fleet fleet;
  const NodeIndex a = fleet.upsert(node("a", 8));
  fleet.charge(a, UseKind::kPlanned, gpus(4, 4));
  fleet.remove(a);
  EXPECT_FALSE(fleet.present(a));
  EXPECT_EQ(fleet.free(a)[kGpu], Amount(-4));
  EXPECT_EQ(fleet.find(NodeName("a")), a);
  EXPECT_NE(fleet.upsert(node("b", 8)), a);  // still held by its charge
  EXPECT_EQ(fleet.upsert(node("a", 8)), a);
  EXPECT_EQ(fleet.free(a), gpus(4, 106));
}

TEST(Fleet, AnIndexIsReusedOnlyWhenNothingIsChargedToIt) {
  Fleet fleet;
  const NodeIndex a = fleet.upsert(node("a", 8));
  fleet.charge(a, UseKind::kForeign, gpus(1, 1));
  fleet.remove(a);
  const NodeIndex b = fleet.upsert(node("b", 8));
  EXPECT_NE(b, a);
  fleet.release(a, UseKind::kForeign, gpus(1, 1));
  const NodeIndex c = fleet.upsert(node("c", 4));
  EXPECT_EQ(c, a);
  EXPECT_EQ(fleet.find(NodeName("a")), std::nullopt);
  EXPECT_EQ(fleet.free(c), gpus(4, 110));
  EXPECT_EQ(fleet.slots(), 2U);
}

TEST(Fleet, ANodeMayBeChargedBeforeItIsKnown) {
  Fleet fleet;
  const NodeIndex a = fleet.ensure(NodeName("a"));
  const NodeIndex b = fleet.ensure(NodeName("b"));
  EXPECT_NE(a, b);
  EXPECT_THAT(listed(fleet), IsEmpty());
  fleet.charge(a, UseKind::kForeign, gpus(3, 1));
  EXPECT_EQ(fleet.upsert(node("a", 8)), a);
  EXPECT_EQ(fleet.free(a), gpus(5, 109));
  EXPECT_EQ(fleet.ensure(NodeName("a")), a);
}

TEST(Fleet, EnsuringARemovedNodePinsItsIndex) {
  Fleet fleet;
  const NodeIndex a = fleet.upsert(node("a", 8));
  fleet.remove(a);
  EXPECT_EQ(fleet.ensure(NodeName("a")), a);
  EXPECT_NE(fleet.ensure(NodeName("b")), a);
}

TEST(Fleet, TheGenerationFollowsWhatFiltersSee) {
  Fleet fleet;
  fleet.upsert(node("a", 8));
  const std::uint64_t start = fleet.generation();
  const NodeIndex a = fleet.upsert(node("a", 4));  // allocatable is no matter of filters
  fleet.charge(a, UseKind::kForeign, gpus(1, 1));
  EXPECT_EQ(fleet.generation(), start);
  NodeFacts cordoned = node("a", 4);
  cordoned.unschedulable = true;
  fleet.upsert(cordoned);
  EXPECT_EQ(fleet.generation(), start + 1);
  fleet.remove(a);
  EXPECT_EQ(fleet.generation(), start + 2);
}

TEST(Fleet, TheHostnameIsTheLabelOrElseTheName) {
  Fleet fleet;
  const NodeIndex a = fleet.upsert(node("a", 8));
  const NodeIndex b = fleet.upsert(node("b", 8, {{"kubernetes.io/hostname", "ip-10-0-0-1"}}));
  EXPECT_EQ(fleet.hostname(a), "a");
  EXPECT_EQ(fleet.hostname(b), "ip-10-0-0-1");
}

TEST(FleetProperty, RestoreAfterEveryPrefixIsTheStateBefore) {
  RC_ASSERT(rc::check([] {
    Fleet fleet;
    std::vector<NodeIndex> nodes;
    for (const char* name : {"a", "b", "c"}) nodes.push_back(fleet.upsert(node(name, 8)));
    const auto state = [&] {
      std::vector<Resources> all;
      for (const NodeIndex index : nodes) {
        all.push_back(fleet.use(index, UseKind::kForeign));
        all.push_back(fleet.use(index, UseKind::kPlanned));
        all.push_back(fleet.free(index));
      }
      return all;
    };
    UseLog log;
    std::vector<std::vector<Resources>> states = {state()};
    std::vector<std::size_t> marks = {0};
    const int steps = *rc::gen::inRange(1, 12);
    for (int step = 0; step < steps; ++step) {
      const NodeIndex index = nodes[*rc::gen::inRange<std::size_t>(0, nodes.size())];
      const UseKind kind = *rc::gen::element(UseKind::kForeign, UseKind::kPlanned);
      const Resources amount = gpus(*rc::gen::inRange(0, 9), *rc::gen::inRange(0, 3));
      switch (*rc::gen::inRange(0, 2)) {
        case 0:
          fleet.charge(index, kind, amount, *rc::gen::inRange(0, 4), &log);
          break;
        default:
          fleet.release(index, kind, amount, *rc::gen::inRange(0, 4), &log);
      }
      states.push_back(state());
      marks.push_back(log.size());
    }
    for (std::size_t i = states.size(); i-- > 0;) {
      fleet.restore(log, marks[i]);
      RC_ASSERT(state() == states[i]);
    }
  }));
}

}  // namespace
}  // namespace muster::topology::testing

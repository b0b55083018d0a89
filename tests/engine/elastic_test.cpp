// Elastic gangs that wait for nodes (design section 2): held whole, room kept for the first.

#include "engine/elastic.hpp"

#include "tests/engine/world.hpp"
#include "tests/rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::engine::test {
namespace {

using ::testing::ElementsAre;

struct Elastic : ::testing::Test {
  void SetUp() override {
    world.flavor("h100", {}, "", Capacity::kElastic);
    world.queue("a", {.nominal = 1000});
  }
  [[nodiscard]] bool held(const std::string& name) const {
    return world.engine.is_held(World::key(name));
  }
  /// GPUs that are promised on the node: slots of plans and what is kept.
  [[nodiscard]] std::int64_t promised(const std::string& node) const {
    const State& state = world.engine.state();
    const auto index = state.fleet.find(NodeName(node));
    if (!index) return 0;
    const auto gpus = state.resources.find(gpu());
    return state.fleet.use(*index, topology::UseKind::kPlanned)[*gpus].value();
  }
  World world;
};

TEST_F(Elastic, AGangIsPlacedWhenItsLastNodeComes) {
  world.submit("gang", {.pods = 3});
  world.settle();
  EXPECT_TRUE(held("gang"));
  for (const char* node : {"n1", "n2"}) {
    world.node(node);
    world.settle();
    EXPECT_TRUE(held("gang"));
    EXPECT_EQ(world.plan("gang"), "");
    EXPECT_EQ(promised(node), 8);
  }
  world.node("n3");
  world.settle();
  EXPECT_FALSE(held("gang"));
  EXPECT_EQ(world.plan("gang"), "n1 n2 n3");
  EXPECT_THAT(world.log, ElementsAre("admit gang", "replan gang"));
  world.settle();
  EXPECT_THAT(world.log, ElementsAre("admit gang", "replan gang"));
}

TEST_F(Elastic, LaterWorkDoesNotTakeTheNodesThatTheFirstGangWaitsWith) {
  world.submit("gang", {.pods = 3});
  world.settle();
  world.node("n1");
  world.settle();
  world.submit("small", {.pods = 1, .created_s = 1});
  world.submit("pair", {.pods = 2, .created_s = 2});
  world.settle();
  EXPECT_EQ(world.plan("small"), "");
  EXPECT_TRUE(held("pair"));
  world.nodes("m", 2);
  world.settle();
  EXPECT_EQ(world.plan("gang"), "m1 m2 n1");
  EXPECT_TRUE(held("pair"));
  world.nodes("k", 2);
  world.settle();
  EXPECT_EQ(world.plan("pair"), "k1 k2");
}

TEST_F(Elastic, WhoIsAdmittedBehindItInTheSamePassDoesNotTakeThemEither) {
  world.nodes("n", 2);
  world.submit("gang", {.pods = 3});
  world.submit("pair", {.pods = 2, .created_s = 1});
  world.submit("one", {.pods = 1, .created_s = 2});
  world.settle();
  EXPECT_THAT(world.log, ElementsAre("admit gang", "admit pair", "admit one"));
  EXPECT_EQ(world.plan("pair") + world.plan("one"), "");
  EXPECT_EQ(promised("n1") + promised("n2"), 16);
}

TEST_F(Elastic, NothingIsKeptForASecondGang) {
  world.submit("first", {.pods = 3});
  world.submit("second", {.pods = 2, .created_s = 1});
  world.settle();
  world.node("n1");
  world.settle();
  EXPECT_EQ(promised("n1"), 8);
  world.node("n2");
  world.settle();
  // The second would fit on both, which are kept for the first.
  EXPECT_TRUE(held("second"));
  EXPECT_EQ(promised("n2"), 8);
  world.finish("first");
  world.settle();
  EXPECT_EQ(world.plan("second"), "n1 n2");
}

TEST_F(Elastic, WhoFitsWithoutWhatIsKeptIsPlaced) {
  world.submit("big", {.pods = 2, .gpus = 8});
  world.settle();
  world.node("n1");
  world.node("half", 4);
  world.settle();
  world.submit("small", {.pods = 2, .gpus = 2, .created_s = 1});
  world.settle();
  EXPECT_EQ(world.plan("small"), "half half");
  EXPECT_TRUE(held("big"));
}

TEST_F(Elastic, PriorityGoesBeforeTime) {
  world.submit("first", {.pods = 2});
  world.settle();
  world.node("n1");
  world.settle();
  world.submit("urgent", {.pods = 2, .priority = 10, .created_s = 1});
  world.settle();
  world.node("n2");
  world.settle();
  EXPECT_EQ(world.plan("urgent"), "n1 n2");
  EXPECT_TRUE(held("first"));
}

TEST_F(Elastic, WhosePodsExistGoesBeforeAMoreImportantOneThatNoAutoscalerSees) {
  world.submit("first", {.pods = 2});
  world.settle();
  world.specs[World::key("urgent")] = world.job("urgent", {.pods = 3, .priority = 10});
  world.specs[World::key("urgent")].uncreated = true;
  world.send(WorkloadUpserted{world.specs[World::key("urgent")]});
  world.settle();
  world.nodes("n", 2);
  world.settle();
  EXPECT_EQ(world.plan("first"), "n1 n2");
  world.node("n3");
  world.settle();
  EXPECT_EQ(promised("n3"), 8);
  world.submit("last", {.pods = 2, .created_s = 9});
  world.settle();
  // The pods of the last one are there now, those of the other are not.
  world.node("n4");
  world.settle();
  EXPECT_EQ(world.plan("last"), "n3 n4");
}

TEST_F(Elastic, EveryFlavorKeepsRoomForItsFirst) {
  world.flavor("spot", {{"pool", "spot"}}, "", Capacity::kElastic);
  world.flavor("flex", {{"pool", "flex"}}, "", Capacity::kElastic);
  world.queue("s", {.nominal = 1000, .flavor = "spot"});
  world.queue("f", {.nominal = 1000, .flavor = "flex"});
  world.submit("one", {.queue = "s", .pods = 2});
  world.submit("two", {.queue = "f", .pods = 2, .created_s = 1});
  world.settle();
  world.node("n1", 8, {{"pool", "spot"}});
  world.node("n2", 8, {{"pool", "flex"}});
  world.settle();
  EXPECT_EQ(promised("n1"), 8);
  EXPECT_EQ(promised("n2"), 8);
}

TEST_F(Elastic, OnePodIsNotHeld) {
  world.submit("one", {.pods = 1});
  world.settle();
  EXPECT_TRUE(world.admitted("one"));
  EXPECT_FALSE(held("one"));
  world.node("n1");
  world.settle();
  EXPECT_EQ(world.plan("one"), "");
  EXPECT_EQ(promised("n1"), 0);
}

TEST_F(Elastic, AGangThatRunsInPartWithoutAPlanIsLeftAlone) {
  world.node("n1");
  world.run("gang", {.pods = 2}, 1);
  world.pod("gang-0", "n1", 8, "gang");
  world.settle();
  EXPECT_FALSE(held("gang"));
  world.node("n2");
  world.settle();
  EXPECT_EQ(world.plan("gang"), "");
}

TEST_F(Elastic, AfterARestartTheGangIsHeldAgain) {
  world.node("n1");
  world.run("gang", {.pods = 2}, 1);
  world.settle();
  EXPECT_TRUE(held("gang"));
  EXPECT_EQ(promised("n1"), 8);
  world.node("n2");
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n1 n2");
}

TEST_F(Elastic, AKeptNodeThatIsLostIsNotKeptAndIsNoneOfTheGang) {
  world.submit("gang", {.pods = 2});
  world.settle();
  world.node("n1");
  world.settle();
  EXPECT_EQ(promised("n1"), 8);
  world.send(NodeDeleted{NodeName("n1")});
  world.settle();
  EXPECT_EQ(promised("n1"), 0);
  world.node("n2");
  world.settle();
  EXPECT_TRUE(held("gang"));
  world.node("n3");
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n2 n3");
}

TEST_F(Elastic, AFlavorThatBecomesFixedHoldsNobody) {
  world.submit("gang", {.pods = 2});
  world.settle();
  EXPECT_TRUE(held("gang"));
  world.node("n1");
  world.settle();
  world.flavor("h100");
  world.settle();
  EXPECT_FALSE(held("gang"));
  EXPECT_EQ(promised("n1"), 0);
}

TEST_F(Elastic, PodSetsArePlannedTogetherOrNotAtAll) {
  world.node("n1");
  WorkloadSpec spec = world.job("pair", {.pods = 1});
  spec.pod_sets.edit().push_back(spec.pod_sets.front());
  spec.pod_sets.edit()[1].name = PodSetName("workers");
  spec.pod_sets.edit()[1].count = 2;
  world.specs[World::key("pair")] = spec;
  world.send(WorkloadUpserted{spec});
  world.settle();
  EXPECT_TRUE(held("pair"));
  EXPECT_EQ(world.plan("pair"), "");
  EXPECT_EQ(promised("n1"), 8);
  world.nodes("m", 2);
  world.settle();
  EXPECT_EQ(world.plan("pair"), "m1 m2 n1");
}

TEST_F(Elastic, WhoIsEvictedKeepsNothing) {
  world.submit("gang", {.pods = 2});
  world.settle();
  world.node("n1");
  world.settle();
  world.specs[World::key("gang")].active = false;
  world.send(WorkloadUpserted{world.specs[World::key("gang")]});
  world.settle();
  world.let_leave();
  world.settle();
  EXPECT_EQ(promised("n1"), 0);
}

/// Nodes, foreign pods and gangs come and go at random; members are bound when their gang has its
/// plan. World::settle() checks the invariants after every step.
class ElasticWorld {
 public:
  explicit ElasticWorld(std::uint64_t seed) : random_(seed) {
    world_.flavor("h100", {{"pool", "h100"}}, "", Capacity::kElastic);
    world_.flavor("spot", {{"pool", "spot"}}, "", Capacity::kElastic);
    world_.queue("h", {.nominal = 200});
    world_.queue("s", {.nominal = 200, .flavor = "spot"});
  }

  void step() {
    switch (below(6)) {
      case 0:
      case 1: {
        const std::string pool = below(2) == 0 ? "h100" : "spot";
        world_.node("n" + std::to_string(below(12)), 8, {{"pool", pool}});
        break;
      }
      case 2:
        world_.send(NodeDeleted{NodeName("n" + std::to_string(below(12)))});
        break;
      case 3:
      case 4: {
        const std::string name = "g" + std::to_string(next_++);
        world_.submit(name, {.queue = below(2) == 0 ? "h" : "s",
                             .pods = 1 + below(4),
                             .gpus = 4 * (1 + below(2)),
                             .priority = below(3),
                             .created_s = next_});
        break;
      }
      default:
        if (next_ > 0) end("g" + std::to_string(below(next_)));
        break;
    }
    world_.settle();
    world_.let_leave();
    world_.settle();
    check();
  }

 private:
  std::int64_t below(std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
  }

  void end(const std::string& name) {
    if (world_.specs.contains(World::key(name))) world_.finish(name);
  }

  void check() {
    const State& state = world_.engine.state();
    std::set<FlavorName> spoken_for;
    for (const WorkloadRecord* const record : held_gangs(state)) {
      for (const PodSetAssignment& pod_set : record->admission->pod_sets) {
        EXPECT_TRUE(pod_set.nodes.empty()) << record->spec.key.to_string();
      }
      // Only the first one of a flavor keeps anything, and never all that it needs.
      const FlavorName flavor = record->admission->pod_sets.front().flavors.begin()->second;
      const bool is_first = spoken_for.insert(flavor).second;
      std::int64_t kept = 0;
      for (const PlannedSlots& slots : record->kept) kept += slots.slots;
      EXPECT_LT(kept, record->total_pods()) << record->spec.key.to_string();
      EXPECT_TRUE(is_first || kept == 0) << record->spec.key.to_string();
    }
    for (std::uint32_t i = 0; i < state.fleet.slots(); ++i) {
      const topology::NodeIndex node(i);
      if (!state.fleet.present(node)) continue;
      EXPECT_FALSE(state.fleet.free(node).any_negative()) << state.fleet.name(node).value();
    }
  }

  World world_;
  std::mt19937_64 random_;
  std::int64_t next_ = 0;
};

TEST(ElasticGangs, AreWholeAndInOrderWhateverComes) {
  for (std::uint64_t seed = 0; seed < muster::test::rounds(100, 2'000); ++seed) {
    ElasticWorld world(seed);
    for (int i = 0; i < 40; ++i) {
      world.step();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace muster::engine::test

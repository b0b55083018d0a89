// Plans: slots and ranks, pods that take them, repairs, and what readers see.

#include "engine/slots.hpp"
#include "tests/engine/world.hpp"

#include <limits>

namespace muster::engine::test {
namespace {

std::vector<NodeName> names(std::initializer_list<const char*> list) {
  std::vector<NodeName> out;
  for (const char* name : list) out.emplace_back(name);
  return out;
}

TEST(Slots, RanksTakeSlotsInOrder) {
  const auto slots = expand_slots({{NodeName("n1"), 2}, {NodeName("n2"), 1}});
  EXPECT_EQ(slots, names({"n1", "n1", "n2"}));
  EXPECT_EQ(node_of_rank(slots, {}, 0), NodeName("n1"));
  EXPECT_EQ(node_of_rank(slots, {}, 2), NodeName("n2"));
  EXPECT_EQ(node_of_rank(slots, {}, 3), std::nullopt);
}

TEST(Slots, ACountThatNoJobCanHaveIsCutOff) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(
      expand_slots({{NodeName("n1"), 5}, {NodeName("n2"), huge}, {NodeName("n3"), huge}}).size(),
      1'000'000U);
  EXPECT_TRUE(expand_slots({{NodeName("n1"), -1}}).empty());
}

TEST(Slots, ABoundRankKeepsItsNodeAndTheOthersTakeTheRest) {
  const auto slots = names({"n1", "n2", "n3"});
  const auto nodes = assign_ranks(slots, {{0, NodeName("n3")}});
  EXPECT_EQ(nodes.at(0), NodeName("n3"));
  EXPECT_EQ(nodes.at(1), NodeName("n1"));
  EXPECT_EQ(nodes.at(2), NodeName("n2"));
}

TEST(Slots, ARankBoundBesideThePlanUsesUpASlotAllTheSame) {
  const auto nodes = assign_ranks(names({"n1", "n2"}), {{1, NodeName("elsewhere")}});
  EXPECT_EQ(nodes.at(0), NodeName("n1"));
  EXPECT_EQ(nodes.at(1), NodeName("elsewhere"));
}

/// `gang` is planned on the first `pods` of nodes n1, n2, …, a node for each pod, and has all
/// quota.
void start_gang(World& world, int nodes, std::int64_t pods) {
  world.flavor("h100");
  world.nodes("n", nodes);
  world.queue("a", {.nominal = 8 * pods});
  world.submit("gang", {.pods = pods});
  world.settle();
}

TEST(Plans, PodsOfTheGangTakeItsSlotsAndCountOnce) {
  World world;
  start_gang(world, 2, 2);
  world.pod("gang-0", "n1", 8, "gang", 0);
  world.pod("gang-1", "n2", 8, "gang", 1);
  const auto snapshot = world.engine.publish();
  EXPECT_TRUE(snapshot->find_node("n1")->foreign.is_zero());
  EXPECT_EQ(snapshot->find_node("n1")->unplanned_room()[ResourceTable::kPods], Amount(109));
  const auto view = snapshot->find_workload(Uid("owner-gang"));
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->phase, WorkloadPhase::kAdmitted);
  EXPECT_EQ(view->pod_sets[0].bound_ranks.at(1), NodeName("n2"));
}

TEST(Plans, APodBoundBesideThePlanCountsWhereItIs) {
  World world;
  start_gang(world, 3, 2);
  world.pod("gang-0", "n3", 8, "gang", 0);
  EXPECT_FALSE(world.engine.publish()->find_node("n3")->foreign.is_zero());
}

TEST(Plans, ALostNodeIsReplacedInTheSamePlaceOfTheOrder) {
  World world;
  start_gang(world, 4, 3);
  ASSERT_EQ(world.plan("gang"), "n1 n2 n3");
  world.pod("gang-2", "n3", 8, "gang", 2);
  world.send(NodeDeleted{NodeName("n1")});
  world.settle();
  EXPECT_EQ(world.log.back(), "replan gang");
  // Rank 0 moves to n4; ranks 1 and 2 keep their nodes.
  EXPECT_EQ(world.plan("gang"), "n4 n2 n3");
}

/// Racks r1, r2, … of hosts `<rack>-h1`, …, on a topology, and quota for everybody.
void add_racks(World& world, const std::vector<int>& sizes) {
  world.send(TopologyUpserted{{TopologyName("racks"), {"rack", kHostnameLabel}}});
  world.flavor("h100", {{"pool", "gpu"}}, "racks");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string rack = "r" + std::to_string(i + 1);
    world.nodes(rack + "-h", sizes[i], 8, {{"rack", rack}, {"pool", "gpu"}});
  }
  world.queue("a", {.nominal = 1'000});
}

TEST(Plans, WhatASliceLosesIsReplacedWhereItsRestIs) {
  World world;
  add_racks(world, {3, 4});
  // Slices of two by rack: r2 alone holds both.
  TopologyRequest request;
  request.slices = {{"rack", 2}};
  world.submit("gang", {.pods = 4, .topology = request});
  world.settle();
  ASSERT_EQ(world.plan("gang"), "r2-h1 r2-h2 r2-h3 r2-h4");
  world.submit("small", {.pods = 1, .created_s = 1, .topology = TopologyRequest{}});
  world.settle();
  ASSERT_EQ(world.plan("small"), "r1-h1");
  // Rack r1 has two hosts free, r2 none: a half slice cannot move.
  world.send(NodeDeleted{NodeName("r2-h2")});
  world.settle();
  EXPECT_EQ(world.log.back(), "evict gang");
}

TEST(Plans, ASliceThatIsLostAsAWholeMayGoElsewhere) {
  World world;
  add_racks(world, {2, 2, 2});
  TopologyRequest request;
  request.slices = {{"rack", 4}, {kHostnameLabel, 2}};
  world.submit("gang", {.pods = 8, .gpus = 4, .topology = request});
  world.settle();
  ASSERT_EQ(world.plan("gang"), "r1-h1 r1-h1 r1-h2 r1-h2 r2-h1 r2-h1 r2-h2 r2-h2");
  world.node("r2-h3", 8, {{"rack", "r2"}, {"pool", "gpu"}});
  // Two pods are an inner slice, which is lost as a whole: it moves inside its rack, where the rest
  // of the outer one is, though r3 is emptier.
  world.send(NodeDeleted{NodeName("r2-h1")});
  world.settle();
  EXPECT_EQ(world.log.back(), "replan gang");
  EXPECT_EQ(world.plan("gang"), "r1-h1 r1-h1 r1-h2 r1-h2 r2-h3 r2-h3 r2-h2 r2-h2");
}

TEST(Plans, ASliceWhoseNodesAreAllGoneIsNotSplit) {
  World world;
  add_racks(world, {2, 2, 1, 1});
  TopologyRequest request;
  request.slices = {{"rack", 2}};
  world.submit("gang", {.pods = 4, .topology = request});
  world.settle();
  ASSERT_EQ(world.plan("gang"), "r1-h1 r1-h2 r2-h1 r2-h2");
  // One host in each of two racks is no room for two that stand together.
  world.send(NodeDeleted{NodeName("r1-h1")});
  world.send(NodeDeleted{NodeName("r1-h2")});
  world.settle();
  EXPECT_EQ(world.log.back(), "evict gang");
}

TEST(Plans, SlotsOfOneNodeInSeveralPlacesAreReplacedInTheirPlaces) {
  World world;
  world.flavor("h100");
  world.nodes("n", 4);
  world.queue("a", {.nominal = 80});
  world.run("gang", {.pods = 4, .gpus = 4, .nodes = {"n1", "n2", "n1", "n3"}}, 1);
  ASSERT_EQ(world.plan("gang"), "n1 n2 n1 n3");
  world.send(NodeDeleted{NodeName("n1")});
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n4 n2 n4 n3");
}

TEST(Plans, TwoPodSetsOnOneNodeAreReleasedAsOne) {
  World world;
  world.flavor("h100");
  world.nodes("n", 1);
  world.queue("a", {.nominal = 8});
  WorkloadSpec spec = world.job("pair", {.pods = 1, .gpus = 4});
  PodSetSpec second = spec.pod_sets.front();
  second.name = PodSetName("second");
  spec.pod_sets.edit().push_back(second);
  world.specs[spec.key] = spec;
  world.send(WorkloadUpserted{spec});
  world.settle();
  ASSERT_EQ(world.plan("pair"), "n1 n1");
  world.send(WorkloadDeleted{spec.key});
  world.submit("next", {.pods = 1, .created_s = 1});
  world.settle();
  EXPECT_EQ(world.plan("next"), "n1");
}

TEST(Plans, RoomTakenByAForeignPodIsPlannedAnew) {
  World world;
  start_gang(world, 3, 2);
  world.pod("thief", "n2", 1);
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n1 n3");
}

TEST(Plans, PodsThatOverfillANodeWithWhatTheGangDoesNotAskForLeaveItAlone) {
  World world;
  start_gang(world, 3, 2);
  world.log.clear();
  PodUse crowd;  // Bound past the scheduler: more CPU than there is, which the gang has no part in.
  crowd.uid = Uid("pod-crowd");
  crowd.key = {Namespace("team"), "crowd"};
  crowd.node = NodeName("n2");
  crowd.requests = {{ResourceName("cpu"), Amount(97'000)}};
  crowd.owner_uid = crowd.uid;
  world.send(PodPlaced{crowd});
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n1 n2");
  EXPECT_TRUE(world.log.empty());
}

TEST(Plans, WithoutOtherRoomTheWholeGangGoes) {
  World world;
  start_gang(world, 2, 2);
  world.pod("gang-0", "n1", 8, "gang", 0);
  world.node("n2", 8, {}, false);
  world.settle();
  EXPECT_EQ(world.log.back(), "evict gang");
}

TEST(Plans, ANodeThatShrinksCostsNoMoreThanItLost) {
  World world;
  world.flavor("h100");
  world.node("n1", 8);
  world.queue("a");
  for (int i = 0; i < 8; ++i) {
    world.submit("job" + std::to_string(i), {.gpus = 1, .created_s = i});
  }
  (void)world.settle();
  world.log.clear();
  world.node("n1", 7);
  (void)world.settle();
  // Of equal priority and reservation time the lowest uid goes.
  EXPECT_EQ(world.log, std::vector<std::string>{"evict job0"});
}

TEST(Plans, APodOnALostNodeIsLeftToItsOwnEnd) {
  World world;
  world.flavor("h100");
  world.nodes("n", 2);
  world.queue("a", {.nominal = 8});
  world.submit("job");
  world.settle();
  world.pod("job-0", "n1", 8, "job", 0);
  world.node("n1", 8, {}, false);
  world.settle();
  EXPECT_EQ(world.plan("job"), "n1");
  world.pod_gone("job-0");
  world.settle();
  EXPECT_EQ(world.plan("job"), "n2");
}

TEST(Plans, ARestartBeforeTheNodesAreKnownEvictsNobody) {
  World first;
  first.flavor("h100");
  first.nodes("n", 2);
  first.queue("a", {.nominal = 16});
  first.submit("gang", {.pods = 2});
  first.settle();

  World second;  // Objects arrive in another order: the workload before its nodes.
  second.specs = first.specs;
  second.send(WorkloadUpserted{first.specs.at(World::key("gang"))});
  second.pod("gang-0", "n1", 8, "gang", 0);
  second.queue("a", {.nominal = 16});
  second.flavor("h100");
  second.nodes("n", 2);
  second.settle();
  EXPECT_TRUE(second.log.empty());
  EXPECT_EQ(second.plan("gang"), "n1 n2");
  const auto view = second.engine.publish()->queues;
  EXPECT_EQ(view->cluster_queues.at(ClusterQueueName("a")).usage.at({FlavorName("h100"), gpu()}),
            Amount(16));
}

TEST(Snapshots, UnchangedPartsAreShared) {
  World world;
  world.flavor("h100");
  world.nodes("n", 300);
  world.queue("a", {.nominal = 1000});
  const auto before = world.engine.publish();
  EXPECT_EQ(world.engine.publish(), before);
  world.pod("x", "n1", 1);
  const auto after = world.engine.publish();
  EXPECT_GT(after->generation, before->generation);
  EXPECT_EQ(after->node_index, before->node_index);
  EXPECT_NE(after->node_chunks[0], before->node_chunks[0]);
  EXPECT_EQ(after->node_chunks[2], before->node_chunks[2]);
  EXPECT_TRUE(before->find_node("n1")->foreign.is_zero());
}

TEST(Snapshots, RemovedNodesAreUnknownAndTheirPlaceIsReused) {
  World world;
  world.nodes("n", 3);
  (void)world.engine.publish();
  world.send(NodeDeleted{NodeName("n2")});
  EXPECT_EQ(world.engine.publish()->find_node("n2"), nullptr);
  world.node("fresh");
  const auto snapshot = world.engine.publish();
  ASSERT_NE(snapshot->find_node("fresh"), nullptr);
  EXPECT_EQ(snapshot->find_node("fresh")->name, NodeName("fresh"));
  EXPECT_EQ(snapshot->find_node("n2"), nullptr);
}

TEST(Plan, PodsThatEndedWellGiveTheirSlotsBack) {
  World world;
  world.flavor("h100");
  world.nodes("n", 3);
  world.queue("a", {.nominal = 24});
  world.submit("gang", {.pods = 3, .created_s = 1});
  world.submit("next", {.pods = 1, .created_s = 2});
  world.settle();
  for (int i = 1; i <= 3; ++i) {
    world.pod("g" + std::to_string(i), "n" + std::to_string(i), 8, "gang", i - 1);
  }
  WorkloadSpec& gang = world.specs.at(World::key("gang"));
  gang.pod_sets.edit()[0].reclaimable = 1;
  world.send(WorkloadUpserted{gang});
  world.settle();
  // Quota is free, but which pod ended was not seen yet: all slots are sat in.
  EXPECT_EQ(world.plan("gang"), "n1 n2 n3");
  EXPECT_EQ(world.why("next"), "TopologyPlacementFailed");
  world.pod_gone("g2");
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n1 n3");
  EXPECT_EQ(world.plan("next"), "n2");
  world.settle();
  EXPECT_EQ(world.log, (std::vector<std::string>{"admit gang", "replan gang", "admit next"}));
}

}  // namespace
}  // namespace muster::engine::test

#include "topology/placement.hpp"

#include "tests/topology/fleet_builders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace muster::topology::testing {
namespace {

using ::testing::IsEmpty;

Fleet flat(const std::map<std::string, std::int64_t>& gpus_free) {
  Fleet fleet;
  for (const auto& [name, gpu] : gpus_free) fleet.upsert(node(name, gpu));
  return fleet;
}

struct FlatCase {
  const char* sentence;
  std::map<std::string, std::int64_t> gpus_free;
  std::int64_t count;
  Counts want;
};

TEST(FlatPlacement, BestFit) {
  const std::vector<FlatCase> cases = {
      {"one node that can take all is chosen as tight as possible",
       {{"a", 8}, {"b", 3}, {"c", 4}},
       3,
       {{"b", 3}}},
      {"a tie goes to the first name", {{"c", 4}, {"b", 4}, {"a", 8}}, 4, {{"b", 4}}},
      {"largest first, and the tightest for the rest: 6 + 5, then 1 on the 2",
       {{"x3", 6}, {"x5", 5}, {"x1", 4}, {"x6", 2}},
       12,
       {{"x3", 6}, {"x5", 5}, {"x6", 1}}},
      {"the rest fits exactly somewhere", {{"a", 8}, {"b", 8}, {"c", 2}}, 10, {{"a", 8}, {"c", 2}}},
      {"full nodes are not touched", {{"a", 0}, {"b", 1}, {"c", 1}}, 2, {{"b", 1}, {"c", 1}}},
      {"everything there is", {{"a", 2}, {"b", 1}}, 3, {{"a", 2}, {"b", 1}}},
      {"one more than there is does not fit", {{"a", 2}, {"b", 1}}, 4, {}},
      {"nothing asked, nothing placed", {{"a", 2}}, 0, {}},
  };
  for (const FlatCase& test : cases) {
    SCOPED_TRACE(test.sentence);
    EXPECT_EQ(placed(request(test.count), flat(test.gpus_free)), test.want);
  }
}

TEST(FlatPlacement, ZeroPodsAlwaysFit) {
  EXPECT_TRUE(place(request(0), Fleet()).has_value());
  EXPECT_FALSE(place(request(1), Fleet()).has_value());
}

TEST(FlatPlacement, CountsTheWholeVectorOnEachNode) {
  Fleet fleet;
  NodeFacts few_pods = node("a", 8);
  few_pods.allocatable = gpus(8, 2);  // room for two pods only, whatever GPUs are left
  fleet.upsert(few_pods);
  fleet.upsert(node("b", 3));
  EXPECT_EQ(placed(request(4), fleet), (Counts{{"a", 1}, {"b", 3}}));
  PlaceRequest big = request(2);
  big.per_pod = gpus(2, 1);  // a: min(8/2, 2/1) = 2; b: 3/2 = 1
  EXPECT_EQ(placed(big, fleet), (Counts{{"a", 2}}));
  big.count = 4;  // 8 + 3 GPUs would do, but no pod may be cut in two
  EXPECT_THAT(placed(big, fleet), IsEmpty());
}

TEST(FlatPlacement, SeesForeignPlannedAndAssumedUse) {
  Fleet fleet = flat({{"a", 8}, {"b", 8}});
  const NodeIndex a = *fleet.find(NodeName("a"));
  fleet.charge(a, UseKind::kForeign, gpus(2, 1));
  fleet.charge(a, UseKind::kPlanned, gpus(3, 3));
  EXPECT_EQ(placed(request(3), fleet), (Counts{{"a", 3}}));
  PlaceRequest assumed = request(3);
  assumed.assumed = {{a, gpus(1, 1)}, {a, gpus(1, 1)}};  // 8 - 2 - 3 - 2 = 1 left
  EXPECT_EQ(placed(assumed, fleet), (Counts{{"b", 3}}));
  EXPECT_EQ(max_gang(assumed, fleet), 9);
  EXPECT_EQ(max_gang(request(1), fleet), 11);
}

TEST(FlatPlacement, AvoidsNodesOnlyWhileItCan) {
  const Fleet fleet = flat({{"a", 2}, {"b", 4}, {"c", 4}});
  PlaceRequest asked = request(2);
  asked.avoid = {*fleet.find(NodeName("a"))};
  EXPECT_EQ(placed(asked, fleet), (Counts{{"b", 2}}));
  asked.count = 9;  // not without a
  EXPECT_EQ(placed(asked, fleet), (Counts{{"a", 1}, {"b", 4}, {"c", 4}}));
  EXPECT_EQ(max_gang(asked, fleet), 10);
}

TEST(FlatPlacement, SaysWhatIsMissing) {
  Fleet fleet = flat({{"a", 4}, {"b", 0}});
  NodeFacts down = node("c", 8);
  down.ready = false;
  fleet.upsert(down);
  NodeFacts crowded = node("d", 8);
  crowded.allocatable = gpus(8, 0);
  fleet.upsert(crowded);
  PlaceRequest asked = request(6);
  asked.nodes.flavor_labels = {{"gpu", "h100"}};
  for (const NodeIndex index : std::vector<NodeIndex>(fleet.by_name())) {
    NodeFacts facts = fleet.facts(index);
    facts.labels = asked.nodes.flavor_labels;
    fleet.upsert(facts);
  }
  fleet.upsert(node("other", 8));  // of another flavor: neither counted nor excluded
  const auto result = place(asked, fleet);
  ASSERT_FALSE(result.has_value());
  const Unplaceable& why = result.error();
  EXPECT_EQ(why.asked, 6);
  EXPECT_EQ(why.fitting, 4);
  EXPECT_EQ(why.level, "");
  EXPECT_EQ(why.nodes, 4);
  EXPECT_EQ(why.excluded, (std::map<Exclusion, std::int64_t>{{Exclusion::kNotReady, 1}}));
  EXPECT_EQ(why.too_small,
            (std::map<ResourceId, std::int64_t>{{kGpu, 1}, {ResourceTable::kPods, 1}}));
  EXPECT_EQ(why.short_of, (std::map<ResourceId, std::int64_t>{}));

  fleet.charge(*fleet.find(NodeName("a")), UseKind::kForeign, gpus(4, 4));
  const auto full = place(asked, fleet);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().too_small, why.too_small);
  EXPECT_EQ(full.error().short_of, (std::map<ResourceId, std::int64_t>{{kGpu, 1}}));
}

TEST(FlatPlacement, APodThatAsksForNothingFitsAnyNumberOfTimes) {
  PlaceRequest asked = request(1'000'000);
  asked.per_pod = Resources();
  EXPECT_EQ(placed(asked, flat({{"a", 0}})), (Counts{{"a", 1'000'000}}));
}

constexpr const char* kBlock = "block";
constexpr const char* kRack = "rack";
constexpr const char* kHost = "kubernetes.io/hostname";

struct Host {
  const char* name;
  const char* block;
  const char* rack;
  std::int64_t gpu;
};

Fleet tree(const std::vector<Host>& hosts) {
  Fleet fleet;
  for (const Host& host : hosts) {
    fleet.upsert(
        node(host.name, host.gpu, {{kBlock, host.block}, {kRack, host.rack}, {kHost, host.name}}));
  }
  return fleet;
}

PlaceRequest on_tree(std::int64_t count, Mode mode, const std::string& level = "") {
  PlaceRequest asked = request(count);
  asked.nodes.levels = {kBlock, kRack, kHost};
  asked.mode = mode;
  asked.level = level;
  return asked;
}

/// b1: r1 {h1 4, h2 2}, r2 {h3 4, h4 4}; b2: r1 {h5 3, h6 3}. Racks 6, 8, 6; blocks 14, 6.
Fleet two_blocks() {
  return tree({{"h1", "b1", "r1", 4},
               {"h2", "b1", "r1", 2},
               {"h3", "b1", "r2", 4},
               {"h4", "b1", "r2", 4},
               {"h5", "b2", "r1", 3},
               {"h6", "b2", "r1", 3}});
}

struct TreeCase {
  const char* sentence;
  PlaceRequest asked;
  Counts want;
};

TEST(TreePlacement, FollowsThePhases) {
  const std::vector<TreeCase> cases = {
      {"required: the tightest rack, ties by path (b1/r1 before b2/r1)",
       on_tree(6, Mode::kRequired, kRack),
       {{"h1", 4}, {"h2", 2}}},
      {"required: only one rack is large enough",
       on_tree(7, Mode::kRequired, kRack),
       {{"h3", 4}, {"h4", 3}}},
      {"required: no rack holds nine", on_tree(9, Mode::kRequired, kRack), {}},
      {"required at a host: the tightest host", on_tree(3, Mode::kRequired, kHost), {{"h5", 3}}},
      {"preferred fits at its own level",
       on_tree(8, Mode::kPreferred, kRack),
       {{"h3", 4}, {"h4", 4}}},
      // Rack 8 < 9; block b1 14 >= 9. Racks of b1: r2 8, then 1 in r1: 6 is all there is.
      // Hosts of r1 and r2 together: h1 4, h3 4, then 1 best-fit: h2 (2) is tighter than h4 (4).
      {"preferred climbs to a block, then all hosts of its racks compete",
       on_tree(9, Mode::kPreferred, kRack),
       {{"h1", 4}, {"h2", 1}, {"h3", 4}}},
      // Blocks 14 + 6 = 20 >= 16: b1 all, then 2 in b2. Racks r2 8, r1 6, then 2: b2/r1 6.
      // Hosts: h1 4, h3 4, h4 4 are 12, then h5 3, then 1: h2 (2) is tighter than h6 (3).
      {"preferred spreads over blocks at the top",
       on_tree(16, Mode::kPreferred, kRack),
       {{"h1", 4}, {"h2", 1}, {"h3", 4}, {"h4", 4}, {"h5", 3}}},
      {"preferred: more than there is", on_tree(21, Mode::kPreferred, kRack), {}},
      {"unconstrained: the least free host that takes all",
       on_tree(3, Mode::kUnconstrained),
       {{"h5", 3}}},
      // No host takes 5: ascending h2 2, h5 3.
      {"unconstrained: smallest gaps first",
       on_tree(5, Mode::kUnconstrained),
       {{"h2", 2}, {"h5", 3}}},
      // h2 2, h5 3, h6 3, h1 1 of 4.
      {"unconstrained: the last one is not sought by best fit",
       on_tree(9, Mode::kUnconstrained),
       {{"h1", 1}, {"h2", 2}, {"h5", 3}, {"h6", 3}}},
  };
  for (const TreeCase& test : cases) {
    SCOPED_TRACE(test.sentence);
    EXPECT_EQ(placed(test.asked, two_blocks()), test.want);
  }
}

TEST(TreePlacement, PreferredClimbsRatherThanSpreadOverTheLargestRacks) {
  // No rack holds 8. The racks b1/r1 and b2/r1 would be two, but block b1 alone holds 4 + 2 + 2.
  const Fleet fleet = tree(
      {{"h1", "b1", "r1", 4}, {"h2", "b1", "r2", 2}, {"h3", "b1", "r3", 2}, {"h4", "b2", "r1", 4}});
  EXPECT_EQ(placed(on_tree(8, Mode::kPreferred, kRack), fleet),
            (Counts{{"h1", 4}, {"h2", 2}, {"h3", 2}}));
}

TEST(TreePlacement, RequiredSaysHowManyFitInTheBestDomain) {
  const auto result = place(on_tree(9, Mode::kRequired, kRack), two_blocks());
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().fitting, 8);
  EXPECT_EQ(result.error().level, kRack);
  EXPECT_EQ(result.error().best_domain, (std::vector<std::string>{"b1", "r2"}));
  EXPECT_EQ(max_gang(on_tree(1, Mode::kRequired, kRack), two_blocks()), 8);
  EXPECT_EQ(max_gang(on_tree(1, Mode::kRequired, kBlock), two_blocks()), 14);
  EXPECT_EQ(max_gang(on_tree(1, Mode::kPreferred, kRack), two_blocks()), 20);
  EXPECT_EQ(max_gang(on_tree(1, Mode::kUnconstrained), two_blocks()), 20);
}

TEST(TreePlacement, ALevelThatTheTopologyLacksIsNamed) {
  const auto result = place(on_tree(1, Mode::kRequired, "row"), two_blocks());
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().unknown_level, "row");
  EXPECT_EQ(result.error().level, "row");
  EXPECT_EQ(max_gang(on_tree(1, Mode::kRequired, "row"), two_blocks()), 0);
}

TEST(TreePlacement, DomainsAreComparedByFullPathNotByTheirLastValue) {
  // Four racks called r1; none holds four pods, although "r1" altogether would.
  const Fleet fleet = tree(
      {{"h1", "b1", "r1", 2}, {"h2", "b2", "r1", 2}, {"h3", "b3", "r1", 2}, {"h4", "b4", "r1", 2}});
  EXPECT_THAT(placed(on_tree(4, Mode::kRequired, kRack), fleet), IsEmpty());
}

TEST(TreePlacement, NodesWithoutALevelLabelAreLeftOut) {
  Fleet fleet = two_blocks();
  fleet.upsert(node("stray", 100, {{kHost, "stray"}}));
  const auto result = place(on_tree(21, Mode::kUnconstrained), fleet);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().excluded,
            (std::map<Exclusion, std::int64_t>{{Exclusion::kLevelMissing, 1}}));
}

TEST(TreePlacement, NodesOfALowestDomainAreChosenByBestFit) {
  // Topology down to racks only. Unconstrained: the least free rack that takes all 5 is r1 (6);
  // inside it 4 + 2 by best fit: h1 4, h2 1.
  PlaceRequest asked = on_tree(5, Mode::kUnconstrained);
  asked.nodes.levels = {kBlock, kRack};
  EXPECT_EQ(placed(asked, two_blocks()), (Counts{{"h1", 4}, {"h2", 1}}));
}

TEST(TreePlacement, RanksFollowTheTopologyNotTheNames) {
  // z is in the first rack: it comes before a.
  const Fleet fleet = tree({{"z", "b1", "r1", 2}, {"a", "b1", "r2", 2}});
  EXPECT_EQ(placed(on_tree(4, Mode::kPreferred, kBlock), fleet), (Counts{{"z", 2}, {"a", 2}}));
}

TEST(TreePlacement, AvoidedNodesMakeAnotherDomainBetter) {
  const Fleet fleet = two_blocks();
  PlaceRequest asked = on_tree(6, Mode::kRequired, kRack);
  asked.avoid = {*fleet.find(NodeName("h1"))};
  EXPECT_EQ(placed(asked, fleet), (Counts{{"h5", 3}, {"h6", 3}}));
  asked.count = 8;
  asked.avoid = {*fleet.find(NodeName("h3"))};  // the only rack with eight needs it
  EXPECT_EQ(placed(asked, fleet), (Counts{{"h3", 4}, {"h4", 4}}));
}

PlaceRequest in_slices(PlaceRequest asked, const std::vector<SliceLayer>& slices) {
  asked.slices = slices;
  return asked;
}

TEST(SlicedPlacement, FollowsThePhases) {
  // One rack with hosts x1 to x4, and the same without GPUs.
  const Fleet four =
      tree({{"x3", "b", "r", 6}, {"x5", "b", "r", 5}, {"x1", "b", "r", 4}, {"x6", "b", "r", 2}});
  // Slices by host 3, 2, 2, 1: x3 3, then x1 (4 pods are tighter than 5) 2, then 1: x6.
  EXPECT_EQ(placed(in_slices(on_tree(12, Mode::kRequired, kBlock), {{kHost, 2}}), four),
            (Counts{{"x1", 4}, {"x3", 6}, {"x6", 2}}));
  // 3 + 2 + 2 + 1 are all there are, although there are 17 GPUs.
  EXPECT_EQ(placed(in_slices(on_tree(16, Mode::kRequired, kBlock), {{kHost, 2}}), four).size(), 4U);
  const auto more = place(in_slices(on_tree(18, Mode::kRequired, kBlock), {{kHost, 2}}), four);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().asked, 9);
  EXPECT_EQ(more.error().fitting, 8);
  EXPECT_EQ(more.error().slice_size, 2);
  EXPECT_EQ(more.error().slice_level, kHost);
  EXPECT_EQ(max_gang(in_slices(on_tree(1, Mode::kRequired, kBlock), {{kHost, 1}}), four), 17);

  const Fleet racks = tree(
      {{"x1", "b", "r1", 1}, {"x2", "b", "r1", 4}, {"x3", "b", "r2", 3}, {"x4", "b", "r2", 4}});
  // Whole pairs on hosts: r1 0 + 4, r2 2 + 4, so one slice of four each; below it the smallest host
  // that takes a pair goes first.
  EXPECT_EQ(placed(in_slices(on_tree(8, Mode::kRequired, kBlock), {{kRack, 4}, {kHost, 2}}), racks),
            (Counts{{"x2", 4}, {"x3", 2}, {"x4", 2}}));
  // Without the inner layer: the smallest hosts first.
  const Fleet one = tree({{"h1", "b", "r", 1}, {"h2", "b", "r", 2}, {"h4", "b", "r", 4}});
  EXPECT_EQ(placed(in_slices(on_tree(4, Mode::kRequired, kBlock), {{kRack, 4}}), one),
            (Counts{{"h1", 1}, {"h2", 2}, {"h4", 1}}));
}

TEST(SlicedPlacement, SlicesAloneGoToTheLeastFreeBlockThatTakesThem) {
  // Slices of 3 by rack: b1 2 + 2, b2 2. Two fit b2, which has the least.
  EXPECT_EQ(placed(in_slices(on_tree(6, Mode::kUnconstrained), {{kRack, 3}}), two_blocks()),
            (Counts{{"h5", 3}, {"h6", 3}}));
  // All six of them.
  EXPECT_EQ(placed(in_slices(on_tree(18, Mode::kUnconstrained), {{kRack, 3}}), two_blocks()),
            (Counts{{"h1", 4}, {"h2", 2}, {"h3", 4}, {"h4", 2}, {"h5", 3}, {"h6", 3}}));
}

TEST(SlicedPlacement, WhatCannotBeASliceIsSaid) {
  const auto odd = place(in_slices(on_tree(5, Mode::kUnconstrained), {{kRack, 2}}), two_blocks());
  ASSERT_FALSE(odd.has_value());
  EXPECT_EQ(odd.error().indivisible, (BadSlices{2, 0}));
  const std::vector<std::pair<std::vector<SliceLayer>, BadSlices>> uneven = {
      {{{kRack, 4}, {kHost, 3}}, {3, 4}}, {{{kRack, 0}}, {0, 0}}, {{{kRack, -4}}, {-4, 0}}};
  for (const auto& [layers, bad] : uneven) {
    const auto result = place(in_slices(on_tree(4, Mode::kUnconstrained), layers), two_blocks());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().indivisible, bad);
  }
  // Not below the level of the gang, not below the layer before, not there at all.
  const std::vector<std::vector<SliceLayer>> not_below = {
      {{kBlock, 4}}, {{kHost, 4}, {kRack, 2}}, {{kRack, 4}, {kRack, 2}}};
  for (const std::vector<SliceLayer>& layers : not_below) {
    const auto result = place(in_slices(on_tree(4, Mode::kRequired, kRack), layers), two_blocks());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().unknown_level, layers.back().level);
  }
  const auto row = place(in_slices(on_tree(4, Mode::kUnconstrained), {{"row", 2}}), two_blocks());
  ASSERT_FALSE(row.has_value());
  EXPECT_EQ(row.error().unknown_level, "row");
}

PlaceRequest led(PlaceRequest asked, std::int64_t leader_gpus) {
  asked.leader = gpus(leader_gpus, 1);
  return asked;
}

/// The node of the leader; empty: none.
std::string leader_of(const PlaceRequest& asked, const Fleet& fleet) {
  const auto placement = place(asked, fleet);
  if (!placement) return "";
  std::string name;
  for (const NodeShare& share : *placement) {
    if (share.leader) name += fleet.name(share.node).value();
  }
  return name;
}

TEST(LedPlacement, TheLeaderSharesTheDomain) {
  const Fleet fleet = two_blocks();
  // Six workers and the leader's GPU: only rack b1/r2 holds seven.
  const PlaceRequest seven = led(on_tree(6, Mode::kRequired, kRack), 1);
  EXPECT_EQ(placed(seven, fleet), (Counts{{"h3", 3}, {"h4", 3}}));
  EXPECT_EQ(leader_of(seven, fleet), "h3");
  // A leader without GPUs takes no worker's place: the tightest rack does.
  const PlaceRequest light = led(on_tree(6, Mode::kRequired, kRack), 0);
  EXPECT_EQ(placed(light, fleet), (Counts{{"h1", 4}, {"h2", 2}}));
  EXPECT_EQ(leader_of(light, fleet), "h1");
  // Eight workers fill the largest rack: there is no room for a leader beside them.
  const auto full = place(led(on_tree(8, Mode::kRequired, kRack), 1), fleet);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().fitting, full.error().asked);
  // The leader asks for more than any host has.
  EXPECT_FALSE(place(led(on_tree(1, Mode::kPreferred, kRack), 5), fleet).has_value());
}

TEST(LedPlacement, OnAFlatFleetItStandsWhereItTakesLeastAway) {
  const Fleet fleet = flat({{"a", 4}, {"b", 2}});
  PlaceRequest asked = led(request(5), 1);
  EXPECT_EQ(placed(asked, fleet), (Counts{{"a", 3}, {"b", 2}}));
  EXPECT_EQ(leader_of(asked, fleet), "a");
  asked.count = 6;
  EXPECT_FALSE(place(asked, fleet).has_value());
  // A leader alone on its node.
  asked = led(request(4), 2);
  EXPECT_EQ(placed(asked, fleet), (Counts{{"a", 2}, {"b", 2}}));
}

TEST(Placement, KeptCandidatesGiveTheSameAnswerAfterUseChanged) {
  Fleet fleet = two_blocks();
  const PlaceRequest asked = on_tree(6, Mode::kRequired, kRack);
  const Candidates candidates = find_candidates(asked.nodes, fleet);
  fleet.charge(*fleet.find(NodeName("h1")), UseKind::kForeign, gpus(1, 1));
  EXPECT_EQ(place(asked, candidates, fleet), place(asked, fleet));
  EXPECT_EQ(counts(fleet, *place(asked, candidates, fleet)), (Counts{{"h5", 3}, {"h6", 3}}));
}

}  // namespace
}  // namespace muster::topology::testing

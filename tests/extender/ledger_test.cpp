#include "extender/ledger.hpp"

#include "tests/extender/pods.hpp"
#include "tests/extender/snapshot_builder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace muster::extender {
namespace {

using std::chrono::seconds;
using testing::foreign_pod;
using testing::SnapshotBuilder;

constexpr Instant kStart{1'000'000};

ForeignAnswer answer_of(const std::string& uid, SnapshotBuilder& world,
                        const engine::Snapshot& snapshot, std::int64_t gpus,
                        const std::vector<std::string>& nodes) {
  AnsweredNodes answered(snapshot.node_index);
  for (const std::string& name : nodes) {
    const auto found = snapshot.node_index->find(name);
    if (found)
      answered.add_position(*found);
    else
      answered.add_unknown(name);
  }
  return ForeignAnswer{.uid = Uid(uid),
                       .requests = world.gpus(gpus),
                       .nodes = answered,
                       .generation = snapshot.generation,
                       .at = kStart,
                       .resource_version = "100",
                       .verdict = "",
                       .expires = std::nullopt};
}

std::map<NodeName, ResourceList> plan(const std::string& node, std::int64_t gpus) {
  return {{NodeName(node), {{ResourceName(SnapshotBuilder::kGpu), Amount(gpus)}}}};
}

std::vector<Uid> uids(std::initializer_list<const char*> names) {
  std::vector<Uid> list;
  for (const char* name : names) list.emplace_back(name);
  return list;
}

TEST(Barrier, WaitsForAPodThatWasAnsweredBeforeThePlanAndDoesNotFitBesideIt) {
  SnapshotBuilder world;
  world.node("n1").node("n2");
  const auto before = world.build(1);
  world.gang("g", {"n1"}, 6);
  const auto after = world.build(2);
  Ledger ledger;
  ledger.record(answer_of("big", world, before, 4, {"n1", "n2"}));  // 4 > 8 - 6
  ledger.record(answer_of("small", world, before, 0, {"n1"}));      // fits
  ledger.record(answer_of("elsewhere", world, before, 8, {"n2"}));  // not a planned node
  EXPECT_EQ(ledger.blocking(plan("n1", 6), 2, after, kStart), uids({"big", "small"}));
  // A picture without the plan is good enough: the plan is taken off it.
  EXPECT_EQ(ledger.blocking(plan("n1", 6), 2, before, kStart), uids({"big", "small"}));
  ledger.forget(Uid("big"));
  EXPECT_TRUE(ledger.blocking(plan("n1", 6), 2, after, kStart).empty());
}

TEST(Barrier, PodsThatFitOneByOneButNotTogetherBlock) {
  SnapshotBuilder world;
  world.node("n1");
  const auto before = world.build(1);
  world.gang("g", {"n1"}, 5);
  const auto after = world.build(2);
  Ledger ledger;
  ledger.record(answer_of("a", world, before, 2, {"n1"}));  // 3 are left
  EXPECT_TRUE(ledger.blocking(plan("n1", 5), 2, after, kStart).empty());
  ledger.record(answer_of("b", world, before, 2, {"n1"}));
  EXPECT_EQ(ledger.blocking(plan("n1", 5), 2, after, kStart), uids({"a", "b"}));
}

TEST(Barrier, APodAnsweredWithThePlanInViewDoesNotBlock) {
  SnapshotBuilder world;
  world.node("n1");
  world.gang("g", {"n1"}, 6);
  const auto after = world.build(2);
  Ledger ledger;
  ledger.record(answer_of("f", world, after, 4, {"n1"}));
  EXPECT_TRUE(ledger.blocking(plan("n1", 6), 2, after, kStart).empty());
}

TEST(Barrier, APodThatIsBoundIsCountedByTheSnapshotInstead) {
  SnapshotBuilder world;
  world.node("n1").node("n2");
  const auto before = world.build(1);
  Ledger ledger;
  ledger.record(answer_of("f", world, before, 4, {"n1", "n2"}));
  kube::Pod bound = foreign_pod("f", 4);
  bound.spec.node_name = NodeName("n2");
  ledger.observe(bound, 3);
  world.gang("g", {"n1"}, 6).foreign("n2", "f", 4);
  EXPECT_FALSE(ledger.blocking(plan("n1", 6), 2, world.build(2), kStart).empty());
  EXPECT_TRUE(ledger.blocking(plan("n1", 6), 2, world.build(3), kStart).empty());
}

std::vector<Uid> landed_on_n1(const Ledger& ledger, const engine::Snapshot& snapshot) {
  std::vector<Uid> uids;
  for (const auto& answer : ledger.landed_unseen(NodeName("n1"), snapshot, kStart)) {
    uids.push_back(answer->uid);
  }
  return uids;
}

TEST(LandedUnseen, IsTheFirstAnswerThatDoesNotFitBesideThePlan) {
  SnapshotBuilder world;
  world.node("n1").node("n2");
  const auto before = world.build(1);
  world.gang("g", {"n1"}, 6);
  const auto after = world.build(2);
  Ledger ledger;
  EXPECT_EQ(landed_on_n1(ledger, after), uids({}));
  ledger.record(answer_of("elsewhere", world, before, 8, {"n2"}));
  ledger.record(answer_of("small", world, before, 1, {"n1"}));
  EXPECT_EQ(landed_on_n1(ledger, after), uids({})) << "6 planned and 1 leave room";
  ledger.record(answer_of("big", world, before, 4, {"n1", "n2"}));
  ledger.record(answer_of("other", world, before, 4, {"n1"}));
  EXPECT_EQ(landed_on_n1(ledger, after), uids({"big"}));
  EXPECT_EQ(landed_on_n1(ledger, before), uids({"small", "big", "other"})) << "1, 4 and 4 of 8";
  // Seen there, it explains by itself that there is no room.
  world.foreign("n1", "big", 4);
  EXPECT_EQ(landed_on_n1(ledger, world.build(3)), uids({}));
}

TEST(LandedUnseen, IsOverWhenThePodIsAskedAgainOrBoundOrGone) {
  SnapshotBuilder world;
  world.node("n1");
  const auto before = world.build(1);
  Ledger ledger;
  const auto open = [&] { return ledger.open_answers(Uid("x"), 1, kStart); };
  ledger.record(answer_of("f", world, before, 4, {"n1"}));
  const auto first = open().front();
  EXPECT_TRUE(ledger.is_open(*first));
  ledger.record(answer_of("f", world, before, 4, {"n1"}));
  EXPECT_FALSE(ledger.is_open(*first));
  const auto second = open().front();
  kube::Pod bound = foreign_pod("f", 4);
  bound.spec.node_name = NodeName("n1");
  ledger.observe(bound, 2);
  EXPECT_FALSE(ledger.is_open(*second));
  ledger.record(answer_of("g", world, before, 4, {"n1"}));
  const auto third = open().back();
  EXPECT_TRUE(ledger.is_open(*third));
  ledger.forget(Uid("g"));
  EXPECT_FALSE(ledger.is_open(*third));
}

TEST(Barrier, ANewLeaderCountsUnboundForeignPodsEverywhereForTwoSeconds) {
  SnapshotBuilder world;
  world.node("n1");
  world.gang("g", {"n1"}, 6);
  const auto snapshot = world.build(2);
  Ledger ledger;
  ledger.assume_answered(Uid("f"), world.gpus(4), kStart + seconds(2));
  EXPECT_EQ(ledger.blocking(plan("n1", 6), 2, snapshot, kStart), uids({"f"}));
  EXPECT_EQ(ledger.open_answers(Uid("x"), 2, kStart).size(), 1U);
  EXPECT_TRUE(ledger.blocking(plan("n1", 6), 2, snapshot, kStart + seconds(2)).empty());
  EXPECT_TRUE(ledger.open_answers(Uid("x"), 2, kStart + seconds(2)).empty());
  // What it was answered by us is known better.
  ledger.record(answer_of("f", world, snapshot, 4, {"n1"}));
  ledger.assume_answered(Uid("f"), world.gpus(4), kStart + seconds(9));
  EXPECT_FALSE(ledger.open_answers(Uid("x"), 2, kStart).front()->expires.has_value());
}

TEST(Ledger, AnAnswerIsOpenUntilItsEndIsShown) {
  const auto event = [](const char* version, const char* message) {
    kube::Pod pod = foreign_pod("f", 1);
    pod.meta.resource_version = version;
    if (message != nullptr) pod.conditions.push_back(testing::unschedulable(message));
    return pod;
  };
  struct Row {
    const char* sentence;
    kube::Pod shown;
    bool open;
  };
  kube::Pod bound = event("101", nullptr);
  bound.spec.node_name = NodeName("n1");
  kube::Pod failed = event("101", nullptr);
  failed.phase = "Failed";
  const std::vector<Row> rows = {
      {"a change that says nothing of scheduling", event("101", nullptr), true},
      {"an older event", event("99", "no room"), true},
      {"the event that woke this very attempt", event("100", "no room"), true},
      {"a new failure", event("101", "no room"), false},
      {"bound", bound, false},
      {"terminal", failed, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sentence);
    SnapshotBuilder world;
    world.node("n1");
    const auto snapshot = world.build(1);
    Ledger ledger;
    ledger.record(answer_of("f", world, snapshot, 1, {"n1"}));
    ledger.observe(row.shown, 2);
    EXPECT_EQ(!ledger.open_answers(Uid("x"), 2, kStart).empty(), row.open);
  }
}

TEST(Ledger, AnOldFailureShownAgainIsNoNews) {
  SnapshotBuilder world;
  world.node("n1");
  const auto snapshot = world.build(1);
  Ledger ledger;
  kube::Pod pod = foreign_pod("f", 1);
  pod.conditions.push_back(testing::unschedulable("no room"));
  ForeignAnswer answer = answer_of("f", world, snapshot, 1, {"n1"});
  answer.verdict = scheduling_verdict(pod);
  ledger.record(answer);
  pod.meta.resource_version = "150";  // Somebody set a label.
  ledger.observe(pod, 2);
  EXPECT_EQ(ledger.open_answers(Uid("x"), 2, kStart).size(), 1U);
  pod.conditions.front().message = "still no room";
  ledger.observe(pod, 2);
  EXPECT_TRUE(ledger.open_answers(Uid("x"), 2, kStart).empty());
}

TEST(Ledger, NodesInDoubtAreThoseOfOpenAnswers) {
  SnapshotBuilder world;
  world.node("n1").node("n2").node("n3");
  const auto snapshot = world.build(1);
  Ledger ledger;
  ledger.record(answer_of("a", world, snapshot, 1, {"n3", "n1"}));
  ledger.record(answer_of("b", world, snapshot, 1, {"n1", "new"}));
  ledger.assume_answered(Uid("c"), world.gpus(1), kStart + seconds(2));
  const std::vector<NodeName> expected = {NodeName("n1"), NodeName("n3"), NodeName("new")};
  EXPECT_EQ(ledger.nodes_in_doubt(), expected);
  ledger.retract(Uid("a"));
  EXPECT_EQ(ledger.nodes_in_doubt(), (std::vector<NodeName>{NodeName("n1"), NodeName("new")}));
}

TEST(Ledger, ANodeThatWasReplacedIsNotMistakenForItsPositionsNewHolder) {
  SnapshotBuilder before;
  before.node("old").node("n2");
  SnapshotBuilder after;
  after.node("other").node("n2").node("old");
  Ledger ledger;
  ledger.record(answer_of("f", before, before.build(1), 4, {"old"}));
  after.gang("g", {"other", "old"}, 6);
  const auto snapshot = after.build(2);
  EXPECT_TRUE(ledger.blocking(plan("other", 6), 2, snapshot, kStart).empty());
  EXPECT_FALSE(ledger.blocking(plan("old", 6), 2, snapshot, kStart).empty());
}

TEST(Ledger, IsBoundedAndDropsTheOldest) {
  SnapshotBuilder world;
  world.node("n1");
  const auto snapshot = world.build(1);
  Ledger ledger(LedgerLimits{.answers = 2, .reservations = 2, .refusals = 1});
  for (const char* uid : {"a", "b", "c"}) {
    ledger.record(answer_of(uid, world, snapshot, 1, {"n1"}));
    ledger.record_refusal(RefusedPod{foreign_pod(uid, 1), AnsweredNodes(snapshot.node_index), 1});
  }
  const auto open = ledger.open_answers(Uid("x"), 1, kStart);
  ASSERT_EQ(open.size(), 2U);
  EXPECT_EQ(open.front()->uid, Uid("b"));
  const auto slot = [&](const char* pod) {
    return ledger.reserve_slot(
        SlotRequest{.owner = Uid("g"),
                    .pod_set = PodSetName("main"),
                    .pod = Uid(pod),
                    .rank = std::nullopt,
                    .free = {NodeName("n1"), NodeName("n1"), NodeName("n1")},
                    .is_bound = [](const Uid&, const NodeName&) { return false; },
                    .is_offered = [](const NodeName&) { return true; }});
  };
  EXPECT_TRUE(slot("p") && slot("q") && slot("r"));
  const LedgerStats stats = ledger.stats();
  EXPECT_EQ(stats.answers, 2U);
  EXPECT_EQ(stats.reservations, 2U);
  EXPECT_EQ(stats.refusals, 1U);
  EXPECT_EQ(stats.dropped, 4U);  // One answer, two refusals, one slot.
}

// kube-scheduler asks about a copy of the pod that is older than its deletion.
TEST(Ledger, NothingIsNotedOfAPodThatIsGone) {
  SnapshotBuilder world;
  world.node("n1");
  const auto snapshot = world.build(1);
  Ledger ledger(LedgerLimits{.gone = 2});
  const auto slot = [&](const char* pod) {
    return ledger.reserve_slot(
        SlotRequest{.owner = Uid("g"),
                    .pod_set = PodSetName("main"),
                    .pod = Uid(pod),
                    .rank = 0,
                    .free = {NodeName("n1")},
                    .is_bound = [](const Uid&, const NodeName&) { return false; },
                    .is_offered = [](const NodeName&) { return true; }});
  };
  ledger.forget(Uid("gone"));
  ledger.forget(Uid("gone"));
  EXPECT_FALSE(slot("gone"));
  EXPECT_TRUE(slot("its-replacement"));  // The rank is not taken.
  ledger.record(answer_of("gone", world, snapshot, 1, {"n1"}));
  ledger.record_refusal(RefusedPod{foreign_pod("gone", 1), AnsweredNodes(snapshot.node_index), 1});
  EXPECT_TRUE(ledger.open_answers(Uid("x"), 1, kStart).empty());
  EXPECT_EQ(ledger.stats().answers, 0U);
  EXPECT_EQ(ledger.stats().refusals, 0U);

  kube::Pod ended = foreign_pod("ended", 1);
  ended.phase = "Failed";
  ledger.observe(ended, 1);
  ledger.record(answer_of("ended", world, snapshot, 1, {"n1"}));
  EXPECT_EQ(ledger.stats().answers, 0U);

  ledger.forget(Uid("third"));  // Only so many are remembered.
  ledger.record(answer_of("gone", world, snapshot, 1, {"n1"}));
  EXPECT_EQ(ledger.stats().answers, 1U);
}

TEST(Ledger, BearsBeingUsedFromTwoThreads) {
  SnapshotBuilder world;
  world.node("n1");
  const auto snapshot = world.build(1);
  Ledger ledger;
  std::atomic<bool> stop = false;
  std::thread engine([&] {
    while (!stop) {
      (void)ledger.nodes_in_doubt();
      (void)ledger.blocking(plan("n1", 8), 2, snapshot, kStart);
      ledger.forget(Uid("p3"));
    }
  });
  SnapshotBuilder other;
  for (int i = 0; i < 2000; ++i) {
    ledger.record(answer_of("p" + std::to_string(i % 7), other, snapshot, 1, {"n1"}));
  }
  stop = true;
  engine.join();
  EXPECT_LE(ledger.stats().answers, 7U);
}

}  // namespace
}  // namespace muster::extender

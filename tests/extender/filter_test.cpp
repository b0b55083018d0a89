#include "extender/filter.hpp"

#include "tests/extender/pods.hpp"
#include "tests/extender/snapshot_builder.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::extender {
namespace {

using engine::Snapshot;
using engine::WorkloadPhase;
using testing::daemon_pod;
using testing::foreign_pod;
using testing::member_pod;
using testing::SnapshotBuilder;

using Names = std::vector<std::string>;

Names passed(const kube::Pod& pod, const Names& offered, const Snapshot& snapshot, Ledger& ledger) {
  const std::vector<std::string_view> views(offered.begin(), offered.end());
  const FilterResult result = filter(pod, views, snapshot, ledger, Instant{});
  EXPECT_EQ(result.passed.size() + result.refused.size(), offered.size());
  Names names;
  for (const std::size_t i : result.passed) names.push_back(offered[i]);
  return names;
}

std::vector<Refusal> reasons(const kube::Pod& pod, const Names& offered, const Snapshot& snapshot,
                             Ledger& ledger) {
  const std::vector<std::string_view> views(offered.begin(), offered.end());
  std::vector<Refusal> list;
  for (const auto& [i, why] : filter(pod, views, snapshot, ledger, Instant{}).refused) {
    list.push_back(why);
  }
  return list;
}

struct Case {
  const char* sentence;
  std::function<void(SnapshotBuilder&)> world;
  kube::Pod pod;
  Names offered;
  Names passed;
};

std::vector<Case> cases() {
  kube::Pod system_pod = foreign_pod("sys", 8);
  system_pod.spec.priority = 2'000'000'000;
  kube::Pod mirror = foreign_pod("mirror", 8);
  mirror.meta.annotations["kubernetes.io/config.mirror"] = "hash";
  kube::Pod copy = foreign_pod("copy", 8);
  copy.meta.labels["kueue.x-k8s.io/podset"] = "main";
  copy.meta.annotations["kueue.x-k8s.io/workload"] = "g";
  kube::Pod executor = member_pod("executor", "driver");
  executor.meta.owners.front().kind = "Pod";
  kube::Pod plain = foreign_pod("plain", 8);
  plain.meta.labels["kueue.x-k8s.io/managed"] = "true";
  kube::Pod nominated = foreign_pod("nominated", 4);
  nominated.nominated_node = NodeName("n1");

  return {
      {"a foreign pod takes a node that no plan touches, however full it looks to us",
       [](SnapshotBuilder& w) { w.node("n1").foreign("n1", "f", 8); },
       foreign_pod("p", 8),
       {"n1"},
       {"n1"}},
      {"a foreign pod keeps off a node whose room is planned, taken or not",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").node("n3").gang("g", {"n1", "n2"}); },
       foreign_pod("p", 8),
       {"n1", "n2", "n3"},
       {"n3"}},
      // 8 - 3 foreign - 4 planned = 1 GPU.
      {"a foreign pod takes what a plan leaves",
       [](SnapshotBuilder& w) { w.node("n1").foreign("n1", "f", 3).gang("g", {"n1"}, 4); },
       foreign_pod("p", 1),
       {"n1"},
       {"n1"}},
      {"a foreign pod does not take more than a plan leaves",
       [](SnapshotBuilder& w) { w.node("n1").foreign("n1", "f", 3).gang("g", {"n1"}, 4); },
       foreign_pod("p", 2),
       {"n1"},
       {}},
      {"a foreign pod may go to a node we do not know",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}); },
       foreign_pod("p", 8),
       {"n1", "new"},
       {"new"}},
      {"a pod nominated to a node is not counted against itself there",
       // 8 - 4 nominated - 4 planned = 0, but the 4 are its own.
       [](SnapshotBuilder& w) {
         w.node("n1").nominated("n1", "nominated", 4).gang("g", {"n1"}, 4);
       },
       nominated,
       {"n1"},
       {"n1"}},
      {"planned room yields to a DaemonSet pod",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}); },
       daemon_pod("d", 8),
       {"n1"},
       {"n1"}},
      {"planned room yields to a system priority",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}); },
       system_pod,
       {"n1"},
       {"n1"}},
      {"planned room yields to a static pod",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}); },
       mirror,
       {"n1"},
       {"n1"}},
      {"a rank goes to its own node",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").gang("g", {"n1", "n2"}); },
       member_pod("g-1", "g", 1),
       {"n1", "n2"},
       {"n2"}},
      {"a rank takes the next slot when lower ranks sit elsewhere than planned",
       // Rank 0 is bound to n2, so rank 1 gets n1.
       [](SnapshotBuilder& w) {
         w.node("n1").node("n2").gang("g", {"n1", "n2"}).bound("g", "g-0", "n2", 0);
       },
       member_pod("g-1", "g", 1),
       {"n1", "n2"},
       {"n1"}},
      {"a rank whose node is not offered gets no other",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").gang("g", {"n1", "n2"}); },
       member_pod("g-1", "g", 1),
       {"n1"},
       {}},
      {"a rank beyond the gang is surplus",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}).bound("g", "g-0", "n1", 0); },
       member_pod("g-5", "g", 5),
       {"n1"},
       {}},
      {"a second pod of a rank that runs is surplus",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}, 4).bound("g", "g-0", "n1", 0, 4); },
       member_pod("forged", "g", 0, 4),
       {"n1"},
       {}},
      {"a rank beyond the plan takes a slot that is free",
       [](SnapshotBuilder& w) {
         w.node("n1").node("n2").gang("g", {"n1", "n2"}).bound("g", "g-1", "n2", 1);
       },
       member_pod("g-2", "g", 2),
       {"n1", "n2"},
       {"n1"}},
      {"a pod without a rank gets one free slot",
       [](SnapshotBuilder& w) {
         w.node("n1").node("n2").node("n3").gang("g", {"n1", "n2", "n3"});
         w.bound("g", "g-a", "n1", std::nullopt);
       },
       member_pod("g-b", "g"),
       {"n1", "n2", "n3"},
       {"n2"}},
      {"a pod without a rank takes the first free slot that is offered",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").gang("g", {"n1", "n2"}); },
       member_pod("g-b", "g"),
       {"n2"},
       {"n2"}},
      {"a member of a waiting workload gets nothing",
       [](SnapshotBuilder& w) { w.node("n1").workload("g", WorkloadPhase::kPending, 1); },
       member_pod("g-0", "g", 0),
       {"n1"},
       {}},
      {"a member of a workload on its way out gets nothing",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}, 8, WorkloadPhase::kEvicting); },
       member_pod("g-0", "g", 0),
       {"n1"},
       {}},
      {"a member of a gang that is held gets nothing, whatever room there is",
       [](SnapshotBuilder& w) {
         w.node("n1").workload("g", WorkloadPhase::kAdmitted, 2).held = true;
       },
       member_pod("g-0", "g", 0),
       {"n1"},
       {}},
      {"a member of an elastic gang that runs without a plan is like a foreign pod",
       [](SnapshotBuilder& w) {
         w.node("n1").node("n2").gang("other", {"n1"});
         w.workload("g", WorkloadPhase::kAdmitted, 2);
       },
       member_pod("g-0", "g", 0),
       {"n1", "n2"},
       {"n2"}},
      {"labels and annotations alone make no member",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").gang("g", {"n1"}); },
       copy,
       {"n1", "n2"},
       {"n2"}},
      {"what a queued pod starts is no member of its workload",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").gang("driver", {"n1"}); },
       executor,
       {"n1", "n2"},
       {"n2"}},
      {"a plain pod is the member of its own workload",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").gang("plain", {"n2"}); },
       plain,
       {"n1", "n2"},
       {"n2"}},
  };
}

TEST(Filter, AResourceThatMusterDoesNotKnowYetIsLeftToTheSchedulerAndKeepsLaterPlansWaiting) {
  SnapshotBuilder world;
  world.node("n1").node("n2");
  world.gang("g", {"n1"}, 8);
  const auto before = world.build(1);
  kube::Pod pod = foreign_pod("f", 0);
  const ResourceName gaudi("habana.ai/gaudi");
  pod.spec.containers.front().requests[gaudi] = Quantity::from_units(1);
  Ledger ledger;
  // The scheduler has seen it offered by both.
  EXPECT_EQ(passed(pod, {"n1", "n2"}, before, ledger), (Names{"n1", "n2"}));
  EXPECT_EQ(passed(foreign_pod("x", 1), {"n1", "n2"}, before, ledger), (Names{"n2"}));
  ledger.forget(Uid("x"));
  world.offers("n2", gaudi.value(), 8);
  const auto after = world.build(2);
  const std::map<NodeName, ResourceList> plan{{NodeName("n2"), {{gaudi, Amount(8)}}}};
  EXPECT_EQ(ledger.blocking(plan, 2, after, Instant{}), (std::vector<Uid>{Uid("f")}));
  ledger.forget(Uid("f"));
  EXPECT_TRUE(ledger.blocking(plan, 2, after, Instant{}).empty());
}

TEST(Filter, WhileAGangIsHeldOnlyRoomThatIsSeenCounts) {
  SnapshotBuilder world;
  world.node("free").node("full").node("late").unusable("late");
  world.foreign("full", "old", 8);
  const kube::Pod pod = foreign_pod("p", 8);
  kube::Pod odd = foreign_pod("odd", 1);
  odd.spec.containers.front().requests[ResourceName("habana.ai/gaudi")] = Quantity::from_units(1);
  const Names all = {"free", "full", "late", "new"};
  Ledger ledger;
  // kube-scheduler knows better what is free, and nobody waits for it.
  EXPECT_EQ(passed(pod, all, world.build(1), ledger), all);
  EXPECT_EQ(passed(odd, all, world.build(1), ledger), all);
  world.workload("gang", WorkloadPhase::kAdmitted, 2).held = true;
  ledger.forget(Uid("odd"));
  EXPECT_EQ(passed(pod, all, world.build(2), ledger), Names{"free"});
  odd.meta.uid = Uid("odd-again");
  EXPECT_EQ(passed(odd, all, world.build(2), ledger), Names{});
  EXPECT_EQ(passed(daemon_pod("d", 1), all, world.build(2), ledger), all);
}

TEST(Filter, Table) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.sentence);
    SnapshotBuilder world;
    c.world(world);
    Ledger ledger;
    const Snapshot snapshot = world.build();
    EXPECT_EQ(passed(c.pod, c.offered, snapshot, ledger), c.passed);
    // The scheduler may ask twice; the answer is the same.
    EXPECT_EQ(passed(c.pod, c.offered, snapshot, ledger), c.passed);
  }
}

TEST(Filter, EveryRefusalSaysWhyInOneConstantText) {
  SnapshotBuilder world;
  world.node("n1").node("n2").gang("g", {"n1", "n2"}).gang("out", {}, 8, WorkloadPhase::kEvicting);
  world.workload("waits", WorkloadPhase::kPending, 1);
  world.workload("over", WorkloadPhase::kFinished, 1);
  const Snapshot snapshot = world.build();
  Ledger ledger;
  const Names all = {"n1", "n2"};
  using R = std::vector<Refusal>;
  EXPECT_EQ(reasons(foreign_pod("p", 8), all, snapshot, ledger),
            (R{Refusal::kRoomIsPlanned, Refusal::kRoomIsPlanned}));
  EXPECT_EQ(reasons(member_pod("a", "g", 0), all, snapshot, ledger), R{Refusal::kNotItsNode});
  EXPECT_EQ(reasons(member_pod("b", "waits"), {"n1"}, snapshot, ledger), R{Refusal::kNotAdmitted});
  EXPECT_EQ(reasons(member_pod("c", "out"), {"n1"}, snapshot, ledger), R{Refusal::kBeingEvicted});
  EXPECT_EQ(reasons(member_pod("d", "over"), {"n1"}, snapshot, ledger),
            R{Refusal::kWorkloadIsOver});
  // Rank 0 was sent to n1, and n2 is not offered.
  EXPECT_EQ(reasons(member_pod("e", "g", 9), {"n1"}, snapshot, ledger), R{Refusal::kNoFreeSlot});
  for (int i = 0; i <= static_cast<int>(Refusal::kGangIsHeld); ++i) {
    EXPECT_NE(to_string(static_cast<Refusal>(i)).find("muster: "), std::string_view::npos);
  }
}

TEST(Filter, PodsOfOneGangWithoutRanksGetDifferentSlots) {
  SnapshotBuilder world;
  world.node("n1").node("n2").gang("g", {"n1", "n1", "n2"}, 4);
  const Snapshot snapshot = world.build();
  Ledger ledger;
  const Names all = {"n1", "n2"};
  EXPECT_EQ(passed(member_pod("a", "g", -1, 4), all, snapshot, ledger), Names{"n1"});
  EXPECT_EQ(passed(member_pod("b", "g", -1, 4), all, snapshot, ledger), Names{"n1"});
  EXPECT_EQ(passed(member_pod("c", "g", -1, 4), all, snapshot, ledger), Names{"n2"});
  EXPECT_EQ(passed(member_pod("d", "g", -1, 4), all, snapshot, ledger), Names{});
  EXPECT_EQ(passed(member_pod("b", "g", -1, 4), all, snapshot, ledger), Names{"n1"});
  // b is deleted: its slot is free for d.
  ledger.forget(Uid("b"));
  EXPECT_EQ(passed(member_pod("d", "g", -1, 4), all, snapshot, ledger), Names{"n1"});
}

TEST(Filter, ASlotIsCountedOnceWhileItsPodIsBeingBound) {
  SnapshotBuilder world;
  world.node("n1").node("n2").gang("g", {"n1", "n2"});
  Ledger ledger;
  const Names all = {"n1", "n2"};
  kube::Pod a = member_pod("a", "g");
  EXPECT_EQ(passed(a, all, world.build(1), ledger), Names{"n1"});
  // The snapshot shows the bind before the ledger hears of it...
  world.bound("g", "a", "n1", std::nullopt);
  EXPECT_EQ(passed(member_pod("b", "g"), all, world.build(2), ledger), Names{"n2"});
  // ...and the ledger hears of it while a call still looks at an older snapshot.
  Ledger other;
  SnapshotBuilder old;
  old.node("n1").node("n2").gang("g", {"n1", "n2"});
  EXPECT_EQ(passed(a, all, old.build(1), other), Names{"n1"});
  a.spec.node_name = NodeName("n1");
  other.observe(a, 2);
  EXPECT_EQ(passed(member_pod("b", "g"), all, old.build(1), other), Names{"n2"});
}

TEST(Filter, TwoPodsOfOneRankDoNotShareIt) {
  SnapshotBuilder world;
  world.node("n1").gang("g", {"n1", "n1"}, 4);
  const Snapshot snapshot = world.build();
  Ledger ledger;
  EXPECT_EQ(passed(member_pod("true", "g", 0, 4), {"n1"}, snapshot, ledger), Names{"n1"});
  EXPECT_EQ(passed(member_pod("forged", "g", 0, 4), {"n1"}, snapshot, ledger), Names{});
  ledger.forget(Uid("true"));
  EXPECT_EQ(passed(member_pod("again", "g", 0, 4), {"n1"}, snapshot, ledger), Names{"n1"});
}

TEST(Filter, AnAnsweredForeignPodIsChargedUntilItsEndIsSeen) {
  // 8 - 6 planned = 2 GPUs beside the plan: one pod of 2, not two.
  SnapshotBuilder world;
  world.node("n1").gang("g", {"n1"}, 6);
  Ledger ledger;
  kube::Pod first = foreign_pod("first", 2);
  EXPECT_EQ(passed(first, {"n1"}, world.build(1), ledger), Names{"n1"});
  EXPECT_EQ(passed(foreign_pod("second", 2), {"n1"}, world.build(1), ledger), Names{});
  // Asked again, a pod is not charged against itself.
  EXPECT_EQ(passed(first, {"n1"}, world.build(1), ledger), Names{"n1"});
  // Its attempt failed.
  first.meta.resource_version = "101";
  first.conditions.push_back(testing::unschedulable("node(s) were unlucky"));
  ledger.observe(first, 2);
  EXPECT_EQ(passed(foreign_pod("second", 2), {"n1"}, world.build(2), ledger), Names{"n1"});
  // second lands: the snapshot counts it, the ledger not twice.
  world.foreign("n1", "second", 2);
  EXPECT_EQ(passed(foreign_pod("third", 0), {"n1"}, world.build(3), ledger), Names{"n1"});
  EXPECT_EQ(passed(foreign_pod("fourth", 1), {"n1"}, world.build(3), ledger), Names{});
}

}  // namespace
}  // namespace muster::extender

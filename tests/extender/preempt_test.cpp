#include "extender/preempt.hpp"

#include "tests/extender/pods.hpp"
#include "tests/extender/snapshot_builder.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace muster::extender {
namespace {

using engine::WorkloadPhase;
using testing::foreign_pod;
using testing::member_pod;
using testing::SnapshotBuilder;

struct Offer {
  std::string node;
  std::vector<std::string> victims;
};

struct Case {
  const char* sentence;
  std::function<void(SnapshotBuilder&)> world;
  kube::Pod pod;
  std::vector<Offer> offers;
  std::vector<std::string> kept;
};

std::vector<Case> cases() {
  kube::Pod system_pod = foreign_pod("sys", 8);
  system_pod.spec.priority = 2'000'001'000;
  const auto two_node_gang = [](SnapshotBuilder& w) {
    w.node("n1").node("n2").node("n3").gang("g", {"n1", "n2"});
    w.bound("g", "g-0", "n1", 0).bound("g", "g-1", "n2", 1).foreign("n3", "f", 8);
  };
  return {
      {"an ordinary victim on a node without plans may go",
       [](SnapshotBuilder& w) { w.node("n1").foreign("n1", "f", 8); },
       foreign_pod("p", 8),
       {{"n1", {"f"}}},
       {"n1"}},
      {"one member of a gang may not",
       two_node_gang,
       foreign_pod("p", 8),
       {{"n1", {"g-0"}}, {"n2", {"g-1"}}, {"n3", {"f"}}},
       {"n3"}},
      {"an unplanned gang is not torn either",
       [](SnapshotBuilder& w) {
         w.node("n1").node("n2").workload("e", WorkloadPhase::kAdmitted, 2, 8);
         w.foreign("n1", "e-0", 8, "e").foreign("n2", "e-1", 8, "e");
       },
       foreign_pod("p", 8),
       {{"n1", {"e-0"}}},
       {}},
      {"an unplanned gang that dies as a whole makes room",
       [](SnapshotBuilder& w) {
         w.node("n1").workload("e", WorkloadPhase::kAdmitted, 2, 4);
         w.foreign("n1", "e-0", 4, "e").foreign("n1", "e-1", 4, "e");
       },
       foreign_pod("p", 8),
       {{"n1", {"e-0", "e-1"}}},
       {"n1"}},
      {"a planned pod makes no room for others: its slot stays planned",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}).bound("g", "g-0", "n1", 0); },
       foreign_pod("p", 8),
       {{"n1", {"g-0"}}},
       {}},
      // 8 - 4 planned - 4 foreign + 4 freed = 4: enough for 4, not for 6.
      {"the room after the victims must do beside the plan",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}, 4).foreign("n1", "f", 4); },
       foreign_pod("p", 6),
       {{"n1", {"f"}}},
       {}},
      {"the room after the victims does beside the plan",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}, 4).foreign("n1", "f", 4); },
       foreign_pod("p", 4),
       {{"n1", {"f"}}},
       {"n1"}},
      {"a candidate without victims is left out",
       [](SnapshotBuilder& w) { w.node("n1").node("n2").foreign("n2", "f", 8); },
       foreign_pod("p", 8),
       {{"n1", {}}, {"n2", {"f"}}},
       {"n2"}},
      {"a victim or a node we do not know speaks against nothing",
       [](SnapshotBuilder& w) { w.node("n1").gang("g", {"n1"}, 4).foreign("n1", "f", 4); },
       foreign_pod("p", 6),
       {{"n1", {"f", "new"}}, {"n9", {"x"}}},
       {"n1", "n9"}},
      {"a system pod takes a candidate that tears no gang where there is one",
       two_node_gang,
       system_pod,
       {{"n1", {"g-0"}}, {"n3", {"f"}}},
       {"n3"}},
      {"a system pod may tear a gang when nothing else helps",
       two_node_gang,
       system_pod,
       {{"n1", {"g-0"}}, {"n2", {"g-1"}}},
       {"n1", "n2"}},
      {"a member makes room on the node of its own slot only",
       [](SnapshotBuilder& w) {
         w.node("n1").node("n2").gang("g", {"n1", "n2"});
         w.foreign("n1", "f1", 8).foreign("n2", "f2", 8);
       },
       member_pod("g-1", "g", 1),
       {{"n1", {"f1"}}, {"n2", {"f2"}}},
       {"n2"}},
      {"a member of a waiting workload makes no room",
       [](SnapshotBuilder& w) {
         w.node("n1").foreign("n1", "f", 8).workload("g", WorkloadPhase::kPending, 1);
       },
       member_pod("g-0", "g", 0),
       {{"n1", {"f"}}},
       {}},
  };
}

TEST(Preempt, Table) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.sentence);
    SnapshotBuilder world;
    c.world(world);
    std::vector<PreemptionCandidate> candidates;
    for (const Offer& offer : c.offers) {
      PreemptionCandidate candidate{.node = offer.node, .victims = {}};
      for (const std::string& uid : offer.victims) candidate.victims.emplace_back(uid);
      candidates.push_back(std::move(candidate));
    }
    Ledger ledger;
    std::vector<std::string> kept;
    for (const std::size_t i : preempt(c.pod, candidates, world.build(), ledger, Instant{})) {
      kept.push_back(c.offers[i].node);
    }
    EXPECT_EQ(kept, c.kept);
  }
}

}  // namespace
}  // namespace muster::extender

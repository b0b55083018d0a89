#include "extender/wake.hpp"

#include "extender/filter.hpp"
#include "tests/extender/pods.hpp"
#include "tests/extender/snapshot_builder.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace muster::extender {
namespace {

using std::chrono::seconds;
using testing::foreign_pod;
using testing::member_pod;
using testing::SnapshotBuilder;

constexpr Instant kStart{1'000'000};

void ask(const kube::Pod& pod, const std::vector<std::string_view>& nodes,
         const engine::Snapshot& snapshot, Ledger& ledger) {
  (void)filter(pod, nodes, snapshot, ledger, kStart);
}

std::vector<std::string> woken(const engine::Snapshot& snapshot, Ledger& ledger, Instant now) {
  std::vector<std::string> names;
  for (const PodToWake& pod : take_pods_to_wake(snapshot, ledger, now)) {
    names.push_back(pod.key.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Wake, AForeignPodIsWokenWhenAPlanIsGivenUp) {
  SnapshotBuilder full;
  full.node("n1").gang("g", {"n1"});
  SnapshotBuilder empty;
  empty.node("n1");
  Ledger ledger;
  ask(foreign_pod("p", 8), {"n1"}, full.build(1), ledger);
  EXPECT_EQ(woken(full.build(2), ledger, kStart), Names{});
  EXPECT_EQ(woken(empty.build(3), ledger, kStart), Names{"p"});
}

TEST(Wake, IsNotRepeatedAtOnceAndLessAndLessOften) {
  SnapshotBuilder full;
  full.node("n1").gang("g", {"n1"});
  SnapshotBuilder empty;
  empty.node("n1");
  Ledger ledger;
  ask(foreign_pod("p", 8), {"n1"}, full.build(1), ledger);
  EXPECT_EQ(woken(empty.build(2), ledger, kStart), Names{"p"});
  EXPECT_EQ(woken(empty.build(3), ledger, kStart), Names{});
  EXPECT_EQ(woken(empty.build(3), ledger, kStart + seconds(1)), Names{"p"});
  EXPECT_EQ(woken(empty.build(4), ledger, kStart + seconds(2)), Names{});
  EXPECT_EQ(woken(empty.build(4), ledger, kStart + seconds(3)), Names{"p"});
  // Allowed at last, it is forgotten.
  ask(foreign_pod("p", 8), {"n1"}, empty.build(5), ledger);
  EXPECT_EQ(ledger.stats().refusals, 0U);
}

TEST(Wake, AReplacementIsWokenWhenItsForerunnerIsGone) {
  SnapshotBuilder before;
  before.node("n1").gang("g", {"n1"}).bound("g", "old", "n1", std::nullopt);
  SnapshotBuilder after;
  after.node("n1").gang("g", {"n1"});
  Ledger ledger;
  ask(member_pod("new", "g"), {"n1"}, before.build(1), ledger);
  EXPECT_EQ(woken(before.build(2), ledger, kStart), Names{});
  EXPECT_EQ(woken(after.build(3), ledger, kStart), Names{"new"});
}

TEST(Wake, NobodyIsWokenForNodesThatWereNotOffered) {
  SnapshotBuilder before;
  before.node("n1").node("n2").gang("g", {"n1"});
  SnapshotBuilder after;
  after.node("n2").node("n1").gang("g", {"n1"});
  Ledger ledger;
  ask(foreign_pod("p", 8), {"n1"}, before.build(1), ledger);
  EXPECT_EQ(woken(after.build(2), ledger, kStart), Names{});
}

TEST(Wake, ADeletedPodIsForgotten) {
  SnapshotBuilder full;
  full.node("n1").gang("g", {"n1"});
  SnapshotBuilder empty;
  empty.node("n1");
  Ledger ledger;
  ask(foreign_pod("p", 8), {"n1"}, full.build(1), ledger);
  ledger.forget(Uid("p"));
  EXPECT_EQ(woken(empty.build(2), ledger, kStart), Names{});
}

}  // namespace
}  // namespace muster::extender

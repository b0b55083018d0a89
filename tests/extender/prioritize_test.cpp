#include "extender/prioritize.hpp"

#include "tests/extender/pods.hpp"
#include "tests/extender/snapshot_builder.hpp"

#include <gtest/gtest.h>

namespace muster::extender {
namespace {

using testing::foreign_pod;
using testing::SnapshotBuilder;

std::vector<std::int64_t> scores(const kube::Pod& pod, const std::vector<std::string_view>& nodes,
                                 const engine::Snapshot& snapshot) {
  return prioritize(pod, nodes, snapshot);
}

TEST(Prioritize, FillsTheFullestNodeAndKeepsWholeNodesFree) {
  SnapshotBuilder world;
  world.node("empty").node("half").node("nearly").node("planned");
  world.foreign("half", "a", 4).foreign("nearly", "b", 7).gang("g", {"planned"}, 6);
  // (used + 1) / 8 in tenths: 5/8 -> 6, 8/8 -> 10, 7/8 -> 8; an unused node has 0.
  EXPECT_EQ(
      scores(foreign_pod("p", 1), {"empty", "half", "nearly", "planned", "unknown"}, world.build()),
      (std::vector<std::int64_t>{0, 6, 10, 8, 0}));
}

TEST(Prioritize, KeepsPodsWithoutAcceleratorsOffNodesThatHaveSome) {
  SnapshotBuilder world;
  world.node("cpu", 0).node("idle").node("full");
  world.foreign("full", "a", 8);
  EXPECT_EQ(scores(foreign_pod("p", 0), {"cpu", "idle", "full"}, world.build()),
            (std::vector<std::int64_t>{10, 0, 9}));
}

TEST(Prioritize, StaysInTheRangeWhateverTheNumbers) {
  SnapshotBuilder world;
  world.node("over");
  world.foreign("over", "a", 8).gang("g", {"over"}, 8);  // 16 used of 8.
  EXPECT_EQ(scores(foreign_pod("p", INT64_MAX), {"over"}, world.build()),
            (std::vector<std::int64_t>{10}));
}

}  // namespace
}  // namespace muster::extender

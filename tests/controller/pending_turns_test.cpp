#include "controller/pending_turns.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace muster::controller {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr Instant kStart{1'700'000'000'000'000};

std::vector<std::string> take_all(PendingTurns& turns, Instant now, bool busy = false) {
  std::vector<std::string> taken;
  while (const auto key = turns.take(now)) {
    taken.push_back(fmt::format("{}", *key));
    turns.wrote(busy, now);
  }
  return taken;
}

WorkloadKey key(const char* ns, const char* name) {
  return {Namespace(ns), name};
}

TEST(PendingTurns, ABurstGoesAtOnceThenOneEachInterval) {
  PendingTurns turns(Pace(milliseconds(40), 3));
  EXPECT_EQ(turns.next_wakeup(), std::nullopt);
  for (const char* name : {"a", "b", "c", "d", "e"}) turns.ask(key("t", name), true);
  EXPECT_THAT(take_all(turns, kStart), ElementsAre("t/a", "t/b", "t/c"));
  EXPECT_EQ(turns.next_wakeup(), kStart + milliseconds(40));
  EXPECT_THAT(take_all(turns, kStart + milliseconds(39)), ElementsAre());
  EXPECT_THAT(take_all(turns, kStart + milliseconds(40)), ElementsAre("t/d"));
  EXPECT_THAT(take_all(turns, kStart + milliseconds(80)), ElementsAre("t/e"));
  EXPECT_EQ(turns.next_wakeup(), std::nullopt);
  // A silence fills the bucket again, and no more than that.
  for (const char* name : {"a", "b", "c", "d", "e"}) turns.ask(key("t", name), true);
  EXPECT_THAT(take_all(turns, kStart + milliseconds(4000)), ElementsAre("t/a", "t/b", "t/c"));
}

TEST(PendingTurns, WhoTakesATurnWithoutAWriteCostsNothing) {
  PendingTurns turns(Pace(milliseconds(40), 1));
  for (const char* name : {"a", "b"}) turns.ask(key("t", name), true);
  EXPECT_EQ(turns.take(kStart), key("t", "a"));
  EXPECT_EQ(turns.take(kStart), key("t", "b"));
  EXPECT_EQ(turns.take(kStart), std::nullopt);
}

TEST(PendingTurns, TheNextComesLaterWhileOtherWritesAreUnderWay) {
  PendingTurns turns(Pace(milliseconds(40), 1));
  for (const char* name : {"a", "b"}) turns.ask(key("t", name), true);
  EXPECT_THAT(take_all(turns, kStart, true), ElementsAre("t/a"));
  EXPECT_EQ(turns.next_wakeup(), kStart + milliseconds(200));
}

TEST(PendingTurns, NamespacesTakeTurns) {
  PendingTurns turns(Pace(milliseconds(40), 100));
  for (const char* name : {"a", "b", "c", "d"}) turns.ask(key("flood", name), true);
  turns.ask(key("quiet", "x"), true);
  turns.ask(key("zebra", "y"), true);
  EXPECT_THAT(take_all(turns, kStart),
              ElementsAre("flood/a", "quiet/x", "zebra/y", "flood/b", "flood/c", "flood/d"));
}

TEST(PendingTurns, ANewReasonGoesBeforeNewWordsAndAskingAgainKeepsThePlace) {
  PendingTurns turns(Pace(milliseconds(40), 100));
  turns.ask(key("t", "words"), false);
  turns.ask(key("t", "both"), false);
  turns.ask(key("t", "reason"), true);
  turns.ask(key("t", "both"), true);
  turns.ask(key("t", "reason"), false);
  turns.ask(key("t", "reason"), true);
  EXPECT_THAT(take_all(turns, kStart), ElementsAre("t/reason", "t/both", "t/words"));
}

}  // namespace
}  // namespace muster::controller

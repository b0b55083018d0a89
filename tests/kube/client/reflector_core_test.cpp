#include "kube/client/reflector_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ActionType = ReflectorAction::Type;
using LineType = WatchLine::Type;

constexpr Duration kLong = minutes(5);

ObjectIdentity meta(const std::string& name, const std::string& version,
                    const std::string& uid = "") {
  return {.ns = "ns",
          .name = name,
          .uid = uid.empty() ? "uid-" + name : uid,
          .resource_version = version};
}

ListPage page(const std::string& version, const std::vector<ObjectIdentity>& objects,
              const std::string& continue_token = "") {
  ListPage made{.resource_version = version, .continue_token = continue_token, .items = {}};
  for (const ObjectIdentity& object : objects) made.items.push_back({.meta = object, .object = {}});
  return made;
}

WatchLine line(LineType type, const ObjectIdentity& object) {
  WatchLine made;
  made.type = type;
  made.meta = object;
  return made;
}

WatchLine bookmark(const std::string& version, bool initial_events_end = false) {
  WatchLine made;
  made.type = LineType::kBookmark;
  made.meta.resource_version = version;
  made.initial_events_end = initial_events_end;
  return made;
}

WatchLine error_line(int code) {
  WatchLine made;
  made.type = LineType::kError;
  made.error_code = code;
  return made;
}

// "+a@1" an upsert, "-a" a deletion, "synced".
std::string text(const ReflectorStep& step) {
  std::string result;
  for (const ObjectEvent& event : step.events) {
    if (!result.empty()) result += ' ';
    if (event.type == ObjectEvent::Type::kUpsert)
      result += "+" + event.meta.name + "@" + event.meta.resource_version;
    if (event.type == ObjectEvent::Type::kDelete) result += "-" + event.meta.name;
    if (event.type == ObjectEvent::Type::kSynced) result += "synced";
  }
  return result;
}

bool has(const ReflectorAction& action, const std::string& part) {
  return action.query.find(part) != std::string::npos;
}

ReflectorCore paged() {
  return ReflectorCore({.streaming_list = false});
}

// A paged core that has listed `a` at version 10 and watches.
ReflectorCore watching() {
  ReflectorCore core = paged();
  (void)core.start();
  (void)core.on_list_page(page("10", {meta("a", "5")}));
  return core;
}

TEST(ReflectorCore, PagesAreFollowedAndTheWatchStartsFromTheListsVersion) {
  ReflectorCore core = paged();
  ReflectorStep step = core.start();
  EXPECT_EQ(step.next.type, ActionType::kListPage);
  EXPECT_EQ(step.next.query, "limit=500");
  step = core.on_list_page(page("9", {meta("a", "1"), meta("b", "2")}, "to/ken=="));
  EXPECT_EQ(text(step), "+a@1 +b@2");
  EXPECT_EQ(step.next.query, "limit=500&continue=to%2Fken%3D%3D");
  EXPECT_FALSE(core.synced());
  step = core.on_list_page(page("9", {meta("c", "3")}));
  EXPECT_EQ(text(step), "+c@3 synced");
  EXPECT_TRUE(core.synced());
  EXPECT_EQ(step.next.type, ActionType::kWatch);
  EXPECT_TRUE(has(step.next, "resourceVersion=9&")) << step.next.query;
  EXPECT_TRUE(has(step.next, "allowWatchBookmarks=true"));
}

TEST(ReflectorCore, AStreamedListEndsWithItsBookmarkAndGoesOnAsTheWatch) {
  ReflectorCore core(ReflectorOptions{});
  ReflectorStep step = core.start();
  EXPECT_EQ(step.next.type, ActionType::kWatch);
  EXPECT_TRUE(has(step.next, "sendInitialEvents=true"));
  EXPECT_TRUE(has(step.next, "resourceVersionMatch=NotOlderThan"));
  EXPECT_FALSE(has(step.next, "resourceVersion="));
  EXPECT_EQ(text(core.on_watch_line(line(LineType::kAdded, meta("a", "1")))), "+a@1");
  EXPECT_EQ(text(core.on_watch_line(bookmark("3"))), "");  // Not the end yet.
  EXPECT_FALSE(core.synced());
  step = core.on_watch_line(bookmark("7", true));
  EXPECT_EQ(text(step), "synced");
  EXPECT_EQ(step.next.type, ActionType::kNone);
  EXPECT_EQ(text(core.on_watch_line(line(LineType::kAdded, meta("b", "8")))), "+b@8");
  step = core.on_watch_end(fail(ErrorCode::kUnavailable, "cut"), seconds(1));
  EXPECT_TRUE(has(step.next, "resourceVersion=8&"));
}

TEST(ReflectorCore, AServerThatRefusesStreamedListsIsAskedForPagesAtOnceAndForGood) {
  ReflectorCore core(ReflectorOptions{});
  (void)core.start();
  ReflectorStep step = core.on_watch_end(
      fail(ErrorCode::kInvalidArgument, "422: sendInitialEvents is forbidden"), Duration(0));
  EXPECT_EQ(step.next.type, ActionType::kListPage);
  (void)core.on_list_page(page("1", {}));
  step = core.on_watch_line(error_line(410));
  EXPECT_EQ(step.next.type, ActionType::kListPage);
}

TEST(ReflectorCore, AStreamedListThatIsCutIsReplacedByPagesOnce) {
  ReflectorCore core(ReflectorOptions{});
  (void)core.start();
  (void)core.on_watch_line(line(LineType::kAdded, meta("a", "1")));
  ReflectorStep step = core.on_watch_end(fail(ErrorCode::kUnavailable, "cut"), seconds(1));
  EXPECT_EQ(step.next.type, ActionType::kPause);
  step = core.on_pause_over();
  EXPECT_EQ(step.next.type, ActionType::kListPage);
  step = core.on_list_page(page("5", {meta("b", "2")}));
  EXPECT_EQ(text(step), "+b@2 -a synced");  // `a` came by the cut stream and was gone after.
  (void)core.on_watch_line(bookmark("6"));
  step = core.on_watch_line(error_line(410));
  EXPECT_EQ(step.next.type, ActionType::kWatch);  // Streaming again.
}

TEST(ReflectorCore, WatchLinesBecomeEvents) {
  struct Case {
    const char* sentence;
    WatchLine line;
    const char* want;
  };
  for (const Case& c : {
           Case{"a new object", line(LineType::kAdded, meta("b", "11")), "+b@11"},
           Case{"a change", line(LineType::kModified, meta("a", "11")), "+a@11"},
           Case{"the same version again is no news", line(LineType::kAdded, meta("a", "5")), ""},
           Case{"a deletion", line(LineType::kDeleted, meta("a", "12")), "-a"},
           Case{"a deletion of what we never had", line(LineType::kDeleted, meta("x", "12")), ""},
           Case{"an object made anew under its name",
                line(LineType::kModified, meta("a", "12", "uid-2")), "-a +a@12"},
           Case{"a bookmark", bookmark("12"), ""},
           Case{"a type from the future", line(LineType::kUnknown, meta("a", "12")), ""},
       }) {
    ReflectorCore core = watching();
    const ReflectorStep step = core.on_watch_line(c.line);
    EXPECT_EQ(text(step), c.want) << c.sentence;
    EXPECT_EQ(step.next.type, ActionType::kNone) << c.sentence;
  }
}

TEST(ReflectorCore, ACutIsResumedFromTheLastVersionSeenBookmarksIncluded) {
  ReflectorCore core = watching();
  (void)core.on_watch_line(line(LineType::kModified, meta("a", "11")));
  (void)core.on_watch_line(bookmark("20"));
  const ReflectorStep step = core.on_watch_end(fail(ErrorCode::kUnavailable, "cut"), seconds(1));
  EXPECT_EQ(step.next.type, ActionType::kWatch);
  EXPECT_TRUE(has(step.next, "resourceVersion=20&"));
  EXPECT_TRUE(step.events.empty());
  EXPECT_EQ(core.counters().watch_cuts, 1U);
}

TEST(ReflectorCore, GoneListsAgainAndTheDifferenceIsDeleted) {
  for (const bool by_line : {true, false}) {
    ReflectorCore core = watching();
    (void)core.on_watch_line(line(LineType::kAdded, meta("b", "11")));
    ReflectorStep step = by_line ? core.on_watch_line(error_line(410))
                                 : core.on_watch_end(fail(ErrorCode::kGone, "410"), seconds(1));
    EXPECT_EQ(step.next.type, ActionType::kListPage);
    step = core.on_list_page(page("30", {meta("a", "5"), meta("c", "21"), meta("d", "22")}));
    EXPECT_EQ(text(step), "+c@21 +d@22 -b synced");  // `a` is unchanged: no event.
    EXPECT_EQ(core.object_count(), 3U);
    EXPECT_EQ(core.counters().gone, 1U);
  }
}

TEST(ReflectorCore, ALineThatCannotBeReadIsListedOverInPagesNotResumedAt) {
  for (const bool too_long : {true, false}) {
    ReflectorCore core(ReflectorOptions{});
    (void)core.start();
    (void)core.on_watch_line(line(LineType::kAdded, meta("a", "5")));
    (void)core.on_watch_line(bookmark("10", true));
    (void)core.on_watch_line(line(LineType::kAdded, meta("b", "11")));
    ReflectorStep step =
        too_long ? core.on_watch_end(fail(ErrorCode::kTooLarge, "a long line"), seconds(1))
                 : core.on_unreadable_line();
    EXPECT_EQ(step.next.type, ActionType::kListPage);
    step = core.on_list_page(page("30", {meta("a", "5"), meta("c", "21")}));
    EXPECT_EQ(text(step), "+c@21 -b synced");
    EXPECT_TRUE(has(step.next, "resourceVersion=30&")) << step.next.query;
    EXPECT_EQ(core.counters().watch_cuts, 1U);
    EXPECT_EQ(core.counters().gone, 0U);
    // The next one at once is met after a pause, and in pages again.
    step = core.on_unreadable_line();
    EXPECT_EQ(step.next.type, ActionType::kPause);
    EXPECT_EQ(core.on_pause_over().next.type, ActionType::kListPage);
  }
}

TEST(ReflectorCore, ALineThatCannotBeReadEndsAStreamedListAndPagesFollow) {
  ReflectorCore core(ReflectorOptions{});
  (void)core.start();
  (void)core.on_watch_line(line(LineType::kAdded, meta("a", "1")));
  EXPECT_EQ(core.on_unreadable_line().next.type, ActionType::kPause);
  EXPECT_EQ(core.on_pause_over().next.type, ActionType::kListPage);
  EXPECT_EQ(text(core.on_list_page(page("5", {meta("a", "1")}))), "synced");
  // Where pages are listed, there is no line to speak of.
  ReflectorCore other = paged();
  (void)other.start();
  EXPECT_EQ(other.on_unreadable_line().next.type, ActionType::kNone);
}

TEST(ReflectorCore, AnObjectMadeAnewDuringTheGapIsDeletedFirst) {
  ReflectorCore core = watching();
  (void)core.on_watch_line(error_line(410));
  const ReflectorStep step = core.on_list_page(page("30", {meta("a", "25", "uid-new")}));
  ASSERT_EQ(text(step), "-a +a@25 synced");
  EXPECT_EQ(step.events[0].meta.uid, "uid-a");
  EXPECT_EQ(step.events[1].meta.uid, "uid-new");
}

TEST(ReflectorCore, GoneOverAndOverDoesNotSpin) {
  ReflectorCore core = watching();
  ReflectorStep step = core.on_watch_line(error_line(410));
  EXPECT_EQ(step.next.type, ActionType::kListPage);  // The first time at once.
  (void)core.on_list_page(page("11", {}));
  step = core.on_watch_line(error_line(410));
  EXPECT_EQ(step.next.type, ActionType::kPause);
}

TEST(ReflectorCore, PausesDoubleWithJitterUpToTheirLimitAndAreResetByProgress) {
  ReflectorCore core({.streaming_list = false,
                      .first_pause = milliseconds(100),
                      .max_pause = milliseconds(400),
                      .seed = 7});
  (void)core.start();
  for (const milliseconds base : {milliseconds(100), milliseconds(200), milliseconds(400),
                                  milliseconds(400), milliseconds(400)}) {
    const ReflectorStep step = core.on_list_page(fail(ErrorCode::kUnavailable, "refused"));
    ASSERT_EQ(step.next.type, ActionType::kPause);
    EXPECT_GE(step.next.pause, base / 2);
    EXPECT_LT(step.next.pause, base);
    EXPECT_EQ(core.on_pause_over().next.type, ActionType::kListPage);
  }
  (void)core.on_list_page(page("1", {}));
  (void)core.on_watch_line(bookmark("2"));
  (void)core.on_watch_end(fail(ErrorCode::kUnavailable, "cut"), seconds(1));
  const ReflectorStep step =
      core.on_watch_end(fail(ErrorCode::kUnavailable, "refused"), Duration(0));
  ASSERT_EQ(step.next.type, ActionType::kPause);
  EXPECT_LT(step.next.pause, milliseconds(100));
}

TEST(ReflectorCore, AQuietWatchThatLastedIsRenewedAtOnceAShortOneIsNot) {
  ReflectorCore core = watching();
  EXPECT_EQ(core.on_watch_end({}, kLong).next.type, ActionType::kWatch);
  EXPECT_EQ(core.on_watch_end({}, milliseconds(10)).next.type, ActionType::kPause);
  EXPECT_EQ(core.counters().watch_cuts, 0U);
}

TEST(ReflectorCore, ALaterPageThatFailsStartsTheListAnew) {
  ReflectorCore core = paged();
  (void)core.start();
  (void)core.on_list_page(page("9", {meta("a", "1")}, "token"));
  ReflectorStep step = core.on_list_page(fail(ErrorCode::kGone, "continue expired"));
  EXPECT_EQ(step.next.type, ActionType::kPause);
  step = core.on_pause_over();
  EXPECT_EQ(step.next.query, "limit=500");
  // `a` was told already; gone by now, it must be taken back.
  EXPECT_EQ(text(core.on_list_page(page("12", {meta("b", "11")}))), "+b@11 -a synced");
}

TEST(ReflectorCore, AnswersToQuestionsOfAnotherStateAreIgnored) {
  ReflectorCore core = watching();
  EXPECT_EQ(core.on_list_page(page("99", {})).next.type, ActionType::kNone);
  EXPECT_EQ(core.on_pause_over().next.type, ActionType::kNone);
  EXPECT_EQ(core.object_count(), 1U);
}

TEST(ReflectorCore, TheSameSeedGivesTheSameRun) {
  const auto run = [](std::uint64_t seed) {
    ReflectorCore core({.seed = seed});
    std::string all = core.start().next.query;
    for (int i = 0; i < 5; ++i) {
      all += std::to_string(
          core.on_watch_end(fail(ErrorCode::kUnavailable, "cut"), Duration(0)).next.pause.count());
      all += core.on_pause_over().next.query;
      all += std::to_string(
          core.on_list_page(fail(ErrorCode::kUnavailable, "cut")).next.pause.count());
      all += core.on_pause_over().next.query;
    }
    return all;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

// Random histories of a small API server, cut at random places: after every complete list and after
// every line, the consumer holds what a consumer without cuts would hold.
TEST(ReflectorCore, TheConsumersViewConvergesWhateverIsCut) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::uint64_t state = seed;
    const auto random = [&state](std::uint64_t below) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return (state >> 33U) % below;
    };
    ReflectorCore core({.streaming_list = seed % 2 == 0, .seed = seed});
    std::map<std::string, std::string> server;  // name -> uid
    std::map<std::string, std::string> consumer;
    int version = 1;
    const auto consume = [&consumer, seed](const ReflectorStep& step) {
      for (const ObjectEvent& event : step.events) {
        if (event.type == ObjectEvent::Type::kUpsert) {
          const auto old = consumer.find(event.meta.name);
          if (old != consumer.end()) {
            EXPECT_EQ(old->second, event.meta.uid) << "seed " << seed;
          }
          consumer[event.meta.name] = event.meta.uid;
        } else if (event.type == ObjectEvent::Type::kDelete) {
          EXPECT_EQ(consumer[event.meta.name], event.meta.uid) << "seed " << seed;
          consumer.erase(event.meta.name);
        }
      }
    };
    // One change on the server; told to the watch when `heard`.
    const auto change = [&](bool heard) {
      const std::string name(1, static_cast<char>('a' + random(4)));
      const bool exists = server.contains(name);
      ++version;
      const std::string number = std::to_string(version);
      if (exists && random(2) == 0) {
        const WatchLine gone = line(LineType::kDeleted, meta(name, number, server[name]));
        server.erase(name);
        if (heard) consume(core.on_watch_line(gone));
        return;
      }
      if (!exists) server[name] = "uid" + number;
      const LineType type = exists ? LineType::kModified : LineType::kAdded;
      if (heard) consume(core.on_watch_line(line(type, meta(name, number, server[name]))));
    };
    ReflectorAction action = core.start().next;
    for (int round = 0; round < 30; ++round) {
      ReflectorStep step;
      if (action.type == ActionType::kPause) {
        change(false);  // The watch position is then lost: the server answers 410.
        step = core.on_pause_over();
      } else if (action.type == ActionType::kListPage) {
        std::vector<ObjectIdentity> objects;
        for (const auto& [name, uid] : server)
          objects.push_back(meta(name, std::to_string(version), uid));
        step = random(4) == 0 ? core.on_list_page(fail(ErrorCode::kUnavailable, "cut"))
                              : core.on_list_page(page(std::to_string(version), objects));
      } else if (action.query.find("sendInitialEvents") != std::string::npos) {
        for (const auto& [name, uid] : server)
          consume(
              core.on_watch_line(line(LineType::kAdded, meta(name, std::to_string(version), uid))));
        if (random(3) == 0) {
          step = core.on_watch_end(fail(ErrorCode::kUnavailable, "cut"), seconds(1));
        } else {
          consume(core.on_watch_line(bookmark(std::to_string(version), true)));
          EXPECT_EQ(consumer, server) << "seed " << seed;
          for (std::uint64_t n = random(5); n > 0; --n) change(true);
          EXPECT_EQ(consumer, server) << "seed " << seed;
          change(false);
          step = core.on_watch_line(error_line(410));
        }
      } else {
        for (std::uint64_t n = random(5); n > 0; --n) change(true);
        change(false);
        step = random(2) == 0 ? core.on_watch_line(error_line(410)) : core.on_unreadable_line();
      }
      consume(step);
      if (action.type == ActionType::kListPage && step.next.type == ActionType::kWatch) {
        EXPECT_EQ(consumer, server) << "seed " << seed;
      }
      action = step.next;
      ASSERT_NE(action.type, ActionType::kNone);
    }
  }
}

}  // namespace
}  // namespace muster::kube

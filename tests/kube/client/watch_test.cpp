#include "kube/client/reflector.hpp"
#include "kube/client/watch_line.hpp"
#include "tests/kube/client/client_fixture.hpp"
#include "tests/kube/client/scripted_server.hpp"

#include <gtest/gtest.h>

#include <mutex>

namespace muster::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ScriptedConnection;
using testing::ScriptedServer;

std::string object(const std::string& name, const std::string& version) {
  return R"({"metadata":{"namespace":"ns","name":")" + name + R"(","uid":"u-)" + name +
         R"(","resourceVersion":")" + version + "\"}}";
}

/// All that a tenant may have stored, and strict parsing refuses.
std::string hostile_object(const std::string& name, const std::string& version) {
  std::string deep = "{}";
  for (int i = 0; i < 100; ++i) deep = R"({"f:a":)" + deep + "}";
  return R"({"metadata":{"managedFields":[{"fieldsV1":)" + deep +
         R"(}],"namespace":"ns","name":")" + name + R"(","uid":"u-)" + name +
         R"(","resourceVersion":")" + version + R"("},"spec":{"deep":)" + deep +
         R"(,"big":1e999,"half":"\ud800","bytes":")" + "\xFF\"}}";
}

std::string line(const std::string& type, const std::string& name, const std::string& version) {
  return R"({"type":")" + type + R"(","object":)" + object(name, version) + "}\n";
}

std::string bookmark(const std::string& version, bool end = false) {
  return R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")" + version + "\"" +
         (end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") + "}}}\n";
}

std::string list(const std::string& version, const std::vector<std::string>& items,
                 const std::string& next = "") {
  std::string text = R"({"metadata":{"resourceVersion":")" + version + R"(","continue":")" + next +
                     R"("},"items":[)";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ",") + items[i];
  return text + "]}";
}

const std::string kGoneLine =
    R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}})"
    "\n";

class WatchTest : public testing::ClientFixture {
 protected:
  // Lines and the end of one watch, as its handlers saw them.
  struct Seen {
    std::mutex mutex;
    std::vector<std::string> lines;
    std::promise<Result<void>> end;
    [[nodiscard]] std::size_t count() {
      const std::lock_guard lock(mutex);
      return lines.size();
    }
  };

  std::unique_ptr<WatchHandle> watch(const std::shared_ptr<Seen>& seen, WatchCall call = {}) {
    call.path_and_query = "/api/v1/pods?watch=true";
    WatchHandlers handlers;
    handlers.on_line = [seen](std::string_view text) {
      const std::lock_guard lock(seen->mutex);
      seen->lines.emplace_back(text);
    };
    handlers.on_end = [seen](Result<void> end) { seen->end.set_value(std::move(end)); };
    return client_->watch(std::move(call), std::move(handlers));
  }
};

TEST_F(WatchTest, LinesAreHandedOutWhateverTheChunksAre) {
  ScriptedServer server({[](ScriptedConnection& connection) {
    connection.read_request();
    connection.start_chunks();
    connection.chunk("{\"a\":1}\n{\"b\"");
    connection.chunk(":2}");
    connection.chunk("\n\n{\"c\":3}\n");
    for (const char c : std::string("{\"d\":4}\n")) connection.chunk(std::string(1, c));
    connection.end_chunks();
  }});
  connect(cluster(server.port()));
  auto seen = std::make_shared<Seen>();
  const auto handle = watch(seen);
  EXPECT_TRUE(seen->end.get_future().get());
  EXPECT_EQ(seen->lines,
            (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "{\"d\":4}"}));
}

TEST_F(WatchTest, EndsAreToldApart) {
  struct Case {
    const char* sentence;
    ScriptedServer::Script script;
    std::optional<ErrorCode> want;  // Absent: a clean end.
  };
  const std::vector<Case> cases = {
      {"a clean end",
       [](ScriptedConnection& c) {
         c.start_chunks();
         c.end_chunks();
       },
       std::nullopt},
      {"410 as an answer", [](ScriptedConnection& c) { c.answer(410, "gone"); }, ErrorCode::kGone},
      {"403", [](ScriptedConnection& c) { c.answer(403, "no"); }, ErrorCode::kForbidden},
      {"422", [](ScriptedConnection& c) { c.answer(422, "no"); }, ErrorCode::kInvalidArgument},
      {"a cut in a chunk",
       [](ScriptedConnection& c) {
         c.start_chunks();
         c.send("ff\r\n{\"a\"");
       },
       ErrorCode::kUnavailable},
      {"a reset",
       [](ScriptedConnection& c) {
         c.start_chunks();
         c.chunk("{}\n");
         c.reset();
       },
       ErrorCode::kUnavailable},
      {"broken chunks",
       [](ScriptedConnection& c) {
         c.start_chunks();
         c.send("nonsense\r\n");
         c.wait_for_close();
       },
       ErrorCode::kUnavailable},
      {"silence",
       [](ScriptedConnection& c) {
         c.start_chunks();
         c.wait_for_close();
       },
       ErrorCode::kDeadline},
      {"a line above the limit",
       [](ScriptedConnection& c) {
         c.start_chunks();
         for (int i = 0; i < 30; ++i) c.chunk(std::string(100, 'x'));
         c.wait_for_close();
       },
       ErrorCode::kTooLarge},
      {"no answer at all", [](ScriptedConnection&) {}, ErrorCode::kUnavailable},
  };
  std::vector<ScriptedServer::Script> scripts;
  for (const Case& c : cases) {
    scripts.emplace_back([&c](ScriptedConnection& connection) {
      connection.read_request();
      c.script(connection);
    });
  }
  ScriptedServer server(std::move(scripts));
  connect(cluster(server.port()));
  for (const Case& c : cases) {
    auto seen = std::make_shared<Seen>();
    WatchCall call;
    call.idle_timeout = milliseconds(100);
    call.max_line_bytes = 1000;
    const auto handle = watch(seen, call);
    const Result<void> end = seen->end.get_future().get();
    ASSERT_EQ(end.has_value(), !c.want.has_value()) << c.sentence;
    if (!end) {
      EXPECT_EQ(end.error().code, *c.want) << c.sentence << ": " << end.error().message;
    }
  }
}

TEST_F(WatchTest, CancellingClosesTheConnectionAndSaysNothing) {
  std::promise<bool> closed;
  ScriptedServer server({[&closed](ScriptedConnection& connection) {
    connection.read_request();
    connection.start_chunks();
    connection.chunk("{}\n");
    closed.set_value(connection.wait_for_close());
  }});
  connect(cluster(server.port()));
  auto seen = std::make_shared<Seen>();
  auto handle = watch(seen);
  ASSERT_TRUE(eventually([&] { return seen->count() == 1; }));
  handle.reset();
  EXPECT_TRUE(closed.get_future().get());
  EXPECT_EQ(seen->end.get_future().wait_for(milliseconds(20)), std::future_status::timeout);
}

TEST_F(WatchTest, StoppingTheClientEndsWatchesToo) {
  std::promise<bool> closed;
  ScriptedServer server({[&closed](ScriptedConnection& connection) {
    connection.read_request();
    connection.start_chunks();
    connection.chunk("{}\n");
    closed.set_value(connection.wait_for_close());
  }});
  connect(cluster(server.port()));
  auto seen = std::make_shared<Seen>();
  const auto handle = watch(seen);
  ASSERT_TRUE(eventually([&] { return seen->count() == 1; }));
  client_->stop();
  EXPECT_TRUE(closed.get_future().get());
}

class ReflectorTest : public WatchTest {
 protected:
  ~ReflectorTest() override {
    if (reflector_) on_strand([this] { reflector_.reset(); });
  }

  void reflect(ReflectorOptions options = {}) {
    options.first_pause = milliseconds(2);
    ReflectorConfig config;
    config.name = "pods";
    config.path = "/api/v1/pods?labelSelector=a%3Db";
    config.options = options;
    config.watch_idle_timeout = milliseconds(500);
    reflector_ = std::make_unique<Reflector>(*client_, config, [this](const ObjectEvent& event) {
      const std::lock_guard lock(mutex_);
      if (!events_.empty()) events_ += ' ';
      if (event.type == ObjectEvent::Type::kUpsert)
        events_ += "+" + event.meta.name + "@" + event.meta.resource_version +
                   (event.object.is_object() ? "" : "?");
      if (event.type == ObjectEvent::Type::kDelete) events_ += "-" + event.meta.name;
      if (event.type == ObjectEvent::Type::kSynced) events_ += "synced";
    });
  }
  std::string events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  void expect_events(const std::string& want) {
    EXPECT_TRUE(eventually([&] { return events() == want; })) << events();
  }

  std::mutex mutex_;
  std::string events_;
  std::unique_ptr<Reflector> reflector_;
};

TEST_F(ReflectorTest, StreamsTheListThenFollowsAndResumesAfterACut) {
  std::string first;
  std::string second;
  ScriptedServer server({[&first](ScriptedConnection& connection) {
                           first = connection.read_request();
                           connection.start_chunks();
                           connection.chunk(line("ADDED", "a", "1") + line("ADDED", "b", "2"));
                           connection.chunk(bookmark("5", true));
                           connection.chunk(line("DELETED", "a", "6") + bookmark("9"));
                         },
                         [&second](ScriptedConnection& connection) {
                           second = connection.read_request();
                           connection.start_chunks();
                           connection.chunk(line("MODIFIED", "b", "10"));
                           connection.wait_for_close();
                         }});
  connect(cluster(server.port()));
  reflect();
  expect_events("+a@1 +b@2 synced -a +b@10");
  EXPECT_TRUE(reflector_->synced());
  EXPECT_EQ(reflector_->counters().lists, 1U);
  on_strand([this] { reflector_.reset(); });
  EXPECT_NE(first.find("GET /api/v1/pods?labelSelector=a%3Db&watch=true&sendInitialEvents=true"),
            std::string::npos)
      << first;
  EXPECT_NE(second.find("resourceVersion=9&"), std::string::npos) << second;
}

TEST_F(ReflectorTest, FallsBackToPagesAndListsAgainWhenItsPositionIsGone) {
  ScriptedServer server(
      {[](ScriptedConnection& connection) {  // The streamed list.
         connection.read_request();
         connection.answer(422, R"({"kind":"Status","message":"sendInitialEvents: Forbidden"})");
       },
       [](ScriptedConnection& connection) {  // The pool: all pages of both lists.
         connection.read_request();
         connection.answer(200, list("3", {object("a", "1")}, "more"));
         const std::string second = connection.read_request();
         EXPECT_NE(second.find("continue=more"), std::string::npos) << second;
         connection.answer(200, list("3", {object("b", "2")}));
         connection.read_request();
         connection.answer(200, list("20", {object("b", "2"), object("c", "15")}));
         connection.wait_for_close();
       },
       [](ScriptedConnection& connection) {
         connection.read_request();
         connection.start_chunks();
         connection.chunk(kGoneLine);
         connection.wait_for_close();
       },
       [](ScriptedConnection& connection) {
         connection.read_request();
         connection.start_chunks();
         connection.chunk(line("ADDED", "d", "21"));
         connection.wait_for_close();
       }});
  connect(cluster(server.port()));
  reflect();
  expect_events("+a@1 +b@2 synced +c@15 -a synced +d@21");
  EXPECT_EQ(reflector_->counters().gone, 1U);
}

TEST_F(ReflectorTest, ALineThatIsNoJsonIsNotMetAgainButListedOver) {
  std::string last;
  ScriptedServer server({[](ScriptedConnection& connection) {
                           connection.read_request();
                           connection.start_chunks();
                           connection.chunk(bookmark("5", true) + line("ADDED", "a", "6"));
                           connection.chunk("{\"type\":\"ADDED\",\"object\":{\n");
                           connection.chunk(line("ADDED", "never", "7"));
                           connection.wait_for_close();
                         },
                         [](ScriptedConnection& connection) {
                           const std::string request = connection.read_request();
                           EXPECT_NE(request.find("limit=500"), std::string::npos) << request;
                           const std::string nameless = R"({"metadata":{"uid":"u"}})";
                           connection.answer(
                               200, list("9", {object("a", "6"), nameless, object("b", "8")}));
                           connection.wait_for_close();
                         },
                         [&last](ScriptedConnection& connection) {
                           last = connection.read_request();
                           connection.start_chunks();
                           connection.chunk(line("ADDED", "c", "10"));
                           connection.wait_for_close();
                         }});
  connect(cluster(server.port()));
  reflect();
  expect_events("synced +a@6 +b@8 synced +c@10");
  EXPECT_EQ(reflector_->counters().watch_cuts, 1U);
  EXPECT_EQ(reflector_->counters().gone, 0U);
  on_strand([this] { reflector_.reset(); });
  EXPECT_NE(last.find("resourceVersion=9&"), std::string::npos) << last;
}

TEST_F(ReflectorTest, AnObjectOfATenantThatNobodyCanReadWhollyStopsNoWatch) {
  ScriptedServer server({[](ScriptedConnection& connection) {
    connection.read_request();
    connection.start_chunks();
    connection.chunk(R"({"type":"ADDED","object":)" + hostile_object("a", "1") + "}\n");
    connection.chunk(bookmark("5", true));
    connection.chunk(R"({"type":"MODIFIED","object":)" + hostile_object("a", "6") + "}\n");
    connection.chunk(line("ADDED", "b", "7"));
    connection.wait_for_close();
  }});
  connect(cluster(server.port()));
  reflect();
  expect_events("+a@1 synced +a@6 +b@7");
  EXPECT_EQ(reflector_->counters().watch_cuts, 0U);
}

TEST_F(ReflectorTest, WaitsForAServerThatIsNotThereYet) {
  ScriptedServer server({[](ScriptedConnection&) {}, [](ScriptedConnection&) {},
                         [](ScriptedConnection& connection) {
                           connection.read_request();
                           connection.answer(200, list("3", {object("a", "1")}));
                           connection.wait_for_close();
                         },
                         [](ScriptedConnection& connection) {
                           connection.read_request();
                           connection.start_chunks();
                           connection.wait_for_close();
                         }});
  connect(cluster(server.port()));
  reflect({.streaming_list = false});
  expect_events("+a@1 synced");
}

TEST(WatchLine, WhatTheServerSaysIsTakenApart) {
  const Result<WatchLine> added = parse_watch_line(line("ADDED", "a", "7"));
  ASSERT_TRUE(added);
  EXPECT_EQ(added->type, WatchLine::Type::kAdded);
  EXPECT_EQ(added->meta.name, "a");
  EXPECT_EQ(added->meta.uid, "u-a");
  const Result<WatchLine> gone = parse_watch_line(kGoneLine);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->error_code, 410);
  EXPECT_EQ(parse_watch_line(R"({"type":"FUTURE","object":{}})")->type, WatchLine::Type::kUnknown);
  for (const char* bad :
       {"", "null", "[]", "{}", R"({"type":1,"object":{}})", R"({"type":"ADDED"})",
        R"({"type":"ADDED","object":[]})", R"({"type":"ADDED","object":{"metadata":{}}})",
        R"({"type":"ADDED","object":{"metadata":{"name":7}}})"})
    EXPECT_FALSE(parse_watch_line(bad)) << bad;
}

TEST(WatchLine, WhateverATenantStoredIsRead) {
  const Result<WatchLine> read =
      parse_watch_line(R"({"type":"ADDED","object":)" + hostile_object("a", "7") + "}");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->meta.name, "a");
  EXPECT_EQ(read->meta.resource_version, "7");
  EXPECT_FALSE(read->object.get("metadata", "managedFields").present());
  EXPECT_EQ(read->object.get("spec", "bytes").string_or(""), "?");
}

TEST(ListPage, WhateverATenantStoredIsRead) {
  const Result<ListPage> page =
      parse_list_page(list("9", {object("a", "1"), hostile_object("b", "2"), object("c", "3")}));
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->items.size(), 3U);
  EXPECT_EQ(page->items[1].meta.name, "b");
  EXPECT_FALSE(page->items[1].object.get("metadata", "managedFields").present());
  EXPECT_EQ(page->unreadable, 0U);
}

TEST(ListPage, AnItemThatCannotBeReadIsLeftOut) {
  for (const char* bad : {"{}", "null", "7", "[]", R"({"metadata":{}})", R"({"metadata":null})",
                          R"({"metadata":{"name":7}})", R"({"metadata":{"name":""}})"}) {
    const Result<ListPage> page =
        parse_list_page(list("9", {object("a", "1"), bad, object("b", "2")}, "more"));
    ASSERT_TRUE(page) << bad;
    ASSERT_EQ(page->items.size(), 2U) << bad;
    EXPECT_EQ(page->items[1].meta.name, "b") << bad;
    EXPECT_EQ(page->unreadable, 1U) << bad;
    EXPECT_EQ(page->continue_token, "more") << bad;
  }
}

TEST(ListPage, WhatIsNoListIsAnError) {
  EXPECT_TRUE(parse_list_page(R"({"metadata":{"resourceVersion":"1"},"items":null})"));
  for (const char* bad : {"", "{}", R"({"metadata":{"resourceVersion":""},"items":[]})",
                          R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                          R"({"metadata":{"resourceVersion":"1"},"items":[})"})
    EXPECT_FALSE(parse_list_page(bad)) << bad;
}

}  // namespace
}  // namespace muster::kube

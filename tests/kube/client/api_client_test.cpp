#include "kube/client/api_client.hpp"

#include "server/http_server.hpp"
#include "tests/kube/client/client_fixture.hpp"
#include "tests/kube/client/scripted_server.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace muster::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ClientAuth;
using testing::ScriptedConnection;
using testing::ScriptedServer;

class ApiClientTest : public testing::ClientFixture {
 protected:
  ~ApiClientTest() override {
    server_.reset();
    stop_io();
  }
  void serve(server::HttpHandler handler, ClientAuth auth = ClientAuth::kOptional) {
    server::HttpServerConfig config;
    config.name = "api";
    config.tls = testing::server_slot(auth);
    Result<std::unique_ptr<server::HttpServer>> server =
        server::HttpServer::listen(io_, std::move(config), std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::unique_ptr<server::HttpServer> server_;
};

server::HttpResponse echo(const server::HttpRequest& request) {
  server::HttpResponse response;
  response.body = request.method + " " + request.path + "?" + request.query + " " +
                  request.client_common_name.value_or("nobody") + " " + request.body;
  return response;
}

TEST_F(ApiClientTest, EveryMethodArrivesWithItsBodyOverOneConnection) {
  serve(echo);
  connect(cluster(server_->port()));
  EXPECT_EQ(get("/api/v1/nodes?limit=5")->body, "GET /api/v1/nodes?limit=5 nobody ");
  EXPECT_EQ(call(HttpMethod::kPost, "/a", "{}")->body, "POST /a? nobody {}");
  EXPECT_EQ(call(HttpMethod::kPut, "/a", "{}")->body, "PUT /a? nobody {}");
  EXPECT_EQ(call(HttpMethod::kPatch, "/a", "{}")->body, "PATCH /a? nobody {}");
  EXPECT_EQ(call(HttpMethod::kDelete, "/a")->body, "DELETE /a? nobody ");
  EXPECT_EQ(server_->stats().accepted, 1U);
  EXPECT_EQ(client_->stats().calls, 5U);
  EXPECT_EQ(client_->stats().open_connections, 1U);
}

TEST_F(ApiClientTest, LargeBodiesGoBothWays) {
  serve(echo);
  connect(cluster(server_->port()));
  const std::string body(3U << 20U, 'x');
  const Result<HttpReply> reply = call(HttpMethod::kPost, "/big", body);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "POST /big? nobody " + body);
}

TEST_F(ApiClientTest, AClientCertificateSaysWhoWeAre) {
  serve(echo, ClientAuth::kRequired);
  ClusterConfig config = cluster(server_->port());
  config.client_pair = testing::test_pki().client;
  connect(config);
  EXPECT_EQ(get("/")->body, "GET /? test-client ");
}

TEST_F(ApiClientTest, TheServersCertificateMustBeForItsNameAndOfOurCa) {
  serve(echo);
  struct Case {
    const char* sentence;
    std::function<void(ClusterConfig&)> change;
    const char* want;  // Part of the error; empty: it works.
  };
  const std::string other_ca =
      certs::issue_ca({.common_name = "other", .validity = testing::valid_today()})
          .value()
          .certificate_pem;
  for (const Case& c : {
           Case{"a name of the certificate",
                [](ClusterConfig& config) { config.tls_server_name = "localhost"; }, ""},
           Case{"resolved by name", [](ClusterConfig& config) { config.host = "localhost"; }, ""},
           Case{"another name",
                [](ClusterConfig& config) { config.tls_server_name = "kubernetes"; },
                "hostname mismatch"},
           Case{"another CA", [&](ClusterConfig& config) { config.ca_pem = other_ca; },
                "certificate"},
           Case{"anything, when told to skip",
                [&](ClusterConfig& config) {
                  config.ca_pem = other_ca;
                  config.skip_tls_verify = true;
                },
                ""},
       }) {
    ClusterConfig config = cluster(server_->port());
    c.change(config);
    connect(config);
    const Result<HttpReply> reply = get("/");
    if (*c.want == '\0') {
      EXPECT_TRUE(reply) << c.sentence << ": " << reply.error().message;
      continue;
    }
    ASSERT_FALSE(reply) << c.sentence;
    EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(reply.error().message.find(c.want), std::string::npos)
        << c.sentence << ": " << reply.error().message;
  }
}

TEST_F(ApiClientTest, StatusesBecomeErrorsWithTheMessageOfTheStatusObject) {
  serve([](const server::HttpRequest& request) {
    server::HttpResponse response;
    response.status = std::stoi(request.path.substr(1));
    response.body = R"({"kind":"Status","reason":"SomeReason","message":"jobs \"x\" is odd"})";
    return response;
  });
  connect(cluster(server_->port()), {.max_attempts = 1});
  for (const auto& [status, code] : std::map<int, ErrorCode>{{400, ErrorCode::kInvalidArgument},
                                                             {401, ErrorCode::kForbidden},
                                                             {403, ErrorCode::kForbidden},
                                                             {404, ErrorCode::kNotFound},
                                                             {409, ErrorCode::kConflict},
                                                             {410, ErrorCode::kGone},
                                                             {413, ErrorCode::kTooLarge},
                                                             {422, ErrorCode::kInvalidArgument},
                                                             {429, ErrorCode::kTooManyRequests},
                                                             {500, ErrorCode::kUnavailable},
                                                             {503, ErrorCode::kUnavailable},
                                                             {301, ErrorCode::kUnavailable}}) {
    const std::string path = "/" + std::to_string(status);
    const Result<HttpReply> reply = get(path + "?x=1");
    ASSERT_FALSE(reply) << status;
    EXPECT_EQ(reply.error().code, code) << status;
    EXPECT_EQ(reply.error().message,
              "GET " + path + ": " + std::to_string(status) + " SomeReason: jobs \"x\" is odd");
  }
  EXPECT_EQ(error_from_status(502, "GET /x", "bad gateway\nmore").message,
            "GET /x: 502: bad gateway");
}

TEST_F(ApiClientTest, CallsShareAtMostThePoolAndTheRestWaitInOrder) {
  std::atomic<bool> open{false};
  std::mutex mutex;
  std::vector<std::string> order;
  serve([&](const server::HttpRequest& request) {
    server::HttpResponse response;
    if (!open) {
      response.ask_again_after = milliseconds(1);
      return response;
    }
    const std::lock_guard lock(mutex);
    order.push_back(request.path);
    return response;
  });
  connect(cluster(server_->port()), {.max_connections = 1, .max_queued = 3});
  std::vector<std::future<Result<HttpReply>>> futures;
  for (int i = 0; i < 4; ++i) {
    HttpCall call;
    call.path_and_query = "/" + std::to_string(i);
    futures.push_back(send(std::move(call)));
    if (i == 0) {
      ASSERT_TRUE(eventually([this] { return client_->stats().in_flight == 1; }));
    }
  }
  ASSERT_TRUE(eventually([this] { return client_->stats().queued == 3; }));
  const Result<HttpReply> refused = get("/too-many");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooManyRequests);
  open = true;
  for (auto& future : futures) EXPECT_TRUE(future.get());
  EXPECT_EQ(order, (std::vector<std::string>{"/0", "/1", "/2", "/3"}));
  EXPECT_EQ(server_->stats().accepted, 1U);
}

TEST_F(ApiClientTest, ManyThreadsMayAsk) {
  serve(echo);
  connect(cluster(server_->port()), {.max_connections = 4});
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string path = "/" + std::to_string(t) + "/" + std::to_string(i);
        const Result<HttpReply> reply = get(path);
        if (reply && reply->body == "GET " + path + "? nobody ") ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
  EXPECT_LE(server_->stats().accepted, 4U);
}

TEST_F(ApiClientTest, TooManyRequestsIsObeyedAndTriedAgain) {
  ScriptedServer server({[](ScriptedConnection& connection) {
    connection.read_request();
    connection.answer(429, "slow down", "Retry-After: 0\r\n");
    connection.read_request();
    connection.answer(503, "", "Retry-After: 0\r\n");
    const std::string last = connection.read_request();
    connection.answer(200, last.substr(last.find("\r\n\r\n") + 4));
    connection.wait_for_close();
  }});
  connect(cluster(server.port()));
  const Result<HttpReply> reply = call(HttpMethod::kPatch, "/x", "{\"a\":1}");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "{\"a\":1}");
  EXPECT_EQ(client_->stats().retries, 2U);
}

TEST_F(ApiClientTest, RetryPausesAreCappedByAttemptsAndByTheCallsTime) {
  ScriptedServer server({[](ScriptedConnection& connection) {
    for (int i = 0; i < 3; ++i) {
      connection.read_request();
      connection.answer(429, "", i < 2 ? "Retry-After: 0\r\n" : "Retry-After: 30\r\n");
    }
    connection.read_request();
    connection.answer(503, "no hint, no second try");
    connection.wait_for_close();
  }});
  connect(cluster(server.port()), {.max_attempts = 2});
  EXPECT_EQ(get("/two-attempts").error().code, ErrorCode::kTooManyRequests);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(get("/thirty-seconds-are-too-long").error().code, ErrorCode::kTooManyRequests);
  EXPECT_EQ(get("/no-hint").error().code, ErrorCode::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(2));
}

TEST_F(ApiClientTest, AConnectionClosedWhileIdleIsNoticedBeforeUse) {
  ScriptedServer server({[](ScriptedConnection& connection) {
                           connection.read_request();
                           connection.answer(200, "one");
                         },
                         [](ScriptedConnection& connection) {
                           connection.read_request();
                           connection.answer(200, "two");
                           connection.wait_for_close();
                         }});
  connect(cluster(server.port()));
  EXPECT_EQ(get("/")->body, "one");
  std::this_thread::sleep_for(milliseconds(50));  // The server's close arrives.
  // A POST: it must not even be tried on the dead connection, for it could not be repeated.
  const Result<HttpReply> reply = call(HttpMethod::kPost, "/", "{}");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "two");
  EXPECT_EQ(client_->stats().retries, 0U);
}

TEST_F(ApiClientTest, AGetOnAConnectionThatDiesIsSentOnceMoreAPostIsNot) {
  const auto dies_at_the_second = [](ScriptedConnection& connection) {
    connection.read_request();
    connection.answer(200, "first");
    connection.read_request();
    connection.reset();
  };
  ScriptedServer server({dies_at_the_second, [](ScriptedConnection& connection) {
                           connection.read_request();
                           connection.answer(200, "again");
                           connection.read_request();
                           connection.reset();
                         }});
  connect(cluster(server.port()));
  EXPECT_EQ(get("/")->body, "first");
  EXPECT_EQ(get("/")->body, "again");
  EXPECT_EQ(client_->stats().retries, 1U);
  const Result<HttpReply> post = call(HttpMethod::kPost, "/", "{}");
  ASSERT_FALSE(post);
  EXPECT_EQ(post.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server.accepted(), 2U);
}

TEST_F(ApiClientTest, AFreshConnectionThatDiesIsNotTriedForEver) {
  const auto dies = [](ScriptedConnection& connection) {
    connection.read_request();
    connection.reset();
  };
  ScriptedServer server({dies, dies, dies});
  connect(cluster(server.port()));
  EXPECT_EQ(get("/").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server.accepted(), 1U);
}

TEST_F(ApiClientTest, BrokenAnswersAreErrors) {
  struct Case {
    const char* sentence;
    std::string bytes;
    ErrorCode want;
  };
  const std::vector<Case> cases = {
      {"noise", "\x01\x02\x03\r\n\r\n", ErrorCode::kUnavailable},
      {"a body cut short", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
       ErrorCode::kUnavailable},
      {"a chunk cut short", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
       ErrorCode::kUnavailable},
      {"a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       ErrorCode::kUnavailable},
      {"nothing at all", "", ErrorCode::kUnavailable},
      {"half a header", "HTTP/1.1 200 OK\r\nContent-Le", ErrorCode::kUnavailable},
      {"a header without end", "HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x'),
       ErrorCode::kUnavailable},
      {"a body above the limit", "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n",
       ErrorCode::kTooLarge},
  };
  std::vector<ScriptedServer::Script> scripts;
  for (const Case& c : cases) {
    scripts.emplace_back([&c](ScriptedConnection& connection) {
      connection.read_request();
      if (!c.bytes.empty()) connection.send(c.bytes);
    });
  }
  ScriptedServer server(std::move(scripts));
  connect(cluster(server.port()), {.max_body_bytes = 1000});
  for (const Case& c : cases) {
    const Result<HttpReply> reply = call(HttpMethod::kPost, "/", "{}");
    ASSERT_FALSE(reply) << c.sentence;
    EXPECT_EQ(reply.error().code, c.want) << c.sentence << ": " << reply.error().message;
  }
}

TEST_F(ApiClientTest, SlowBytesCountAgainstTheCallsTime) {
  ScriptedServer server({[](ScriptedConnection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    for (int i = 0; i < 20; ++i) {
      connection.send("x");
      std::this_thread::sleep_for(milliseconds(10));
    }
  }});
  connect(cluster(server.port()));
  const Result<HttpReply> reply = call(HttpMethod::kGet, "/", "", milliseconds(60));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kDeadline);
}

TEST_F(ApiClientTest, NobodyListeningIsUnavailable) {
  std::uint16_t port = 0;
  {
    ScriptedServer gone({});
    port = gone.port();
  }
  connect(cluster(port));
  const Result<HttpReply> reply = get("/version");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(reply.error().message.find("GET /version: 127.0.0.1:"), std::string::npos)
      << reply.error().message;
  EXPECT_EQ(client_->stats().failures, 1U);
}

TEST_F(ApiClientTest, ARequestTargetCannotSmuggleASecondRequest) {
  serve(echo);
  connect(cluster(server_->port()));
  for (const char* target : {"/a b", "/a\r\nX: y", "a", "", "/\x7f"})
    EXPECT_EQ(get(target).error().code, ErrorCode::kInvalidArgument) << target;
  EXPECT_EQ(server_->stats().requests, 0U);
}

TEST_F(ApiClientTest, IdleConnectionsAreClosedAndMadeAgain) {
  serve(echo);
  connect(cluster(server_->port()), {.idle_timeout = milliseconds(20)});
  EXPECT_TRUE(get("/"));
  EXPECT_TRUE(eventually([this] { return client_->stats().open_connections == 0; }));
  EXPECT_TRUE(get("/"));
  EXPECT_EQ(server_->stats().accepted, 2U);
}

TEST_F(ApiClientTest, StoppingEndsEveryCallWithAnError) {
  serve([](const server::HttpRequest&) {
    server::HttpResponse response;
    response.ask_again_after = milliseconds(1);
    return response;
  });
  connect(cluster(server_->port()), {.max_connections = 1});
  HttpCall first;
  first.path_and_query = "/first";
  HttpCall second;
  second.path_and_query = "/second";
  auto running = send(std::move(first));
  auto waiting = send(std::move(second));
  ASSERT_TRUE(eventually([this] { return client_->stats().queued == 1; }));
  client_->stop();
  EXPECT_EQ(running.get().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(waiting.get().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(get("/late").error().code, ErrorCode::kUnavailable);
}

// Serves three connections, each until the client leaves: answers with the token it was shown, and
// with 401 once told to refuse it.
class TokenServer {
 public:
  TokenServer()
      : server_({[this](ScriptedConnection& c) { run(c); },
                 [this](ScriptedConnection& c) { run(c); },
                 [this](ScriptedConnection& c) { run(c); }}) {}
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  void refuse(const std::string& token) {
    const std::lock_guard lock(mutex_);
    refused_.insert(token);
  }

 private:
  void run(ScriptedConnection& connection) {
    for (;;) {
      const std::string request = connection.read_request();
      if (request.empty()) return;
      const std::size_t at = request.find("Authorization: Bearer ");
      const std::string token = at == std::string::npos
                                    ? "none"
                                    : request.substr(at + 22, request.find("\r\n", at) - at - 22);
      const std::lock_guard lock(mutex_);
      connection.answer(refused_.contains(token) ? 401 : 200, token);
    }
  }
  std::mutex mutex_;
  std::set<std::string> refused_;
  ScriptedServer server_;
};

TEST_F(ApiClientTest, TokensAreSentAndRotatedFilesAreReadAgainWhenRefused) {
  TokenServer server;
  connect(cluster(server.port()));
  EXPECT_EQ(get("/")->body, "none");
  ClusterConfig config = cluster(server.port());
  config.token = StaticToken{"abc"};
  connect(config);
  EXPECT_EQ(get("/")->body, "abc");
  const std::string path = ::testing::TempDir() + "muster-token-" + std::to_string(::getpid());
  std::ofstream(path) << "first\n";
  config.token = TokenFile{path};
  connect(config);
  EXPECT_EQ(get("/")->body, "first");
  std::ofstream(path) << "second\n";
  EXPECT_EQ(get("/")->body, "first");  // Read again after a minute, or when refused.
  server.refuse("first");
  EXPECT_EQ(get("/")->body, "second");
  server.refuse("second");
  EXPECT_EQ(get("/").error().code, ErrorCode::kForbidden);
  std::filesystem::remove(path);
  EXPECT_FALSE(get("/"));
}

TEST_F(ApiClientTest, APluginRunsOnceForAllAndAgainWhenItsTokenIsRefused) {
  TokenServer server;
  const std::string count = ::testing::TempDir() + "muster-plugin-" + std::to_string(::getpid());
  std::filesystem::remove(count);
  ClusterConfig config = cluster(server.port());
  ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  plugin.command = "sh";
  plugin.arguments = {"-c",
                      "echo x >> \"$COUNT_FILE\"; n=$(wc -l < \"$COUNT_FILE\"); printf "
                      "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                      "\"ExecCredential\",\"status\":{\"token\":\"token-%s\"}}' $((n))"};
  plugin.environment = {{"COUNT_FILE", count}};
  config.token = plugin;
  connect(config);
  HttpCall one;
  one.path_and_query = "/";
  HttpCall two = one;
  auto first = send(std::move(one));
  auto second = send(std::move(two));
  EXPECT_EQ(first.get()->body, "token-1");
  EXPECT_EQ(second.get()->body, "token-1");
  server.refuse("token-1");
  EXPECT_EQ(get("/")->body, "token-2");
  std::filesystem::remove(count);
}

}  // namespace
}  // namespace muster::kube

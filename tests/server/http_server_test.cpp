#include "server/http_server.hpp"

#include "tests/server/raw_client.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace muster::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ClientAuth;
using testing::RawClient;
using testing::RawResponse;

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() : guard_(boost::asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
  ~HttpServerTest() override {
    server_.reset();
    guard_.reset();
    thread_.join();
  }

  // Sends back what it understood; a few paths misbehave on purpose.
  HttpResponse handle(const HttpRequest& request) {
    HttpResponse response;
    response.content_type = "text/plain";
    if (request.path == "/throw") throw std::runtime_error("handler fault");
    if (request.path == "/close") response.close = true;
    if (request.path == "/wait" && !ready_) {
      ++asked_;
      response.ask_again_after = milliseconds(5);
    }
    response.body = request.method + " " + request.path + " " + request.query + " " +
                    request.client_common_name.value_or("nobody") + " " + request.body;
    return response;
  }

  void start(HttpServerConfig config = {}) {
    config.name = "test";
    Result<std::unique_ptr<HttpServer>> server = HttpServer::listen(
        io_, config, [this](const HttpRequest& request) { return handle(request); });
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  [[nodiscard]] bool eventually(const std::function<bool()>& condition) const {
    const auto end = std::chrono::steady_clock::now() + seconds(5);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

  std::atomic<bool> ready_{false};
  std::atomic<int> asked_{0};
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
  std::unique_ptr<HttpServer> server_;
};

certs::TlsContext client_tls(bool with_certificate) {
  certs::ClientTls tls{.ca_pem = testing::test_pki().ca.certificate_pem};
  if (with_certificate) tls.pair = testing::test_pki().client;
  return certs::make_client_context(tls).value();
}

TEST_F(HttpServerTest, KeepsTheConnectionAndAnswersWithALength) {
  start();
  RawClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.post("/v1/filter?timeout=2s", "body " + std::to_string(i));
    const RawResponse response = client.receive();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /v1/filter timeout=2s nobody body " + std::to_string(i));
    EXPECT_EQ(response.head.find("chunked"), std::string::npos);
  }
  EXPECT_EQ(server_->stats().accepted, 1U);
  EXPECT_EQ(server_->stats().requests, 3U);
  EXPECT_EQ(server_->stats().open_connections, 1U);
}

TEST_F(HttpServerTest, PipelinedAndSplitRequestsAreTakenApart) {
  start();
  RawClient client(server_->port());
  client.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1"
      "GET /b HTTP/1.1\r\nHost: x\r\n\r\nPOST /c HTTP/1.1\r\nHo");
  EXPECT_EQ(client.receive().body, "POST /a  nobody 1");
  EXPECT_EQ(client.receive().body, "GET /b  nobody ");
  client.send("st: x\r\nContent-Length: 4\r\n\r\nab");
  client.send("cd");
  EXPECT_EQ(client.receive().body, "POST /c  nobody abcd");
  client.send(
      "POST /d HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n"
      "\r\n");
  EXPECT_EQ(client.receive().body, "POST /d  nobody abcde");
}

TEST_F(HttpServerTest, HeadGetsTheLengthWithoutTheBodyAndOldClientsAreClosed) {
  start();
  RawClient client(server_->port());
  client.send("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawResponse head = client.receive(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.head.find("Content-Length: 16"), std::string::npos) << head.head;
  client.send("GET /y HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpServerTest, ExpectContinueIsInvited) {
  start();
  RawClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send("ok");
  EXPECT_EQ(client.receive().body, "POST /x  nobody ok");
}

TEST_F(HttpServerTest, BrokenInputGetsA4xxAndTheServerLivesOn) {
  start({.max_body_bytes = 1000, .max_header_bytes = 1000});
  struct Case {
    const char* sentence;
    std::string bytes;
    int status;
  };
  for (const Case& c : {
           Case{"noise", "\x01\x02\x03 nonsense\r\n\r\n", 400},
           Case{"no version", "GET /\r\n\r\n", 400},
           Case{"a length that is no number",
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400},
           Case{"two lengths",
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
           Case{"a broken chunk", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
                400},
           Case{"a body above the limit by its length",
                "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'x'), 413},
           Case{"a body above the limit in chunks",
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                    std::string(1001, 'x'),
                413},
           Case{"a length beyond 64 bits",
                "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
           Case{"a header above the limit",
                "GET / HTTP/1.1\r\nA: " + std::string(2000, 'x') + "\r\n\r\n", 431},
           Case{"a header line without an end", "GET / HTTP/1.1\r\nA: " + std::string(2000, 'x'),
                431},
           Case{"a chunk extension without an end",
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                    std::string(100'000, 'x'),
                431},
       }) {
    RawClient client(server_->port());
    client.send(c.bytes);
    EXPECT_EQ(client.receive().status, c.status) << c.sentence;
    EXPECT_TRUE(client.closed_by_server()) << c.sentence;
  }
  EXPECT_EQ(server_->stats().bad_requests, 11U);
  RawClient client(server_->port());
  client.post("/alive", "");
  EXPECT_EQ(client.receive().status, 200);
}

TEST_F(HttpServerTest, MutatedRequestsNeverBreakIt) {
  start({.max_body_bytes = 1000, .slow_client_timeout = milliseconds(20)});
  const std::string good =
      "POST /v1/filter?a=b HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n"
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  std::uint32_t random = 1;
  const auto next = [&random](std::size_t below) {
    random = random * 1664525U + 1013904223U;
    return (random >> 8U) % below;
  };
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good + good;
    for (std::size_t n = 1 + next(4); n > 0; --n) {
      const std::size_t at = next(bytes.size());
      switch (next(3)) {
        case 0:
          bytes[at] = static_cast<char>(next(256));
          break;
        case 1:
          bytes.erase(at, 1 + next(8));
          break;
        default:
          bytes.insert(at, good.substr(next(good.size()), next(20)));
          break;
      }
    }
    RawClient client(server_->port());
    client.send(bytes);
  }
  RawClient client(server_->port());
  client.post("/alive", "");
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(eventually([this] { return server_->stats().open_connections == 1; }));
}

TEST_F(HttpServerTest, AClientThatVanishesInTheMiddleIsForgotten) {
  start();
  for (const char* bytes : {"", "POST /", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"}) {
    RawClient client(server_->port());
    client.send(bytes);
  }
  EXPECT_TRUE(eventually(
      [this] { return server_->stats().accepted == 3 && server_->stats().open_connections == 0; }));
}

TEST_F(HttpServerTest, SlowClientsAndSilentOnesAreCut) {
  start({.slow_client_timeout = milliseconds(50), .idle_timeout = milliseconds(150)});
  RawClient silent(server_->port());
  RawClient slow(server_->port());
  slow.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  RawClient idle(server_->port());
  idle.post("/", "");
  EXPECT_EQ(idle.receive().status, 200);
  EXPECT_TRUE(silent.closed_by_server());
  EXPECT_TRUE(slow.closed_by_server());
  EXPECT_TRUE(eventually([this] { return server_->stats().open_connections <= 1; }));
  EXPECT_TRUE(idle.closed_by_server());
}

TEST_F(HttpServerTest, AHandlerFaultIsA500AndAHandlerMayClose) {
  start();
  RawClient client(server_->port());
  client.post("/throw", "");
  EXPECT_EQ(client.receive().status, 500);
  client.post("/close", "");
  const RawResponse last = client.receive();
  EXPECT_EQ(last.status, 200);
  EXPECT_NE(last.head.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpServerTest, AHandlerThatIsNotReadyIsAskedAgainWithoutHoldingTheThread) {
  start();
  RawClient waiting(server_->port());
  waiting.post("/wait", "");
  EXPECT_TRUE(eventually([this] { return asked_ > 2; }));
  RawClient other(server_->port());
  other.post("/other", "");
  EXPECT_EQ(other.receive().status, 200);
  ready_ = true;
  EXPECT_EQ(waiting.receive().status, 200);
}

TEST_F(HttpServerTest, ConnectionsAboveTheLimitAreTurnedAway) {
  start({.max_connections = 2});
  RawClient one(server_->port());
  RawClient two(server_->port());
  one.post("/", "");
  two.post("/", "");
  EXPECT_EQ(one.receive().status, 200);
  EXPECT_EQ(two.receive().status, 200);
  RawClient three(server_->port());
  EXPECT_TRUE(three.closed_by_server());
  EXPECT_EQ(server_->stats().rejected, 1U);
}

TEST_F(HttpServerTest, MutualTlsNamesTheClientAndRefusesStrangers) {
  start({.tls = testing::server_slot(ClientAuth::kRequired)});
  RawClient known(server_->port(), client_tls(true));
  ASSERT_TRUE(known.connected());
  known.post("/", "x");
  EXPECT_EQ(known.receive().body, "POST /  test-client x");
  // TLS 1.3 clients learn of the refusal with their first read.
  RawClient stranger(server_->port(), client_tls(false));
  stranger.post("/", "x");
  EXPECT_EQ(stranger.receive().status, 0);
  // A certificate of another CA.
  certs::ClientTls forged{.ca_pem = testing::test_pki().ca.certificate_pem};
  const certs::KeyPair other_ca =
      certs::issue_ca({.common_name = "test-ca", .validity = testing::valid_today()}).value();
  forged.pair = certs::issue_leaf(other_ca, {.common_name = "test-client",
                                             .usage = certs::Usage::kClient,
                                             .validity = testing::valid_today()})
                    .value();
  RawClient forger(server_->port(), certs::make_client_context(forged).value());
  forger.post("/", "x");
  EXPECT_EQ(forger.receive().status, 0);
  // A server certificate does not pass for a client's.
  certs::ClientTls wrong_usage{.ca_pem = testing::test_pki().ca.certificate_pem,
                               .pair = testing::test_pki().server};
  RawClient impostor(server_->port(), certs::make_client_context(wrong_usage).value());
  impostor.post("/", "x");
  EXPECT_EQ(impostor.receive().status, 0);
  EXPECT_TRUE(eventually([this] { return server_->stats().handshake_failures == 3; }));
}

TEST_F(HttpServerTest, OptionalClientCertificatesAreOptional) {
  start({.tls = testing::server_slot(ClientAuth::kOptional)});
  RawClient known(server_->port(), client_tls(true));
  known.post("/", "");
  EXPECT_EQ(known.receive().body, "POST /  test-client ");
  RawClient stranger(server_->port(), client_tls(false));
  stranger.post("/", "");
  EXPECT_EQ(stranger.receive().body, "POST /  nobody ");
}

TEST_F(HttpServerTest, SpeaksTls12OrNewerAndOnlyHttp11) {
  start({.tls = testing::server_slot(ClientAuth::kNone)});
  const certs::TlsContext h2 = client_tls(false);
  constexpr std::array<unsigned char, 12> kOffer = {2,   'h', '2', 8,   'h', 't',
                                                    't', 'p', '/', '1', '.', '1'};
  SSL_CTX_set_alpn_protos(h2.get(), kOffer.data(), kOffer.size());
  RawClient go_like(server_->port(), h2);
  ASSERT_TRUE(go_like.connected());
  const unsigned char* selected = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(go_like.session(), &selected, &size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(selected), size), "http/1.1");

  const certs::TlsContext tls12 = client_tls(false);
  SSL_CTX_set_max_proto_version(tls12.get(), TLS1_2_VERSION);
  EXPECT_TRUE(RawClient(server_->port(), tls12).connected());
  const certs::TlsContext tls11 = client_tls(false);
  SSL_CTX_set_min_proto_version(tls11.get(), TLS1_1_VERSION);
  SSL_CTX_set_max_proto_version(tls11.get(), TLS1_1_VERSION);
  EXPECT_FALSE(RawClient(server_->port(), tls11).connected());
}

TEST_F(HttpServerTest, ANewCertificateServesNewConnectionsOnly) {
  const std::shared_ptr<certs::TlsSlot> slot = testing::server_slot(ClientAuth::kNone);
  start({.tls = slot});
  const auto serial = [](const RawClient& client) {
    const X509* certificate = SSL_get0_peer_certificate(client.session());
    return ASN1_INTEGER_get(X509_get0_serialNumber(certificate)) +
           static_cast<long>(X509_issuer_and_serial_hash(const_cast<X509*>(certificate)));
  };
  RawClient before(server_->port(), client_tls(false));
  const certs::KeyPair renewed =
      certs::issue_leaf(testing::test_pki().ca, {.common_name = "renewed",
                                                 .ip_addresses = {"127.0.0.1"},
                                                 .validity = testing::valid_today()})
          .value();
  slot->set(certs::make_server_context({.pair = renewed}).value());
  RawClient after(server_->port(), client_tls(false));
  ASSERT_TRUE(before.connected() && after.connected());
  EXPECT_NE(serial(before), serial(after));
  before.post("/", "");
  EXPECT_EQ(before.receive().status, 200);
}

TEST_F(HttpServerTest, ClosingAfterTheCallSparesTheCallAndNewConnections) {
  start();
  RawClient idle(server_->port());
  idle.post("/", "");
  EXPECT_EQ(idle.receive().status, 200);
  RawClient busy(server_->port());
  busy.post("/wait", "");
  EXPECT_TRUE(eventually([this] { return asked_ > 0; }));
  ready_ = true;
  server_->close_after_call();
  EXPECT_TRUE(idle.closed_by_server());
  const RawResponse last = busy.receive();
  EXPECT_TRUE(last.status == 200 || last.status == 503);
  EXPECT_NE(last.head.find("Connection: close"), std::string::npos);
  RawClient next(server_->port());
  next.post("/", "");
  EXPECT_EQ(next.receive().status, 200);
}

TEST_F(HttpServerTest, DrainingStopsAcceptingLetsCallsEndAndReports) {
  start();
  RawClient idle(server_->port());
  idle.post("/", "");
  EXPECT_EQ(idle.receive().status, 200);
  std::promise<void> drained;
  server_->drain(seconds(5), [&drained] { drained.set_value(); });
  EXPECT_EQ(drained.get_future().wait_for(seconds(5)), std::future_status::ready);
  EXPECT_TRUE(idle.closed_by_server());
  EXPECT_EQ(server_->stats().open_connections, 0U);
  EXPECT_FALSE(RawClient(server_->port()).connected());
}

TEST_F(HttpServerTest, ADrainCutsWhatIsLeftAtTheDeadline) {
  start({.slow_client_timeout = seconds(60)});
  RawClient stuck(server_->port());
  stuck.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(eventually([this] { return server_->stats().open_connections == 1; }));
  std::promise<void> drained;
  server_->drain(milliseconds(50), [&drained] { drained.set_value(); });
  EXPECT_EQ(drained.get_future().wait_for(seconds(5)), std::future_status::ready);
  EXPECT_TRUE(stuck.closed_by_server());
}

TEST_F(HttpServerTest, AnAddressInUseOrMalformedIsAClearError) {
  start();
  const auto handler = [](const HttpRequest&) { return HttpResponse(); };
  const auto taken = HttpServer::listen(io_, {.name = "second", .port = server_->port()}, handler);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("second: cannot listen on 127.0.0.1:"), std::string::npos)
      << taken.error().message;
  const auto malformed = HttpServer::listen(io_, {.name = "x", .address = "localhost"}, handler);
  ASSERT_FALSE(malformed);
  EXPECT_EQ(malformed.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::server

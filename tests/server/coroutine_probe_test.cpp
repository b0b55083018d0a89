// Do coroutines work on this compiler, in the only grammar that this code uses them in? Named
// functions, arguments by value, one co_await per statement with its result bound to a local,
// errors as values. g++ 12 has known coroutine faults; they would show here, under the sanitizers,
// first.

#include "tests/server/tls_fixture.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <gtest/gtest.h>

#include <stdexcept>

namespace muster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr auto kUseTuple = asio::as_tuple(asio::use_awaitable);
constexpr auto kPatience = std::chrono::seconds(20);

struct Probe {
  int echoed = 0;
  int disconnects = 0;
  int cancelled = 0;
  int exceptions = 0;
};

asio::awaitable<std::string> shout(std::string text) {
  if (text == "throw") throw std::runtime_error("asked to throw");
  co_return text + "!";
}

asio::awaitable<void> serve_connection(TlsStream stream, Probe* probe) {
  beast::get_lowest_layer(stream).expires_after(kPatience);
  auto [handshake_error] =
      co_await stream.async_handshake(asio::ssl::stream_base::server, kUseTuple);
  beast::flat_buffer buffer;
  while (!handshake_error) {
    http::request<http::string_body> request;
    auto [read_error, read] = co_await http::async_read(stream, buffer, request, kUseTuple);
    if (read_error) break;
    http::response<http::string_body> response{http::status::ok, 11};
    try {
      std::string answer = co_await shout(request.body());
      response.body() = std::move(answer);
    } catch (const std::runtime_error&) {
      ++probe->exceptions;
      response.result(http::status::internal_server_error);
    }
    response.prepare_payload();
    auto [write_error, written] = co_await http::async_write(stream, response, kUseTuple);
    if (write_error) break;
  }
  ++probe->disconnects;
}

asio::awaitable<void> serve(tcp::acceptor* acceptor, asio::ssl::context* context, Probe* probe) {
  for (;;) {
    auto [error, socket] = co_await acceptor->async_accept(kUseTuple);
    if (error) co_return;
    TlsStream stream(beast::tcp_stream(std::move(socket)), *context);
    asio::co_spawn(acceptor->get_executor(), serve_connection(std::move(stream), probe),
                   asio::detached);
  }
}

asio::awaitable<void> call(TlsStream* stream, std::string body, Probe* probe) {
  http::request<http::string_body> request{http::verb::post, "/", 11};
  request.body() = body;
  request.prepare_payload();
  auto [write_error, written] = co_await http::async_write(*stream, request, kUseTuple);
  if (write_error) co_return;
  beast::flat_buffer buffer;
  http::response<http::string_body> response;
  auto [read_error, read] = co_await http::async_read(*stream, buffer, response, kUseTuple);
  if (!read_error && response.body() == body + "!") ++probe->echoed;
}

asio::awaitable<void> run_client(tcp::endpoint server, asio::ssl::context* context, int calls,
                                 Probe* probe) {
  auto executor = co_await asio::this_coro::executor;
  TlsStream stream(executor, *context);
  beast::get_lowest_layer(stream).expires_after(kPatience);
  auto [connect_error] = co_await beast::get_lowest_layer(stream).async_connect(server, kUseTuple);
  if (connect_error) co_return;
  auto [handshake_error] =
      co_await stream.async_handshake(asio::ssl::stream_base::client, kUseTuple);
  if (handshake_error) co_return;
  for (int i = 0; i < calls; ++i) {
    std::string body = i % 10 == 9 ? "throw" : "call " + std::to_string(i);
    co_await call(&stream, std::move(body), probe);
  }
  // Leaves without a TLS goodbye: what a killed client looks like.
  beast::get_lowest_layer(stream).close();
}

asio::awaitable<void> wait_to_be_cancelled(asio::steady_timer* timer, Probe* probe) {
  auto [error] = co_await timer->async_wait(kUseTuple);
  if (error == asio::error::operation_aborted) ++probe->cancelled;
}

asio::awaitable<void> fail_always() {
  co_await asio::post(asio::use_awaitable);
  throw std::runtime_error("out of the coroutine");
}

struct CountException {
  Probe* probe;
  void operator()(const std::exception_ptr& exception) const {
    if (exception) ++probe->exceptions;
  }
};

TEST(CoroutineProbe, AcceptEchoExceptionAndHardDisconnectOverTls) {
  constexpr int kClients = 4;
  constexpr int kCalls = 250;
  asio::io_context io;
  asio::ssl::context server_tls =
      testing::asio_context(testing::server_slot(testing::ClientAuth::kNone)->get());
  asio::ssl::context client_tls = testing::client_context(false);
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  Probe server_probe;
  Probe client_probe;
  asio::co_spawn(io, serve(&acceptor, &server_tls, &server_probe), asio::detached);
  for (int i = 0; i < kClients; ++i) {
    asio::co_spawn(io, run_client(acceptor.local_endpoint(), &client_tls, kCalls, &client_probe),
                   asio::detached);
  }
  while (server_probe.disconnects < kClients) ASSERT_GT(io.run_one_for(kPatience), 0U);
  acceptor.close();
  io.run_for(kPatience);
  EXPECT_EQ(client_probe.echoed, kClients * kCalls * 9 / 10);  // Every tenth call throws.
  EXPECT_EQ(server_probe.exceptions, kClients * kCalls / 10);
}

TEST(CoroutineProbe, CancelledWaitsAndEscapedExceptionsReachTheirOwner) {
  constexpr int kRounds = 2000;
  asio::io_context io;
  Probe probe;
  for (int i = 0; i < kRounds; ++i) {
    asio::steady_timer timer(io, kPatience);
    asio::co_spawn(io, wait_to_be_cancelled(&timer, &probe), asio::detached);
    asio::co_spawn(io, fail_always(), CountException{&probe});
    io.poll();
    timer.cancel();
    io.poll();
    io.restart();
  }
  EXPECT_EQ(probe.cancelled, kRounds);
  EXPECT_EQ(probe.exceptions, kRounds);
}

TEST(CoroutineProbe, FramesLeftSuspendedAreFreedWithTheContext) {
  Probe probe;
  {
    asio::io_context io;
    asio::steady_timer timer(io, kPatience);
    asio::co_spawn(io, wait_to_be_cancelled(&timer, &probe), asio::detached);
    io.poll();
  }
  EXPECT_EQ(probe.cancelled, 0);  // Destroyed, not resumed; the leak checker watches the frame.
}

}  // namespace
}  // namespace muster

#include "server/http_server.hpp"

#include "base/log.hpp"
#include "kube/client/byte_stream.hpp"
#include "server/http_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

namespace muster::server {
namespace asio = boost::asio;
using asio::ip::tcp;
using kube::kUseTuple;

namespace {

// What accept() does when the process is out of file descriptors: breathe, then try again.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kDrainPoll = std::chrono::milliseconds(20);

asio::awaitable<void> accept_loop(std::shared_ptr<HttpServerState> state) {
  asio::steady_timer pause(state->strand);
  while (!state->stopped) {
    auto socket_strand = asio::make_strand(state->io);
    auto [error, socket] = co_await state->acceptor.async_accept(socket_strand, kUseTuple);
    if (error == asio::error::operation_aborted || state->stopped) break;
    if (error) {
      log::warning("{}: accept: {}", state->config.name, error.message());
      pause.expires_after(kAcceptPause);
      auto [pause_error] = co_await pause.async_wait(kUseTuple);
      if (pause_error) break;
      continue;
    }
    ++state->accepted;
    if (state->open_connections >= state->config.max_connections) {
      ++state->rejected;
      continue;  // The socket closes as it goes out of scope.
    }
    start_session(state, std::move(socket));
  }
}

asio::awaitable<void> drain_loop(std::shared_ptr<HttpServerState> state, Duration deadline,
                                 std::function<void()> done) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  asio::steady_timer pause(state->strand);
  bool cut = false;
  while (state->open_connections > 0) {
    if (!cut && std::chrono::steady_clock::now() >= end) {
      cut = true;
      state->close_sessions(SessionClose::kNow);
    }
    pause.expires_after(kDrainPoll);
    auto [error] = co_await pause.async_wait(kUseTuple);
    if (error) break;
  }
  done();
}

void stop_accepting_on_strand(const std::shared_ptr<HttpServerState>& state) {
  state->stopped = true;
  boost::system::error_code ignored;
  state->acceptor.close(ignored);
}

Result<tcp::endpoint> parse_endpoint(const HttpServerConfig& config) {
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(config.address, error);
  if (error) {
    return fail(invalid_argument(config.name + " address: bad IP address \"" + config.address +
                                 "\" (want e.g. \"127.0.0.1\")"));
  }
  return tcp::endpoint(address, config.port);
}

}  // namespace

void HttpServerState::close_sessions(SessionClose how) {
  std::vector<std::shared_ptr<SessionControl>> controls;
  {
    const std::lock_guard lock(mutex);
    controls.assign(sessions.begin(), sessions.end());
  }
  for (const std::shared_ptr<SessionControl>& control : controls) control->request_close(how);
}

struct HttpServer::Shared : HttpServerState {
  using HttpServerState::HttpServerState;
};

HttpServer::HttpServer(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

HttpServer::~HttpServer() {
  close_all();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& io,
                                                       HttpServerConfig config,
                                                       HttpHandler handler) {
  const Result<tcp::endpoint> endpoint = parse_endpoint(config);
  if (!endpoint) return fail(endpoint.error());
  auto shared = std::make_shared<Shared>(io, std::move(config), std::move(handler));
  boost::system::error_code error;
  tcp::acceptor& acceptor = shared->acceptor;
  acceptor.open(endpoint->protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(*endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("{}: cannot listen on {}:{}: {}", shared->config.name,
                            shared->config.address, shared->config.port, error.message()));
  }
  shared->port = acceptor.local_endpoint(error).port();
  asio::co_spawn(shared->strand, accept_loop(shared), asio::detached);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(shared)));
}

std::uint16_t HttpServer::port() const {
  return shared_->port;
}

void HttpServer::stop_accepting() {
  std::shared_ptr<HttpServerState> state = shared_;
  asio::post(state->strand, [state] { stop_accepting_on_strand(state); });
}

void HttpServer::close_after_call() {
  shared_->close_sessions(SessionClose::kAfterCall);
}

void HttpServer::close_all() {
  stop_accepting();
  // Behind the stop on the same strand, so that no session can start after it.
  std::shared_ptr<HttpServerState> state = shared_;
  asio::post(state->strand, [state] { state->close_sessions(SessionClose::kNow); });
}

void HttpServer::drain(Duration deadline, std::function<void()> done) {
  stop_accepting();
  std::shared_ptr<HttpServerState> state = shared_;
  asio::post(state->strand, [state, deadline, done = std::move(done)]() mutable {
    state->close_sessions(SessionClose::kAfterCall);
    asio::co_spawn(state->strand, drain_loop(state, deadline, std::move(done)), asio::detached);
  });
}

HttpServerStats HttpServer::stats() const {
  return {.open_connections = shared_->open_connections,
          .accepted = shared_->accepted,
          .rejected = shared_->rejected,
          .handshake_failures = shared_->handshake_failures,
          .requests = shared_->requests,
          .bad_requests = shared_->bad_requests};
}

}  // namespace muster::server

#pragma once
// One connection of an HttpServer, and what the connections of one listener share. For http_*.cpp.

#include "server/http_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <mutex>
#include <set>

namespace muster::server {

enum class SessionClose { kAfterCall, kNow };

/// How the listener reaches into a running session.
class SessionControl {
 public:
  virtual ~SessionControl() = default;
  /// Safe from any thread.
  virtual void request_close(SessionClose how) = 0;
};

struct HttpServerState {
  HttpServerState(boost::asio::io_context& context, HttpServerConfig configuration,
                  HttpHandler request_handler)
      : io(context),
        config(std::move(configuration)),
        handler(std::move(request_handler)),
        strand(boost::asio::make_strand(context)),
        acceptor(strand) {}

  void close_sessions(SessionClose how);

  boost::asio::io_context& io;
  const HttpServerConfig config;
  const HttpHandler handler;
  boost::asio::strand<boost::asio::io_context::executor_type> strand;  ///< Of the accept loop.
  boost::asio::ip::tcp::acceptor acceptor;                             ///< On `strand` only.
  bool stopped = false;                                                ///< On `strand` only.
  std::uint16_t port = 0;

  std::mutex mutex;
  std::set<std::shared_ptr<SessionControl>> sessions;  ///< Under `mutex`.

  std::atomic<std::size_t> open_connections{0};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> rejected{0};
  std::atomic<std::uint64_t> handshake_failures{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bad_requests{0};
};

/// Serves `socket`, whose executor is a strand of its own, until it closes.
void start_session(const std::shared_ptr<HttpServerState>& state,
                   boost::asio::ip::tcp::socket socket);

}  // namespace muster::server

#pragma once
// An HTTP/1.1 listener, plain or TLS, on an io_context that the owner runs with one or more
// threads. It knows nothing of what it serves: a handler turns a request into a response.

#include "base/result.hpp"
#include "base/time.hpp"
#include "certs/tls_context.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace boost::asio {
class io_context;
}

namespace muster::server {

struct HttpRequest {
  std::string method;   ///< As sent: `POST`.
  std::string path{};   ///< The target up to `?`, not decoded.
  std::string query{};  ///< What follows `?`; empty without one.
  std::string body{};
  /// Common name of the client's verified certificate; absent when it showed none.
  std::optional<std::string> client_common_name{};
  /// When the request was complete; the same in every call for one request.
  std::chrono::steady_clock::time_point received;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body{};
  /// Close the connection after this answer (`Connection: close`).
  bool close = false;
  /// Not an answer yet: call the handler again with the same request after this time. Lets a call
  /// wait for caches to fill without holding the thread; the handler ends it by
  /// HttpRequest::received.
  std::optional<Duration> ask_again_after{};
};

/// Called on a network thread, so it must be quick; with several threads, concurrently. An
/// exception becomes a 500.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpServerConfig {
  std::string name{};                           ///< For log lines: `extender`.
  std::string address = "127.0.0.1";            ///< IP address to bind; `0.0.0.0` or `::` for all.
  std::uint16_t port = 0;                       ///< 0: any free port, see HttpServer::port().
  std::shared_ptr<certs::TlsSlot> tls{};        ///< Null: plain HTTP.
  std::size_t max_body_bytes = 16U << 20U;      ///< Above: 413.
  std::uint32_t max_header_bytes = 32U << 10U;  ///< Above: 431.
  std::size_t max_connections = 1024;  ///< Above: accepted and closed at once, counted as rejected.
  /// For a whole request from its first byte, for the TLS handshake, and for writing an answer.
  Duration slow_client_timeout = std::chrono::seconds(10);
  /// Between requests. Must stay above the 90 s for which kube-scheduler's client keeps idle
  /// connections (reference: extender protocol): it does not repeat a POST on a closed one.
  Duration idle_timeout = std::chrono::seconds(150);
};

struct HttpServerStats {
  std::size_t open_connections = 0;
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;            ///< Over max_connections.
  std::uint64_t handshake_failures = 0;  ///< TLS, a missing client certificate included.
  std::uint64_t requests = 0;            ///< Answered by the handler.
  std::uint64_t bad_requests = 0;        ///< Answered 4xx before they reached the handler.
};

/// Answers always carry Content-Length, never chunks. Every method is safe from any thread.
class HttpServer {
 public:
  /// Binds and starts to accept.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io,
                                                                  HttpServerConfig config,
                                                                  HttpHandler handler);
  /// Same as close_all(); the sessions end as the io_context runs.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;

  /// Closes the listening socket; connections go on.
  void stop_accepting();
  /// Closes idle connections now and busy ones after the call in hand; new ones are served. What a
  /// leader that steps down does to its extender.
  void close_after_call();
  /// Closes everything now, calls in hand included, and stops accepting.
  void close_all();
  /// stop_accepting and close_after_call; what is left at the deadline is cut. `done` is called
  /// once on a network thread when no connection is left.
  void drain(Duration deadline, std::function<void()> done);

  [[nodiscard]] HttpServerStats stats() const;

 private:
  struct Shared;
  explicit HttpServer(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::server

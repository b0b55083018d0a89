#pragma once
// What calls and watches of one ApiClient share. For api_client.cpp and watch_stream.cpp.

#include "kube/client/api_client.hpp"
#include "kube/client/credentials.hpp"
#include "kube/client/http_connection.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

namespace muster::kube {

class WatchStream;

struct ApiClient::Impl : std::enable_shared_from_this<ApiClient::Impl> {
  using TimePoint = std::chrono::steady_clock::time_point;

  Impl(boost::asio::io_context& io, ClusterConfig cluster, ApiClientOptions client_options,
       certs::TlsContext context);

  struct PendingCall {
    HttpCall call;
    ReplyCallback callback;
    TimePoint deadline;
  };

  /// One slot of the pool: a coroutine, and its connection between calls.
  struct Worker {
    explicit Worker(const boost::asio::any_io_executor& executor) : timer(executor) {}
    std::unique_ptr<HttpConnection> connection;
    boost::asio::steady_timer timer;  ///< Idle wait, or the pause before a retry.
    bool woken = false;
  };

  // All below on the strand.
  void enqueue(PendingCall pending);
  void stop_all();
  void deliver(PendingCall& pending, Result<HttpReply> reply);
  [[nodiscard]] Endpoint endpoint() const;
  /// Uses the plugin's client certificate for connections from now on, if it is a new one.
  [[nodiscard]] Result<void> adopt(const Credential& credential);
  [[nodiscard]] std::string render(const HttpCall& call, const Credential& credential) const;
  [[nodiscard]] Duration retry_pause(const Answer& answer);

  static boost::asio::awaitable<void> run_worker(std::shared_ptr<Impl> self,
                                                 std::shared_ptr<Worker> worker);
  boost::asio::awaitable<void> wait_idle(std::shared_ptr<Worker> worker);
  boost::asio::awaitable<Result<HttpReply>> perform(Worker& worker, const PendingCall& pending);
  boost::asio::awaitable<Exchange> attempt(Worker& worker, const PendingCall& pending,
                                           bool refresh_credential);
  boost::asio::awaitable<Exchange> send_once(Worker& worker, std::string_view request,
                                             Duration timeout);

  const ClusterConfig config;
  const ApiClientOptions options;
  const boost::asio::strand<boost::asio::io_context::executor_type> strand;
  certs::TlsContext tls;
  std::optional<certs::KeyPair> plugin_pair;
  const std::shared_ptr<CredentialSource> credentials;
  std::deque<PendingCall> queue;
  std::vector<std::shared_ptr<Worker>> workers;
  std::vector<std::shared_ptr<Worker>> idle;  ///< The last one was used last.
  std::vector<std::weak_ptr<WatchStream>> watches;
  bool stopped = false;
  std::uint64_t jitter_state;

  // Read from any thread.
  std::atomic<std::size_t> queued{0};
  std::atomic<std::size_t> in_flight{0};
  std::atomic<std::size_t> open_connections{0};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> failures{0};
};

/// A header value or request target with one of these could smuggle in another line.
[[nodiscard]] bool has_control_or_space(std::string_view text);

}  // namespace muster::kube

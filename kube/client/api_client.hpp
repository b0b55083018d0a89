#pragma once
// HTTPS client of one API server: a bounded pool of keep-alive connections for calls, and one
// connection per watch. No client-side rate limit: the pool is the only throttle, and what the
// server says (429, Retry-After) is obeyed.

#include "base/result.hpp"
#include "base/time.hpp"
#include "kube/client/kubeconfig.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace boost::asio {
class io_context;
}

namespace muster::kube {

enum class HttpMethod { kGet, kPost, kPut, kPatch, kDelete };
[[nodiscard]] std::string_view to_string(HttpMethod method);

inline constexpr const char* kJson = "application/json";
inline constexpr const char* kMergePatch = "application/merge-patch+json";
inline constexpr const char* kJsonPatch = "application/json-patch+json";

struct HttpCall {
  HttpMethod method = HttpMethod::kGet;
  std::string path_and_query{};  ///< `/api/v1/nodes?limit=500`, already percent-encoded.
  std::string content_type = kJson;
  std::string body{};
  /// From request() to the callback: waiting in the queue, retries and their pauses included.
  Duration timeout = std::chrono::seconds(30);
};

/// A 2xx answer.
struct HttpReply {
  int status = 0;
  std::string body{};
};

/// Everything but 2xx is an Error: 404 kNotFound, 409 kConflict, 410 kGone, 401 and 403 kForbidden,
/// 413 kTooLarge, 429 kTooManyRequests, other 4xx (422 among them) kInvalidArgument, else
/// kUnavailable; its text is `<METHOD> <path>: <status> <reason>: <message of the Status body>`.
/// Called once, on the client's strand; it must be quick.
using ReplyCallback = std::function<void(Result<HttpReply>)>;

struct WatchCall {
  std::string path_and_query{};
  /// No byte for this long: the stream is dead (a live one brings bookmarks every minute).
  Duration idle_timeout = std::chrono::minutes(3);
  std::size_t max_line_bytes = 16U << 20U;  ///< Above etcd's 1.5 MiB by far; then kTooLarge.
};

struct WatchHandlers {
  /// One JSON document, without its line end; the view is valid during the call only.
  std::function<void(std::string_view line)> on_line;
  /// Once, at the end: a value for a clean end (the server closed after its time-out), an Error
  /// mapped as above for a refusal, a cut or a time-out. Never called after cancel().
  std::function<void(Result<void>)> on_end;
};

/// One streaming GET. Dropping the handle cancels it too.
class WatchHandle {
 public:
  virtual ~WatchHandle() = default;
  /// From the client's strand: no handler runs after it. From elsewhere: at most the one running
  /// now.
  virtual void cancel() = 0;
};

/// A pending call of run_after; dropping it cancels.
class TimerHandle {
 public:
  virtual ~TimerHandle() = default;
};

struct ApiClientOptions {
  std::size_t max_connections = 16;  ///< Also the most calls in flight.
  std::size_t max_queued = 10'000;   ///< Further calls fail at once with kTooManyRequests.
  std::size_t max_body_bytes = 256U << 20U;
  /// 429 and 503 with Retry-After: how often a call is sent in all, and the longest pause obeyed.
  int max_attempts = 5;
  Duration max_retry_pause = std::chrono::seconds(10);
  Duration connect_timeout = std::chrono::seconds(10);  ///< Resolve, TCP and TLS.
  /// Below the API server's own idle time-out of 90 s, so that it is seldom the server who closes.
  Duration idle_timeout = std::chrono::seconds(60);
  std::string user_agent = "muster";
  std::uint64_t jitter_seed = 0;  ///< Retry pauses get up to a quarter more.
};

struct ApiClientStats {
  std::size_t queued = 0;
  std::size_t in_flight = 0;
  std::size_t open_connections = 0;  ///< Of the pool; watches not counted.
  std::uint64_t calls = 0;           ///< Sent, retries included.
  std::uint64_t retries = 0;
  std::uint64_t failures = 0;  ///< Callbacks that got kUnavailable, kDeadline or kTooManyRequests.
};

/// Safe from any thread. A connection that the server closed while idle is noticed before use; a
/// GET that dies on a used connection is sent once more, anything else only when no byte of it was
/// written. Callers of writes must therefore expect kUnavailable for a write that took effect.
class ApiClient {
 public:
  /// No I/O yet, except reading the credentials' files.
  [[nodiscard]] static Result<std::unique_ptr<ApiClient>> create(boost::asio::io_context& io,
                                                                 ClusterConfig config,
                                                                 ApiClientOptions options);
  /// Same as stop().
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  /// A call whose turn comes only after its time is up fails then, not before.
  void request(HttpCall call, ReplyCallback callback);

  [[nodiscard]] std::unique_ptr<WatchHandle> watch(WatchCall call, WatchHandlers handlers);

  /// Runs `task` on the client's strand, where every callback of this client runs, one at a time.
  void post(std::function<void()> task);
  [[nodiscard]] std::unique_ptr<TimerHandle> run_after(Duration delay, std::function<void()> task);

  /// Ends every call with kUnavailable and every watch without a word, closes all connections.
  /// Takes effect as the io_context runs.
  void stop();

  [[nodiscard]] ApiClientStats stats() const;
  [[nodiscard]] const std::string& default_namespace() const;

  struct Impl;  ///< Shared with the running watches; defined inside this folder.

 private:
  explicit ApiClient(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// The Error for an answer that is not 2xx; `body` may hold a metav1.Status.
[[nodiscard]] Error error_from_status(int status, std::string_view where, std::string_view body);

}  // namespace muster::kube

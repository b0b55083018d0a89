#include "kube/client/api_client.hpp"

#include "base/log.hpp"
#include "kube/client/api_client_impl.hpp"
#include "kube/client/encoding.hpp"
#include "kube/client/watch_stream.hpp"
#include "kube/codec/json.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>

namespace muster::kube {
namespace asio = boost::asio;

namespace {

constexpr int kUnauthorized = 401;
constexpr int kTooManyRequestsStatus = 429;
constexpr auto kDefaultRetryAfter = std::chrono::seconds(1);

ErrorCode code_for(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorCode::kForbidden;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    case 410:
      return ErrorCode::kGone;
    case 413:
      return ErrorCode::kTooLarge;
    case 429:
      return ErrorCode::kTooManyRequests;
    default:
      break;
  }
  return status >= 400 && status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable;
}

// Where an error happened: without the query, which may be long and adds little.
std::string place(const HttpCall& call) {
  return fmt::format("{} {}", to_string(call.method),
                     call.path_and_query.substr(0, call.path_and_query.find('?')));
}

bool is_retryable(const Answer& answer) {
  return answer.status == kTooManyRequestsStatus ||
         (answer.status >= 500 && answer.retry_after.has_value());
}

struct LogFault {
  const char* what;
  void operator()(const std::exception_ptr& exception) const {
    try {
      if (exception) std::rethrow_exception(exception);
    } catch (const std::exception& fault) {
      log::error("API client: {} ended by {}", what, fault.what());
    }
  }
};

class Timer final : public TimerHandle {
 public:
  struct State {
    explicit State(const asio::any_io_executor& executor) : timer(executor) {}
    asio::steady_timer timer;
    std::atomic<bool> cancelled{false};
  };

  explicit Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Timer() override {
    state_->cancelled = true;
    std::shared_ptr<State> state = state_;
    asio::post(state->timer.get_executor(), [state] { state->timer.cancel(); });
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

std::string_view to_string(HttpMethod method) {
  switch (method) {
    case HttpMethod::kGet:
      return "GET";
    case HttpMethod::kPost:
      return "POST";
    case HttpMethod::kPut:
      return "PUT";
    case HttpMethod::kPatch:
      return "PATCH";
    case HttpMethod::kDelete:
      return "DELETE";
  }
  return "GET";
}

Error error_from_status(int status, std::string_view where, std::string_view body) {
  std::string text = fmt::format("{}: {}", where, status);
  if (const Result<Json> object = Json::parse(body);
      object && object->get("kind").string_or("") == "Status") {
    const std::string_view reason = object->get("reason").string_or("");
    if (!reason.empty()) text += fmt::format(" {}", reason);
    text += fmt::format(": {}", object->get("message").string_or("no message"));
  } else if (!body.empty()) {
    // Proxies and the API server's own filters answer in plain text.
    text += fmt::format(": {}", body.substr(0, std::min<std::size_t>(body.find('\n'), 200)));
  }
  return Error{code_for(status), std::move(text)};
}

bool has_control_or_space(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; });
}

ApiClient::Impl::Impl(asio::io_context& io, ClusterConfig cluster, ApiClientOptions client_options,
                      certs::TlsContext context)
    : config(std::move(cluster)),
      options(std::move(client_options)),
      strand(asio::make_strand(io)),
      tls(std::move(context)),
      credentials(std::make_shared<CredentialSource>(strand, config.token)),
      jitter_state(options.jitter_seed) {}

Endpoint ApiClient::Impl::endpoint() const {
  return {.host = config.host,
          .port = config.port,
          .server_name = config.tls_server_name.empty() ? config.host : config.tls_server_name,
          .verify = !config.skip_tls_verify,
          .tls = tls};
}

Result<void> ApiClient::Impl::adopt(const Credential& credential) {
  if (!credential.client_pair || credential.client_pair == plugin_pair) return {};
  Result<certs::TlsContext> context =
      certs::make_client_context({.ca_pem = config.ca_pem,
                                  .pair = credential.client_pair,
                                  .skip_verification = config.skip_tls_verify});
  if (!context) return fail(context.error());
  tls = std::move(*context);
  plugin_pair = credential.client_pair;
  return {};
}

std::string ApiClient::Impl::render(const HttpCall& call, const Credential& credential) const {
  const bool v6 = config.host.find(':') != std::string::npos;
  std::string text = fmt::format(
      "{} {}{} HTTP/1.1\r\nHost: {}{}{}:{}\r\nUser-Agent: {}\r\nAccept: application/json\r\n",
      to_string(call.method), config.path_prefix, call.path_and_query, v6 ? "[" : "", config.host,
      v6 ? "]" : "", config.port, options.user_agent);
  if (!credential.token.empty())
    text += fmt::format("Authorization: Bearer {}\r\n", credential.token);
  if (!call.body.empty() || call.method != HttpMethod::kGet) {
    text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", call.content_type,
                        call.body.size());
  }
  return text + "\r\n" + call.body;
}

Duration ApiClient::Impl::retry_pause(const Answer& answer) {
  const Duration asked =
      std::min(answer.retry_after.value_or(kDefaultRetryAfter), options.max_retry_pause);
  const auto quarter = static_cast<std::uint64_t>(std::max<std::int64_t>(asked.count() / 4, 1));
  return asked + Duration(static_cast<std::int64_t>(next_random(jitter_state) % quarter));
}

void ApiClient::Impl::deliver(PendingCall& pending, Result<HttpReply> reply) {
  if (!reply && (reply.error().code == ErrorCode::kUnavailable ||
                 reply.error().code == ErrorCode::kDeadline ||
                 reply.error().code == ErrorCode::kTooManyRequests))
    ++failures;
  const ReplyCallback callback = std::move(pending.callback);
  try {
    callback(std::move(reply));
  } catch (const std::exception& fault) {
    log::error("API client: {}: the caller threw {}", place(pending.call), fault.what());
  }
}

void ApiClient::Impl::enqueue(PendingCall pending) {
  if (stopped) {
    deliver(pending, fail(ErrorCode::kUnavailable, place(pending.call) + ": client stopped"));
    return;
  }
  if (has_control_or_space(pending.call.path_and_query) ||
      !pending.call.path_and_query.starts_with('/')) {
    deliver(pending, fail(invalid_argument(
                         fmt::format("bad request target \"{}\"", pending.call.path_and_query))));
    return;
  }
  if (queue.size() >= options.max_queued) {
    deliver(pending,
            fail(ErrorCode::kTooManyRequests, fmt::format("{}: {} calls are waiting already",
                                                          place(pending.call), queue.size())));
    return;
  }
  queue.push_back(std::move(pending));
  queued = queue.size();
  if (!idle.empty()) {
    const std::shared_ptr<Worker> worker = idle.back();
    idle.pop_back();
    worker->woken = true;
    worker->timer.cancel();
  } else if (workers.size() < options.max_connections) {
    auto worker = std::make_shared<Worker>(strand);
    workers.push_back(worker);
    asio::co_spawn(strand, run_worker(shared_from_this(), worker), LogFault{"a worker"});
  }
}

// Until there is something to do, or for the idle time-out; then the connection is closed.
asio::awaitable<void> ApiClient::Impl::wait_idle(std::shared_ptr<Worker> worker) {
  worker->woken = false;
  idle.push_back(worker);
  worker->timer.expires_after(options.idle_timeout);
  auto [error] = co_await worker->timer.async_wait(kUseTuple);
  (void)error;  // `woken` tells a wake-up from a time-out, whichever came first.
  if (!worker->woken) std::erase(idle, worker);
}

asio::awaitable<void> ApiClient::Impl::run_worker(std::shared_ptr<Impl> self,
                                                  std::shared_ptr<Worker> worker) {
  while (!self->stopped) {
    if (self->queue.empty()) {
      co_await self->wait_idle(worker);
      if (!worker->woken) break;
      continue;
    }
    PendingCall pending = std::move(self->queue.front());
    self->queue.pop_front();
    self->queued = self->queue.size();
    ++self->in_flight;
    Result<HttpReply> reply = co_await self->perform(*worker, pending);
    --self->in_flight;
    self->deliver(pending, std::move(reply));
  }
  if (worker->connection) --self->open_connections;
  worker->connection.reset();
  std::erase(self->workers, worker);
}

asio::awaitable<Result<HttpReply>> ApiClient::Impl::perform(Worker& worker,
                                                            const PendingCall& pending) {
  const std::string where = place(pending.call);
  bool refresh = false;
  for (int tried = 1;; ++tried) {
    Exchange exchange = co_await attempt(worker, pending, refresh);
    if (stopped) co_return fail(ErrorCode::kUnavailable, where + ": client stopped");
    if (!exchange.answer) co_return fail(exchange.answer.error().with_context(where));
    Answer& answer = *exchange.answer;
    if (answer.status / 100 == 2)
      co_return HttpReply{.status = answer.status, .body = std::move(answer.body)};
    const bool renew = answer.status == kUnauthorized && credentials->is_renewable() && !refresh;
    const Duration pause = renew ? Duration(0) : retry_pause(answer);
    const bool in_time = std::chrono::steady_clock::now() + pause < pending.deadline;
    const bool again = renew || is_retryable(answer);
    if (!again || tried >= options.max_attempts || !in_time)
      co_return fail(error_from_status(answer.status, where, answer.body));
    refresh = renew;
    ++retries;
    worker.timer.expires_after(pause);
    auto [error] = co_await worker.timer.async_wait(kUseTuple);
    if (error) co_return fail(ErrorCode::kUnavailable, where + ": client stopped");
  }
}

// One call, sent again only when its connection turns out to have been dead before it.
asio::awaitable<Exchange> ApiClient::Impl::attempt(Worker& worker, const PendingCall& pending,
                                                   bool refresh_credential) {
  Result<Credential> credential = co_await credentials->get(refresh_credential);
  if (!credential) co_return Exchange{.answer = fail(credential.error())};
  const std::string request = render(pending.call, *credential);
  bool repeated = false;
  for (;;) {
    if (stopped) co_return Exchange{.answer = fail(ErrorCode::kUnavailable, "client stopped")};
    const Duration left =
        std::chrono::duration_cast<Duration>(pending.deadline - std::chrono::steady_clock::now());
    if (left <= Duration(0))
      co_return Exchange{.answer = fail(ErrorCode::kDeadline, "no answer in time")};
    Result<void> adopted = adopt(*credential);
    if (!adopted) co_return Exchange{.answer = fail(adopted.error())};
    if (worker.connection && !worker.connection->is_reusable()) {
      worker.connection.reset();
      --open_connections;
    }
    const bool reused = worker.connection != nullptr;
    Exchange exchange = co_await send_once(worker, request, left);
    if (exchange.answer || !reused || repeated || stopped ||
        exchange.answer.error().code != ErrorCode::kUnavailable)
      co_return exchange;
    if (pending.call.method != HttpMethod::kGet && !exchange.nothing_written) co_return exchange;
    repeated = true;
    ++retries;
  }
}

asio::awaitable<Exchange> ApiClient::Impl::send_once(Worker& worker, std::string_view request,
                                                     Duration timeout) {
  if (!worker.connection) {
    worker.connection = std::make_unique<HttpConnection>(strand, endpoint());
    ++open_connections;
    const Duration connect_timeout = std::min(options.connect_timeout, timeout);
    Result<void> opened = co_await worker.connection->open(connect_timeout);
    if (!opened) {
      worker.connection.reset();
      --open_connections;
      co_return Exchange{.answer = fail(opened.error()), .nothing_written = true};
    }
  }
  ++calls;
  Exchange exchange =
      co_await worker.connection->exchange(request, timeout, options.max_body_bytes);
  if (!exchange.answer || !exchange.answer->keep_alive) {
    worker.connection.reset();
    --open_connections;
  }
  co_return exchange;
}

void ApiClient::Impl::stop_all() {
  if (stopped) return;
  stopped = true;
  credentials->stop();
  for (const std::shared_ptr<Worker>& worker : workers) {
    worker->timer.cancel();
    if (worker->connection) worker->connection->close();
  }
  idle.clear();
  for (const std::weak_ptr<WatchStream>& weak : watches) {
    if (const std::shared_ptr<WatchStream> watch = weak.lock()) watch->close_on_strand();
  }
  watches.clear();
  while (!queue.empty()) {
    PendingCall pending = std::move(queue.front());
    queue.pop_front();
    deliver(pending, fail(ErrorCode::kUnavailable, place(pending.call) + ": client stopped"));
  }
  queued = 0;
}

ApiClient::ApiClient(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

ApiClient::~ApiClient() {
  stop();
}

Result<std::unique_ptr<ApiClient>> ApiClient::create(asio::io_context& io, ClusterConfig config,
                                                     ApiClientOptions options) {
  if (has_control_or_space(config.host) || has_control_or_space(config.path_prefix))
    return fail(invalid_argument("server: a space or control character in the URL"));
  Result<certs::TlsContext> context =
      certs::make_client_context({.ca_pem = config.ca_pem,
                                  .pair = config.client_pair,
                                  .skip_verification = config.skip_tls_verify});
  if (!context) return fail(context.error().with_context(config.host));
  return std::unique_ptr<ApiClient>(new ApiClient(
      std::make_shared<Impl>(io, std::move(config), std::move(options), std::move(*context))));
}

void ApiClient::request(HttpCall call, ReplyCallback callback) {
  const auto deadline = std::chrono::steady_clock::now() + call.timeout;
  std::shared_ptr<Impl> impl = impl_;
  asio::post(impl->strand, [impl, pending = Impl::PendingCall{std::move(call), std::move(callback),
                                                              deadline}]() mutable {
    impl->enqueue(std::move(pending));
  });
}

std::unique_ptr<WatchHandle> ApiClient::watch(WatchCall call, WatchHandlers handlers) {
  return WatchStream::start(impl_, std::move(call), std::move(handlers));
}

void ApiClient::post(std::function<void()> task) {
  asio::post(impl_->strand, std::move(task));
}

std::unique_ptr<TimerHandle> ApiClient::run_after(Duration delay, std::function<void()> task) {
  auto state = std::make_shared<Timer::State>(impl_->strand);
  asio::post(impl_->strand, [state, delay, task = std::move(task)] {
    if (state->cancelled) return;
    state->timer.expires_after(delay);
    state->timer.async_wait([state, task](const boost::system::error_code& error) {
      if (!error && !state->cancelled) task();
    });
  });
  return std::make_unique<Timer>(std::move(state));
}

void ApiClient::stop() {
  std::shared_ptr<Impl> impl = impl_;
  asio::post(impl->strand, [impl] { impl->stop_all(); });
}

ApiClientStats ApiClient::stats() const {
  return {.queued = impl_->queued,
          .in_flight = impl_->in_flight,
          .open_connections = impl_->open_connections,
          .calls = impl_->calls,
          .retries = impl_->retries,
          .failures = impl_->failures};
}

const std::string& ApiClient::default_namespace() const {
  return impl_->config.default_namespace;
}

}  // namespace muster::kube

#include "server/http_session.hpp"

#include "base/log.hpp"
#include "kube/client/byte_stream.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace muster::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using beast::error_code;
using kube::ByteStream;
using kube::kUseTuple;
using kube::Transfer;
using RequestParser = http::request_parser<http::string_body>;

constexpr std::size_t kReadChunk = 16U << 10U;
// How long a closing connection may take to hear its last answer and say goodbye.
constexpr auto kGoodbye = std::chrono::seconds(1);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

/// What became of reading one request.
enum class ReadOutcome { kRequest, kRefuse, kEnd };

struct Incoming {
  ReadOutcome outcome = ReadOutcome::kEnd;
  HttpRequest request{};
  bool keep_alive = false;
  bool head = false;
  unsigned refusal = 400;
  std::string why{};
};

// The status for bytes that never became a request; kEnd for a client that merely went away.
void classify(const error_code& error, Incoming& incoming) {
  const bool http_error =
      error.category() == http::make_error_code(http::error::bad_method).category();
  if (!http_error || error == http::error::end_of_stream || error == http::error::partial_message)
    return;
  incoming.outcome = ReadOutcome::kRefuse;
  incoming.why = error.message();
  if (error == http::error::body_limit) incoming.refusal = 413;
  if (error == http::error::header_limit) incoming.refusal = 431;
}

std::string render(const HttpResponse& response, bool keep_alive, bool head) {
  // A status or type of the handler's making is a constant of ours; only the body is data.
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n\r\n",
      response.status,
      std::string_view(
          http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)))),
      response.content_type, response.body.size(), keep_alive ? "keep-alive" : "close");
  if (!head) text += response.body;
  return text;
}

HttpResponse plain_text(int status, std::string text) {
  HttpResponse response;
  response.status = status;
  response.content_type = "text/plain";
  response.body = std::move(text);
  return response;
}

void take_request(RequestParser& parser, Incoming& incoming) {
  incoming.keep_alive = parser.get().keep_alive();
  http::request<http::string_body> message = parser.release();
  incoming.outcome = ReadOutcome::kRequest;
  incoming.head = message.method() == http::verb::head;
  const std::string_view target(message.target().data(), message.target().size());
  const std::size_t mark = target.find('?');
  incoming.request.method = std::string(message.method_string());
  incoming.request.path = std::string(target.substr(0, mark));
  if (mark != std::string_view::npos) incoming.request.query = target.substr(mark + 1);
  incoming.request.body = std::move(message.body());
  incoming.request.received = std::chrono::steady_clock::now();
}

class Session final : public SessionControl, public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<HttpServerState> state, tcp::socket socket)
      : state_(std::move(state)),
        executor_(socket.get_executor()),
        stream_(std::move(socket), state_->config.tls ? state_->config.tls->get() : nullptr),
        pause_(executor_) {}

  void request_close(SessionClose how) override {
    auto self = shared_from_this();
    asio::post(executor_, [self, how] { self->close_on_strand(how); });
  }

  void start() {
    auto self = shared_from_this();
    {
      const std::lock_guard lock(state_->mutex);
      state_->sessions.insert(self);
    }
    ++state_->open_connections;
    asio::co_spawn(executor_, run(self), Finish{self});
  }

 private:
  struct Finish {
    std::shared_ptr<Session> self;
    void operator()(const std::exception_ptr& exception) const { self->finish(exception); }
  };

  void close_on_strand(SessionClose how) {
    closing_ = true;
    if (how == SessionClose::kNow || idle_) stream_.close();
    if (how == SessionClose::kNow) pause_.cancel();
  }

  void finish(const std::exception_ptr& exception) {
    try {
      if (exception) std::rethrow_exception(exception);
    } catch (const std::exception& fault) {
      log::error("{}: connection ended by {}", state_->config.name, fault.what());
    }
    stream_.close();
    {
      const std::lock_guard lock(state_->mutex);
      state_->sessions.erase(shared_from_this());
    }
    --state_->open_connections;
  }

  // The coroutines below are members of the session that `self` keeps alive.
  static asio::awaitable<void> run(std::shared_ptr<Session> self) {
    const bool ready = co_await self->prepare();
    if (!ready) co_return;
    while (!self->closing_) {
      Incoming incoming = co_await self->read_request();
      if (incoming.outcome == ReadOutcome::kEnd) co_return;
      if (incoming.outcome == ReadOutcome::kRefuse) {
        co_await self->refuse(incoming);
        co_return;
      }
      const bool again = co_await self->answer(incoming);
      if (!again) break;
    }
    self->stream_.expires_after(kGoodbye);
    co_await self->stream_.shutdown();
  }

  asio::awaitable<bool> prepare() {
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    if (stream_.session() == nullptr) co_return true;
    stream_.expires_after(state_->config.slow_client_timeout);
    const error_code error = co_await stream_.handshake(ByteStream::Role::kServer);
    if (error) {
      ++state_->handshake_failures;
      log::debug("{}: TLS handshake: {}", state_->config.name,
                 kube::describe(error, stream_.session()));
      co_return false;
    }
    client_common_name_ = certs::peer_common_name(stream_.session());
    co_return true;
  }

  asio::awaitable<error_code> read_more() {
    // Only a header, or what stands between chunks, can pile up here: the parser's own limits do
    // not see the latter.
    if (buffer_.size() > state_->config.max_header_bytes + kReadChunk) {
      co_return http::make_error_code(http::error::header_limit);
    }
    const asio::mutable_buffer space = buffer_.prepare(kReadChunk);
    const Transfer transfer = co_await stream_.read_some(space);
    buffer_.commit(transfer.bytes);
    co_return transfer.error;
  }

  asio::awaitable<Incoming> read_request() {
    Incoming incoming;
    if (buffer_.size() == 0) {
      idle_ = true;
      stream_.expires_after(served_any_ ? state_->config.idle_timeout
                                        : state_->config.slow_client_timeout);
      const error_code error = co_await read_more();
      idle_ = false;
      if (error) co_return incoming;
    }
    RequestParser parser;
    parser.eager(true);
    parser.header_limit(state_->config.max_header_bytes);
    parser.body_limit(state_->config.max_body_bytes);
    stream_.expires_after(state_->config.slow_client_timeout);
    const error_code error = co_await parse(parser);
    if (error) {
      classify(error, incoming);
      co_return incoming;
    }
    take_request(parser, incoming);
    incoming.request.client_common_name = client_common_name_;
    co_return incoming;
  }

  // Feeds the parser until it has one whole request.
  asio::awaitable<error_code> parse(RequestParser& parser) {
    bool continued = false;
    for (;;) {
      error_code error;
      const std::size_t used = parser.put(buffer_.cdata(), error);
      buffer_.consume(used);
      if (error && error != http::error::need_more) co_return error;
      if (parser.is_done()) co_return error_code();
      if (!continued && parser.is_header_done() &&
          beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        continued = true;
        const Transfer sent = co_await stream_.write(kContinue);
        if (sent.error) co_return sent.error;
      }
      if (used > 0 && buffer_.size() > 0 && !error) continue;
      const error_code read_error = co_await read_more();
      if (read_error) co_return read_error;
    }
  }

  HttpResponse call_handler(const HttpRequest& request) {
    try {
      return state_->handler(request);
    } catch (const std::exception& fault) {
      log::error("{}: {} {}: {}", state_->config.name, request.method, request.path, fault.what());
    }
    return plain_text(500, "internal error\n");
  }

  // Runs the handler and sends what it says. True when the connection may serve another request.
  asio::awaitable<bool> answer(const Incoming& incoming) {
    stream_.expires_never();
    HttpResponse response = call_handler(incoming.request);
    while (response.ask_again_after && !closing_) {
      pause_.expires_after(*response.ask_again_after);
      auto [error] = co_await pause_.async_wait(kUseTuple);
      if (error) co_return false;
      response = call_handler(incoming.request);
    }
    if (response.ask_again_after) response = plain_text(503, "closing\n");
    ++state_->requests;
    served_any_ = true;
    const bool keep_alive = incoming.keep_alive && !response.close && !closing_;
    const std::string text = render(response, keep_alive, incoming.head);
    stream_.expires_after(state_->config.slow_client_timeout);
    const Transfer sent = co_await stream_.write(text);
    co_return !sent.error && keep_alive;
  }

  asio::awaitable<void> refuse(const Incoming& incoming) {
    ++state_->bad_requests;
    const HttpResponse response =
        plain_text(static_cast<int>(incoming.refusal), incoming.why + "\n");
    const std::string text = render(response, false, false);
    const Transfer sent = co_await stream_.write(text);
    if (sent.error) co_return;
    stream_.expires_after(kGoodbye);
    co_await stream_.linger();
  }

  std::shared_ptr<HttpServerState> state_;
  tcp::socket::executor_type executor_;
  ByteStream stream_;
  asio::steady_timer pause_;
  beast::flat_buffer buffer_;
  std::optional<std::string> client_common_name_;
  bool served_any_ = false;
  bool idle_ = false;     // nothing of a request has come, so that closing harms nobody
  bool closing_ = false;  // after the call in hand
};

}  // namespace

void start_session(const std::shared_ptr<HttpServerState>& state, tcp::socket socket) {
  std::make_shared<Session>(state, std::move(socket))->start();
}

}  // namespace muster::server

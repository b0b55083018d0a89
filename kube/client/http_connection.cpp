#include "kube/client/http_connection.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>

namespace muster::kube {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadChunk = 64U << 10U;
// The body of a refusal: a Status object.
constexpr std::size_t kMaxRefusalBytes = 1U << 20U;
constexpr std::uint32_t kMaxHeaderBytes = 64U << 10U;

// A peer that vanished without a word is noticed after 30 + 3 times 10 seconds of silence, or when
// what we sent stays unacknowledged for a minute.
void notice_dead_peers(tcp::socket& socket) {
  const auto set = [handle = socket.native_handle()](int level, int name, int value) {
    ::setsockopt(handle, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

// Seconds; the API server sends no dates.
std::optional<Duration> parse_retry_after(std::string_view text) {
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace

HttpConnection::HttpConnection(asio::any_io_executor executor, Endpoint endpoint)
    : executor_(std::move(executor)),
      endpoint_(std::move(endpoint)),
      stream_(tcp::socket(executor_), endpoint_.tls) {}

Error HttpConnection::failure(std::string_view what, const error_code& error) {
  const ErrorCode code = error == http::error::body_limit ? ErrorCode::kTooLarge
                         : is_timeout(error)              ? ErrorCode::kDeadline
                                                          : ErrorCode::kUnavailable;
  return Error{code, fmt::format("{}:{}: {}: {}", endpoint_.host, endpoint_.port, what,
                                 describe(error, stream_.session()))};
}

asio::awaitable<Result<void>> HttpConnection::connect_any(Duration timeout) {
  error_code not_numeric;
  const asio::ip::address address = asio::ip::make_address(endpoint_.host, not_numeric);
  std::vector<tcp::endpoint> candidates;
  if (!not_numeric) {
    candidates.emplace_back(address, endpoint_.port);
  } else {
    tcp::resolver resolver(executor_);
    const std::string service = std::to_string(endpoint_.port);
    auto [error, results] = co_await resolver.async_resolve(endpoint_.host, service, kUseTuple);
    if (error) co_return fail(failure("resolve", error));
    for (const auto& entry : results) candidates.push_back(entry.endpoint());
  }
  error_code last = asio::error::host_not_found;
  for (const tcp::endpoint& candidate : candidates) {
    if (closed_) last = asio::error::operation_aborted;
    if (closed_) break;
    stream_.expires_after(timeout);
    last = co_await stream_.connect(candidate);
    if (!last) co_return Result<void>();
  }
  co_return fail(failure("connect", last));
}

asio::awaitable<Result<void>> HttpConnection::open(Duration timeout) {
  Result<void> connected = co_await connect_any(timeout);
  if (!connected) co_return connected;
  notice_dead_peers(stream_.socket());
  if (stream_.session() != nullptr) {
    Result<void> named =
        certs::expect_peer(stream_.session(), endpoint_.server_name, endpoint_.verify);
    if (!named) co_return named;
  }
  const error_code error = co_await stream_.handshake(ByteStream::Role::kClient);
  if (error) co_return fail(failure("TLS handshake", error));
  co_return Result<void>();
}

asio::awaitable<error_code> HttpConnection::read_more() {
  const asio::mutable_buffer space = buffer_.prepare(kReadChunk);
  const Transfer transfer = co_await stream_.read_some(space);
  buffer_.commit(transfer.bytes);
  if (!transfer.error || is_timeout(transfer.error)) co_return transfer.error;
  // The end of the connection ends a body that has no length; any other is then incomplete.
  if (!parser_->got_some()) co_return transfer.error;
  error_code error;
  parser_->put_eof(error);
  co_return parser_->is_done() ? error_code() : transfer.error;
}

asio::awaitable<error_code> HttpConnection::feed(Until until) {
  for (;;) {
    if (parser_->is_done()) co_return error_code();
    if (until == Until::kHeader && parser_->is_header_done()) co_return error_code();
    error_code error = http::error::need_more;
    std::size_t used = 0;
    if (buffer_.size() > 0) used = parser_->put(buffer_.cdata(), error);
    buffer_.consume(used);
    if (error && error != http::error::need_more) co_return error;
    if (used > 0 && buffer_.size() > 0) continue;
    if (parser_->is_done()) co_return error_code();
    if (until == Until::kHeader && parser_->is_header_done()) co_return error_code();
    const error_code read_error = co_await read_more();
    if (read_error) co_return read_error;
  }
}

Answer HttpConnection::take_answer() {
  Answer answer;
  const auto& message = parser_->get();
  answer.status = static_cast<int>(message.result_int());
  answer.keep_alive = parser_->keep_alive() && buffer_.size() == 0;
  const auto retry_after = message[http::field::retry_after];
  answer.retry_after = parse_retry_after(std::string_view(retry_after.data(), retry_after.size()));
  answer.body = std::move(parser_->get().body());
  return answer;
}

asio::awaitable<Exchange> HttpConnection::send_and_parse(std::string_view request, Duration timeout,
                                                         bool streamed) {
  stream_.expires_after(timeout);
  const Transfer sent = co_await stream_.write(request);
  if (sent.error) {
    co_return Exchange{.answer = fail(failure("write", sent.error)),
                       .nothing_written = sent.bytes == 0};
  }
  error_code error = co_await feed(streamed ? Until::kHeader : Until::kEnd);
  if (!error && streamed && parser_->get().result_int() / 100 != 2) {
    parser_->body_limit(kMaxRefusalBytes);
    error = co_await feed(Until::kEnd);
  }
  if (error) co_return Exchange{.answer = fail(failure("read", error))};
  if (streamed && parser_->get().result_int() / 100 == 2) {
    co_return Exchange{.answer = Answer{.status = static_cast<int>(parser_->get().result_int())}};
  }
  co_return Exchange{.answer = take_answer()};
}

asio::awaitable<Exchange> HttpConnection::exchange(std::string_view request, Duration timeout,
                                                   std::size_t max_body_bytes) {
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(max_body_bytes);
  Exchange result = co_await send_and_parse(request, timeout, false);
  co_return result;
}

asio::awaitable<Exchange> HttpConnection::start_stream(std::string_view request, Duration timeout) {
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(boost::none);
  Exchange result = co_await send_and_parse(request, timeout, true);
  co_return result;
}

asio::awaitable<Result<bool>> HttpConnection::read_stream(std::string& into,
                                                          Duration idle_timeout) {
  for (;;) {
    std::string& body = parser_->get().body();
    if (!body.empty()) {
      into += body;
      body.clear();
      co_return true;
    }
    if (parser_->is_done()) co_return false;
    error_code error = http::error::need_more;
    std::size_t used = 0;
    if (buffer_.size() > 0) used = parser_->put(buffer_.cdata(), error);
    buffer_.consume(used);
    if (error && error != http::error::need_more) co_return fail(failure("read", error));
    if (used > 0) continue;
    stream_.expires_after(idle_timeout);
    const error_code read_error = co_await read_more();
    if (read_error) co_return fail(failure("read", read_error));
  }
}

bool HttpConnection::is_reusable() {
  char byte = 0;
  const ssize_t count = ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void HttpConnection::close() {
  closed_ = true;
  stream_.close();
}

}  // namespace muster::kube

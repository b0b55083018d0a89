#pragma once
// One HTTPS connection to the API server, one request at a time.

#include "base/result.hpp"
#include "base/time.hpp"
#include "kube/client/byte_stream.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace muster::kube {

struct Endpoint {
  std::string host;  ///< Name or IP address.
  std::uint16_t port = 443;
  std::string server_name;  ///< What the certificate must be for.
  bool verify = true;
  certs::TlsContext tls{};
};

struct Answer {
  int status = 0;
  std::string body{};
  std::optional<Duration> retry_after{};
  bool keep_alive = false;
};

/// How a call ended, and whether the server can have seen anything of it.
struct Exchange {
  Result<Answer> answer;
  bool nothing_written = false;
};

/// Used on the executor that it was made with. The coroutines need the connection to outlive them.
class HttpConnection {
 public:
  HttpConnection(boost::asio::any_io_executor executor, Endpoint endpoint);

  /// TCP and TLS within `timeout`; names take as long as the system's resolver does.
  boost::asio::awaitable<Result<void>> open(Duration timeout);

  /// `request` is the whole text and must live until the end.
  boost::asio::awaitable<Exchange> exchange(std::string_view request, Duration timeout,
                                            std::size_t max_body_bytes);

  /// Like exchange, but a 2xx answer comes without its body; read_stream gets that.
  boost::asio::awaitable<Exchange> start_stream(std::string_view request, Duration timeout);
  /// Appends what comes next to `into`; false at the end of the body.
  boost::asio::awaitable<Result<bool>> read_stream(std::string& into, Duration idle_timeout);

  /// False when the peer has closed, or has sent what nobody asked for.
  [[nodiscard]] bool is_reusable();
  void close();

 private:
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
  enum class Until { kHeader, kEnd };

  boost::asio::awaitable<Result<void>> connect_any(Duration timeout);
  boost::asio::awaitable<Exchange> send_and_parse(std::string_view request, Duration timeout,
                                                  bool streamed);
  boost::asio::awaitable<boost::system::error_code> feed(Until until);
  boost::asio::awaitable<boost::system::error_code> read_more();
  [[nodiscard]] Error failure(std::string_view what, const boost::system::error_code& error);
  [[nodiscard]] Answer take_answer();

  boost::asio::any_io_executor executor_;
  Endpoint endpoint_;
  ByteStream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool closed_ = false;
};

}  // namespace muster::kube

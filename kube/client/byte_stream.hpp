#pragma once
// One TCP or TLS connection as a coroutine sees it. Asio's and Beast's stream templates are
// compiled in byte_stream.cpp only: instantiated with every HTTP operation on top they take
// minutes.

#include "base/time.hpp"
#include "certs/tls_context.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace muster::kube {

/// The completion token of every await: an error is a value, an exception is a fault of ours.
inline constexpr auto kUseTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

struct Transfer {
  boost::system::error_code error;
  std::size_t bytes = 0;  ///< Moved before the error, if there is one.
};

/// Not thread-safe: used on the executor of its socket. Every operation ends with a time-out error
/// when the deadline of expires_after passes; the connection is of no use then.
class ByteStream {
 public:
  /// `tls` null: plain TCP.
  ByteStream(boost::asio::ip::tcp::socket socket, const certs::TlsContext& tls);
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;

  void expires_after(Duration from_now);
  void expires_never();

  enum class Role { kServer, kClient };
  /// Immediate success without TLS.
  boost::asio::awaitable<boost::system::error_code> handshake(Role role);
  boost::asio::awaitable<boost::system::error_code> connect(boost::asio::ip::tcp::endpoint peer);
  /// `into` must live until the end of the operation, as must `bytes` of write().
  boost::asio::awaitable<Transfer> read_some(boost::asio::mutable_buffer into);
  boost::asio::awaitable<Transfer> write(std::string_view bytes);
  /// Says goodbye (TLS close_notify, TCP FIN) and waits for the peer's, up to the deadline.
  boost::asio::awaitable<void> shutdown();
  /// Stops sending and swallows what still comes, up to the deadline: closing with unread input
  /// would reset the connection and take the last answer with it.
  boost::asio::awaitable<void> linger();

  /// Closes at once; running operations end with operation_aborted.
  void close();

  /// Null without TLS.
  [[nodiscard]] ssl_st* session();
  [[nodiscard]] boost::asio::ip::tcp::socket& socket();

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
};

[[nodiscard]] bool is_timeout(const boost::system::error_code& error);

/// "certificate verify failed (unable to get local issuer certificate)" instead of only the first.
[[nodiscard]] std::string describe(const boost::system::error_code& error, const ssl_st* session);

}  // namespace muster::kube

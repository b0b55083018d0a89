#include "kube/client/byte_stream.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <optional>

namespace muster::kube {
namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

using TlsStream = beast::ssl_stream<beast::tcp_stream>;

// A reference of its own for the wrapper that Asio wants: it frees what it is given.
asio::ssl::context share_context(const certs::TlsContext& context) {
  SSL_CTX_up_ref(context.get());
  return asio::ssl::context(context.get());
}

}  // namespace

struct ByteStream::Streams {
  std::optional<beast::tcp_stream> plain;
  std::optional<TlsStream> tls;

  beast::tcp_stream& tcp_layer() { return tls ? beast::get_lowest_layer(*tls) : *plain; }
};

ByteStream::ByteStream(tcp::socket socket, const certs::TlsContext& tls)
    : streams_(std::make_unique<Streams>()) {
  if (!tls) {
    streams_->plain.emplace(std::move(socket));
    return;
  }
  asio::ssl::context context = share_context(tls);
  streams_->tls.emplace(beast::tcp_stream(std::move(socket)), context);
}

ByteStream::~ByteStream() = default;
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;

void ByteStream::expires_after(Duration from_now) {
  streams_->tcp_layer().expires_after(from_now);
}

void ByteStream::expires_never() {
  streams_->tcp_layer().expires_never();
}

asio::awaitable<error_code> ByteStream::handshake(Role role) {
  if (!streams_->tls) co_return error_code();
  const auto side =
      role == Role::kServer ? asio::ssl::stream_base::server : asio::ssl::stream_base::client;
  auto [error] = co_await streams_->tls->async_handshake(side, kUseTuple);
  co_return error;
}

asio::awaitable<error_code> ByteStream::connect(tcp::endpoint peer) {
  auto [error] = co_await streams_->tcp_layer().async_connect(peer, kUseTuple);
  co_return error;
}

asio::awaitable<Transfer> ByteStream::read_some(asio::mutable_buffer into) {
  Transfer transfer;
  if (streams_->tls) {
    auto [error, bytes] = co_await streams_->tls->async_read_some(into, kUseTuple);
    transfer = Transfer{error, bytes};
  } else {
    auto [error, bytes] = co_await streams_->plain->async_read_some(into, kUseTuple);
    transfer = Transfer{error, bytes};
  }
  co_return transfer;
}

asio::awaitable<Transfer> ByteStream::write(std::string_view bytes) {
  const asio::const_buffer from(bytes.data(), bytes.size());
  Transfer transfer;
  if (streams_->tls) {
    auto [error, count] = co_await asio::async_write(*streams_->tls, from, kUseTuple);
    transfer = Transfer{error, count};
  } else {
    auto [error, count] = co_await asio::async_write(*streams_->plain, from, kUseTuple);
    transfer = Transfer{error, count};
  }
  co_return transfer;
}

asio::awaitable<void> ByteStream::shutdown() {
  if (streams_->tls) {
    auto [error] = co_await streams_->tls->async_shutdown(kUseTuple);
    if (error) co_return;
  }
  error_code ignored;
  socket().shutdown(tcp::socket::shutdown_send, ignored);
}

asio::awaitable<void> ByteStream::linger() {
  error_code ignored;
  socket().shutdown(tcp::socket::shutdown_send, ignored);
  std::array<char, 16'384> scrap;
  for (;;) {
    const asio::mutable_buffer space(scrap.data(), scrap.size());
    auto [error, bytes] = co_await streams_->tcp_layer().async_read_some(space, kUseTuple);
    if (error) co_return;
  }
}

void ByteStream::close() {
  streams_->tcp_layer().close();
}

ssl_st* ByteStream::session() {
  return streams_->tls ? streams_->tls->native_handle() : nullptr;
}

tcp::socket& ByteStream::socket() {
  return streams_->tcp_layer().socket();
}

bool is_timeout(const error_code& error) {
  return error == beast::error::timeout;
}

std::string describe(const error_code& error, const ssl_st* session) {
  std::string text = error.message();
  if (session == nullptr) return text;
  const long verdict = SSL_get_verify_result(session);
  if (verdict != X509_V_OK) {
    text += " (";
    text += X509_verify_cert_error_string(verdict);
    text += ")";
  }
  return text;
}

}  // namespace muster::kube

#pragma once
// A blocking client for tests that need to send bytes no well-behaved client would.

#include "certs/tls_context.hpp"
#include "tests/server/tls_fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>

namespace muster::testing {

struct RawResponse {
  int status = 0;  ///< 0: the connection ended or stalled before a whole response came.
  std::string head;
  std::string body;
};

class RawClient {
 public:
  /// `tls` null: plain. Reads give up after five seconds.
  explicit RawClient(std::uint16_t port, const certs::TlsContext& tls = nullptr) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to a socket whose server has left.
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (!connected_ || !tls) return;
    session_ = SSL_new(tls.get());
    SSL_set_fd(session_, socket_);
    connected_ = certs::expect_peer(session_, "127.0.0.1", true) && SSL_connect(session_) == 1;
  }
  ~RawClient() {
    if (session_ != nullptr) SSL_free(session_);
    ERR_clear_error();
    ::close(socket_);
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] SSL* session() const { return session_; }

  void send(std::string_view bytes) const {
    if (session_ != nullptr) {
      SSL_write(session_, bytes.data(), static_cast<int>(bytes.size()));
    } else {
      while (!bytes.empty()) {
        const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(count));
      }
    }
  }

  void post(std::string_view path, std::string_view body) const {
    send("POST " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }

  /// The next response; `head_only` for one to a HEAD request.
  RawResponse receive(bool head_only = false) {
    RawResponse response;
    std::size_t end = std::string::npos;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
      if (!fill()) return response;
    response.head = buffer_.substr(0, end + 4);
    buffer_.erase(0, end + 4);
    const std::size_t at = response.head.find("Content-Length: ");
    std::size_t length = 0;
    if (at != std::string::npos)
      length = std::strtoul(response.head.c_str() + at + 16, nullptr, 10);
    while (!head_only && buffer_.size() < length)
      if (!fill()) return response;
    if (!head_only) {
      response.body = buffer_.substr(0, length);
      buffer_.erase(0, length);
    }
    response.status = std::atoi(response.head.c_str() + 9);  // After "HTTP/1.1 ".
    return response;
  }

  /// True when the server closes (or resets) before it sends another byte.
  bool closed_by_server() { return buffer_.empty() && !fill() && !stalled_; }

 private:
  bool fill() {
    std::array<char, 16'384> chunk;
    const ssize_t count = session_ != nullptr ? SSL_read(session_, chunk.data(), chunk.size())
                                              : ::recv(socket_, chunk.data(), chunk.size(), 0);
    stalled_ = count < 0 && errno == EAGAIN;
    if (count <= 0) return false;
    buffer_.append(chunk.data(), static_cast<std::size_t>(count));
    return true;
  }

  int socket_ = -1;
  SSL* session_ = nullptr;
  bool connected_ = false;
  bool stalled_ = false;
  std::string buffer_;
};

}  // namespace muster::testing

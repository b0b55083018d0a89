#pragma once
// A TLS server that does exactly what a test tells it, byte by byte: cuts, resets, slow bytes,
// broken framing. The n-th accepted connection runs the n-th script; further ones are closed.

#include "tests/server/tls_fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace muster::testing {

/// The server's end of one connection, inside a script. Not copyable; lives as long as the script.
class ScriptedConnection {
 public:
  ScriptedConnection(int socket, SSL* session) : socket_(socket), session_(session) {}

  /// Head and body of the next request; empty when the client closed.
  std::string read_request() {
    while (buffer_.find("\r\n\r\n") == std::string::npos)
      if (!fill()) return {};
    const std::size_t head = buffer_.find("\r\n\r\n") + 4;
    const std::size_t at = buffer_.find("Content-Length: ");
    const std::size_t length = at < head ? std::strtoul(buffer_.c_str() + at + 16, nullptr, 10) : 0;
    while (buffer_.size() < head + length)
      if (!fill()) return {};
    std::string request = buffer_.substr(0, head + length);
    buffer_.erase(0, head + length);
    return request;
  }

  void send(std::string_view bytes) const {
    SSL_write(session_, bytes.data(), static_cast<int>(bytes.size()));
  }
  void answer(int status, std::string_view body, std::string_view headers = "") const {
    send("HTTP/1.1 " + std::to_string(status) + " x\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }
  void start_chunks() const { send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
  void chunk(std::string_view bytes) const {
    std::array<char, 20> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
    send(size.data() + std::string(bytes) + "\r\n");
  }
  void end_chunks() const { send("0\r\n\r\n"); }

  /// A TCP reset instead of a proper end.
  void reset() const {
    const linger abort{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
  }
  /// Until the client closes or the test ends; true if nothing more was sent before.
  bool wait_for_close() { return !fill(); }

 private:
  bool fill() {
    std::array<char, 16'384> chunk;
    const int count = SSL_read(session_, chunk.data(), chunk.size());
    if (count <= 0) return false;
    buffer_.append(chunk.data(), static_cast<std::size_t>(count));
    return true;
  }

  int socket_;
  SSL* session_;
  std::string buffer_;
};

class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedConnection&)>;

  explicit ScriptedServer(std::vector<Script> scripts)
      : scripts_(std::move(scripts)), tls_(server_slot(ClientAuth::kNone)->get()) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to a socket whose client has left.
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_, 16);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : open_) ::shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::size_t accepted() const { return accepted_; }

 private:
  void accept_all() {
    while (!stopping_) {
      pollfd waiting{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 5) <= 0) continue;
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) continue;
      const std::size_t index = accepted_++;
      if (index < scripts_.size()) {
        const std::lock_guard lock(mutex_);
        open_.insert(socket);
        threads_.emplace_back([this, socket, index] { run(socket, scripts_[index]); });
      } else {
        ::close(socket);
      }
    }
  }

  void run(int socket, const Script& script) {
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL* session = SSL_new(tls_.get());
    SSL_set_fd(session, socket);
    if (SSL_accept(session) == 1) {
      ScriptedConnection connection(socket, session);
      script(connection);
    }
    SSL_free(session);
    ERR_clear_error();
    const std::lock_guard lock(mutex_);
    open_.erase(socket);
    ::close(socket);
  }

  std::vector<Script> scripts_;
  certs::TlsContext tls_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<std::size_t> accepted_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::set<int> open_;  // Under mutex_: sockets that scripts run on.
  std::thread acceptor_;
  std::vector<std::thread> threads_;
};

}  // namespace muster::testing

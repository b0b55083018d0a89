#pragma once
// TLS settings turned into OpenSSL contexts, and a slot that lets a listener or client pick up a
// new context while it runs. OpenSSL's types are only declared here.

#include "base/result.hpp"
#include "certs/certs.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

struct ssl_ctx_st;
struct ssl_st;

namespace muster::certs {

/// One reference to an immutable SSL_CTX; sessions made from it keep it alive on their own.
using TlsContext = std::shared_ptr<ssl_ctx_st>;

struct ServerTls {
  KeyPair pair;
  /// Absent: clients are not asked for a certificate.
  std::optional<std::string> client_ca_pem{};
  /// With a client CA: refuse clients without a certificate. A bad certificate is always refused.
  bool require_client_certificate = true;
};

struct ClientTls {
  /// Absent: the system's trust store.
  std::optional<std::string> ca_pem{};
  std::optional<KeyPair> pair{};
  bool skip_verification = false;
};

/// TLS 1.2 or newer, ALPN `http/1.1` only, no session resumption (a resumed session would outlive
/// the client CA it was checked with).
[[nodiscard]] Result<TlsContext> make_server_context(const ServerTls& tls);
[[nodiscard]] Result<TlsContext> make_client_context(const ClientTls& tls);

/// Before a client handshake: `host` goes into SNI (names only) and must be in the peer's
/// certificate as DNS name or IP address. With `verify` false only SNI is set.
[[nodiscard]] Result<void> expect_peer(ssl_st* session, const std::string& host, bool verify);

/// After a handshake: the common name of the verified peer certificate; nothing without one.
[[nodiscard]] std::optional<std::string> peer_common_name(const ssl_st* session);

/// The context that new connections use; running ones keep theirs. Safe from any thread.
class TlsSlot {
 public:
  explicit TlsSlot(TlsContext context) : context_(std::move(context)) {}
  [[nodiscard]] TlsContext get() const;
  void set(TlsContext context);

 private:
  mutable std::mutex mutex_;
  TlsContext context_;
};

}  // namespace muster::certs

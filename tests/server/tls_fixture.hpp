#pragma once
// Certificates and TLS contexts for tests that talk over loopback.

#include "certs/certs.hpp"
#include "certs/tls_context.hpp"

#include <boost/asio/ssl/context.hpp>
#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>

namespace muster::testing {

/// One CA, a server certificate for 127.0.0.1 and localhost, and a client certificate.
struct TestPki {
  certs::KeyPair ca;
  certs::KeyPair server;
  certs::KeyPair client;
};

inline Instant wall_now() {
  return Instant{std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()};
}

inline certs::Validity valid_today() {
  return {wall_now() - std::chrono::hours(1), wall_now() + std::chrono::hours(24)};
}

/// Made once per process: key generation under sanitizers takes tens of milliseconds.
inline const TestPki& test_pki() {
  static const TestPki pki = [] {
    TestPki made;
    made.ca = certs::issue_ca({.common_name = "test-ca", .validity = valid_today()}).value();
    made.server = certs::issue_leaf(made.ca, {.common_name = "server",
                                              .dns_names = {"localhost"},
                                              .ip_addresses = {"127.0.0.1"},
                                              .usage = certs::Usage::kServer,
                                              .validity = valid_today()})
                      .value();
    made.client = certs::issue_leaf(made.ca, {.common_name = "test-client",
                                              .usage = certs::Usage::kClient,
                                              .validity = valid_today()})
                      .value();
    return made;
  }();
  return pki;
}

enum class ClientAuth { kNone, kOptional, kRequired };

inline std::shared_ptr<certs::TlsSlot> server_slot(ClientAuth auth) {
  certs::ServerTls tls{.pair = test_pki().server};
  if (auth != ClientAuth::kNone) tls.client_ca_pem = test_pki().ca.certificate_pem;
  tls.require_client_certificate = auth == ClientAuth::kRequired;
  return std::make_shared<certs::TlsSlot>(certs::make_server_context(tls).value());
}

/// For Asio streams of a test; keeps the underlying context alive on its own.
inline boost::asio::ssl::context asio_context(const certs::TlsContext& context) {
  SSL_CTX_up_ref(context.get());
  return boost::asio::ssl::context(context.get());
}

inline boost::asio::ssl::context client_context(bool with_certificate) {
  certs::ClientTls tls{.ca_pem = test_pki().ca.certificate_pem};
  if (with_certificate) tls.pair = test_pki().client;
  return asio_context(certs::make_client_context(tls).value());
}

}  // namespace muster::testing

#include "certs/tls_context.hpp"

#include "certs/openssl.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

namespace muster::certs {
namespace {

// RFC 7301 wire form: one length octet before each protocol name.
constexpr std::array<unsigned char, 9> kAlpn = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// A client that offers nothing we know goes on without ALPN: HTTP/1.1 is what it then speaks.
int select_alpn(SSL* /*session*/, const unsigned char** out, unsigned char* out_size,
                const unsigned char* offered, unsigned int offered_size, void* /*context*/) {
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, out_size, kAlpn.data(), kAlpn.size(), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

Result<SslContextPtr> new_context(const SSL_METHOD* method) {
  SslContextPtr context(SSL_CTX_new(method));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return openssl_failure(ErrorCode::kInternal, "cannot make a TLS context");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  return context;
}

Result<void> use_pair(SSL_CTX* context, const KeyPair& pair) {
  const Result<void> matching = check_pair(pair);
  if (!matching) return matching;
  const BioPtr bio = memory_bio(pair.certificate_pem);
  const CertificatePtr leaf = next_certificate(bio.get());
  const Result<KeyPtr> key = parse_key(pair.key_pem);
  if (!leaf || !key || SSL_CTX_use_certificate(context, leaf.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key->get()) != 1)
    return openssl_failure(ErrorCode::kInvalidArgument, "cannot use the certificate");
  while (CertificatePtr intermediate = next_certificate(bio.get())) {
    if (SSL_CTX_add1_chain_cert(context, intermediate.get()) != 1)
      return openssl_failure(ErrorCode::kInvalidArgument, "cannot use the certificate chain");
  }
  ERR_clear_error();  // The end of the chain leaves "no start line" behind.
  return {};
}

// Adds every certificate of `pem` to the trust store and, for a server, to the list of CA names
// that clients choose their certificate by.
Result<void> trust(SSL_CTX* context, std::string_view pem, bool announce) {
  const BioPtr bio = memory_bio(pem);
  int count = 0;
  while (CertificatePtr ca = next_certificate(bio.get())) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) != 1 ||
        (announce && SSL_CTX_add_client_CA(context, ca.get()) != 1))
      return openssl_failure(ErrorCode::kInvalidArgument, "cannot use the CA certificate");
    ++count;
  }
  if (count == 0) return openssl_failure(ErrorCode::kInvalidArgument, "no PEM certificate");
  // A given intermediate CA is an anchor too, as it is for Go programs reading the same file.
  X509_STORE_set_flags(SSL_CTX_get_cert_store(context), X509_V_FLAG_PARTIAL_CHAIN);
  ERR_clear_error();
  return {};
}

TlsContext share(SslContextPtr context) {
  return {context.release(), [](SSL_CTX* last) { SSL_CTX_free(last); }};
}

bool is_ip_address(const std::string& host) {
  ASN1_OCTET_STRING* address = a2i_IPADDRESS(host.c_str());
  ASN1_OCTET_STRING_free(address);
  ERR_clear_error();
  return address != nullptr;
}

}  // namespace

Result<TlsContext> make_server_context(const ServerTls& tls) {
  Result<SslContextPtr> context = new_context(TLS_server_method());
  if (!context) return fail(context.error());
  const Result<void> pair = use_pair(context->get(), tls.pair);
  if (!pair) return fail(pair.error().with_context("server certificate"));
  SSL_CTX_set_alpn_select_cb(context->get(), select_alpn, nullptr);
  if (tls.client_ca_pem) {
    const Result<void> trusted = trust(context->get(), *tls.client_ca_pem, true);
    if (!trusted) return fail(trusted.error().with_context("client CA"));
    int mode = SSL_VERIFY_PEER;
    if (tls.require_client_certificate) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context->get(), mode, nullptr);
  }
  return share(std::move(*context));
}

Result<TlsContext> make_client_context(const ClientTls& tls) {
  Result<SslContextPtr> context = new_context(TLS_client_method());
  if (!context) return fail(context.error());
  if (SSL_CTX_set_alpn_protos(context->get(), kAlpn.data(), kAlpn.size()) != 0)
    return openssl_failure(ErrorCode::kInternal, "cannot set ALPN");
  if (tls.pair) {
    const Result<void> pair = use_pair(context->get(), *tls.pair);
    if (!pair) return fail(pair.error().with_context("client certificate"));
  }
  if (tls.skip_verification) {
    SSL_CTX_set_verify(context->get(), SSL_VERIFY_NONE, nullptr);
    return share(std::move(*context));
  }
  SSL_CTX_set_verify(context->get(), SSL_VERIFY_PEER, nullptr);
  if (tls.ca_pem) {
    const Result<void> trusted = trust(context->get(), *tls.ca_pem, false);
    if (!trusted) return fail(trusted.error().with_context("CA"));
  } else if (SSL_CTX_set_default_verify_paths(context->get()) != 1) {
    return openssl_failure(ErrorCode::kUnavailable, "cannot load the system's trust store");
  }
  return share(std::move(*context));
}

Result<void> expect_peer(ssl_st* session, const std::string& host, bool verify) {
  const bool ip = is_ip_address(host);
  // SSL_set_tlsext_host_name, whose macro hides a C cast. OpenSSL copies the name.
  if (!ip && SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                      const_cast<char*>(host.c_str())) != 1)
    return openssl_failure(ErrorCode::kInvalidArgument, "bad server name \"" + host + "\"");
  if (!verify) return {};
  const int ok = ip ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str())
                    : SSL_set1_host(session, host.c_str());
  if (ok != 1)
    return openssl_failure(ErrorCode::kInvalidArgument, "bad server name \"" + host + "\"");
  return {};
}

std::optional<std::string> peer_common_name(const ssl_st* session) {
  const X509* certificate = SSL_get0_peer_certificate(session);
  if (certificate == nullptr || SSL_get_verify_result(session) != X509_V_OK) return std::nullopt;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return std::string();
  const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                     static_cast<std::size_t>(ASN1_STRING_length(value)));
}

TlsContext TlsSlot::get() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

void TlsSlot::set(TlsContext context) {
  const std::lock_guard lock(mutex_);
  context_ = std::move(context);
}

}  // namespace muster::certs

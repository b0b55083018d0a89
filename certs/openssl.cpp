#include "certs/openssl.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <climits>

namespace muster::certs {
namespace {

// Without a callback of ours OpenSSL asks on the terminal for the pass phrase of an encrypted key.
int no_pass_phrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*context*/) {
  return 0;
}

}  // namespace

tl::unexpected<Error> openssl_failure(ErrorCode code, std::string_view what) {
  const unsigned long newest = ERR_peek_last_error();
  ERR_clear_error();
  std::string message(what);
  if (const char* reason = newest == 0 ? nullptr : ERR_reason_error_string(newest)) {
    message += ": ";
    message += reason;
  }
  return fail(code, std::move(message));
}

BioPtr memory_bio(std::string_view text) {
  const std::size_t size = text.size() > INT_MAX ? 0 : text.size();
  return BioPtr(BIO_new_mem_buf(text.data() == nullptr ? "" : text.data(), static_cast<int>(size)));
}

CertificatePtr next_certificate(BIO* bio) {
  return CertificatePtr(PEM_read_bio_X509(bio, nullptr, no_pass_phrase, nullptr));
}

Result<CertificatePtr> parse_certificate(std::string_view pem) {
  const BioPtr bio = memory_bio(pem);
  if (!bio) return openssl_failure(ErrorCode::kInternal, "out of memory");
  CertificatePtr certificate = next_certificate(bio.get());
  if (!certificate) return openssl_failure(ErrorCode::kInvalidArgument, "no PEM certificate");
  return certificate;
}

Result<KeyPtr> parse_key(std::string_view pem) {
  const BioPtr bio = memory_bio(pem);
  if (!bio) return openssl_failure(ErrorCode::kInternal, "out of memory");
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_pass_phrase, nullptr));
  if (!key) return openssl_failure(ErrorCode::kInvalidArgument, "no unencrypted PEM private key");
  return key;
}

}  // namespace muster::certs

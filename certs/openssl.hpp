#pragma once
// One owner type per OpenSSL object, for the sources of this folder only.

#include "base/result.hpp"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

namespace muster::certs {

template <auto Free>
struct OpenSslDeleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};

inline void free_openssl_text(char* text) {
  OPENSSL_free(text);
}

using BioPtr = std::unique_ptr<BIO, OpenSslDeleter<BIO_free_all>>;
using BigNumberPtr = std::unique_ptr<BIGNUM, OpenSslDeleter<BN_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpenSslDeleter<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, OpenSslDeleter<X509_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpenSslDeleter<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, OpenSslDeleter<GENERAL_NAMES_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, OpenSslDeleter<ASN1_TIME_free>>;
using TextPtr = std::unique_ptr<char, OpenSslDeleter<free_openssl_text>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, OpenSslDeleter<SSL_CTX_free>>;

/// An error with `what` and the newest text of OpenSSL's error queue, which is emptied.
[[nodiscard]] tl::unexpected<Error> openssl_failure(ErrorCode code, std::string_view what);

/// A read-only view of `text`; the text must outlive it.
[[nodiscard]] BioPtr memory_bio(std::string_view text);

/// The next certificate in `bio`; null when there is none (the error queue then says why).
[[nodiscard]] CertificatePtr next_certificate(BIO* bio);

/// The first certificate of `pem`; an encrypted or missing one is an error.
[[nodiscard]] Result<CertificatePtr> parse_certificate(std::string_view pem);
[[nodiscard]] Result<KeyPtr> parse_key(std::string_view pem);

}  // namespace muster::certs

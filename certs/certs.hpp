#pragma once
// X.509: issuing our own CA, server and client certificates (ECDSA P-256), and looking at PEM.
// Everything is PEM text in and out; no OpenSSL type shows. Any PEM text may come from a file or a
// Secret that somebody else wrote, so nothing here asserts on it.

#include "base/result.hpp"
#include "base/time.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::certs {

/// A certificate (leaf first, then any intermediates) and its private key, both PEM.
struct KeyPair {
  std::string certificate_pem;
  std::string key_pem{};
  bool operator==(const KeyPair&) const = default;
};

/// X.509 keeps whole seconds; fractions are cut off.
struct Validity {
  Instant not_before;
  Instant not_after;
};

struct CaRequest {
  std::string common_name{};
  Validity validity;
};

enum class Usage { kServer, kClient };

struct LeafRequest {
  std::string common_name{};
  std::vector<std::string> organizations{};  ///< Groups, when the API server reads the certificate.
  std::vector<std::string> dns_names{};
  std::vector<std::string> ip_addresses{};  ///< IPv4 or IPv6 text; anything else is an error.
  Usage usage = Usage::kServer;
  Validity validity;
};

/// A self-signed CA that may sign leaves only (path length 0).
[[nodiscard]] Result<KeyPair> issue_ca(const CaRequest& request);

/// A new key and its certificate, signed by `ca`. Serial numbers are 159 random bits.
[[nodiscard]] Result<KeyPair> issue_leaf(const KeyPair& ca, const LeafRequest& request);

struct CertificateInfo {
  std::string common_name{};  ///< Of the subject; empty when it has none.
  std::string serial_hex{};
  Instant not_before;
  Instant not_after;
  std::vector<std::string> dns_names{};
  std::vector<std::string> ip_addresses{};
  bool is_ca = false;
};

/// Reads the first certificate of `pem`.
[[nodiscard]] Result<CertificateInfo> inspect(std::string_view pem);

/// An error unless `pair.key_pem` is the private key of the first certificate of the pair.
[[nodiscard]] Result<void> check_pair(const KeyPair& pair);

/// An error unless the first certificate of `leaf_pem` carries a valid signature of `ca_pem`.
[[nodiscard]] Result<void> check_issued_by(std::string_view leaf_pem, std::string_view ca_pem);

/// True from two thirds of the lifetime on: the time left covers a long outage of whoever renews.
[[nodiscard]] bool needs_renewal(const CertificateInfo& info, Instant now);

}  // namespace muster::certs

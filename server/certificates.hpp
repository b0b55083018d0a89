#pragma once
// The certificates muster serves with and the one kube-scheduler shows to it: somebody else's
// files, or our own CA with two leaves, kept in a folder or (in a cluster) in Secrets.

#include "base/result.hpp"
#include "base/time.hpp"
#include "certs/certs.hpp"
#include "kube/client/api_client.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::server {

struct Certificates {
  std::string ca_pem;         ///< Signs the server's certificate: the webhooks' caBundle.
  std::string client_ca_pem;  ///< Signs what clients of the extender must show.
  certs::KeyPair server;
  bool operator==(const Certificates&) const = default;
};

struct CertificateNames {
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
};

/// `muster-webhook.<ns>.svc` and its like, localhost, and the addresses listened on.
[[nodiscard]] CertificateNames server_names(const std::string& ns,
                                            const std::vector<std::string>& hosts);

/// From a folder. With `tls.crt` in it, the folder belongs to somebody else: `tls.crt`, `tls.key`
/// and `ca.crt` (who signed both it and the clients) are read. Otherwise `ca.crt`, `ca.key`,
/// `server.crt`, `server.key`, `client.crt`, `client.key` are ours: made when missing, the leaves
/// made anew when two thirds of their life are over or the names changed.
[[nodiscard]] Result<Certificates> certificates_from_folder(const std::string& folder,
                                                            const CertificateNames& names,
                                                            Instant now);

/// From the Secret `muster-certs` of our namespace (`ca.crt`, `ca.key`, `tls.crt`, `tls.key`); the
/// scheduler's certificate goes into `muster-extender-client`. Both are made when missing; of two
/// replicas that try at once, one wins and the other reads. Blocks; not on the client's strand.
[[nodiscard]] Result<Certificates> certificates_from_secrets(kube::ApiClient& client,
                                                             const std::string& ns,
                                                             const CertificateNames& names,
                                                             Instant now);

}  // namespace muster::server

#pragma once
// What `muster serve` is told, after flags and file were merged.

#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "engine/options.hpp"
#include "kube/codec/quota_requests.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace muster::server {

/// Where to listen; port 0: any free one.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};

/// `HOST:PORT` (`[::1]:9443` for IPv6) or `none`, which is nothing; an error says what was wanted.
[[nodiscard]] Result<std::optional<Endpoint>> parse_endpoint(const std::string& text);

struct Options {
  std::string kubeconfig;  ///< Empty: in-cluster.
  std::optional<Endpoint> extender;
  std::optional<Endpoint> webhook;
  std::optional<Endpoint> metrics;
  bool controller = true;  ///< Off: answers only, writes nothing.
  bool leader_elect = true;
  /// Certificates: `tls.crt`, `tls.key`, `ca.crt` that somebody put there, else our own, made
  /// there. Empty: the Secret muster-certs inside a cluster, a folder in the user's home outside.
  std::string cert_dir;

  bool manage_jobs_without_queue_name = false;
  LabelSelector managed_namespaces;
  engine::Options engine;
  std::int64_t elastic_window = 64;  ///< As ControllerOptions::elastic_window.
  bool protect_priority = true;
  std::string second_scheduler;  ///< Empty: none.
  std::set<ResourceName> managed_resources;
  kube::ResourceRules resource_rules;

  /// The Lease of another controller of the same objects, which must not be held.
  std::string peer_lease_name;
  std::string peer_lease_namespace;
};

}  // namespace muster::server

#pragma once
// Where the API server is and who we are: from a kubeconfig file or from inside a pod.

#include "base/result.hpp"
#include "base/time.hpp"
#include "certs/certs.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::kube {

struct NoToken {
  bool operator==(const NoToken&) const = default;
};
struct StaticToken {
  std::string token;
  bool operator==(const StaticToken&) const = default;
};
/// Read again once a minute: the kubelet rotates service account tokens in place.
struct TokenFile {
  std::string path{};
  bool operator==(const TokenFile&) const = default;
};
/// A client.authentication.k8s.io/v1 (or v1beta1) credential plugin; see exec_plugin.hpp.
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> environment;  ///< Added to our own.
  std::string install_hint;
  std::string cluster_info;  ///< JSON for `spec.cluster`; empty unless provideClusterInfo.
  bool operator==(const ExecPlugin&) const = default;
};
using TokenSource = std::variant<NoToken, StaticToken, TokenFile, ExecPlugin>;

struct ClusterConfig {
  std::string host{};  ///< Name or IP address, without brackets.
  std::uint16_t port = 443;
  std::string path_prefix{};  ///< Of a server URL with a path (`/k8s/clusters/c1`); no final slash.
  std::optional<std::string> ca_pem{};  ///< Absent: the system's trust store.
  bool skip_tls_verify = false;
  std::string tls_server_name{};  ///< Checked and sent instead of `host`; empty: `host`.
  std::optional<certs::KeyPair> client_pair{};
  TokenSource token{};
  std::string default_namespace = "default";
  bool operator==(const ClusterConfig&) const = default;
};

/// Reads the file and the files it names (relative paths are relative to it), as client-go does:
/// `*-data` beats files, `token` beats `tokenFile`. `context` empty: current-context. Errors name
/// the file and the field.
[[nodiscard]] Result<ClusterConfig> load_kubeconfig(const std::string& path,
                                                    const std::string& context = "");
/// The same from text; `directory` is what relative paths start from.
[[nodiscard]] Result<ClusterConfig> parse_kubeconfig(const std::string& text,
                                                     const std::string& directory,
                                                     const std::string& context);

/// From the pod's environment and mounted service account. `getenv` returns null for unset.
struct InClusterSources {
  std::function<const char*(const char*)> getenv;
  std::string service_account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";
};
[[nodiscard]] Result<ClusterConfig> in_cluster_config(const InClusterSources& sources);

}  // namespace muster::kube

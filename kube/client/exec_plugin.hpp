#pragma once
// Credential plugins: a program of the user's that prints who we are.

#include "kube/client/kubeconfig.hpp"

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace muster::kube {

/// What requests and connections carry to say who we are.
struct Credential {
  std::string token;                            ///< Bearer token; empty: none.
  std::optional<certs::KeyPair> client_pair{};  ///< From a plugin; beats that of the kubeconfig.
  std::optional<Instant> expires{};             ///< Absent: good until the server refuses it.
};

/// An ExecCredential object of the plugin's `api_version`, as printed by it.
[[nodiscard]] Result<Credential> parse_exec_credential(std::string_view json,
                                                       const std::string& api_version);

/// Runs the plugin and waits for it: blocks, so not for a network thread. Its stderr is ours, its
/// stdin is empty. On the time-out or when stopped, it and its process group are killed.
[[nodiscard]] Result<Credential> run_exec_plugin(const ExecPlugin& plugin, Duration timeout,
                                                 const std::stop_token& stop);

}  // namespace muster::kube

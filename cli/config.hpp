#pragma once
// The configuration file: up to two YAML documents, the Configuration that clusters already have
// (config.kueue.x-k8s.io, v1beta1 or v1beta2) and the ServerConfig of muster.dev/v1. Design 4.5.

#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "engine/options.hpp"
#include "kube/codec/quota_requests.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

/// The Lease that another controller of the same objects would hold, from `leaderElection`.
struct PeerLease {
  std::string name = "c1f6bfd2.kueue.x-k8s.io";
  std::string ns = "kueue-system";
};

/// What is obeyed of a Configuration. Its other fields are named in Config::warnings.
struct Configuration {
  bool manage_jobs_without_queue_name = false;
  /// Outside it nothing is queued, labelled or not. Default: all but kube-system and
  /// muster-system.
  LabelSelector managed_namespaces{
      .match_labels = {},
      .match_expressions = {{.key = "kubernetes.io/metadata.name",
                             .op = SelectorRequirement::Operator::kNotIn,
                             .values = {"kube-system", "muster-system"}}}};
  std::optional<bool> leader_elect;  ///< leaderElection.leaderElect; ServerConfig beats it.
  PeerLease peer_lease;
  /// integrations.frameworks as far as served: `batch/job`, `pod`. Not given: both.
  bool manage_jobs = true;
  bool manage_pods = true;
  kube::ResourceRules resource_rules;  ///< resources.excludeResourcePrefixes, transformations.
  /// resources.quotaCheckStrategy, fairSharing, admissionFairSharing; see under_profile().
  engine::Options engine;
};

enum class Profile { kMuster, kKueue };
enum class PodPriority { kProtect, kKeep };

/// Every key of a ServerConfig; absent: the file does not say, the default of `serve` holds.
struct ServerConfig {
  std::optional<std::string> kubeconfig;
  std::optional<std::string> extender_address;  ///< `HOST:PORT` or `none`, as the flag.
  std::optional<std::string> webhook_address;
  std::optional<std::string> metrics_address;
  std::optional<std::string> api_address;
  std::optional<bool> controller;
  std::optional<bool> leader_elect;
  std::optional<std::string> cert_dir;
  std::optional<log::Level> log_level;
  /// schedulerName that the webhook gives to pods which ask for a managed resource.
  std::optional<std::string> second_scheduler;
  std::optional<std::vector<ResourceName>> managed_resources;  ///< Empty list: every pod.
  std::optional<std::int64_t> elastic_window;                  ///< Pods, at least 1.
  std::optional<Profile> profile;
  std::optional<PodPriority> pod_priority;
};

struct Config {
  Configuration queueing;
  ServerConfig server;
  /// One line for each field that is accepted without effect; to be shown to the user.
  std::vector<std::string> warnings;
};

/// What a configuration file says about decisions, under a profile: with kKueue everything that
/// muster does beyond the queueing semantics is off.
[[nodiscard]] engine::Options under_profile(Profile profile, engine::Options options);

/// `debug`, `info`, `warning`, `error`.
[[nodiscard]] std::optional<log::Level> parse_log_level(std::string_view word);
[[nodiscard]] std::optional<Profile> parse_profile(std::string_view word);
[[nodiscard]] std::optional<PodPriority> parse_pod_priority(std::string_view word);

/// An error names the document and the field path. Unknown keys of a ServerConfig, a third
/// document, two documents of one kind, and other kinds are errors.
[[nodiscard]] Result<Config> parse_config(std::string_view text);

/// The same from a file; an error names it.
[[nodiscard]] Result<Config> read_config(const std::string& path);

}  // namespace muster::cli

#pragma once
// The command line of `muster serve`. What it starts is server/'s business: main.cpp joins the two.

#include "cli/config.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muster::cli {

/// Flags merged with the configuration file; flags beat the file (design 4.5).
struct ServeSettings {
  std::string kubeconfig;  ///< Empty: in-cluster.
  std::string extender_address = "127.0.0.1:9444";
  std::string webhook_address = "127.0.0.1:9443";
  std::string metrics_address = "127.0.0.1:8080";
  std::string api_address = "127.0.0.1:8082";
  bool controller = true;
  bool leader_elect = true;
  std::string cert_dir;
  log::Level log_level = log::Level::kInfo;
  std::string second_scheduler;
  std::vector<ResourceName> managed_resources;
  std::int64_t elastic_window = 64;  ///< Pods.
  PodPriority pod_priority = PodPriority::kProtect;
  Profile profile = Profile::kMuster;
  Configuration queueing;
};

/// Adds the subcommand; its callback sets `action`, which merges flags and file, prints the file's
/// warnings and calls `run`, whose result is the exit code.
void register_serve(CLI::App& app, std::function<int()>& action,
                    std::function<int(const ServeSettings&)> run);

}  // namespace muster::cli

#include "cli/serve.hpp"

#include "cli/command.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <utility>

namespace muster::cli {
namespace {

struct Flags {
  std::string kubeconfig;
  std::string config;
  std::string extender_address;
  std::string webhook_address;
  std::string metrics_address;
  std::string api_address;
  std::string controller;
  bool leader_elect = true;
  std::string cert_dir;
  std::string log_level;
  std::string second_scheduler;
};

template <class T>
void take(T& target, const std::optional<T>& value) {
  if (value) target = *value;
}

void take(std::string& target, const CLI::App& command, const char* flag,
          const std::string& value) {
  if (command.count(flag) > 0) target = value;
}

void merge_file(ServeSettings& settings, const Config& config) {
  const ServerConfig& file = config.server;
  settings.queueing = config.queueing;
  take(settings.leader_elect, config.queueing.leader_elect);
  take(settings.kubeconfig, file.kubeconfig);
  take(settings.extender_address, file.extender_address);
  take(settings.webhook_address, file.webhook_address);
  take(settings.metrics_address, file.metrics_address);
  take(settings.api_address, file.api_address);
  take(settings.controller, file.controller);
  take(settings.leader_elect, file.leader_elect);
  take(settings.cert_dir, file.cert_dir);
  take(settings.log_level, file.log_level);
  take(settings.second_scheduler, file.second_scheduler);
  take(settings.managed_resources, file.managed_resources);
  take(settings.elastic_window, file.elastic_window);
  take(settings.pod_priority, file.pod_priority);
  take(settings.profile, file.profile);
}

void merge_flags(ServeSettings& settings, const CLI::App& command, const Flags& flags) {
  take(settings.kubeconfig, command, "--kubeconfig", flags.kubeconfig);
  take(settings.extender_address, command, "--extender-address", flags.extender_address);
  take(settings.webhook_address, command, "--webhook-address", flags.webhook_address);
  take(settings.metrics_address, command, "--metrics-address", flags.metrics_address);
  take(settings.api_address, command, "--api-address", flags.api_address);
  take(settings.cert_dir, command, "--cert-dir", flags.cert_dir);
  take(settings.second_scheduler, command, "--second-scheduler", flags.second_scheduler);
  if (command.count("--controller") > 0) settings.controller = flags.controller == "on";
  if (command.count("--leader-elect") > 0) settings.leader_elect = flags.leader_elect;
  if (command.count("--log-level") > 0) {
    take(settings.log_level, parse_log_level(flags.log_level));
  }
}

}  // namespace

void register_serve(CLI::App& app, std::function<int()>& action,
                    std::function<int(const ServeSettings&)> run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("serve", "Run the server");
  command->add_option("--kubeconfig", flags->kubeconfig,
                      "Kubeconfig of the cluster to serve; without it: the cluster we run in");
  command->add_option("--config", flags->config,
                      "Configuration file (Configuration, ServerConfig)");
  const std::string form = " (HOST:PORT or none)";
  command->add_option("--extender-address", flags->extender_address,
                      "Where kube-scheduler asks, 127.0.0.1:9444 unless set" + form);
  command->add_option("--webhook-address", flags->webhook_address,
                      "Where the API server asks, 127.0.0.1:9443 unless set" + form);
  command->add_option("--metrics-address", flags->metrics_address,
                      "/metrics, /livez and /readyz, 127.0.0.1:8080 unless set" + form);
  command->add_option("--api-address", flags->api_address,
                      "The API for people, 127.0.0.1:8082 unless set" + form);
  command
      ->add_option("--controller", flags->controller,
                   "on: decide and write; off: answer only, write nothing")
      ->check(CLI::IsMember({"on", "off"}));
  command->add_flag("--leader-elect,!--no-leader-elect", flags->leader_elect,
                    "Decide only while holding the Lease muster (on unless --leader-elect=false)");
  command->add_option("--cert-dir", flags->cert_dir,
                      "Folder of the certificates; ours are made there when it has none");
  command->add_option("--log-level", flags->log_level, "Lowest level that is logged")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  command->add_option("--second-scheduler", flags->second_scheduler,
                      "schedulerName given to every pod that asks for a managed resource");
  command->callback([flags, command, run = std::move(run), &action] {
    action = [flags, command, run] {
      ServeSettings settings;
      if (!flags->config.empty()) {
        const auto config = read_config(flags->config);
        if (!config) return refuse("serve", config.error());
        for (const std::string& warning : config->warnings) print_warning("serve", warning);
        merge_file(settings, *config);
      }
      merge_flags(settings, *command, *flags);
      return run(settings);
    };
  });
}

}  // namespace muster::cli

// The program: commands of cli/, and the one place where `serve` meets server/.

#include "cli/certs_command.hpp"
#include "cli/command.hpp"
#include "cli/decide.hpp"
#include "cli/serve.hpp"
#include "cli/usage.hpp"
#include "cli/version.hpp"
#include "server/log_sink.hpp"
#include "server/serve.hpp"

#include <CLI/CLI.hpp>

#include <exception>

namespace {

namespace cli = muster::cli;
namespace server = muster::server;

muster::Result<server::Options> to_options(const cli::ServeSettings& settings) {
  server::Options options;
  options.kubeconfig = settings.kubeconfig;
  for (const auto& [flag, text, endpoint] :
       {std::tuple{"--extender-address", &settings.extender_address, &options.extender},
        std::tuple{"--webhook-address", &settings.webhook_address, &options.webhook},
        std::tuple{"--metrics-address", &settings.metrics_address, &options.metrics}}) {
    auto parsed = server::parse_endpoint(*text);
    if (!parsed) return muster::fail(parsed.error().with_context(flag));
    *endpoint = *parsed;
  }
  const auto api = server::parse_endpoint(settings.api_address);
  if (!api) return muster::fail(api.error().with_context("--api-address"));
  options.controller = settings.controller;
  options.leader_elect = settings.leader_elect;
  options.cert_dir = settings.cert_dir;
  options.manage_jobs_without_queue_name = settings.queueing.manage_jobs_without_queue_name;
  options.managed_namespaces = settings.queueing.managed_namespaces;
  options.engine = cli::under_profile(settings.profile, settings.queueing.engine);
  options.elastic_window = settings.elastic_window;
  options.protect_priority = settings.pod_priority == cli::PodPriority::kProtect;
  options.second_scheduler = settings.second_scheduler;
  options.managed_resources.insert(settings.managed_resources.begin(),
                                   settings.managed_resources.end());
  options.resource_rules = settings.queueing.resource_rules;
  options.peer_lease_name = settings.queueing.peer_lease.name;
  options.peer_lease_namespace = settings.queueing.peer_lease.ns;
  return options;
}

int run_server(const cli::ServeSettings& settings) {
  const auto options = to_options(settings);
  if (!options) return cli::refuse("serve", options.error());
  server::log_to_stderr(settings.log_level);
  return server::serve(*options);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("muster: a queue for GPU fleets that keep the stock kube-scheduler", "muster");
  app.require_subcommand(1);
  std::function<int()> action;
  cli::register_serve(app, action, run_server);
  cli::register_decide(app, action);
  cli::register_certs(app, action);
  cli::register_version(app, action);
  if (const auto code = cli::parse_command_line(app, {argv + 1, argv + argc})) return *code;
  try {
    return action();
  } catch (const std::exception& error) {
    return cli::refuse("internal error", muster::Error{muster::ErrorCode::kInternal, error.what()});
  }
}

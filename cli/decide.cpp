#include "cli/decide.hpp"

#include "cli/command.hpp"
#include "cli/decide_run.hpp"
#include "cli/input.hpp"
#include "cli/report_yaml.hpp"
#include "cli/unknown_fields.hpp"
#include "cli/world.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

namespace muster::cli {
namespace {

struct Flags {
  std::vector<std::string> paths;
  std::string config;
  std::string now;
  std::string output = "table";
};

constexpr const char* kFooter = R"(
Reads Node, Namespace, Pod, PriorityClass, LimitRange, RuntimeClass, ResourceFlavor, ClusterQueue,
Cohort, LocalQueue, WorkloadPriorityClass, Topology, AdmissionCheck, Workload and Job, as kubectl
prints them; other kinds bring a warning. Nothing is sent anywhere.

  muster decide -f queues/ -f jobs.yaml              what would happen, as a table
  kubectl get ... -o yaml | muster decide -f - -o json
  muster decide -f all.yaml -o yaml > after.yaml     the same objects, decided

Exit code: 0 also when work stays pending, 1 when the decisions never settle, 2 for bad input.)";

ReportFormat format_of(const std::string& word) {
  if (word == "json") return ReportFormat::kJson;
  return word == "yaml" ? ReportFormat::kYaml : ReportFormat::kTable;
}

constexpr const char* kNoNodes =
    "the input has no Nodes, so nothing that needs their room can be admitted; add kubectl get "
    "nodes -o yaml";

bool any_lacks_room(const DecisionReport& report) {
  return std::any_of(report.workloads.begin(), report.workloads.end(), [](const auto& workload) {
    return workload.second.waiting.reason ==
           engine::to_string(engine::PendingReason::kTopologyPlacementFailed);
  });
}

Result<DecideResult> read_and_decide(const Flags& flags) {
  DecideOptions options;
  options.format = format_of(flags.output);
  if (!flags.now.empty()) {
    const auto now = parse_rfc3339(flags.now);
    if (!now) return fail(now.error().with_context("--now"));
    options.now = *now;
  }
  if (!flags.config.empty()) {
    auto config = read_config(flags.config);
    if (!config) return fail(config.error());
    options.config = *std::move(config);
  }
  auto manifests = read_manifests(flags.paths);
  if (!manifests) return fail(manifests.error());
  return decide(*std::move(manifests), options);
}

int run(const Flags& flags) {
  const auto result = read_and_decide(flags);
  if (!result) return refuse("decide", result.error());
  for (const std::string& warning : result->warnings) print_warning("decide", warning);
  for (const std::string& note : result->notes) print_note("decide", note);
  return print_report(result->report);
}

}  // namespace

Result<DecideResult> decide(Manifests manifests, const DecideOptions& options) {
  DecideResult result;
  result.warnings = options.config.warnings;
  result.warnings.insert(result.warnings.end(), manifests.warnings.begin(),
                         manifests.warnings.end());
  for (std::string& warning : unknown_fields(manifests.objects)) {
    result.warnings.push_back(std::move(warning));
  }
  auto input = decode_input(std::move(manifests.objects));
  if (!input) return fail(input.error());
  const Instant now = options.now.value_or(input->latest.value_or(Instant{}));
  auto world = build_world(*std::move(input), options.config.queueing);
  if (!world) return fail(world.error());
  result.warnings.insert(result.warnings.end(), world->warnings.begin(), world->warnings.end());
  const engine::Options engine = under_profile(
      options.config.server.profile.value_or(Profile::kMuster), options.config.queueing.engine);
  const auto outcome = run_decide(*world, engine, now, options.run);
  if (!outcome) return fail(outcome.error());
  result.violations = outcome->violations;
  result.notes = std::move(world->notes);
  if (world->input.nodes.empty() && any_lacks_room(outcome->report)) {
    result.notes.emplace_back(kNoNodes);
  }
  switch (options.format) {
    case ReportFormat::kTable:
      result.report = to_table(outcome->report);
      break;
    case ReportFormat::kJson:
      result.report = to_json(outcome->report).pretty() + "\n";
      break;
    case ReportFormat::kYaml:
      result.report = to_yaml_list(*world, *outcome);
      break;
  }
  return result;
}

void register_decide(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("decide", "Say what the engine decides about manifests");
  const auto flags = std::make_shared<Flags>();
  command
      ->add_option("-f,--filename", flags->paths,
                   "File, directory (its .yaml, .yml and .json files) or - for standard input; may "
                   "be given several times")
      ->required()
      ->type_name("PATH");
  command->add_option("--config", flags->config, "Configuration file, as for serve")
      ->type_name("FILE");
  command
      ->add_option("--now", flags->now,
                   "Time of the decision, RFC 3339 (default: the latest time in the input)")
      ->type_name("TIME");
  command->add_option("-o,--output", flags->output, "Form of the report: table, json or yaml")
      ->check(CLI::IsMember({"table", "json", "yaml"}));
  command->footer(kFooter);
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace muster::cli

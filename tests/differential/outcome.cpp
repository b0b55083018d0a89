#include "tests/differential/outcome.hpp"

#include "cli/config.hpp"
#include "cli/decide.hpp"
#include "cli/decide_run.hpp"
#include "cli/input.hpp"
#include "cli/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace muster::differential {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

std::string flavors_of(const engine::PodSetAssignment& assignment) {
  std::vector<std::string> flavors;
  for (const auto& [resource, flavor] : assignment.flavors) flavors.push_back(flavor.value());
  const std::set<std::string> different(flavors.begin(), flavors.end());
  if (different.size() == 1) return flavors.front();
  return fmt::format("{}", fmt::join(flavors, "."));
}

/// With a topology: pods by node, in order of rank.
std::string domains_of(const engine::PodSetAssignment& assignment) {
  if (!assignment.topology) return "";
  std::vector<std::string> domains;
  for (const engine::NodeCount& entry : assignment.nodes) {
    domains.push_back(fmt::format("{}:{}", entry.node, entry.count));
  }
  return fmt::format("@{}", fmt::join(domains, ","));
}

std::string number_of(const std::string& workload) {
  return workload.substr(workload.find("/w") + 2);
}

char letter_of(const std::string& rule) {
  if (rule == "InClusterQueue") return 'Q';
  if (rule == "InCohortReclamation") return 'R';
  return rule == "InCohortReclaimWhileBorrowing" ? 'B' : 'F';
}

std::string tokens_of(const cli::World& world, const cli::Outcome& outcome) {
  std::map<std::string, std::string> holding;
  for (const cli::Entry& entry : world.entries) {
    if (!entry.spec.admission) continue;
    std::vector<std::string> sets;
    for (std::size_t i = 0; i < entry.spec.admission->pod_sets.size(); ++i) {
      const engine::PodSetAssignment& assignment = entry.spec.admission->pod_sets[i];
      const bool whole = assignment.count == entry.spec.pod_sets[i].count;
      sets.push_back(flavors_of(assignment) +
                     (whole ? std::string() : fmt::format("*{}", assignment.count)) +
                     domains_of(assignment));
    }
    const std::string number = number_of(entry.key.to_string());
    holding[number] = fmt::format("{}={}", number, fmt::join(sets, "+"));
  }
  std::map<std::string, std::string> victims;
  for (const cli::Decision& decision : outcome.report.decisions) {
    if (decision.type != cli::DecisionType::kPreempted) continue;
    const std::string number = number_of(decision.workload);
    victims.emplace(number, fmt::format("!{}{}", number, letter_of(decision.reason)));
  }
  std::vector<std::string> tokens;
  for (const auto& [number, token] : holding) tokens.push_back(token);
  for (const auto& [number, token] : victims) tokens.push_back(token);
  return fmt::format("{}", fmt::join(tokens, " "));
}

}  // namespace

std::string list_of(const std::vector<kube::Json>& objects) {
  return kube::Json::object({{"apiVersion", kube::Json::string("v1")},
                             {"kind", kube::Json::string("List")},
                             {"items", kube::Json::array(objects)}})
      .dump();
}

Decided decide_world(const std::string& manifests, const std::string& configuration,
                     const engine::PeerFacts& facts) {
  const cli::Config config = value_of(cli::parse_config(configuration));
  cli::Manifests parsed = value_of(cli::parse_manifests({{"world.json", manifests}}));
  cli::Input input = value_of(cli::decode_input(std::move(parsed.objects)));
  cli::World world = value_of(cli::build_world(std::move(input), config.queueing));
  const Instant now = parse_rfc3339("2026-03-01T01:00:00Z").value();
  Decided decided;
  engine::Options options = cli::under_profile(
      config.server.profile.value_or(cli::Profile::kMuster), config.queueing.engine);
  options.peer = facts;
  const auto outcome = cli::run_decide(world, options, now, {.check_invariants = true});
  if (!outcome) {
    decided.outcome = "endless";
    return decided;
  }
  decided.outcome = tokens_of(world, *outcome);
  decided.report = cli::to_json(outcome->report).pretty();
  decided.violations = outcome->violations;
  decided.decisions = outcome->report.decisions;
  for (const cli::InputObject& object : world.input.objects) decided.after.push_back(object.object);
  for (const cli::Entry& entry : world.entries) decided.after[entry.position] = entry.object;
  return decided;
}

}  // namespace muster::differential

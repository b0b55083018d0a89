#pragma once
// The engine over a World, cycle by cycle, with every effect carried out at once. Design 4.2.

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/decision_report.hpp"
#include "cli/world.hpp"
#include "engine/options.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace muster::cli {

struct Outcome {
  DecisionReport report;
  /// Pods that left with an evicted workload: index into Input::objects -> the eviction's reason.
  std::map<std::size_t, std::string> pods_gone;
  std::vector<std::string> violations;  ///< With RunOptions::check_invariants; one line each.
};

struct RunOptions {
  bool check_invariants = false;  ///< Of the engine, after every cycle: for tests, costs time.
};

/// Takes decisions until nothing changes; cycle n is at `now` + n s, each one whole pass, whatever
/// budget `options` give. The entries' `object` and
/// `spec` are brought up to date. kInternal when the decisions never settle.
[[nodiscard]] Result<Outcome> run_decide(World& world, const engine::Options& options, Instant now,
                                         const RunOptions& run = {});

}  // namespace muster::cli

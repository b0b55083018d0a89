#pragma once
// `muster decide`: what the engine decides about manifests, offline. Design 4.2, docs/decide.md.

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/config.hpp"
#include "cli/decide_run.hpp"
#include "cli/manifest_reader.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muster::cli {

enum class ReportFormat { kTable, kJson, kYaml };

struct DecideOptions {
  Config config;
  std::optional<Instant> now;  ///< Absent: the latest time in the input, else 1970-01-01.
  ReportFormat format = ReportFormat::kTable;
  RunOptions run;
};

struct DecideResult {
  std::string report;                   ///< For standard output.
  std::vector<std::string> warnings;    ///< One line each, for standard error.
  std::vector<std::string> notes;       ///< Likewise; nothing is wrong.
  std::vector<std::string> violations;  ///< With RunOptions::check_invariants.
};

/// A pure function of its arguments. kInternal: the decisions never settle; every other error is
/// about the input, and names the place.
[[nodiscard]] Result<DecideResult> decide(Manifests manifests, const DecideOptions& options);

/// Adds the subcommand; its callback sets `action`, which reads, decides, prints, and returns the
/// exit code.
void register_decide(CLI::App& app, std::function<int()>& action);

}  // namespace muster::cli

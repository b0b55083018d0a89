#pragma once
// The files of tests/scenarios; README.md there has their form.

#include "cli/manifest_reader.hpp"
#include "kube/codec/json.hpp"

#include <string>
#include <vector>

namespace muster::cli::test {

struct Scenario {
  kube::Json header;
  std::vector<NamedText> texts;  ///< The bases, then the case's own manifests.
};

/// Names in byte order.
[[nodiscard]] std::vector<std::string> scenario_files();

/// Throws std::runtime_error when the header is no single document.
[[nodiscard]] Scenario load_scenario(const std::string& file);

}  // namespace muster::cli::test

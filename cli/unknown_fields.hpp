#pragma once
// Members of the queueing kinds and of Jobs that their API does not have: mostly slips of the pen,
// which would otherwise change a decision in silence.

#include "cli/manifest_reader.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

/// One line for each kind and field path, of the first object that has it, with the nearest known
/// name where one is close. Pod templates, and the status of all but Workloads, are not looked
/// into.
[[nodiscard]] std::vector<std::string> unknown_fields(const std::vector<InputObject>& objects);

/// What is known, in dotted paths (`spec.levels.nodeLabel`), in byte order; empty for kinds that
/// are not checked. For the test that holds it against the CRDs.
[[nodiscard]] std::vector<std::string> known_fields(ManifestKind kind, std::string_view version);

}  // namespace muster::cli

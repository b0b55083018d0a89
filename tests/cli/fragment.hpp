#pragma once
// Comparing a report with the part of it that a test cares about.

#include "kube/codec/json.hpp"

#include <string>

namespace muster::cli::test {

/// Empty when `actual` has everything `wanted` says, else where they differ. Members of objects may
/// be more than wanted, elements of arrays may not; a wanted null means absent; a wanted string
/// `~text` means one that contains the text.
[[nodiscard]] std::string mismatch(const kube::Json& wanted, const kube::Json& actual,
                                   const std::string& path = "");

/// Empty when `report` keeps the contract of a DecisionReport, else the first breach.
[[nodiscard]] std::string contract_breach(const kube::Json& report);

}  // namespace muster::cli::test

#pragma once
// The input brought up to date: to be read again, or applied to the next question. Design 4.2.

#include "cli/decide_run.hpp"
#include "cli/world.hpp"

#include <string>

namespace muster::cli {

/// One List in input order: every input object, Workloads with their decided status, and behind
/// each Job, pod or pod group that had no Workload the one it gets. Pods that left with an evicted
/// workload are shown as failed, so that they take no room when they are read again.
[[nodiscard]] std::string to_yaml_list(const World& world, const Outcome& outcome);

}  // namespace muster::cli

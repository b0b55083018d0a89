#pragma once
// What became of a world, in the words the peer program uses: one token for each workload that
// holds quota (`3=f0`, `4=f0.f1+f2*2`: flavors by name of resource where they differ, pod sets
// joined by +, a count below the asked one behind *, with a topology the pods of each node:
// `3=f0@x1:2,x3:1`), and one for each that was preempted, with the first rule (`!2R`). `endless`
// for a world that never settles.

#include "cli/decision_report.hpp"
#include "engine/options.hpp"
#include "kube/codec/json.hpp"
#include "tests/differential/worlds.hpp"

#include <string>
#include <vector>

namespace muster::differential {

struct Decided {
  std::string outcome;
  std::string report;                   ///< The JSON report, byte for byte; empty: endless.
  std::vector<std::string> violations;  ///< Of the engine's invariants, after any step.
  std::vector<cli::Decision> decisions;
  std::vector<kube::Json> after;  ///< The objects of the world, Workloads as decided.
};

[[nodiscard]] std::string list_of(const std::vector<kube::Json>& objects);

/// `muster decide` on these manifests. Throws when they are not even read.
[[nodiscard]] Decided decide_world(const std::string& manifests, const std::string& configuration,
                                   const engine::PeerFacts& facts = {});

}  // namespace muster::differential

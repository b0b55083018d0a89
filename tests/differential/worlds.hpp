#pragma once
// Small random worlds for the differential test: at most four queues, three cohort levels, three
// flavors and eight workloads, every policy. A seed is a world, on every machine and for ever as
// long as this file stays the same: the stored answers of the peer are keyed by it.

#include <cstdint>
#include <string>
#include <vector>

namespace muster::differential {

struct World {
  std::uint64_t seed = 0;
  /// A List in JSON: flavors, cohorts, queues, workloads `w0`, `w1`, … in namespace `team`.
  std::string manifests;
  bool fair_sharing = false;
  std::vector<std::string> strategies;  ///< preemptionStrategies; empty: the default.
  bool ties = false;                    ///< Some workloads are of the same age.
};

[[nodiscard]] World world_of(std::uint64_t seed);

/// The configuration file that the world is decided with; profile `muster` or `kueue`.
[[nodiscard]] std::string configuration_of(const World& world, const std::string& profile);

/// The same world with its objects in another order, chosen by `salt`.
[[nodiscard]] std::string shuffled(const World& world, std::uint64_t salt);

/// What the peer program reads, one world per line.
[[nodiscard]] std::string peer_line(const World& world);

/// FNV-1a of the world, so that an answer to another world is never taken for this one's.
[[nodiscard]] std::uint32_t fingerprint(const World& world);

}  // namespace muster::differential

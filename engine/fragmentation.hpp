#pragma once
// How fragmented the fleet is: the largest gang of whole hosts that would fit now.

#include "base/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::engine {

class State;

/// A host is whole when no slot of a plan is on it and no pod uses one of its accelerators; where
/// it has none, when no pod that asks for anything but `pods` is on it.
struct LargestGang {
  FlavorName flavor;
  std::string level;   ///< Node label key; empty: all hosts of the flavor together.
  std::string domain;  ///< `block/rack`: the domain of the level with the most, the first of
                       ///< equals; empty without a level, or where no host is whole.
  std::int64_t hosts = 0;
  bool operator==(const LargestGang&) const = default;
};

/// By flavor: all hosts, then each level of its topology but the host itself, widest first. Hosts
/// are those that take the flavor's pods: ready, schedulable, no taint but the flavor's own.
[[nodiscard]] std::vector<LargestGang> largest_gangs(State& state);

}  // namespace muster::engine

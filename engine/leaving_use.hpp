#pragma once
// What those who are leaving hold, all of them together. Every search for victims takes it away
// before it looks at anybody else, and after a change of quota there are as many searches as
// leaving ones.

#include "quota/quota_tree.hpp"
#include "topology/fleet.hpp"

#include <map>
#include <utility>

namespace muster::engine {

class State;
struct WorkloadRecord;

struct LeavingUse {
  std::map<quota::NodeIndex, quota::FrAmounts> quota;  ///< By ClusterQueue.
  std::map<std::pair<topology::NodeIndex, topology::UseKind>, Resources> nodes;
  /// A sum is beyond what can be counted: each has to be taken away by itself.
  bool too_large = false;

  /// Quota, slots and pods of `record`, which the state charges.
  void add(const State& state, const WorkloadRecord& record);
  bool operator==(const LeavingUse&) const = default;
};

}  // namespace muster::engine

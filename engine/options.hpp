#pragma once
// What the Configuration says about decisions. Fixed for the life of an engine.

#include <cstddef>

namespace muster::engine {

struct Options {
  /// Work of one Settle, counted in considered workloads and victims tried (not in time, so that
  /// the result does not depend on the machine). 0: no limit.
  std::size_t settle_budget = 2000;
  /// Configuration `resources.quotaCheckStrategy` IgnoreUndeclared: requests for resources that a
  /// ClusterQueue has no quota for do not count; false: who makes them waits.
  bool ignore_undeclared_resources = false;
  /// Flavors of several pod sets are chosen together where one by one leads nowhere; off with
  /// `profile: kueue`.
  bool joint_flavors = true;
};

}  // namespace muster::engine

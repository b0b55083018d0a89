#pragma once
// What the Configuration says about decisions. Fixed for the life of an engine.

#include "base/time.hpp"

#include <chrono>
#include <cstddef>

namespace muster::engine {

/// What muster does beyond the queueing semantics (design section 5): all on, or with
/// `profile: kueue` all off.
struct Improvements {
  /// A pass considers everything pending, each on the state that the ones before left. Off: one head
  /// of each queue, all of them judged on the state as it was when the pass began (semantics c).
  bool every_class = true;
  /// Victims are those whose loss is least, on quota and nodes together; off: the first ones in the
  /// order of semantics (d) that suffice.
  bool least_loss = true;
  /// What was freed for a workload is kept for it over passes.
  bool holds = true;
  /// Nobody is preempted twice while nothing new happened.
  bool no_loops = true;

  [[nodiscard]] static Improvements none() { return {false, false, false, false}; }
  bool operator==(const Improvements&) const = default;
};

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
  Improvements improvements;
  /// How long a workload waits for its victims, beyond their checkpoint grace, before it looks for
  /// others.
  Duration hold_timeout = std::chrono::minutes(5);
};

}  // namespace muster::engine

#pragma once
// One workload against the state as it is: flavors, victims, and fewer pods where it allows that.
// Queueing semantics (b).

#include "engine/flavor_assigner.hpp"
#include "engine/preemption.hpp"
#include "engine/state.hpp"
#include "engine/trial.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace muster::engine {

struct Attempt {
  Assignment assignment;
  /// With Mode::kPreempt: who must go, and whose holds; empty: those on their way out suffice.
  /// Absent: nothing helps, and `assignment` says what binds, for the fewest pods that it takes.
  std::optional<std::vector<Victim>> victims;
  [[nodiscard]] bool works() const { return assignment.mode == Mode::kFit || victims.has_value(); }
};

/// The workload's queue must be in the tree; the state is as before on return. `flavors` are those
/// of all its pods. `work` counts victims and combinations tried.
///
/// All its pods first: the flavors that semantics (b) chooses; where that leads nowhere, what the
/// scans had left out; then any combination that fits as a whole. Then fewer pods, down to the
/// minCount of each pod set, as many as work.
[[nodiscard]] Attempt attempt(State& state, const WorkloadSpec& workload,
                              const ClusterQueueSpec& queue, FlavorAssigner& flavors,
                              std::size_t& work, const SearchOptions& search = {});

/// Takes away the victims, and those who are leaving already.
void remove_victims(Trial& gone, const std::vector<Victim>& victims);

/// The counts of step `step` of 0..steps_of(): 0 is all pods, the last one every minCount. With
/// `whole_slices` rounded to whole slices: down, or up where that would be below minCount.
[[nodiscard]] std::vector<std::int64_t> reduced_counts(const WorkloadSpec& workload,
                                                       std::int64_t step,
                                                       bool whole_slices = false);
/// 0: no pod set may be smaller.
[[nodiscard]] std::int64_t reduction_steps(const WorkloadSpec& workload);

}  // namespace muster::engine

#pragma once
// Work without a Workload: Jobs, plain pods and groups of plain pods, in the form their Workload
// would have. Rules: design 4.2; queueing semantics (h), job protocol and plain pods.

#include "base/ids.hpp"
#include "cli/config.hpp"
#include "cli/input.hpp"
#include "cli/owner_index.hpp"
#include "controller/workload_object.hpp"
#include "engine/reason.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

struct Unqueued {
  std::size_t position = 0;  ///< Of the Job or (first) pod in Input::objects: its place in order.
  WorkloadKey key;           ///< Namespace and name of the Job, pod or group.
  /// The Workload it would get; absent when the group is incomplete.
  kube::Json workload;
  bool finished = false;  ///< A Job that ended.
  bool succeeded = false;
  /// Why it has no Workload yet.
  std::optional<engine::Explanation> incomplete;
};

/// In input order. Work outside the managed namespaces, or of a kind that is not managed, is left
/// out; `warnings` says so.
[[nodiscard]] std::vector<Unqueued> find_unqueued(const Input& input, const OwnerIndex& owners,
                                                  const Configuration& configuration,
                                                  const controller::PriorityTable& priorities,
                                                  std::vector<std::string>& warnings);

}  // namespace muster::cli

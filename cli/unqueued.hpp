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
  /// The Workload it would get; absent while it would get none, see `incomplete`.
  kube::Json workload;
  bool finished = false;  ///< A Job that ended.
  bool succeeded = false;
  /// Why it has no Workload yet.
  std::optional<engine::Explanation> incomplete;
};

/// Why nothing happens to work that names a WorkloadPriorityClass which does not exist.
[[nodiscard]] engine::Explanation missing_class(const std::string& name);

struct UnqueuedWork {
  std::vector<Unqueued> list;         ///< In input order.
  std::vector<std::string> warnings;  ///< One line each, as World::warnings.
  std::vector<std::string> notes;     ///< One line each, as World::notes.
};

/// Work outside the managed namespaces, or of a kind that is not managed, is left out, and so are
/// Jobs that run without naming a queue; `warnings` and `notes` say so.
[[nodiscard]] UnqueuedWork find_unqueued(const Input& input, const OwnerIndex& owners,
                                         const Configuration& configuration,
                                         const controller::PriorityTable& priorities);

}  // namespace muster::cli

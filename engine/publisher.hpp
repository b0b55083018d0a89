#pragma once
// Makes snapshots of a State: only what changed since the last one is built anew.

#include "engine/snapshot.hpp"
#include "engine/state.hpp"

#include <memory>
#include <string>
#include <unordered_map>

namespace muster::engine {

class Publisher {
 public:
  /// Clears the state's change marks. Without changes the last snapshot is given again.
  [[nodiscard]] std::shared_ptr<const Snapshot> publish(State& state);

 private:
  void publish_nodes(State& state, Snapshot& next);
  void publish_workloads(State& state, Snapshot& next);

  std::shared_ptr<const Snapshot> last_;
  std::unordered_map<std::string, std::size_t> positions_;  ///< Of the nodes of last_.
};

/// One workload as readers see it.
[[nodiscard]] std::shared_ptr<const WorkloadView> view_of(const State& state,
                                                          const WorkloadRecord& record);
/// All queues as readers see them.
[[nodiscard]] std::shared_ptr<const QueuesView> view_of_queues(const State& state);

}  // namespace muster::engine

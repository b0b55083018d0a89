#pragma once
// What-if: the world is changed in place, noted in an undo log, and given back as it was.

#include "engine/state.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace muster::engine {

/// What the workload has charged to nodes: the slots of its plan, what is kept for it, and its pods
/// outside of both.
void each_use(
    const State& state, const WorkloadRecord& record,
    const std::function<void(topology::NodeIndex, topology::UseKind, const Resources&)>& visit);

/// Borrows the quota usage and the node use of a State; nothing else of it may change while a trial
/// is open. The destructor takes back whatever was tried. Trials nest like scopes.
class Trial {
 public:
  explicit Trial(State& state) : state_(state) {}
  ~Trial() { rollback_to(Checkpoint{}); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  struct Checkpoint {
    std::size_t usage = 0;
    std::size_t use = 0;
  };
  [[nodiscard]] Checkpoint checkpoint() const { return {usage_log_.size(), use_log_.size()}; }
  void rollback_to(Checkpoint checkpoint);

  /// The workload leaves: its quota, its slots and the room of its pods are free.
  void remove(const WorkloadRecord& record);
  /// Undoes remove() when other changes came in between.
  void put_back(const WorkloadRecord& record);
  /// As remove() for everybody who is leaving.
  void remove_leaving();
  /// As remove() for everybody who holds quota.
  void remove_plans();
  /// What is held for somebody is free, and is held again.
  void remove(const Hold& hold);
  void put_back(const Hold& hold);
  /// Something takes planned room on a node, or gives it back.
  void charge(const topology::NodeUse& use);
  void release(const topology::NodeUse& use);
  /// Something takes quota in a queue.
  void charge(quota::NodeIndex queue, const quota::FrAmounts& amounts);
  void discharge(quota::NodeIndex queue, const quota::FrAmounts& amounts);

  [[nodiscard]] State& state() { return state_; }
  [[nodiscard]] const State& state() const { return state_; }

 private:
  State& state_;
  quota::UsageLog usage_log_;
  topology::UseLog use_log_;
};

}  // namespace muster::engine

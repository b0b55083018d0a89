#pragma once
// The engine: a synchronous, deterministic function of (state, event, time) that returns effects.

#include "engine/effect.hpp"
#include "engine/event.hpp"
#include "engine/fragmentation.hpp"
#include "engine/options.hpp"
#include "engine/snapshot.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::engine {

class Pass;
class Publisher;
class State;

/// Lives on one thread. Same events, same order, same decisions: no clock, random number, pointer
/// order or hash order reaches a decision.
class Engine {
 public:
  explicit Engine(Options options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The only mutator. Object events change what is known and return nothing; every decision
  /// (repairs of plans first, then one pass over everything pending) is taken by Settle.
  [[nodiscard]] Effects step(const Event& event, Instant now);

  /// True when Settle may decide something: the state changed since the last pass.
  [[nodiscard]] bool wants_settle(Instant now) const;
  /// The next moment at which time alone makes work: a requeue back-off or a minimum run time ends,
  /// victims did not leave in time, or what LocalQueues consumed is to be shown anew.
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  /// A new picture; shares unchanged chunks with the last one. Call on the engine's thread.
  [[nodiscard]] std::shared_ptr<const Snapshot> publish();

  /// The last verdict on a pending workload; nothing when it is not pending or not looked at yet.
  /// An admitted gang that waits for nodes as a whole (elastic.hpp).
  [[nodiscard]] bool is_held(const WorkloadKey& key) const;
  [[nodiscard]] std::optional<Explanation> explanation(const WorkloadKey& key) const;
  /// The same, between passes also with whose end would make room (NodesShortfall::after): a
  /// search, for when somebody reads it.
  [[nodiscard]] std::optional<Explanation> full_explanation(const WorkloadKey& key) const;

  /// The largest gang of whole hosts that would fit now, by flavor and level.
  [[nodiscard]] std::vector<LargestGang> largest_gangs() const;

  /// Checks the invariants of design section 5 that the state can prove by itself. Empty: all hold;
  /// else one line per violation.
  [[nodiscard]] std::vector<std::string> check_invariants() const;

  [[nodiscard]] const State& state() const { return *state_; }

 private:
  void apply(const Event& event, Instant now);
  template <class Map, class Key, class Spec>
  void set(Map& map, const Key& key, const Spec& spec, Instant now);
  void upsert_local_queue(LocalQueueSpec queue, Instant now);
  void upsert_workload(const WorkloadSpec& spec, Instant now);
  [[nodiscard]] Effects settle(Instant now);

  Options options_;
  std::unique_ptr<State> state_;
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Pass> pass_;  ///< An unfinished one; holds room in state_, so it goes first.
  std::size_t cut_short_ = 0;   ///< Passes in a row that an event ended.
};

}  // namespace muster::engine

#pragma once
// The engine: a synchronous, deterministic function of (state, event, time) that returns effects.

#include "engine/effect.hpp"
#include "engine/event.hpp"
#include "engine/snapshot.hpp"

#include <memory>
#include <string>

namespace muster::engine {

class State;

struct Options {
  /// Work of one Settle, counted in considered workloads and victims tried (not in time, so that
  /// the result does not depend on the machine). 0: no limit.
  std::size_t settle_budget = 2000;
};

/// Lives on one thread. Same events, same order, same decisions: no clock, random number, pointer
/// order or hash order reaches a decision.
class Engine {
 public:
  explicit Engine(Options options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The only mutator. Object events return at most the consequences that cannot wait (a broken
  /// plan); decisions on pending work are taken by Settle.
  [[nodiscard]] Effects step(const Event& event, Instant now);

  /// True when Settle may decide something: state changed since the last pass that changed nothing.
  [[nodiscard]] bool wants_settle(Instant now) const;
  /// The next moment at which time alone makes work (a requeue back-off ends).
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  /// A new picture; shares unchanged chunks with the last one. Call on the engine's thread.
  [[nodiscard]] std::shared_ptr<const Snapshot> publish();

  /// The last verdict on a pending workload; nothing when it is not pending or not looked at yet.
  [[nodiscard]] std::optional<Explanation> explanation(const WorkloadKey& key) const;

  /// Checks the invariants of design section 5 that the state can prove by itself. Empty: all hold;
  /// else one line per violation.
  [[nodiscard]] std::vector<std::string> check_invariants() const;

  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
  Options options_;
};

}  // namespace muster::engine

#pragma once
// One request tried on a state from which some workloads are taken away.

#include "engine/candidates.hpp"
#include "engine/preemption.hpp"
#include "engine/trial.hpp"

#include <cstddef>
#include <vector>

namespace muster::engine {

/// The state is as before when it ends. From the start those who are leaving are gone.
class PreemptionTrial {
 public:
  PreemptionTrial(State& state, const PreemptionRequest& request, std::size_t& tried);

  [[nodiscard]] const PreemptionRequest& request() const { return request_; }
  [[nodiscard]] State& state() { return trial_.state(); }

  /// With `borrow` the request may go beyond its queue's nominal quota.
  [[nodiscard]] bool fits(bool borrow) { return quota_fits(borrow) && nodes_fit(); }
  [[nodiscard]] bool quota_fits(bool borrow);
  [[nodiscard]] bool nodes_fit() { return !request_.nodes_fit || request_.nodes_fit(); }
  /// By flavor resource of `request().needed`: how much usage must go at least; 0: none.
  [[nodiscard]] std::vector<Amount> missing();

  /// The rules let it be taken from the state as it is now (semantics d: at use time).
  [[nodiscard]] bool may_take(const Candidate& candidate, bool borrow) const;
  void take(const Candidate& candidate);
  void put_back(const Candidate& candidate);
  [[nodiscard]] Trial::Checkpoint checkpoint() const { return trial_.checkpoint(); }
  void rollback_to(Trial::Checkpoint checkpoint) { trial_.rollback_to(checkpoint); }

  /// Takes away all holds that the rules allow to take.
  [[nodiscard]] std::vector<Candidate> take_holds(const std::vector<Candidate>& holds, bool borrow);
  /// Puts back whatever is not needed for the fit, in the order given, and drops it from the list.
  void put_back_unneeded(std::vector<Candidate>& taken, const std::vector<Candidate>& order,
                         bool borrow);

 private:
  const PreemptionRequest& request_;
  std::size_t& tried_;
  quota::NodeIndex queue_;
  bool own_only_;  ///< The request may not borrow at any level: it is not preemptible.
  Trial trial_;
};

}  // namespace muster::engine

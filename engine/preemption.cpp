#include "engine/preemption.hpp"

#include "engine/candidates.hpp"
#include "engine/fair_preemption.hpp"
#include "engine/least_loss.hpp"
#include "engine/preemption_bound.hpp"
#include "engine/preemption_trial.hpp"
#include "engine/victim_order.hpp"

#include <algorithm>
#include <iterator>

namespace muster::engine {
namespace {

bool strictly_under_nominal(const State& state, const PreemptionRequest& request) {
  const quota::NodeIndex queue = state.queue_node(request.queue);
  return std::all_of(request.needed.begin(), request.needed.end(), [&](quota::FrId fr) {
    return state.tree.usage(queue, fr) < state.tree.nominal(queue, fr);
  });
}

/// Semantics (d), attempts: for each, whether the request may borrow.
std::vector<bool> attempts_for(const State& state, const PreemptionRequest& request,
                               const Candidates& candidates) {
  const PreemptionSpec& spec = state.queues.at(request.queue).preemption;
  const bool may_borrow = spec.borrow_within_cohort.policy != PreemptionPolicy::kNever;
  const bool of_cohort =
      candidates.any_of_cohort() ||
      std::any_of(candidates.holds.begin(), candidates.holds.end(),
                  [](const Candidate& hold) { return hold.variant != Variant::kWithinQueue; });
  if (!of_cohort || (!may_borrow && !strictly_under_nominal(state, request))) return {true};
  if (!may_borrow && candidates.hierarchy.empty()) return {false, true};
  return {true, false};
}

/// Somebody who may go only for a request that does not borrow.
bool any_against_borrowing(const Candidates& candidates) {
  const auto without = [](const Candidate& candidate) {
    return candidate.variant == Variant::kReclaimWithoutBorrowing;
  };
  return std::any_of(candidates.priority.begin(), candidates.priority.end(), without) ||
         std::any_of(candidates.holds.begin(), candidates.holds.end(), without);
}

/// The first candidates in order that suffice, less those that turn out not to be needed.
std::optional<std::vector<Candidate>> take_in_order(PreemptionTrial& trial,
                                                    const Candidates& candidates, bool borrow) {
  std::vector<Candidate> taken;
  for (const auto* list : {&candidates.hierarchy, &candidates.priority, &candidates.own}) {
    for (const Candidate& candidate : *list) {
      if (!trial.may_take(candidate, borrow)) continue;
      trial.take(candidate);
      taken.push_back(candidate);
      if (!trial.fits(borrow)) continue;
      // The last one made it fit: it stays.
      const std::vector<Candidate> order(std::next(taken.rbegin()), taken.rend());
      trial.put_back_unneeded(taken, order, borrow);
      return taken;
    }
  }
  return std::nullopt;
}

std::vector<Victim> victims_of(const std::vector<Candidate>& taken) {
  std::vector<Victim> victims;
  for (const Candidate& candidate : taken) {
    victims.push_back(Victim{candidate.record->spec.key, rule_of(candidate.variant),
                             candidate.variant == Variant::kWithinQueue,
                             candidate.hold != nullptr});
  }
  return victims;
}

/// Where use of LocalQueues orders the queue, it orders victims as well, and not their loss.
bool goes_by_loss(const State& state, const PreemptionRequest& request) {
  return state.options.improvements.least_loss && !usage_orders(state, request.queue);
}

/// Holds first: nobody who runs has to go for what only waits.
std::optional<std::vector<Candidate>> attempt(PreemptionTrial& trial, const Candidates& candidates,
                                              bool borrow) {
  std::vector<Candidate> holds = trial.take_holds(candidates.holds, borrow);
  std::vector<Candidate> taken;
  if (holds.empty() || !trial.fits(borrow)) {
    auto found = goes_by_loss(trial.state(), trial.request())
                     ? take_least_loss(trial, candidates, borrow)
                     : take_in_order(trial, candidates, borrow);
    if (!found) return std::nullopt;
    taken = *std::move(found);
  }
  const std::vector<Candidate> order(holds.rbegin(), holds.rend());
  trial.put_back_unneeded(holds, order, borrow);
  taken.insert(taken.end(), holds.begin(), holds.end());
  return taken;
}

}  // namespace

std::optional<std::vector<Victim>> find_victims(State& state, const PreemptionRequest& request,
                                                std::size_t& tried) {
  if (state.options.fair_sharing) return find_fair_victims(state, request, tried);
  PreemptionTrial trial(state, request, tried);
  if (trial.fits(true)) return std::vector<Victim>();
  if (request.search.reach == Reach::kLeavingOnly) return std::nullopt;
  if (!may_find_victims(trial)) return std::nullopt;

  Candidates candidates = collect_candidates(state, request);
  const bool least_loss = goes_by_loss(state, request);
  if (!least_loss) put_in_order(candidates, state, request);
  std::optional<std::vector<Candidate>> best;
  for (const bool borrow : attempts_for(state, request, candidates)) {
    const Trial::Checkpoint before = trial.checkpoint();
    auto found = attempt(trial, candidates, borrow);
    trial.rollback_to(before);
    if (!found || (best && !loses_less(state, *found, *best))) continue;
    best = std::move(found);
    // Without borrowing no others could go, and as many would have to at least.
    if (!least_loss || (borrow && !any_against_borrowing(candidates))) break;
  }
  if (!best) return std::nullopt;
  return victims_of(*best);
}

std::optional<Instant> due_to_leave(const State& state, const WorkloadRecord& record) {
  if (!record.evicting_since) return std::nullopt;
  const Duration grace =
      state.standing(record).protection.checkpoint_grace.value_or(Duration::zero());
  return *record.evicting_since + state.options.hold_timeout + grace;
}

bool overdue(const State& state, const WorkloadRecord& record) {
  const auto due = due_to_leave(state, record);
  return due && *due <= state.last_pass;
}

}  // namespace muster::engine

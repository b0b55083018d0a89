#include "engine/preemption_trial.hpp"

#include <algorithm>

namespace muster::engine {

PreemptionTrial::PreemptionTrial(State& state, const PreemptionRequest& request, std::size_t& tried)
    : request_(request),
      tried_(tried),
      queue_(state.queue_node(request.queue)),
      own_only_(state.own_only(*request.preemptor, request.queue)),
      trial_(state) {
  // Whoever is leaving will be gone; nobody else has to go for room that comes back anyway.
  if (request.search.reach != Reach::kWithoutOverdue) {
    trial_.remove_leaving();
    return;
  }
  for (const WorkloadRecord* const record : state.evicting) {
    if (!overdue(state, *record)) trial_.remove(*record);
  }
}

bool PreemptionTrial::quota_fits(bool borrow) {
  ++tried_;
  const quota::QuotaTree& tree = state().tree;
  if (!tree.fits(queue_, request_.amounts)) return false;
  return std::all_of(request_.amounts.begin(), request_.amounts.end(), [&](const auto& entry) {
    const auto& [fr, amount] = entry;
    if (own_only_ && tree.own_limit(queue_, fr, amount)) return false;
    return borrow || !tree.borrowing(queue_, fr, amount);
  });
}

std::vector<Amount> PreemptionTrial::missing() {
  const quota::QuotaTree& tree = state().tree;
  std::vector<Amount> result;
  for (const quota::FrId fr : request_.needed) {
    const auto asked = std::find_if(request_.amounts.begin(), request_.amounts.end(),
                                    [&](const auto& entry) { return entry.first == fr; });
    const Amount amount = asked == request_.amounts.end() ? Amount() : asked->second;
    const auto limit = tree.limiting_node(queue_, fr, amount);
    result.push_back(limit ? limit->missing : Amount());
  }
  return result;
}

bool PreemptionTrial::may_take(const Candidate& candidate, bool borrow) const {
  if (candidate.variant == Variant::kWithinQueue) return true;
  if (borrow && candidate.variant == Variant::kReclaimWithoutBorrowing) return false;
  return !within_nominal(trial_.state(), request_, candidate.queue, candidate.common_ancestor);
}

void PreemptionTrial::take(const Candidate& candidate) {
  if (candidate.hold != nullptr) {
    trial_.remove(*candidate.hold);
  } else {
    trial_.remove(*candidate.record);
  }
}

void PreemptionTrial::put_back(const Candidate& candidate) {
  if (candidate.hold != nullptr) {
    trial_.put_back(*candidate.hold);
  } else {
    trial_.put_back(*candidate.record);
  }
}

std::vector<Candidate> PreemptionTrial::take_holds(const std::vector<Candidate>& holds,
                                                   bool borrow) {
  std::vector<Candidate> taken;
  for (const Candidate& candidate : holds) {
    if (!may_take(candidate, borrow)) continue;
    take(candidate);
    taken.push_back(candidate);
  }
  return taken;
}

void PreemptionTrial::put_back_unneeded(std::vector<Candidate>& taken,
                                        const std::vector<Candidate>& order, bool borrow) {
  for (const Candidate& candidate : order) {
    const Trial::Checkpoint before = checkpoint();
    put_back(candidate);
    if (!fits(borrow)) {
      rollback_to(before);
      continue;
    }
    taken.erase(std::find_if(taken.begin(), taken.end(), [&](const Candidate& known) {
      return known.record == candidate.record;
    }));
  }
}

}  // namespace muster::engine

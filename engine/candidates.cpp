#include "engine/candidates.hpp"

#include "engine/victim_order.hpp"

#include <algorithm>

namespace muster::engine {
namespace {

bool cheaper_candidate(const Candidate& a, const Candidate& b) {
  return cheaper(*a.record, *b.record);
}

class Collector {
 public:
  Collector(State& state, const PreemptionRequest& request)
      : state_(state),
        request_(request),
        queue_(state.queue_node(request.queue)),
        spec_(state.queues.at(request.queue).preemption) {}

  Candidates run() {
    collect_own();
    collect_cohort();
    std::sort(found_.holds.begin(), found_.holds.end(), cheaper_candidate);
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool uses_needed(const Candidate& candidate) const {
    const quota::FrAmounts& amounts =
        candidate.hold == nullptr ? candidate.record->charged : candidate.hold->amounts;
    return std::any_of(amounts.begin(), amounts.end(), [&](const auto& entry) {
      return std::find(request_.needed.begin(), request_.needed.end(), entry.first) !=
             request_.needed.end();
    });
  }

  /// Workloads that hold quota in the queue, and pending ones for which some is held there.
  template <class Visit>
  void each_in(quota::NodeIndex queue, const Visit& visit) {
    Candidate candidate;
    candidate.queue = queue;
    const auto holders = state_.holders.find(state_.tree.queue_name(queue));
    if (holders != state_.holders.end()) {
      for (const WorkloadRecord* record : holders->second) {
        candidate.record = record;
        if (candidate.record->phase != Phase::kEvicting && uses_needed(candidate)) visit(candidate);
      }
    }
    if (!state_.options.improvements.holds) return;
    for (const auto& [key, hold] : state_.holds_in(queue)) {
      candidate.record = &state_.workloads.at(key);
      candidate.hold = hold;
      if (uses_needed(candidate)) visit(candidate);
    }
  }

  void add(const Candidate& candidate, std::vector<Candidate>& list) {
    if (candidate.hold != nullptr) {
      if (!candidate.hold->own_only) found_.holds.push_back(candidate);
      return;
    }
    const auto spared = state_.spared(*candidate.record, *request_.preemptor);
    if (!spared) {
      list.push_back(candidate);
    } else if (request_.search.spared != nullptr) {
      request_.search.spared->emplace(candidate.record->spec.key, *spared);
    }
  }

  void collect_own() {
    each_in(queue_, [&](Candidate& candidate) {
      if (!policy_allows(spec_.within_cluster_queue, *request_.preemptor, candidate.record->spec))
        return;
      candidate.common_ancestor = queue_;
      add(candidate, found_.own);
    });
  }

  // Walks from the parent to the root.
  void collect_cohort() {
    if (spec_.reclaim_within_cohort == PreemptionPolicy::kNever) return;
    const quota::QuotaTree& tree = state_.tree;
    const std::vector<bool> advantages = subtree_advantages(state_, request_);
    quota::NodeIndex visited = queue_;
    std::size_t step = 0;
    for (const quota::NodeIndex ancestor : tree.ancestors(queue_)) {
      for (const quota::NodeIndex queue : tree.queues_below(ancestor)) {
        if (tree.is_ancestor_or_self(visited, queue)) continue;
        collect_queue(queue, ancestor, advantages[step]);
      }
      ++step;
      visited = ancestor;
    }
  }

  void collect_queue(quota::NodeIndex queue, quota::NodeIndex ancestor, bool advantage) {
    if (within_nominal(state_, request_, queue, ancestor)) return;
    each_in(queue, [&](Candidate& candidate) {
      if (!policy_allows(spec_.reclaim_within_cohort, *request_.preemptor, candidate.record->spec))
        return;
      candidate.common_ancestor = ancestor;
      candidate.variant =
          advantage ? Variant::kHierarchicalReclaim : priority_variant(*candidate.record);
      add(candidate, advantage ? found_.hierarchy : found_.priority);
    });
  }

  [[nodiscard]] Variant priority_variant(const WorkloadRecord& record) const {
    const BorrowWithinCohort& borrow = spec_.borrow_within_cohort;
    if (borrow.policy == PreemptionPolicy::kNever ||
        record.spec.priority >= request_.preemptor->priority ||
        (borrow.max_priority_threshold && record.spec.priority > *borrow.max_priority_threshold)) {
      return Variant::kReclaimWithoutBorrowing;
    }
    return Variant::kReclaimWhileBorrowing;
  }

  State& state_;
  const PreemptionRequest& request_;
  quota::NodeIndex queue_;
  const PreemptionSpec& spec_;
  Candidates found_;
};

}  // namespace

std::vector<bool> subtree_advantages(const State& state, const PreemptionRequest& request) {
  const quota::QuotaTree& tree = state.tree;
  quota::FrAmounts rest = request.amounts;
  const auto subtract_local = [&](quota::NodeIndex node) {
    for (auto& [fr, amount] : rest) {
      amount = std::max(Amount(), amount - tree.local_available(node, fr));
    }
  };
  const auto holds_rest = [&](quota::NodeIndex node) {
    return std::all_of(rest.begin(), rest.end(), [&](const auto& entry) {
      return !tree.borrowing(node, entry.first, entry.second);
    });
  };
  std::vector<bool> advantages;
  const quota::NodeIndex queue = state.queue_node(request.queue);
  bool advantage = holds_rest(queue);
  subtract_local(queue);
  for (const quota::NodeIndex ancestor : tree.ancestors(queue)) {
    advantages.push_back(advantage);
    advantage = advantage || holds_rest(ancestor);
    subtract_local(ancestor);
  }
  return advantages;
}

Candidates collect_candidates(State& state, const PreemptionRequest& request) {
  return Collector(state, request).run();
}

void put_in_order(Candidates& candidates, const State& state, const PreemptionRequest& request) {
  for (auto* list : {&candidates.hierarchy, &candidates.priority, &candidates.own}) {
    std::sort(list->begin(), list->end(), cheaper_candidate);
  }
  if (!usage_orders(state, request.queue)) return;
  const CandidateOrder order(state, request.queue);
  std::sort(candidates.own.begin(), candidates.own.end(),
            [&](const Candidate& x, const Candidate& y) { return order(x.record, y.record); });
}

bool within_nominal(const State& state, const PreemptionRequest& request, quota::NodeIndex queue,
                    quota::NodeIndex common_ancestor) {
  quota::NodeIndex node = queue;
  while (node != common_ancestor) {
    if (state.tree.within_nominal(node, request.needed)) return true;
    const auto parent = state.tree.parent(node);
    if (!parent) return true;
    node = *parent;
  }
  return false;
}

PreemptionRule rule_of(Variant variant) {
  switch (variant) {
    case Variant::kWithinQueue:
      return PreemptionRule::kInClusterQueue;
    case Variant::kHierarchicalReclaim:
    case Variant::kReclaimWithoutBorrowing:
      return PreemptionRule::kInCohortReclamation;
    case Variant::kReclaimWhileBorrowing:
      return PreemptionRule::kInCohortReclaimWhileBorrowing;
  }
  return PreemptionRule::kInClusterQueue;
}

}  // namespace muster::engine

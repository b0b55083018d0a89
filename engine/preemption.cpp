#include "engine/preemption.hpp"

#include "engine/trial.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace muster::engine {
namespace {

enum class Variant {
  kWithinQueue,
  kHierarchicalReclaim,
  kReclaimWithoutBorrowing,
  kReclaimWhileBorrowing
};

struct Candidate {
  const WorkloadRecord* record = nullptr;
  quota::NodeIndex queue;
  quota::NodeIndex common_ancestor;  ///< With another queue: where the two subtrees meet.
  Variant variant = Variant::kWithinQueue;
};

bool allows(PreemptionPolicy policy, const WorkloadSpec& preemptor, const WorkloadSpec& victim) {
  switch (policy) {
    case PreemptionPolicy::kNever:
      return false;
    case PreemptionPolicy::kAny:
      return true;
    case PreemptionPolicy::kLowerPriority:
      return preemptor.priority > victim.priority;
    case PreemptionPolicy::kLowerOrNewerEqualPriority: {
      if (preemptor.priority != victim.priority) return preemptor.priority > victim.priority;
      if (!preemptor.created) return false;
      return !victim.created || *preemptor.created < *victim.created;
    }
  }
  return false;
}

/// Lower priority first, then the most recent reservation, then uid: cheapest loss first.
bool cheaper(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    const Instant reserved =
        c.record->reserved_at.value_or(Instant{std::numeric_limits<std::int64_t>::max()});
    return std::tuple(c.record->spec.priority, -reserved.us, c.record->spec.uid,
                      c.record->spec.key);
  };
  return key(a) < key(b);
}

class Search {
 public:
  Search(State& state, const PreemptionRequest& request, std::size_t& tried)
      : state_(state),
        request_(request),
        tried_(tried),
        queue_(state.queue_node(request.queue)),
        spec_(state.queues.at(request.queue).preemption),
        trial_(state) {}

  std::optional<std::vector<Victim>> run() {
    // Whoever is leaving will be gone; nobody else has to go for room that comes back anyway.
    for (const WorkloadKey& key : state_.evicting) trial_.remove(state_.workloads.at(key));
    if (fits(true)) return std::vector<Victim>();

    collect_own();
    collect_cohort();
    const bool any_cohort = !hierarchy_.empty() || !priority_.empty();
    const bool may_borrow = spec_.borrow_within_cohort.policy != PreemptionPolicy::kNever;
    const bool under_nominal = strictly_under_nominal();
    std::vector<bool> attempts;  // Each: whether borrowing is allowed.
    if (!any_cohort || (!may_borrow && !under_nominal)) {
      attempts = {true};
    } else if (!may_borrow && hierarchy_.empty()) {
      attempts = {false, true};
    } else {
      attempts = {true, false};
    }
    for (const bool borrow : attempts) {
      if (auto victims = attempt(borrow)) return victims;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool uses_needed(const WorkloadRecord& record) const {
    return std::any_of(request_.needed.begin(), request_.needed.end(), [&](quota::FrId fr) {
      const auto found = record.usage.find(state_.tree.fr(fr));
      return found != record.usage.end() && found->second > Amount();
    });
  }

  void collect_own() {
    const auto holders = state_.holders.find(request_.queue);
    if (holders == state_.holders.end()) return;
    for (const WorkloadKey& key : holders->second) {
      const WorkloadRecord& record = state_.workloads.at(key);
      if (record.phase == Phase::kEvicting || !uses_needed(record)) continue;
      if (!allows(spec_.within_cluster_queue, *request_.preemptor, record.spec)) continue;
      own_.push_back(Candidate{&record, queue_, queue_, Variant::kWithinQueue});
    }
    std::sort(own_.begin(), own_.end(), cheaper);
  }

  // Walks from the parent to the root. A subtree whose guarantee covers the request has the
  // advantage: from there on what others borrowed is taken back whatever the mode (semantics d,
  // classical).
  void collect_cohort() {
    if (spec_.reclaim_within_cohort == PreemptionPolicy::kNever) return;
    const quota::QuotaTree& tree = state_.tree;
    bool advantage = true;
    quota::FrAmounts rest = request_.amounts;
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
    advantage = holds_rest(queue_);
    subtract_local(queue_);
    quota::NodeIndex visited = queue_;
    for (const quota::NodeIndex ancestor : tree.ancestors(queue_)) {
      for (const quota::NodeIndex queue : tree.queues_below(ancestor)) {
        if (tree.is_ancestor_or_self(visited, queue)) continue;
        collect_queue(queue, ancestor, advantage);
      }
      advantage = advantage || holds_rest(ancestor);
      subtract_local(ancestor);
      visited = ancestor;
    }
    std::sort(hierarchy_.begin(), hierarchy_.end(), cheaper);
    std::sort(priority_.begin(), priority_.end(), cheaper);
  }

  void collect_queue(quota::NodeIndex queue, quota::NodeIndex ancestor, bool advantage) {
    if (within_nominal_up_to(queue, ancestor)) return;
    const auto holders = state_.holders.find(state_.tree.queue_name(queue));
    if (holders == state_.holders.end()) return;
    for (const WorkloadKey& key : holders->second) {
      const WorkloadRecord& record = state_.workloads.at(key);
      if (record.phase == Phase::kEvicting || !uses_needed(record)) continue;
      if (!allows(spec_.reclaim_within_cohort, *request_.preemptor, record.spec)) continue;
      if (advantage) {
        hierarchy_.push_back(Candidate{&record, queue, ancestor, Variant::kHierarchicalReclaim});
      } else {
        priority_.push_back(Candidate{&record, queue, ancestor, priority_variant(record)});
      }
    }
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

  /// The queue, or an ancestor strictly below the meeting point, uses no more than its own quota of
  /// everything that is short: nothing is to be taken back from it.
  [[nodiscard]] bool within_nominal_up_to(quota::NodeIndex queue, quota::NodeIndex ancestor) const {
    quota::NodeIndex node = queue;
    while (node != ancestor) {
      if (state_.tree.within_nominal(node, request_.needed)) return true;
      const auto parent = state_.tree.parent(node);
      if (!parent) return true;
      node = *parent;
    }
    return false;
  }

  [[nodiscard]] bool strictly_under_nominal() const {
    return std::all_of(request_.needed.begin(), request_.needed.end(), [&](quota::FrId fr) {
      return state_.tree.usage(queue_, fr) < state_.tree.nominal(queue_, fr);
    });
  }

  [[nodiscard]] bool fits(bool borrow) {
    ++tried_;
    const quota::QuotaTree& tree = state_.tree;
    if (!tree.fits(queue_, request_.amounts)) return false;
    if (!borrow) {
      for (const auto& [fr, amount] : request_.amounts) {
        if (tree.borrowing(queue_, fr, amount)) return false;
      }
    }
    return !request_.nodes_fit || request_.nodes_fit();
  }

  std::optional<std::vector<Victim>> attempt(bool borrow) {
    const Trial::Checkpoint before = trial_.checkpoint();
    std::vector<Candidate> removed;
    bool found = false;
    for (const auto* list : {&hierarchy_, &priority_, &own_}) {
      for (const Candidate& candidate : *list) {
        if (candidate.variant != Variant::kWithinQueue &&
            within_nominal_up_to(candidate.queue, candidate.common_ancestor)) {
          continue;
        }
        if (borrow && candidate.variant == Variant::kReclaimWithoutBorrowing) continue;
        trial_.remove(*candidate.record);
        removed.push_back(candidate);
        if (fits(borrow)) {
          found = true;
          break;
        }
      }
      if (found) break;
    }
    if (found) fill_back(removed, borrow);
    trial_.rollback_to(before);
    if (!found) return std::nullopt;

    std::vector<Victim> victims;
    for (const Candidate& candidate : removed) {
      victims.push_back(Victim{candidate.record->spec.key, rule_of(candidate),
                               candidate.variant == Variant::kWithinQueue});
    }
    return victims;
  }

  /// Puts back whoever was removed in vain, last removed first; what stays is irreducible.
  void fill_back(std::vector<Candidate>& removed, bool borrow) {
    for (std::size_t i = removed.size() - 1; i-- > 0;) {
      const Trial::Checkpoint before = trial_.checkpoint();
      trial_.put_back(*removed[i].record);
      if (fits(borrow)) {
        removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        trial_.rollback_to(before);
      }
    }
  }

  static PreemptionRule rule_of(const Candidate& candidate) {
    switch (candidate.variant) {
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

  State& state_;
  const PreemptionRequest& request_;
  std::size_t& tried_;
  quota::NodeIndex queue_;
  const PreemptionSpec& spec_;
  Trial trial_;
  std::vector<Candidate> hierarchy_;
  std::vector<Candidate> priority_;
  std::vector<Candidate> own_;
};

}  // namespace

std::optional<std::vector<Victim>> find_victims(State& state, const PreemptionRequest& request,
                                                std::size_t& tried) {
  return Search(state, request, tried).run();
}

}  // namespace muster::engine

#include "engine/fair_preemption.hpp"

#include "engine/preemption_bound.hpp"
#include "engine/preemption_trial.hpp"
#include "engine/victim_order.hpp"
#include "quota/fair_share.hpp"

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace muster::engine {
namespace {

using quota::FairShare;
using quota::NodeIndex;

/// Who may go of one queue: first holds, for nobody who runs has to go for what only waits; each
/// kind in its order.
using CandidateList = std::deque<Candidate>;

/// From which queue to take next: down from the root always to the child with the highest share. A
/// cohort goes before a queue of the same share, queues of the same share go by their first
/// candidates. Whoever does not borrow is left alone, but for the preemptor's own queue and the
/// cohorts above it.
///
/// Most searches end without a victim, so nobody is looked at before it is their queue's turn.
class Targets {
 public:
  using Collect = std::function<CandidateList(NodeIndex)>;

  /// `by_share`: of others nothing may be taken while the preemptor's side has the larger share.
  Targets(State& state, NodeIndex own, bool by_share, Collect collect)
      : state_(state),
        tree_(state.tree),
        own_(own),
        by_share_(by_share),
        collect_(std::move(collect)),
        lists_(tree_.size()),
        shares_(tree_.size()),
        touched_(tree_.size(), false),
        dropped_(tree_.size(), false),
        aside_(tree_.size(), false) {
    recount(own_);
    for (const auto& [queue, amounts] : state.leaving_use().quota) recount(queue);
  }

  /// Nothing when no queue is left that something may be taken from.
  [[nodiscard]] std::optional<NodeIndex> next() {
    const NodeIndex root = tree_.root(own_);
    while (!dropped_[root.value()]) {
      NodeIndex node = root;
      while (!tree_.is_queue(node)) {
        const auto child = highest_child(node);
        if (!child) break;
        node = *child;
      }
      if (tree_.is_queue(node) && has_candidate(node)) return node;
      drop(node);
    }
    return std::nullopt;
  }

  [[nodiscard]] bool has_candidate(NodeIndex queue) { return !list(queue).empty(); }
  /// Precondition: has_candidate.
  Candidate pop(NodeIndex queue) {
    const Candidate first = list(queue).front();
    list(queue).pop_front();
    return first;
  }
  void drop(NodeIndex node) { dropped_[node.value()] = true; }
  /// Those of the queue that were passed over unseen, since their side has the smaller share.
  [[nodiscard]] CandidateList set_aside(NodeIndex queue) {
    for (std::optional<NodeIndex> node = queue; node; node = tree_.parent(*node)) {
      if (aside_[node->value()]) return list(queue);
    }
    return {};
  }

  [[nodiscard]] const FairShare& share(NodeIndex node) {
    if (!touched_[node.value()]) return state_.shares.of(tree_, node);
    std::optional<FairShare>& known = shares_[node.value()];
    if (!known) known = quota::dominant_share(tree_, node);
    return *known;
  }
  /// Usage of the queue changed in the trial.
  void recount(NodeIndex queue) {
    for (std::optional<NodeIndex> node = queue; node; node = tree_.parent(*node)) {
      shares_[node->value()].reset();
      touched_[node->value()] = true;
    }
  }

 private:
  [[nodiscard]] CandidateList& list(NodeIndex queue) {
    std::optional<CandidateList>& known = lists_[queue.value()];
    if (!known) known = collect_(queue);
    return *known;
  }

  [[nodiscard]] bool may_give(NodeIndex node) {
    if (node == own_) return has_candidate(node);
    return tree_.is_ancestor_or_self(node, own_) || share(node).borrowing();
  }

  [[nodiscard]] std::optional<NodeIndex> highest_child(NodeIndex cohort) {
    while (true) {
      const std::vector<NodeIndex> highest = highest_children(cohort);
      if (highest.empty()) return std::nullopt;
      if (leave_to_others(cohort, highest.front())) return std::nullopt;
      if (!tree_.is_queue(highest.front())) return highest.front();  // Cohorts stand first.
      if (const auto first = first_of(highest)) return first;
    }
  }

  /// In the order of children.
  [[nodiscard]] std::vector<NodeIndex> highest_children(NodeIndex cohort) {
    std::vector<NodeIndex> highest;
    for (const NodeIndex child : tree_.children(cohort)) {
      if (dropped_[child.value()]) continue;
      // Usage only shrinks here: who gives nothing now gives nothing later.
      if (!may_give(child)) {
        drop(child);
        continue;
      }
      const auto order = highest.empty() ? std::strong_ordering::equal
                                         : share(child).compare(share(highest.front()));
      if (order < 0) continue;
      if (order > 0) highest.clear();
      highest.push_back(child);
    }
    return highest;
  }

  /// On the preemptor's side nothing is left to take, so its share is final; when it is above the
  /// highest of the others, no strategy allows anyone of them.
  [[nodiscard]] bool leave_to_others(NodeIndex cohort, NodeIndex highest) {
    if (!by_share_ || !tree_.is_ancestor_or_self(cohort, own_)) return false;
    const NodeIndex mine = tree_.child_towards(cohort, own_);
    if (!dropped_[mine.value()] || share(mine) <= share(highest)) return false;
    for (const NodeIndex child : tree_.children(cohort)) {
      if (!dropped_[child.value()]) aside_[child.value()] = true;
    }
    return true;
  }

  /// The queue with the first candidate, the preemptor's own last; those without one are dropped.
  [[nodiscard]] std::optional<NodeIndex> first_of(const std::vector<NodeIndex>& queues) {
    std::optional<NodeIndex> best;
    for (const NodeIndex queue : queues) {
      if (!has_candidate(queue)) {
        drop(queue);
      } else if (!best || *best == own_ ||
                 (queue != own_ &&
                  cheaper(*list(queue).front().record, *list(*best).front().record))) {
        best = queue;
      }
    }
    return best;
  }

  State& state_;
  const quota::QuotaTree& tree_;
  NodeIndex own_;
  bool by_share_;
  Collect collect_;
  std::vector<std::optional<CandidateList>> lists_;  ///< By queue; absent: not looked at yet.
  std::vector<std::optional<FairShare>> shares_;     ///< By touched node; absent: count anew.
  std::vector<bool> touched_;                        ///< By node: the trial changed its usage.
  std::vector<bool> dropped_;                        ///< By node.
  std::vector<bool> aside_;                          ///< By node: all below that is not dropped.
};

class FairSearch {
 public:
  FairSearch(State& state, const PreemptionRequest& request, std::size_t& tried)
      : state_(state),
        tree_(state.tree),
        request_(request),
        tried_(tried),
        queue_(state.queue_node(request.queue)),
        trial_(state, request, tried) {}

  std::optional<std::vector<Victim>> run() {
    if (trial_.fits(true)) return std::vector<Victim>();
    if (request_.search.reach == Reach::kLeavingOnly) return std::nullopt;
    // All shares from here on are those with the preemptor.
    const Trial::Checkpoint start = trial_.checkpoint();
    quota::UsageLog mine;
    tree_.add_usage(queue_, request_.amounts, &mine);
    const bool found = search();
    trial_.rollback_to(start);
    tree_.restore(mine, 0);
    if (!found) return std::nullopt;

    std::vector<Victim> victims;
    for (const Taken& taken : taken_) {
      victims.push_back(Victim{taken.who.record->spec.key, taken.rule, taken.who.queue == queue_,
                               taken.who.hold != nullptr});
    }
    return victims;
  }

 private:
  struct Taken {
    Candidate who;
    PreemptionRule rule = PreemptionRule::kInClusterQueue;
  };
  /// The children of the lowest common cohort towards the preemptor and towards another queue.
  struct Sides {
    NodeIndex mine;
    NodeIndex theirs;
  };

  bool search() {
    within_nominal_ = tree_.within_nominal(queue_, request_.needed);
    Targets targets(state_, queue_, !within_nominal_,
                    [this](NodeIndex queue) { return candidates_of(queue); });
    std::map<NodeIndex, CandidateList> refused;
    bool found = first_strategy(targets, refused);
    if (!found && !hopeless_ && strategies().size() > 1) found = second_strategy(targets, refused);
    if (found) reduce();
    return found;
  }

  /// All together would not be enough. Asked before the first one is taken.
  [[nodiscard]] bool hopeless() {
    if (!taken_.empty()) return false;
    quota::UsageLog log;
    tree_.remove_usage(queue_, request_.amounts, &log);
    hopeless_ = !may_find_victims(trial_);
    tree_.restore(log, 0);
    return hopeless_;
  }

  [[nodiscard]] const std::vector<FairStrategy>& strategies() const {
    return state_.options.fair_sharing->strategies;
  }

  [[nodiscard]] Sides sides(NodeIndex other) const {
    // Candidates are collected below the common root, so the two do meet.
    const NodeIndex meeting = *tree_.lowest_common_ancestor(queue_, other);
    return {tree_.child_towards(meeting, queue_), tree_.child_towards(meeting, other)};
  }

  [[nodiscard]] CandidateList candidates_of(NodeIndex queue) {
    const PreemptionSpec& spec = state_.queues.at(request_.queue).preemption;
    const bool own = queue == queue_;
    const PreemptionPolicy policy = own ? spec.within_cluster_queue : spec.reclaim_within_cohort;
    if (policy == PreemptionPolicy::kNever) return {};
    if (!own && tree_.within_nominal(queue, request_.needed)) return {};
    CandidateList list = running_in(queue, policy);
    const std::vector<Candidate> holds = holds_in(queue, policy);
    list.insert(list.begin(), holds.begin(), holds.end());
    return list;
  }

  [[nodiscard]] CandidateList running_in(NodeIndex queue, PreemptionPolicy policy) {
    CandidateList list;
    const auto holders = state_.holders.find(tree_.queue_name(queue));
    if (holders == state_.holders.end()) return list;
    for (const WorkloadRecord* const holder : holders->second) {
      const WorkloadRecord& record = *holder;
      if (record.phase == Phase::kEvicting) continue;
      if (!uses_any(record.charged, request_.needed)) continue;
      if (!policy_allows(policy, *request_.preemptor, record.spec)) continue;
      const auto spared = state_.spared(record, *request_.preemptor);
      if (!spared) {
        list.push_back(Candidate{.record = &record, .queue = queue});
      } else if (request_.search.spared != nullptr) {
        request_.search.spared->emplace(record.spec.key, *spared);
      }
    }
    const CandidateOrder order(state_, tree_.queue_name(queue));
    std::sort(list.begin(), list.end(),
              [&](const Candidate& a, const Candidate& b) { return order(a.record, b.record); });
    return list;
  }

  [[nodiscard]] std::vector<Candidate> holds_in(NodeIndex queue, PreemptionPolicy policy) const {
    std::vector<Candidate> list;
    if (!state_.options.improvements.holds) return list;
    for (const auto& [key, hold] : state_.holds_in(queue)) {
      const WorkloadRecord& record = state_.workloads.at(key);
      if (hold->own_only || !uses_any(hold->amounts, request_.needed)) continue;
      if (!policy_allows(policy, *request_.preemptor, record.spec)) continue;
      list.push_back(Candidate{.record = &record, .hold = hold, .queue = queue});
    }
    std::sort(list.begin(), list.end(),
              [](const Candidate& a, const Candidate& b) { return cheaper(*a.record, *b.record); });
    return list;
  }

  [[nodiscard]] static const quota::FrAmounts& amounts_of(const Candidate& who) {
    return who.hold != nullptr ? who.hold->amounts : who.record->charged;
  }

  /// Takes until it fits. `refused`: whom the strategy did not allow.
  bool first_strategy(Targets& targets, std::map<NodeIndex, CandidateList>& refused) {
    while (const auto target = targets.next()) {
      if (*target == queue_ || within_nominal_) {
        const PreemptionRule rule = *target == queue_ ? PreemptionRule::kInClusterQueue
                                                      : PreemptionRule::kInCohortReclamation;
        if (hopeless()) return false;
        if (take(targets, targets.pop(*target), rule)) return true;
        continue;
      }
      const Sides meet = sides(*target);
      const FairShare mine = targets.share(meet.mine);
      const FairShare theirs = targets.share(meet.theirs);
      while (targets.has_candidate(*target)) {
        const Candidate who = targets.pop(*target);
        // Their share without the victim is no larger: then no strategy allows anyone.
        if (mine <= theirs && allows(strategies().front(), mine, theirs, meet.theirs, who)) {
          if (hopeless()) return false;
          if (take(targets, who, PreemptionRule::kInCohortFairSharing)) return true;
          break;
        }
        refused[*target].push_back(who);
      }
    }
    return false;
  }

  /// One of each queue that the first strategy left. What was taken stays taken.
  bool second_strategy(Targets& first, const std::map<NodeIndex, CandidateList>& refused) {
    Targets targets(state_, queue_, true, [&](NodeIndex queue) {
      const auto known = refused.find(queue);
      CandidateList list = known == refused.end() ? CandidateList() : known->second;
      const CandidateList rest = first.set_aside(queue);
      list.insert(list.end(), rest.begin(), rest.end());
      return list;
    });
    for (const Taken& taken : taken_) targets.recount(taken.who.queue);
    while (const auto target = targets.next()) {
      const Sides meet = sides(*target);
      const FairShare mine = targets.share(meet.mine);
      const FairShare theirs = targets.share(meet.theirs);
      const Candidate who = targets.pop(*target);
      targets.drop(*target);
      if (!allows(strategies()[1], mine, theirs, meet.theirs, who)) continue;
      if (hopeless()) return false;
      if (take(targets, who, PreemptionRule::kInCohortFairSharing)) return true;
    }
    return false;
  }

  /// `theirs` is the share of `side`, with the victim, which is below it.
  [[nodiscard]] bool allows(FairStrategy strategy, const FairShare& mine, const FairShare& theirs,
                            NodeIndex side, const Candidate& victim) {
    if (strategy == FairStrategy::kLessThanInitialShare) return mine < theirs;
    ++tried_;
    quota::UsageLog log;
    tree_.remove_usage(victim.queue, amounts_of(victim), &log);
    const FairShare left = quota::dominant_share(tree_, side);
    tree_.restore(log, 0);
    return mine <= left;
  }

  /// True when it fits now.
  bool take(Targets& targets, const Candidate& who, PreemptionRule rule) {
    trial_.take(who);
    targets.recount(who.queue);
    taken_.push_back(Taken{who, rule});
    return fits();
  }

  [[nodiscard]] bool fits() {
    quota::UsageLog log;
    tree_.remove_usage(queue_, request_.amounts, &log);
    const bool all_fit = trial_.fits(true);
    tree_.restore(log, 0);
    return all_fit;
  }

  /// Puts back whoever was taken in vain, last taken first. The one that made it fit is needed.
  void reduce() {
    for (bool again = true; again;) {
      again = false;
      bool put_back = false;
      for (std::size_t i = taken_.size() - 1; i-- > 0;) {
        const Trial::Checkpoint before = trial_.checkpoint();
        trial_.put_back(taken_[i].who);
        if (!fits()) {
          trial_.rollback_to(before);
          continue;
        }
        const Taken returned = taken_[i];
        taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!state_.options.improvements.legal_as_a_whole || legal_with(returned.who.queue)) {
          put_back = true;
          continue;
        }
        taken_.insert(taken_.begin() + static_cast<std::ptrdiff_t>(i), returned);
        trial_.rollback_to(before);
        again = true;
      }
      // One refused for its share may return when others did: they raise the other side's.
      again = again && put_back;
    }
  }

  /// Whether `taken_` may still be taken, one by one, now that `returned` keeps more. Only what the
  /// preemptor's own side keeps can speak against it.
  [[nodiscard]] bool legal_with(NodeIndex returned) {
    const bool touched = std::any_of(taken_.begin(), taken_.end(), [&](const Taken& taken) {
      return taken.rule == PreemptionRule::kInCohortFairSharing &&
             tree_.is_ancestor_or_self(sides(taken.who.queue).mine, returned);
    });
    if (!touched) return true;
    quota::UsageLog log;
    for (const Taken& taken : taken_) {
      tree_.add_usage(taken.who.queue, amounts_of(taken.who), &log);
    }
    bool legal = true;
    for (const Taken& taken : taken_) {
      if (taken.rule == PreemptionRule::kInCohortFairSharing) {
        const Sides meet = sides(taken.who.queue);
        const FairShare mine = quota::dominant_share(tree_, meet.mine);
        const FairShare theirs = quota::dominant_share(tree_, meet.theirs);
        legal = std::any_of(strategies().begin(), strategies().end(), [&](FairStrategy strategy) {
          return allows(strategy, mine, theirs, meet.theirs, taken.who);
        });
        if (!legal) break;
      }
      tree_.remove_usage(taken.who.queue, amounts_of(taken.who), &log);
    }
    tree_.restore(log, 0);
    return legal;
  }

  State& state_;
  quota::QuotaTree& tree_;
  const PreemptionRequest& request_;
  std::size_t& tried_;
  NodeIndex queue_;
  PreemptionTrial trial_;
  bool within_nominal_ = false;  ///< The preemptor's queue with it, of all that is short.
  bool hopeless_ = false;
  std::vector<Taken> taken_;
};

}  // namespace

std::optional<std::vector<Victim>> find_fair_victims(State& state, const PreemptionRequest& request,
                                                     std::size_t& tried) {
  return FairSearch(state, request, tried).run();
}

}  // namespace muster::engine

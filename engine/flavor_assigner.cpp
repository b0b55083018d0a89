#include "engine/flavor_assigner.hpp"

#include "engine/flavor_match.hpp"
#include "engine/planner.hpp"
#include "engine/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace muster::engine {
namespace {

/// The rank of a reason when several flavors fail: the mildest is shown (semantics b.10).
int severity(PendingReason reason) {
  switch (reason) {
    case PendingReason::kNoMatchingFlavor:
      return 4;
    case PendingReason::kExceedsMaxQuota:
      return 3;
    case PendingReason::kWaitingForQuota:
      return 2;
    case PendingReason::kTopologyPlacementFailed:
      return 1;
    default:
      return 0;
  }
}

/// Extended resources first: what people wait for are the accelerators.
bool shown_before(const ResourceName& a, const ResourceName& b) {
  const bool a_extended = a.value().find('/') != std::string::npos;
  const bool b_extended = b.value().find('/') != std::string::npos;
  if (a_extended != b_extended) return a_extended;
  return a < b;
}

/// Semantics b.4, worst first.
enum class Grade { kNoFit, kNoCandidates, kPreempt, kReclaim, kFit };

/// What flavors are compared by.
struct Rank {
  Grade grade = Grade::kFit;
  std::int64_t borrow_level = 0;
};

Grade grade_of(Oracle oracle) {
  switch (oracle) {
    case Oracle::kNoCandidates:
      return Grade::kNoCandidates;
    case Oracle::kOwnQueue:
      return Grade::kPreempt;
    case Oracle::kOtherQueuesOnly:
      return Grade::kReclaim;
  }
  return Grade::kNoCandidates;
}

Mode mode_of(Grade grade) {
  if (grade == Grade::kFit) return Mode::kFit;
  return grade == Grade::kNoFit ? Mode::kNoFit : Mode::kPreempt;
}

/// What flavors are preferred by.
struct Taste {
  FungibilitySpec::Preference preference;
  bool viable_first = true;  ///< One without candidates is below every other.
};

/// Semantics b.6.
bool preferred(const Rank& a, const Rank& b, const Taste& taste) {
  if (a.grade == Grade::kNoFit) return false;
  if (b.grade == Grade::kNoFit) return true;
  const bool a_viable = a.grade != Grade::kNoCandidates;
  const bool b_viable = b.grade != Grade::kNoCandidates;
  if (taste.viable_first && a_viable != b_viable) return a_viable;
  if (taste.preference == FungibilitySpec::Preference::kBorrowingOverPreemption) {
    return std::tie(b.grade, a.borrow_level) < std::tie(a.grade, b.borrow_level);
  }
  return std::tie(a.borrow_level, b.grade) < std::tie(b.borrow_level, a.grade);
}

/// Semantics b.5: whether this flavor ends the scan.
bool stops_scan(const Rank& rank, const FungibilitySpec& fungibility) {
  using Stop = FungibilitySpec::Stop;
  if (rank.grade == Grade::kNoFit || rank.grade == Grade::kNoCandidates) return false;
  if (rank.grade != Grade::kFit && fungibility.when_can_preempt == Stop::kTryNextFlavor) {
    return false;
  }
  return rank.borrow_level == 0 || fungibility.when_can_borrow != Stop::kTryNextFlavor;
}

/// One flavor for one resource group of one group of pod sets, judged.
struct Candidate {
  const quota::FlavorQuotas* flavor = nullptr;
  Rank rank;                      ///< The least preferred of its resources.
  Mode mode = Mode::kFit;         ///< The worst of them.
  std::int64_t borrow_level = 0;  ///< The highest of them.
  std::vector<quota::FrId> needed;
  std::optional<Admission> planned;  ///< With kFit, unless quota only: this and all before, placed.
  Explanation why;

  void lower(const Rank& to, const Taste& taste) {
    if (preferred(rank, to, taste)) rank = to;
    mode = std::min(mode, mode_of(to.grade));
    borrow_level = std::max(borrow_level, to.borrow_level);
  }
  void note(PendingReason reason, const Cause& cause) {
    if (why.causes.empty() || severity(reason) > severity(why.reason)) {
      why = {reason, {cause}};
    } else if (reason == why.reason) {
      why.causes.push_back(cause);
    }
  }
};

/// What one flavor of a choice comes to, whatever is in use: worked out when it is judged first.
struct Offer {
  std::optional<std::string> mismatch;  ///< Why the pods cannot use it.
  struct Asked {
    quota::FlavorResource what;
    std::optional<quota::FrId> fr;  ///< Nothing: nobody has quota of it.
    Amount total;
  };
  std::vector<Asked> asked;  ///< In the order in which shortfalls are shown.
};

struct PodSetGroup;

/// One choice of a flavor: a resource group of the queue for a group of pod sets.
struct Choice {
  const PodSetGroup* group = nullptr;
  std::size_t resource_group = 0;
  std::vector<ResourceName> asked;
  std::vector<std::optional<Offer>> offers;  ///< By flavor of the resource group.
};

/// Pod sets that get the same flavors; `totals` are of all of them, of what the queue covers.
struct PodSetGroup {
  std::vector<std::size_t> pod_sets;
  ResourceList totals;
  std::optional<Explanation> undeclared;  ///< Something is asked that the queue has no quota for.
  std::vector<Choice> choices;
};

}  // namespace

class FlavorAssigner::Impl {
 public:
  Impl(State& state, const WorkloadSpec& workload, const ClusterQueueSpec& queue,
       const std::vector<std::int64_t>& counts)
      : state_(state),
        workload_(workload),
        queue_(queue),
        node_(state.queue_node(queue.name())),
        taste_{queue.fungibility.preference, !state.options.peer.rank_is_all},
        own_only_(state.own_only(workload, queue.name())) {
    blank_.mode = Mode::kFit;
    blank_.admission.cluster_queue = queue_.name();
    for (std::size_t i = 0; i < workload_.pod_sets.size(); ++i) add_pod_set(i, counts);
    for (PodSetGroup& group : groups_) add_choices(group);
    for (const quota::ResourceGroup& group : queue_.quota.resource_groups) {
      for (const quota::FlavorQuotas& quotas : group.flavors) {
        const auto flavor = state_.flavors.find(quotas.flavor);
        if (flavor == state_.flavors.end()) continue;
        (flavor->second.topology ? any_topology_ : any_without_) = true;
      }
    }
  }

  Assignment assign(const AssignOptions& options) {
    begin(options);
    Assignment result;
    if (plain_amounts()) {
      result.mode = Mode::kFit;
    } else {
      result = blank_;
    }
    for (PodSetGroup& group : groups_) {
      if (assign_group(group, result)) continue;
      result.mode = Mode::kNoFit;
      return result;
    }
    if (!state_.options.improvements.flavors_by_nodes && !options_->quota_only) place_last(result);
    finish(result);
    return result;
  }

  std::optional<Assignment> find_joint_fit(std::size_t& budget) {
    std::vector<Choice*> choices;
    bool any_choice = false;
    for (PodSetGroup& group : groups_) {
      if (group.undeclared) return std::nullopt;
      for (Choice& choice : group.choices) {
        any_choice = any_choice || choice.offers.size() > 1;
        choices.push_back(&choice);
      }
    }
    if (choices.size() < 2 || !any_choice) return std::nullopt;
    const AssignOptions fit_only;
    begin(fit_only);
    Assignment result = blank_;
    if (!fit_from(choices, 0, result, budget)) return std::nullopt;
    finish(result);
    return result;
  }

 private:
  void begin(const AssignOptions& options) {
    options_ = &options;
    assumed_.clear();
    needed_.clear();
  }

  /// Which pod set got what does not matter for the answer.
  [[nodiscard]] bool plain_amounts() const { return options_->quota_only && !any_topology_; }

  [[nodiscard]] bool covers(const ResourceName& resource) const {
    for (const quota::ResourceGroup& group : queue_.quota.resource_groups) {
      for (const ResourceName& name : group.covered_resources) {
        if (name == resource) return true;
      }
    }
    return false;
  }

  [[nodiscard]] const quota::ResourceGroup& resource_group(const Choice& choice) const {
    return queue_.quota.resource_groups[choice.resource_group];
  }

  PodSetGroup& group_of(const PodSetSpec& pod_set) {
    for (PodSetGroup& group : groups_) {
      const PodSetSpec& first = workload_.pod_sets[group.pod_sets.front()];
      if (!pod_set.group.empty() && first.group == pod_set.group) return group;
    }
    return groups_.emplace_back();
  }

  void add_pod_set(std::size_t index, const std::vector<std::int64_t>& counts) {
    const PodSetSpec& pod_set = workload_.pod_sets[index];
    PodSetAssignment assignment;
    assignment.name = pod_set.name;
    assignment.count = pod_set.pods_left();
    if (index < counts.size()) assignment.count = std::min(assignment.count, counts[index]);
    PodSetGroup& group = group_of(pod_set);
    group.pod_sets.push_back(index);
    for (const auto& [resource, amount] : pod_set.quota_requests) {
      const Amount total = amount * assignment.count;
      if (covers(resource)) {
        assignment.usage[resource] = total;
      } else if (total > Amount() && !state_.options.ignore_undeclared_resources &&
                 !group.undeclared) {
        group.undeclared = Explanation{
            PendingReason::kNoMatchingFlavor,
            {QueueUnusable{
                fmt::format("resource {} unavailable in ClusterQueue {}", resource, queue_.name()),
                fmt::format("quota for {} in ClusterQueue {}", resource, queue_.name())}}};
      }
    }
    const ResourceName pods("pods");
    if (covers(pods)) assignment.usage[pods] = Amount(assignment.count);
    for (const auto& [resource, total] : assignment.usage) group.totals[resource] += total;
    blank_.admission.pod_sets.push_back(std::move(assignment));
  }

  void add_choices(PodSetGroup& group) const {
    for (std::size_t i = 0; i < queue_.quota.resource_groups.size(); ++i) {
      Choice choice{&group, i, {}, {}};
      for (const ResourceName& name : resource_group(choice).covered_resources) {
        if (group.totals.contains(name)) choice.asked.push_back(name);
      }
      if (choice.asked.empty()) continue;
      choice.offers.resize(resource_group(choice).flavors.size());
      group.choices.push_back(std::move(choice));
    }
  }

  bool assign_group(PodSetGroup& group, Assignment& result) {
    if (group.undeclared) {
      result.why = *group.undeclared;
      return false;
    }
    bool fails = false;
    Explanation missing;
    for (Choice& choice : group.choices) {
      const Candidate best = scan(choice, result);
      if (best.mode != Mode::kFit) add_causes(missing, best.why);
      if (best.mode == Mode::kNoFit) {
        fails = true;
      } else if (!fails) {
        take(choice, best, result);
      }
    }
    if (const auto error =
            fails || plain_amounts() ? std::nullopt : topology_error(group, result.admission)) {
      result.why = *error;
      return false;
    }
    if (!fails) return true;
    add_causes(result.why, missing);
    // Nothing is remembered of pod sets that got no flavor (semantics b.7).
    if (state_.options.peer.scans_go_on) {
      std::erase_if(result.rest,
                    [&](const auto& scan) { return scan.first.first == group.pod_sets.front(); });
    }
    return false;
  }

  /// Of several reasons the severest is what has to change first; all causes of it have to.
  static void add_causes(Explanation& why, const Explanation& more) {
    const int difference = severity(more.reason) - severity(why.reason);
    if (why.causes.empty() || difference > 0) {
      why = more;
      return;
    }
    if (difference < 0) return;
    for (const Cause& cause : more.causes) {
      const auto* shortfall = std::get_if<QuotaShortfall>(&cause);
      // A later one of the same quota counts what was asked before as well.
      const auto same = std::find_if(why.causes.begin(), why.causes.end(), [&](const Cause& known) {
        const auto* other = std::get_if<QuotaShortfall>(&known);
        return shortfall != nullptr && other != nullptr && other->what == shortfall->what;
      });
      if (same == why.causes.end()) {
        why.causes.push_back(cause);
      } else {
        *same = cause;
      }
    }
  }

  void take(const Choice& choice, const Candidate& best, Assignment& result) {
    if (best.mode == Mode::kPreempt) {
      add_causes(result.why, best.why);
      result.mode = Mode::kPreempt;
    }
    needed_.insert(best.needed.begin(), best.needed.end());
    result.borrow_level = std::max(result.borrow_level, best.borrow_level);
    if (best.planned) {
      result.admission = *best.planned;
    } else if (!plain_amounts()) {
      set_flavor(choice, best.flavor->flavor, result.admission);
    }
    for (const ResourceName& name : choice.asked) {
      if (const auto fr = state_.tree.find_fr({best.flavor->flavor, name})) {
        assumed_[*fr] += choice.group->totals.at(name);
      }
    }
  }

  /// A member of a group that asks for nothing stands where the others do.
  void set_flavor(const Choice& choice, const FlavorName& flavor, Admission& admission) const {
    const auto known = state_.flavors.find(flavor);
    const bool topology = known != state_.flavors.end() && known->second.topology;
    for (const std::size_t index : choice.group->pod_sets) {
      PodSetAssignment& assignment = admission.pod_sets[index];
      for (const ResourceName& name : choice.asked) {
        if (assignment.usage.contains(name)) assignment.flavors.insert_or_assign(name, flavor);
      }
      if (assignment.usage.empty() && topology) {
        assignment.flavors.insert_or_assign(choice.asked.front(), flavor);
      }
    }
  }

  /// Pods stand in one topology, and in one if they ask for it.
  [[nodiscard]] std::optional<Explanation> topology_error(const PodSetGroup& group,
                                                          const Admission& admission) const {
    for (const std::size_t index : group.pod_sets) {
      const PodSetAssignment& assignment = admission.pod_sets[index];
      std::set<FlavorName> with_topology;
      for (const auto& [resource, flavor] : assignment.flavors) {
        const auto known = state_.flavors.find(flavor);
        if (known != state_.flavors.end() && known->second.topology) with_topology.insert(flavor);
      }
      const bool asks = workload_.pod_sets[index].topology && assignment.count > 0;
      if (with_topology.size() <= 1 && !(asks && with_topology.empty())) continue;
      return Explanation{
          PendingReason::kNoMatchingFlavor,
          {QueueUnusable{fmt::format("{} flavors with a topology for pod set {}, want one",
                                     with_topology.size(), assignment.name)}}};
    }
    return std::nullopt;
  }

  void finish(Assignment& result) const {
    result.amounts.assign(assumed_.begin(), assumed_.end());
    result.needed.assign(needed_.begin(), needed_.end());
  }

  Candidate scan(Choice& choice, Assignment& so_far) {
    const std::pair place(choice.group->pod_sets.front(), choice.resource_group);
    const auto start = options_->start.find(place);
    std::size_t next = start == options_->start.end() ? 0 : start->second;
    const PeerFacts& peer = state_.options.peer;
    std::vector<Explanation> flaws;
    Candidate best;
    best.mode = Mode::kNoFit;
    best.rank.grade = Grade::kNoFit;
    bool first = true;
    bool stop = false;
    while (next < choice.offers.size() && !stop) {
      Candidate candidate = judge(choice, next++, so_far);
      stop = stops_scan(candidate.rank, queue_.fungibility);
      if (peer.scans_go_on) flaws.push_back(candidate.why);
      const bool milder = best.mode == Mode::kNoFit && candidate.mode == Mode::kNoFit &&
                          severity(candidate.why.reason) < severity(best.why.reason);
      if (first || stop || milder || preferred(candidate.rank, best.rank, taste_)) {
        best = std::move(candidate);
      }
      first = false;
    }
    if (peer.rank_is_all && best.rank.grade == Grade::kFit) best.mode = Mode::kFit;
    if (best.mode != Mode::kNoFit && next < choice.offers.size()) so_far.rest[place] = next;
    if (best.mode != Mode::kFit) {
      so_far.flaws.insert(so_far.flaws.end(), flaws.begin(), flaws.end());
    }
    return best;
  }

  bool fit_from(const std::vector<Choice*>& choices, std::size_t index, Assignment& result,
                std::size_t& budget) {
    if (index == choices.size()) {
      return std::none_of(groups_.begin(), groups_.end(), [&](const PodSetGroup& group) {
        return topology_error(group, result.admission).has_value();
      });
    }
    Choice& choice = *choices[index];
    for (std::size_t i = 0; i < choice.offers.size(); ++i) {
      if (budget == 0) return false;
      --budget;
      const Candidate candidate = judge(choice, i, result);
      if (candidate.mode != Mode::kFit) continue;
      const Assignment before = result;
      const auto assumed_before = assumed_;
      take(choice, candidate, result);
      if (fit_from(choices, index + 1, result, budget)) return true;
      result = before;
      assumed_ = assumed_before;
    }
    return false;
  }

  [[nodiscard]] std::optional<std::string> mismatch(const Choice& choice,
                                                    const FlavorName& name) const {
    const auto flavor = state_.flavors.find(name);
    if (flavor == state_.flavors.end()) return "it does not exist";
    const ResourceName pods("pods");
    for (const std::size_t index : choice.group->pod_sets) {
      const PodSetSpec& pod_set = workload_.pod_sets[index];
      FlavorPlace place;
      place.topology_only = !any_without_;
      const auto& covered = resource_group(choice).covered_resources;
      place.asked_by_pods = std::any_of(covered.begin(), covered.end(), [&](const auto& resource) {
        return resource != pods && pod_set.node_requests.contains(resource);
      });
      if (auto why = flavor_mismatch(state_, pod_set, flavor->second, place)) return why;
    }
    return std::nullopt;
  }

  const Offer& offer_of(Choice& choice, std::size_t flavor) {
    std::optional<Offer>& known = choice.offers[flavor];
    if (known) return *known;
    Offer& offer = known.emplace();
    const FlavorName& name = resource_group(choice).flavors[flavor].flavor;
    offer.mismatch = mismatch(choice, name);
    if (offer.mismatch) return offer;
    std::vector<ResourceName> shown = choice.asked;
    std::sort(shown.begin(), shown.end(), shown_before);
    for (ResourceName& resource : shown) {
      const Amount total = choice.group->totals.at(resource);
      quota::FlavorResource what{name, std::move(resource)};
      const auto fr = state_.tree.find_fr(what);
      offer.asked.push_back({std::move(what), fr, total});
    }
    return offer;
  }

  Candidate judge(Choice& choice, std::size_t flavor, const Assignment& so_far) {
    const Offer& offer = offer_of(choice, flavor);
    Candidate candidate;
    candidate.flavor = &resource_group(choice).flavors[flavor];
    if (offer.mismatch) {
      candidate.lower({Grade::kNoFit, 0}, taste_);
      candidate.note(PendingReason::kNoMatchingFlavor,
                     FlavorMismatch{candidate.flavor->flavor, *offer.mismatch});
      return candidate;
    }
    for (const Offer::Asked& asked : offer.asked) {
      judge_quota(asked, candidate);
      if (candidate.why.reason == PendingReason::kExceedsMaxQuota) return candidate;
    }
    if (state_.options.improvements.flavors_by_nodes && !options_->quota_only &&
        candidate.mode == Mode::kFit && so_far.mode == Mode::kFit) {
      judge_nodes(choice, so_far, candidate);
    }
    return candidate;
  }

  [[nodiscard]] bool may_preempt_while_borrowing() const {
    const PreemptionSpec& preemption = queue_.preemption;
    return preemption.borrow_within_cohort.policy != PreemptionPolicy::kNever ||
           (state_.options.fair_sharing &&
            preemption.reclaim_within_cohort != PreemptionPolicy::kNever);
  }

  /// Semantics b.4 for one resource; lowers the candidate.
  void judge_quota(const Offer::Asked& asked, Candidate& candidate) {
    const quota::QuotaTree& tree = state_.tree;
    const auto& [what, fr, alone] = asked;
    const auto before = fr ? assumed_.find(*fr) : assumed_.end();
    const Amount total = before == assumed_.end() ? alone : before->second + alone;
    if (!fr) {
      if (total.is_zero()) return;
      candidate.lower({Grade::kNoFit, 0}, taste_);
      candidate.note(PendingReason::kExceedsMaxQuota,
                     QuotaShortfall{what, total, Amount(), false, queue_.name().value()});
      return;
    }
    if (const auto ever = tree.limiting_node_ever(node_, *fr, total)) {
      candidate.lower({Grade::kNoFit, 0}, taste_);
      candidate.note(PendingReason::kExceedsMaxQuota,
                     QuotaShortfall{what, total, tree.potential(node_, *fr),
                                    !tree.is_queue(ever->node), tree.name(ever->node)});
      return;
    }
    if (const auto own = own_only_ ? tree.own_limit_ever(node_, *fr, total) : std::nullopt) {
      candidate.lower({Grade::kNoFit, 0}, taste_);
      candidate.note(PendingReason::kExceedsMaxQuota,
                     QuotaShortfall{what, total, total - own->missing, !tree.is_queue(own->node),
                                    tree.name(own->node), true});
      return;
    }
    auto now = tree.limiting_node(node_, *fr, total);
    const auto own = own_only_ ? tree.own_limit(node_, *fr, total) : std::nullopt;
    if (own) now = own;
    const quota::BorrowLevel level = tree.borrow_level(node_, *fr, total);
    if (!now) {
      candidate.lower({Grade::kFit, level.level}, taste_);
      return;
    }
    const bool may_preempt =
        tree.nominal(node_, *fr) >= total || level.may_reclaim || may_preempt_while_borrowing();
    Rank rank{Grade::kNoFit, level.level};
    if (may_preempt && options_->oracle) {
      const OracleAnswer answer =
          options_->oracle(OracleQuery{node_, &workload_, {{*fr, total}}, {*fr}, {}});
      rank = {grade_of(answer.oracle), answer.borrow_level};
    } else if (may_preempt && options_->quota_only) {
      rank.grade = Grade::kPreempt;
    }
    candidate.lower(rank, taste_);
    candidate.needed.push_back(*fr);
    if (options_->quota_only) {
      candidate.why.reason = PendingReason::kWaitingForQuota;
      return;
    }
    candidate.note(PendingReason::kWaitingForQuota,
                   QuotaShortfall{what, total, total - now->missing, !tree.is_queue(now->node),
                                  tree.name(now->node), own.has_value()});
  }

  /// All that is assumed so far and what the choice adds, of this flavor.
  [[nodiscard]] quota::FrAmounts amounts_with(const Choice& choice,
                                              const FlavorName& flavor) const {
    std::map<quota::FrId, Amount> amounts = assumed_;
    for (const ResourceName& name : choice.asked) {
      if (const auto fr = state_.tree.find_fr({flavor, name})) {
        amounts[*fr] += choice.group->totals.at(name);
      }
    }
    return {amounts.begin(), amounts.end()};
  }

  /// Quota would do: do the nodes?
  void judge_nodes(const Choice& choice, const Assignment& so_far, Candidate& candidate) {
    const FlavorName& flavor = candidate.flavor->flavor;
    Admission admission = so_far.admission;
    set_flavor(choice, flavor, admission);
    NodesShortfall shortfall;
    if (place_all(state_, workload_, admission, &shortfall)) {
      candidate.planned = std::move(admission);
      return;
    }
    shortfall.flavor = flavor;
    for (const ResourceName& name : choice.asked) {
      const auto fr = state_.tree.find_fr({flavor, name});
      if (fr && choice.group->totals.at(name) > Amount()) candidate.needed.push_back(*fr);
    }
    std::sort(candidate.needed.begin(), candidate.needed.end());
    candidate.note(PendingReason::kTopologyPlacementFailed, shortfall);
    OracleAnswer answer;
    if (options_->oracle) {
      answer = options_->oracle(OracleQuery{node_, &workload_, amounts_with(choice, flavor),
                                            candidate.needed, [this, &admission] {
                                              Admission tried = admission;
                                              return place_all(state_, workload_, tried, nullptr);
                                            }});
    }
    // Where no one's leaving makes room on nodes, the flavor is no choice at all.
    const bool hopeless = answer.oracle == Oracle::kNoCandidates;
    candidate.lower(
        hopeless ? Rank{Grade::kNoFit, 0} : Rank{grade_of(answer.oracle), answer.borrow_level},
        taste_);
  }

  /// With all flavors chosen: semantics b.9.
  void place_last(Assignment& result) {
    NodesShortfall shortfall;
    if (result.mode == Mode::kFit) {
      if (place_all(state_, workload_, result.admission, &shortfall)) return;
      result.mode = Mode::kPreempt;
      add_causes(result.why, {PendingReason::kTopologyPlacementFailed, {shortfall}});
      if (state_.options.peer.scans_go_on) {
        // The words of 0.17.0 do not name the flavor.
        shortfall.flavor = FlavorName();
        result.flaws.push_back({PendingReason::kTopologyPlacementFailed, {shortfall}});
      }
    }
    Trial empty(state_);
    empty.remove_plans();
    Admission tried = result.admission;
    if (!place_all(state_, workload_, tried, &shortfall)) {
      result.mode = Mode::kNoFit;
      result.why = {PendingReason::kTopologyPlacementFailed, {shortfall}};
      return;
    }
    // Free quota may be scattered over nodes: everybody who uses these flavors may have to go.
    for (const auto& [fr, amount] : assumed_) {
      const auto flavor = state_.flavors.find(state_.tree.fr(fr).flavor);
      if (flavor == state_.flavors.end()) continue;
      if (flavor->second.topology || flavor->second.capacity == Capacity::kFixed)
        needed_.insert(fr);
    }
  }

  State& state_;
  const WorkloadSpec& workload_;
  const ClusterQueueSpec& queue_;
  const AssignOptions* options_ = nullptr;  ///< Of the call.
  quota::NodeIndex node_;
  Taste taste_;
  bool own_only_;  ///< It may not borrow: it is not preemptible.
  std::vector<PodSetGroup> groups_;
  Assignment blank_;           ///< Counts and usage, no flavors.
  bool any_topology_ = false;  ///< Of the queue's flavors.
  bool any_without_ = false;
  std::map<quota::FrId, Amount> assumed_;  ///< By earlier choices of this call.
  std::set<quota::FrId> needed_;
};

FlavorAssigner::FlavorAssigner(State& state, const WorkloadSpec& workload,
                               const ClusterQueueSpec& queue,
                               const std::vector<std::int64_t>& counts)
    : impl_(std::make_unique<Impl>(state, workload, queue, counts)) {}

FlavorAssigner::~FlavorAssigner() = default;

Assignment FlavorAssigner::assign(const AssignOptions& options) {
  return impl_->assign(options);
}

std::optional<Assignment> FlavorAssigner::find_joint_fit(std::size_t& budget) {
  return impl_->find_joint_fit(budget);
}

}  // namespace muster::engine

#include "engine/flavor_assigner.hpp"

#include "engine/planner.hpp"

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

// nodeSelector and affinity judge a flavor only on keys that the flavor itself sets; a term with
// nothing left is no restriction (semantics b.3).
bool selects_flavor(const NodeConstraints& constraints, const LabelMap& flavor_labels) {
  for (const auto& [key, wanted] : constraints.node_selector) {
    const auto found = flavor_labels.find(key);
    if (found != flavor_labels.end() && found->second != wanted) return false;
  }
  if (!constraints.required_affinity || constraints.required_affinity->empty()) return true;
  for (const NodeSelectorTerm& term : *constraints.required_affinity) {
    bool any = false;
    bool all = true;
    for (const SelectorRequirement& requirement : term.match_expressions) {
      const auto found = flavor_labels.find(requirement.key);
      if (found == flavor_labels.end()) continue;
      any = true;
      all = all && matches(requirement, std::string_view(found->second));
    }
    if (!any || all) return true;
  }
  return false;
}

std::optional<std::string> flavor_mismatch(const State& state, const PodSetSpec& pod_set,
                                           const FlavorSpec& flavor) {
  std::vector<Toleration> tolerations = pod_set.constraints.tolerations;
  tolerations.insert(tolerations.end(), flavor.tolerations.begin(), flavor.tolerations.end());
  if (const Taint* taint = find_untolerated(flavor.node_taints, tolerations)) {
    return fmt::format("untolerated taint {}={}:{}", taint->key, taint->value,
                       to_string(taint->effect));
  }
  if (!selects_flavor(pod_set.constraints, flavor.node_labels)) {
    return "the node selector or affinity excludes its labels";
  }
  if (!pod_set.topology) return std::nullopt;
  if (!flavor.topology) return "it has no topology and the pods ask for one";
  const auto topology = state.topologies.find(*flavor.topology);
  if (topology == state.topologies.end()) {
    return fmt::format("its topology {} does not exist", *flavor.topology);
  }
  const std::string& level = pod_set.topology->level;
  const auto& levels = topology->second.levels;
  if (!level.empty() && std::find(levels.begin(), levels.end(), level) == levels.end()) {
    return fmt::format("its topology has no level {}", level);
  }
  return std::nullopt;
}

/// One flavor for one resource group of one pod set, judged.
struct Candidate {
  Mode mode = Mode::kNoFit;
  bool has_candidates = true;  ///< With kPreempt: victims exist.
  bool reclaim_only = false;   ///< With kPreempt: all of them are in other queues.
  std::int64_t borrow_level = 0;
  const quota::FlavorQuotas* flavor = nullptr;
  std::vector<quota::FrId> needed;
  std::optional<Admission> planned;  ///< With kFit, unless quota only: this and all before, placed.
  Explanation why;

  /// fit > reclaim > preempt > no candidates > no fit (semantics b.4).
  [[nodiscard]] int fine_mode() const {
    if (mode == Mode::kFit) return 4;
    if (mode == Mode::kNoFit) return 0;
    if (!has_candidates) return 1;
    return reclaim_only ? 3 : 2;
  }
};

/// Semantics b.6.
bool preferred(const Candidate& a, const Candidate& b, FungibilitySpec::Preference preference) {
  if (a.mode == Mode::kNoFit) return false;
  if (b.mode == Mode::kNoFit) return true;
  const bool a_viable = a.fine_mode() > 1;
  const bool b_viable = b.fine_mode() > 1;
  if (a_viable != b_viable) return a_viable;
  if (preference == FungibilitySpec::Preference::kBorrowingOverPreemption) {
    return std::tuple(-a.fine_mode(), a.borrow_level) < std::tuple(-b.fine_mode(), b.borrow_level);
  }
  return std::tuple(a.borrow_level, -a.fine_mode()) < std::tuple(b.borrow_level, -b.fine_mode());
}

/// Semantics b.5: whether this flavor ends the scan.
bool stops_scan(const Candidate& candidate, const FungibilitySpec& fungibility) {
  using Stop = FungibilitySpec::Stop;
  if (candidate.fine_mode() <= 1) return false;
  if (candidate.mode == Mode::kPreempt && fungibility.when_can_preempt == Stop::kTryNextFlavor) {
    return false;
  }
  return candidate.borrow_level == 0 || fungibility.when_can_borrow != Stop::kTryNextFlavor;
}

class Assigner {
 public:
  Assigner(State& state, const WorkloadSpec& workload, const ClusterQueueSpec& queue,
           const AssignOptions& options)
      : state_(state),
        workload_(workload),
        queue_(queue),
        options_(options),
        node_(state.queue_node(queue.name())) {}

  Assignment run() {
    Assignment result;
    result.mode = Mode::kFit;
    result.admission.cluster_queue = queue_.name();
    std::set<quota::FrId> needed;
    for (std::size_t i = 0; i < workload_.pod_sets.size(); ++i) {
      if (!assign_pod_set(i, result, needed)) {
        result.mode = Mode::kNoFit;
        return result;
      }
    }
    for (const auto& [fr, amount] : assumed_) result.amounts.emplace_back(fr, amount);
    result.needed.assign(needed.begin(), needed.end());
    return result;
  }

 private:
  [[nodiscard]] bool covers(const ResourceName& resource) const {
    for (const quota::ResourceGroup& group : queue_.quota.resource_groups) {
      for (const ResourceName& name : group.covered_resources) {
        if (name == resource) return true;
      }
    }
    return false;
  }

  /// Totals of the pod set; false when something is asked that the queue has no quota for.
  bool totals_of(const PodSetSpec& pod_set, ResourceList& totals, Explanation& why) const {
    for (const auto& [resource, amount] : pod_set.quota_requests) {
      const Amount total = amount * pod_set.pods_left();
      if (covers(resource)) {
        totals[resource] = total;
      } else if (total > Amount() && !state_.options.ignore_undeclared_resources) {
        why.reason = PendingReason::kNoMatchingFlavor;
        why.causes.emplace_back(QueueUnusable{
            fmt::format("resource {} unavailable in ClusterQueue {}", resource, queue_.name())});
        return false;
      }
    }
    const ResourceName pods("pods");
    if (covers(pods)) totals[pods] = Amount(pod_set.pods_left());
    return true;
  }

  bool assign_pod_set(std::size_t index, Assignment& result, std::set<quota::FrId>& needed) {
    const PodSetSpec& pod_set = workload_.pod_sets[index];
    ResourceList totals;
    if (!totals_of(pod_set, totals, result.why)) return false;

    PodSetAssignment assignment;
    assignment.name = pod_set.name;
    assignment.count = pod_set.pods_left();
    assignment.usage = totals;
    result.admission.pod_sets.push_back(assignment);

    for (const quota::ResourceGroup& group : queue_.quota.resource_groups) {
      std::vector<ResourceName> asked;
      for (const ResourceName& name : group.covered_resources) {
        if (totals.contains(name)) asked.push_back(name);
      }
      if (asked.empty()) continue;
      const Candidate best = scan(pod_set, group, asked, totals, result);
      if (best.mode == Mode::kNoFit) {
        result.why = best.why;
        return false;
      }
      if (best.mode == Mode::kPreempt) {
        if (result.mode == Mode::kFit) result.why = best.why;
        result.mode = Mode::kPreempt;
        needed.insert(best.needed.begin(), best.needed.end());
      }
      result.borrow_level = std::max(result.borrow_level, best.borrow_level);
      if (best.planned) result.admission = *best.planned;
      for (const ResourceName& name : asked) {
        result.admission.pod_sets.back().flavors.emplace(name, best.flavor->flavor);
        if (const auto fr = state_.tree.find_fr({best.flavor->flavor, name})) {
          assumed_[*fr] += totals.at(name);
        }
      }
    }
    return true;
  }

  Candidate scan(const PodSetSpec& pod_set, const quota::ResourceGroup& group,
                 const std::vector<ResourceName>& asked, const ResourceList& totals,
                 const Assignment& so_far) {
    Candidate best;
    bool first = true;
    for (const quota::FlavorQuotas& quotas : group.flavors) {
      Candidate candidate = judge(pod_set, quotas, asked, totals, so_far);
      const bool stop = stops_scan(candidate, queue_.fungibility);
      const bool milder = best.mode == Mode::kNoFit && candidate.mode == Mode::kNoFit &&
                          severity(candidate.why.reason) < severity(best.why.reason);
      if (first || stop || milder || preferred(candidate, best, queue_.fungibility.preference)) {
        best = std::move(candidate);
      }
      first = false;
      if (stop) break;
    }
    return best;
  }

  Candidate judge(const PodSetSpec& pod_set, const quota::FlavorQuotas& quotas,
                  const std::vector<ResourceName>& asked, const ResourceList& totals,
                  const Assignment& so_far) {
    Candidate candidate;
    candidate.flavor = &quotas;
    const auto flavor = state_.flavors.find(quotas.flavor);
    std::optional<std::string> mismatch;
    if (flavor == state_.flavors.end()) {
      mismatch = "it does not exist";
    } else {
      mismatch = flavor_mismatch(state_, pod_set, flavor->second);
    }
    if (mismatch) {
      candidate.why = {PendingReason::kNoMatchingFlavor,
                       {FlavorMismatch{quotas.flavor, *mismatch}}};
      return candidate;
    }
    candidate.mode = Mode::kFit;
    std::vector<ResourceName> shown = asked;
    std::sort(shown.begin(), shown.end(), shown_before);
    for (const ResourceName& name : shown) {
      judge_quota(quota::FlavorResource{quotas.flavor, name}, totals.at(name), candidate);
      if (candidate.mode == Mode::kNoFit &&
          candidate.why.reason == PendingReason::kExceedsMaxQuota) {
        return candidate;
      }
    }
    if (candidate.mode == Mode::kNoFit) return candidate;
    if (!options_.quota_only && candidate.mode == Mode::kFit && so_far.mode == Mode::kFit) {
      judge_nodes(pod_set, asked, totals, so_far, candidate);
    }
    return candidate;
  }

  /// Semantics b.4 for one resource; lowers the candidate's mode.
  void judge_quota(const quota::FlavorResource& what, Amount asked, Candidate& candidate) {
    const quota::QuotaTree& tree = state_.tree;
    const auto fr = tree.find_fr(what);
    const Amount before = fr && assumed_.contains(*fr) ? assumed_.at(*fr) : Amount();
    const Amount total = before + asked;
    if (!fr) {
      if (total.is_zero()) return;
      note(candidate, Mode::kNoFit, PendingReason::kExceedsMaxQuota,
           QuotaShortfall{what, total, Amount(), false, queue_.name().value()});
      return;
    }
    if (const auto ever = tree.limiting_node_ever(node_, *fr, total)) {
      note(candidate, Mode::kNoFit, PendingReason::kExceedsMaxQuota,
           QuotaShortfall{what, total, tree.potential(node_, *fr), !tree.is_queue(ever->node),
                          tree.name(ever->node)});
      return;
    }
    const auto now = tree.limiting_node(node_, *fr, total);
    const quota::BorrowLevel level = tree.borrow_level(node_, *fr, total);
    candidate.borrow_level = std::max(candidate.borrow_level, level.level);
    if (!now) return;

    const QuotaShortfall shortfall{what, total, total - now->missing, !tree.is_queue(now->node),
                                   tree.name(now->node)};
    const bool may_preempt =
        tree.nominal(node_, *fr) >= total || level.may_reclaim ||
        queue_.preemption.borrow_within_cohort.policy != PreemptionPolicy::kNever;
    if (!may_preempt || !options_.oracle) {
      note(candidate, options_.quota_only && may_preempt ? Mode::kPreempt : Mode::kNoFit,
           PendingReason::kWaitingForQuota, shortfall);
      candidate.needed.push_back(*fr);
      return;
    }
    const Oracle answer =
        options_.oracle(OracleQuery{node_, &workload_, {{*fr, total}}, {*fr}, {}});
    lower(candidate, answer);
    note(candidate, Mode::kPreempt, PendingReason::kWaitingForQuota, shortfall);
    candidate.needed.push_back(*fr);
  }

  /// Quota would do: do the nodes?
  void judge_nodes(const PodSetSpec& pod_set, const std::vector<ResourceName>& asked,
                   const ResourceList& totals, const Assignment& so_far, Candidate& candidate) {
    Admission admission = so_far.admission;
    for (const ResourceName& name : asked) {
      admission.pod_sets.back().flavors[name] = candidate.flavor->flavor;
    }
    NodesShortfall shortfall;
    if (place_all(state_, workload_, admission, &shortfall)) {
      candidate.planned = std::move(admission);
      return;
    }
    shortfall.flavor = candidate.flavor->flavor;
    shortfall.pod_set = pod_set.name;
    for (const ResourceName& name : asked) {
      const auto fr = state_.tree.find_fr({candidate.flavor->flavor, name});
      if (fr && totals.at(name) > Amount()) candidate.needed.push_back(*fr);
    }
    if (!options_.oracle) {
      note(candidate, Mode::kNoFit, PendingReason::kTopologyPlacementFailed, shortfall);
      return;
    }
    quota::FrAmounts amounts(assumed_.begin(), assumed_.end());
    for (const ResourceName& name : asked) {
      const auto fr = state_.tree.find_fr({candidate.flavor->flavor, name});
      if (!fr) continue;
      const auto position =
          std::lower_bound(amounts.begin(), amounts.end(), *fr,
                           [](const auto& entry, quota::FrId id) { return entry.first < id; });
      if (position != amounts.end() && position->first == *fr) {
        position->second += totals.at(name);
      } else {
        amounts.insert(position, {*fr, totals.at(name)});
      }
    }
    std::vector<quota::FrId> needed = candidate.needed;
    std::sort(needed.begin(), needed.end());
    const Oracle answer =
        options_.oracle(OracleQuery{node_, &workload_, amounts, needed, [this, &admission] {
                                      Admission tried = admission;
                                      return place_all(state_, workload_, tried, nullptr);
                                    }});
    if (answer == Oracle::kNoCandidates) {
      note(candidate, Mode::kNoFit, PendingReason::kTopologyPlacementFailed, shortfall);
      return;
    }
    lower(candidate, answer);
    note(candidate, Mode::kPreempt, PendingReason::kTopologyPlacementFailed, shortfall);
  }

  static void lower(Candidate& candidate, Oracle answer) {
    const bool reclaim = answer == Oracle::kOtherQueuesOnly;
    candidate.reclaim_only =
        candidate.mode == Mode::kPreempt ? candidate.reclaim_only && reclaim : reclaim;
    candidate.has_candidates = candidate.has_candidates && answer != Oracle::kNoCandidates;
  }

  static void note(Candidate& candidate, Mode mode, PendingReason reason, const Cause& cause) {
    candidate.mode = std::min(candidate.mode, mode);
    if (candidate.why.causes.empty() || severity(reason) > severity(candidate.why.reason)) {
      candidate.why = {reason, {cause}};
    } else if (reason == candidate.why.reason) {
      candidate.why.causes.push_back(cause);
    }
  }

  State& state_;
  const WorkloadSpec& workload_;
  const ClusterQueueSpec& queue_;
  const AssignOptions& options_;
  quota::NodeIndex node_;
  std::map<quota::FrId, Amount> assumed_;  ///< By earlier pod sets and groups of this workload.
};

}  // namespace

Assignment assign_flavors(State& state, const WorkloadSpec& workload, const ClusterQueueSpec& queue,
                          const AssignOptions& options) {
  return Assigner(state, workload, queue, options).run();
}

}  // namespace muster::engine

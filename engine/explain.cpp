#include "engine/explain.hpp"

#include "base/overloaded.hpp"
#include "base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace muster::engine {
namespace {

/// Before the name of somebody whose end would do.
constexpr std::string_view kAhead = "; fits after ";

/// `1 pod`, `2 pods`.
std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string amount_of(const ResourceName& resource, Amount amount) {
  return fmt::format("{} {}", format_amount(resource, amount), resource);
}

std::string scope_of(const QuotaShortfall& shortfall) {
  return fmt::format("{} {}", shortfall.in_cohort ? "cohort" : "ClusterQueue", shortfall.scope);
}

/// As scope_of(), saying why nothing is borrowed.
std::string bounds_of(const QuotaShortfall& shortfall) {
  return scope_of(shortfall) +
         (shortfall.own_only ? " itself (it is not preemptible, so it may not borrow)" : "");
}

std::string describe_spared(const Spared& spared) {
  constexpr std::size_t kShown = 3;
  std::string text = "not preempted:";
  for (std::size_t i = 0; i < spared.workloads.size() && i < kShown; ++i) {
    const SparedWorkload& one = spared.workloads[i];
    text += fmt::format("{} {} ", i == 0 ? "" : ",", one.workload);
    switch (one.why) {
      case SparedWorkload::Why::kNotPreemptible:
        text += "(not preemptible)";
        break;
      case SparedWorkload::Why::kMinRuntime:
        text += fmt::format("(may run until {})", format_rfc3339(one.until.value_or(Instant{})));
        break;
      case SparedWorkload::Why::kPreemptedBefore:
        text += "(preempted before, and nothing changed since)";
        break;
    }
  }
  if (spared.workloads.size() > kShown) {
    text += fmt::format(" and {} more", spared.workloads.size() - kShown);
  }
  return text;
}

std::string describe_quota(PendingReason reason, const QuotaShortfall& shortfall) {
  const ResourceName& resource = shortfall.what.resource;
  if (reason == PendingReason::kExceedsMaxQuota) {
    return fmt::format("exceeds max quota: {} asked, {} possible in flavor {} of {}",
                       amount_of(resource, shortfall.asked),
                       format_amount(resource, shortfall.available), shortfall.what.flavor,
                       bounds_of(shortfall));
  }
  return fmt::format("waits for quota: {} asked, {} free in flavor {} of {}",
                     amount_of(resource, shortfall.asked),
                     format_amount(resource, std::max(shortfall.available, Amount())),
                     shortfall.what.flavor, bounds_of(shortfall));
}

/// `3 pods of main inside one rack`, `2 more slices of 4 pods, each inside one host, of main`.
std::string pods_of(const NodesShortfall& shortfall, std::int64_t count, const std::string& more) {
  std::string text;
  if (shortfall.slice_size > 1) {
    text = fmt::format("{} of {} pods, each inside one {},", counted(count, more + "slice"),
                       shortfall.slice_size, shortfall.slice_level);
  } else {
    text = counted(count, more + "pod");
  }
  text += fmt::format(" of {}", shortfall.pod_set);
  return text;
}

std::string describe_nodes(const NodesShortfall& shortfall) {
  if (!shortfall.unknown_level.empty()) {
    return fmt::format("the topology of flavor {} has no level {} where {} asks for it",
                       shortfall.flavor, shortfall.unknown_level, shortfall.pod_set);
  }
  if (shortfall.indivisible) {
    const std::int64_t outer = shortfall.indivisible->outer;
    return fmt::format("the {} of {} cannot be cut into slices of {}",
                       outer == 0 ? "pods" : fmt::format("slices of {} pods", outer),
                       shortfall.pod_set, shortfall.indivisible->size);
  }
  std::string text = fmt::format("nodes of flavor {} have room for ", shortfall.flavor);
  if (shortfall.fitting < shortfall.asked) {
    text += fmt::format("{} of {}", shortfall.fitting, pods_of(shortfall, shortfall.asked, ""));
  } else {
    text +=
        fmt::format("{}, not for the leader beside them", pods_of(shortfall, shortfall.asked, ""));
  }
  if (!shortfall.level.empty()) text += fmt::format(" inside one {}", shortfall.level);
  if (!shortfall.best_domain.empty()) text += fmt::format(", {} at best", shortfall.best_domain);
  text += fmt::format(" ({}", counted(shortfall.nodes, "node"));
  for (const auto& [resource, count] : shortfall.too_small) {
    text += fmt::format("; {} too small for one pod in {}", count, resource);
  }
  for (const auto& [resource, count] : shortfall.full) {
    text += fmt::format("; {} without {} for one more", count, resource);
  }
  if (!shortfall.excluded.empty()) text += "; left out:";
  for (const auto& [cause, count] : shortfall.excluded) {
    text += fmt::format(" {} {},", count, cause);
  }
  if (text.back() == ',') text.pop_back();
  return text + ")";
}

std::string describe_cause(PendingReason reason, const Cause& cause) {
  return std::visit(
      Overloaded{
          [&](const QuotaShortfall& shortfall) { return describe_quota(reason, shortfall); },
          [](const FlavorMismatch& mismatch) {
            return fmt::format("flavor {} does not fit: {}", mismatch.flavor, mismatch.detail);
          },
          [](const NodesShortfall& shortfall) { return describe_nodes(shortfall); },
          [](const QueueUnusable& queue) { return queue.detail; },
          [](const AwaitingVictims& awaiting) {
            std::string text = awaiting.again
                                   ? "preempted workloads did not leave in time, now waits for:"
                                   : "waits for preempted workloads to leave:";
            for (const WorkloadKey& victim : awaiting.victims) text += fmt::format(" {},", victim);
            text.pop_back();
            return text;
          },
          [](const Spared& spared) { return describe_spared(spared); },
      },
      cause);
}

std::string rule_in_words(const Evict& evict) {
  if (!evict.rule) return "";
  switch (*evict.rule) {
    case PreemptionRule::kInClusterQueue:
      return "it has a lower place in the same ClusterQueue";
    case PreemptionRule::kInCohortReclamation:
      return "it borrowed quota that is taken back";
    case PreemptionRule::kInCohortReclaimWhileBorrowing:
      return "a workload of higher priority may borrow its quota";
    case PreemptionRule::kInCohortFairSharing:
      return "its queue has the larger share of the cohort";
  }
  return "";
}

/// ` of h100 on n1, n2 and 6 more nodes`.
std::string where(const PodSetAssignment& pod_set) {
  constexpr std::size_t kShown = 3;
  std::set<FlavorName> flavors;
  for (const auto& [resource, flavor] : pod_set.flavors) flavors.insert(flavor);
  std::string text;
  for (const FlavorName& flavor : flavors) {
    text += fmt::format("{}{}", text.empty() ? " of " : ", ", flavor);
  }
  const std::size_t nodes = pod_set.nodes.size();
  const std::size_t shown = nodes <= kShown + 1 ? nodes : kShown;
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("{}{}", i == 0 ? " on " : ", ", pod_set.nodes[i].node);
  }
  if (shown < nodes) text += fmt::format(" and {} more nodes", nodes - shown);
  return text;
}

}  // namespace

std::string describe(const Explanation& explanation) {
  if (explanation.causes.empty()) return std::string(to_string(explanation.reason));
  std::string text;
  for (const Cause& cause : explanation.causes) {
    if (!text.empty()) text += "; ";
    text += describe_cause(explanation.reason, cause);
  }
  // Behind all the rest: see is_description().
  for (const Cause& cause : explanation.causes) {
    const auto* shortfall = std::get_if<NodesShortfall>(&cause);
    if (shortfall == nullptr || !shortfall->after) continue;
    text += fmt::format("{}{} ({}) ends", kAhead, shortfall->after->workload,
                        counted(shortfall->after->hosts, "host"));
  }
  return text;
}

bool is_description(std::string_view text, const Explanation& explanation,
                    const std::function<bool(const WorkloadKey&)>& runs) {
  const std::string words = describe(explanation);
  if (!text.starts_with(words)) return false;
  text.remove_prefix(words.size());
  if (text.empty()) return true;
  if (!text.starts_with(kAhead)) return false;
  text.remove_prefix(kAhead.size());
  const std::string_view who = text.substr(0, text.find(' '));
  const std::size_t slash = who.find('/');
  if (slash == std::string_view::npos) return false;
  return runs({Namespace(std::string(who.substr(0, slash))), std::string(who.substr(slash + 1))});
}

std::string needs(const Explanation& explanation) {
  // Every resource that is short has to come; of the rest the first cause says it all.
  std::string quota;
  for (const Cause& cause : explanation.causes) {
    const auto* shortfall = std::get_if<QuotaShortfall>(&cause);
    if (shortfall == nullptr) continue;
    // An oversubscribed tree has a negative rest: the change must cover that as well.
    quota +=
        fmt::format("{}{} in {}", quota.empty() ? "" : " and ",
                    amount_of(shortfall->what.resource, shortfall->asked - shortfall->available),
                    scope_of(*shortfall));
  }
  if (!quota.empty() || explanation.causes.empty()) return quota;
  return std::visit(
      Overloaded{
          [](const QuotaShortfall&) { return std::string(); },
          [](const FlavorMismatch& mismatch) {
            return fmt::format("pods that flavor {} takes", mismatch.flavor);
          },
          [](const NodesShortfall& shortfall) {
            if (!shortfall.unknown_level.empty() || shortfall.indivisible) return std::string();
            const std::int64_t more = shortfall.asked - shortfall.fitting;
            std::string text =
                fmt::format("room for {} on nodes of flavor {}",
                            more > 0 ? pods_of(shortfall, more, "more ")
                                     : fmt::format("the leader beside {}", shortfall.pod_set),
                            shortfall.flavor);
            if (!shortfall.level.empty()) text += fmt::format(" inside one {}", shortfall.level);
            return text;
          },
          [](const QueueUnusable& queue) { return queue.needs; },
          [](const AwaitingVictims& awaiting) {
            return counted(std::ssize(awaiting.victims), "preempted workload") + " to leave";
          },
          [](const Spared&) { return std::string(); },
      },
      explanation.causes.front());
}

std::string describe(const Admit& admit) {
  std::string text = fmt::format("admitted to ClusterQueue {}", admit.admission.cluster_queue);
  for (const PodSetAssignment& pod_set : admit.admission.pod_sets) {
    text += fmt::format("; {}: {}{}", pod_set.name, counted(pod_set.count, "pod"), where(pod_set));
  }
  std::string_view before = "; borrows ";
  for (const auto& [what, amount] : admit.borrowed) {
    text += fmt::format("{}{} of {}", before, amount_of(what.resource, amount), what.flavor);
    const auto lender = admit.lenders.find(what);
    if (lender != admit.lenders.end()) text += fmt::format(" from cohort {}", lender->second);
    before = ", ";
  }
  return text;
}

std::string describe(const Evict& evict) {
  switch (evict.reason) {
    case EvictionReason::kPreempted:
      return fmt::format("preempted for {} ({}ClusterQueue {}): {}",
                         evict.preemptor ? evict.preemptor->to_string() : std::string("a workload"),
                         evict.preemptor_uid.empty()
                             ? std::string()
                             : fmt::format("UID: {}, ", evict.preemptor_uid),
                         evict.preemptor_queue, rule_in_words(evict));
    case EvictionReason::kClusterQueueStopped:
      return fmt::format("ClusterQueue {} is stopped", evict.cluster_queue);
    case EvictionReason::kLocalQueueStopped:
      return "its LocalQueue is stopped";
    case EvictionReason::kNodeFailures:
      return fmt::format(
          "its planned room on node {} is gone (the node was lost, or other pods took it) and "
          "there "
          "is no other",
          evict.node);
    case EvictionReason::kDeactivated:
      return "the workload was deactivated";
  }
  return "";
}

}  // namespace muster::engine

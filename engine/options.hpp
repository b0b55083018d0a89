#pragma once
// What the Configuration says about decisions. Fixed for the life of an engine.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "quota/quota_spec.hpp"
#include "topology/placement.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace muster::engine {

/// What muster does beyond the queueing semantics (design section 5): all on, or with
/// `profile: kueue` all off.
struct Improvements {
  /// A pass considers everything pending, each on the state that the ones before left. Off: one
  /// head of each queue, all of them judged on the state as it was when the pass began (semantics
  /// c).
  bool every_class = true;
  /// Victims are those whose loss is least, on quota and nodes together; off: the first ones in the
  /// order of semantics (d) that suffice.
  bool least_loss = true;
  /// What was freed for a workload is kept for it over passes.
  bool holds = true;
  /// Nobody is preempted twice while nothing new happened.
  bool no_loops = true;
  /// Under fair sharing no victim is put back where another that stays could then not be taken any
  /// more; off: whoever is not needed is put back (semantics d).
  bool legal_as_a_whole = true;
  /// A flavor whose nodes do not do is no better than one without quota. Off: flavors are chosen by
  /// quota alone, and nodes are looked at when all are chosen (semantics b.9).
  bool flavors_by_nodes = true;
  /// Of equal places the one in the domain with the least free room is taken, so that whole domains
  /// stay free for gangs; off: the first by name (semantics f).
  bool pack_domains = true;
  /// Of a workload that takes fewer pods, no more are tried than make whole slices; off: a number
  /// that they do not divide is one that does not fit, and then fewer are tried.
  bool whole_slices = true;

  [[nodiscard]] static Improvements none() {
    return {false, false, false, false, false, false, false, false};
  }
  bool operator==(const Improvements&) const = default;
};

/// Where Kueue 0.17.0 departs from the queueing semantics, or muster does in every profile. All
/// off, whatever the profile: the differential test switches on one at a time to show that it alone
/// is what makes a world end differently. docs/parity.md says more of each. Only without
/// Improvements::every_class.
struct PeerFacts {
  /// The rank of a flavor is all that counts of it (semantics b.4 to b.6, row b2): one without
  /// candidates may be preferred to one that is viable, and one that ranks as a fit is taken for a
  /// fit, even where one of its resources would need victims.
  bool rank_is_all = false;
  /// Scans of flavors go on behind the last one tried, over cycles (semantics b.7, row b3).
  bool scans_go_on = false;
  /// Who was chosen to leave in this cycle is gone for those behind it (semantics c.5a).
  bool leaving_is_gone = false;
  /// Shares are compared as floating point numbers, which differ where the fractions do not.
  bool rounded_shares = false;
  /// Whose nodes others took in the same cycle gets no others in it (semantics c.5a, row c1). And
  /// what they took is counted once for each of the resources that they have flavors for.
  bool plan_is_final = false;
  /// For the next pod sets of a workload the first ones are no pods, only what they ask for (row
  /// f1).
  bool earlier_are_no_pods = false;
  /// How a pod set with a leader, and without slices, gets its nodes (row f2: either may end up
  /// nowhere). nullptr: as ever. A function of the test, since it is all of a search.
  std::optional<topology::Placement> (*place_with_leader)(const topology::PlaceRequest&,
                                                          const topology::Fleet&) = nullptr;
};

/// When a workload may take from a queue that borrows (semantics d, fair sharing). Shares are
/// compared between the two children of the lowest cohort that holds both queues.
enum class FairStrategy {
  /// The preemptor's share with it is at most the other's share without the victim.
  kLessThanOrEqualToFinalShare,
  /// The preemptor's share with it is below the other's share as it is.
  kLessThanInitialShare,
};

/// Configuration `fairSharing`: turns and preemption go by dominant resource share.
struct FairSharing {
  /// Tried in this order, the second for what the first did not allow. One, or both as they stand
  /// here; never empty.
  std::vector<FairStrategy> strategies = {FairStrategy::kLessThanOrEqualToFinalShare,
                                          FairStrategy::kLessThanInitialShare};
  bool operator==(const FairSharing&) const = default;
};

/// Configuration `admissionFairSharing`: inside ClusterQueues that ask for it, LocalQueues that
/// used less lately come first (semantics e, AFS).
struct AdmissionFairSharing {
  Duration usage_half_life{0};  ///< Zero: the past is forgotten at once.
  Duration usage_sampling_interval = std::chrono::minutes(5);  ///< More than zero.
  std::map<ResourceName, quota::FairWeight> resource_weights;  ///< Absent: 1.
  bool operator==(const AdmissionFairSharing&) const = default;
};

struct Options {
  /// Work of one Settle, counted in considered workloads and victims tried (not in time, so that
  /// the result does not depend on the machine). It is doubled for each pass in a row that an event
  /// cut short. 0: no limit.
  std::size_t settle_budget = 100;
  /// Configuration `resources.quotaCheckStrategy` IgnoreUndeclared: requests for resources that a
  /// ClusterQueue has no quota for do not count; false: who makes them waits.
  bool ignore_undeclared_resources = false;
  /// Flavors of several pod sets are chosen together where one by one leads nowhere; off with
  /// `profile: kueue`.
  bool joint_flavors = true;
  Improvements improvements;
  PeerFacts peer;
  /// How long a workload waits for its victims, beyond their checkpoint grace, before it looks for
  /// others.
  Duration hold_timeout = std::chrono::minutes(5);
  std::optional<FairSharing> fair_sharing = std::nullopt;                     ///< Absent: off.
  std::optional<AdmissionFairSharing> admission_fair_sharing = std::nullopt;  ///< Absent: off.
};

}  // namespace muster::engine

#pragma once
// Admission Fair Sharing (semantics e): what each LocalQueue used lately.
//
// C, the consumed resources, is a running average of admitted use that forgets half of the past in
// each half life. While admitted use stays the same it has a closed form, so it is counted anew
// only when that changes: no start or end between two samples is missed, however short. The
// sampling interval says how often C is shown in the status, and how large the entry penalty is.

#include "base/ids.hpp"
#include "base/resources.hpp"
#include "base/time.hpp"
#include "engine/options.hpp"
#include "engine/specs.hpp"
#include "quota/decay.hpp"

#include <map>
#include <optional>

namespace muster::engine {

/// What one workload adds to its LocalQueue while it holds quota.
struct UsagePart {
  LocalQueueKey queue;
  /// False: reserved only, and `entry` counts, as a penalty. Becoming true it adds the penalty to
  /// C, and `usage` flows into C from then on.
  bool admitted = false;
  ResourceList entry;  ///< All it asked for. Empty: its ClusterQueue takes no penalty.
  ResourceList usage;  ///< What it was admitted with.
  Instant since;       ///< Its reservation.
  bool operator==(const UsagePart&) const = default;
};

class UsageHistory {
 public:
  explicit UsageHistory(AdmissionFairSharing rules);

  /// A queue seen for the first time begins with what its status says, or with nothing, and what
  /// was admitted later than that, or is admitted since, is added. Afterwards only the weight is
  /// taken.
  void upsert_queue(const LocalQueueSpec& queue, Instant now);
  void delete_queue(const LocalQueueKey& queue);

  /// The workload's part from now on; nothing: none any more.
  void set_part(const WorkloadKey& workload, const std::optional<UsagePart>& part, Instant now);

  /// What LocalQueues are ordered by, penalties included; less goes first.
  [[nodiscard]] quota::WeightedUse use(const LocalQueueKey& queue, Instant now) const;
  /// C.
  [[nodiscard]] quota::FineAmounts consumed(const LocalQueueKey& queue, Instant now) const;

  /// C of the last sample; nullptr: none yet.
  [[nodiscard]] const ConsumedResources* sample(const LocalQueueKey& queue) const;
  /// Takes the samples that are due; true when there were any. While nothing is in use the last
  /// sample says all and no new one is taken.
  bool take_samples(Instant now);
  /// When a sample is due; nothing: not before a change.
  [[nodiscard]] std::optional<Instant> next_sample() const;

 private:
  struct Queue {
    bool known = false;  ///< Its object was seen; else only workloads name it.
    quota::FairWeight weight;
    quota::FineAmounts consumed;  ///< C at `at`.
    Instant at;
    std::optional<Instant> told_to;  ///< Until when the status it began with counts.
    /// Sum over admitted parts, exact.
    std::map<ResourceName, __int128> admitted;
    std::map<WorkloadKey, ResourceList> entering;  ///< Asked for by parts not admitted yet.
    std::optional<ConsumedResources> sample;
    bool changed = false;  ///< Since the sample, other than by time.
    [[nodiscard]] bool is_due(Instant now, Duration interval) const;
  };

  [[nodiscard]] quota::FineAmounts consumed(const Queue& queue, Instant now) const;
  void advance(Queue& queue, Instant now) const;
  void add_past(Queue& queue, const UsagePart& part, Instant now) const;
  void leave(const WorkloadKey& workload, const UsagePart& part, Instant now);

  AdmissionFairSharing rules_;
  quota::Decay entry_;  ///< Over one sampling interval.
  std::map<LocalQueueKey, Queue> queues_;
  std::map<WorkloadKey, UsagePart> parts_;
};

}  // namespace muster::engine

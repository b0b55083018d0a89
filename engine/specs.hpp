#pragma once
// What the engine knows of the world: the decoded intent of API objects, free of JSON and of
// anything that no decision needs. Edge types: names, not indices.

#include "base/boxed.hpp"
#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "base/resources.hpp"
#include "base/time.hpp"
#include "quota/decay.hpp"
#include "quota/quota_spec.hpp"
#include "topology/placement.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::engine {

/// Whether room on real nodes is a condition of admission (`muster.dev/capacity`).
enum class Capacity { kFixed, kElastic };

struct FlavorSpec {
  FlavorName name;
  LabelMap node_labels;
  std::vector<Taint> node_taints;
  std::vector<Toleration> tolerations;
  std::optional<TopologyName> topology;
  Capacity capacity = Capacity::kFixed;
  bool operator==(const FlavorSpec&) const = default;
};

struct TopologySpec {
  TopologyName name;
  std::vector<std::string> levels;  ///< Node label keys, widest first.
  bool operator==(const TopologySpec&) const = default;
};

struct NodeSpec {
  NodeName name;
  LabelMap labels;
  std::vector<Taint> taints;
  ResourceList allocatable;
  bool ready = true;
  bool unschedulable = false;
  bool operator==(const NodeSpec&) const = default;
};

enum class QueueingStrategy { kBestEffortFifo, kStrictFifo };
enum class StopPolicy { kNone, kHold, kHoldAndDrain };

/// Who may be preempted (withinClusterQueue, reclaimWithinCohort).
enum class PreemptionPolicy { kNever, kLowerPriority, kLowerOrNewerEqualPriority, kAny };

struct BorrowWithinCohort {
  PreemptionPolicy policy = PreemptionPolicy::kNever;  ///< kNever or kLowerPriority.
  std::optional<std::int64_t> max_priority_threshold;  ///< Absent: no threshold. Inclusive.
  bool operator==(const BorrowWithinCohort&) const = default;
};

struct PreemptionSpec {
  PreemptionPolicy within_cluster_queue = PreemptionPolicy::kNever;
  PreemptionPolicy reclaim_within_cohort = PreemptionPolicy::kNever;
  BorrowWithinCohort borrow_within_cohort;
  bool operator==(const PreemptionSpec&) const = default;
};

/// flavorFungibility: when to stop scanning flavors.
struct FungibilitySpec {
  enum class Stop { kMayStopSearch, kTryNextFlavor };
  enum class Preference { kBorrowingOverPreemption, kPreemptionOverBorrowing };
  Stop when_can_borrow = Stop::kMayStopSearch;
  Stop when_can_preempt = Stop::kTryNextFlavor;
  Preference preference = Preference::kBorrowingOverPreemption;
  bool operator==(const FungibilitySpec&) const = default;
};

/// What work is promised about being preempted (keys `muster.dev/…`, design 4.5). What one place
/// leaves open, the next one says: workload, priority class, LocalQueue, ClusterQueue.
struct Protection {
  /// False: never a victim, and admitted only within what is its queue's, and its cohorts' below
  /// the root, own. Said by nobody: true.
  std::optional<bool> preemptible;
  /// No preemption before it has held its quota that long. Said by nobody: 0.
  std::optional<Duration> min_runtime;
  /// How long its pods may still write a checkpoint when it is evicted. Said by nobody: 0.
  std::optional<Duration> checkpoint_grace;

  [[nodiscard]] Protection or_else(const Protection& next) const {
    return {preemptible ? preemptible : next.preemptible,
            min_runtime ? min_runtime : next.min_runtime,
            checkpoint_grace ? checkpoint_grace : next.checkpoint_grace};
  }
  bool operator==(const Protection&) const = default;
};

struct ClusterQueueSpec {
  quota::QueueQuotaSpec quota;
  QueueingStrategy strategy = QueueingStrategy::kBestEffortFifo;
  StopPolicy stop_policy = StopPolicy::kNone;
  std::optional<LabelSelector> namespace_selector;  ///< Absent (null): admits no namespace.
  PreemptionSpec preemption;
  FungibilitySpec fungibility;
  std::vector<std::string> admission_checks;  ///< Any entry: the queue needs checks.
  Protection protection;
  /// admissionScope: LocalQueues that used less lately come first, where the configuration has
  /// Admission Fair Sharing.
  bool usage_based = false;
  [[nodiscard]] const ClusterQueueName& name() const { return quota.name; }
  bool operator==(const ClusterQueueSpec&) const = default;
};

/// What a LocalQueue consumed, decayed to a point in time (status.fairSharing).
struct ConsumedResources {
  quota::FineAmounts amounts;
  Instant at;
  bool operator==(const ConsumedResources&) const = default;
};

struct LocalQueueSpec {
  LocalQueueKey key;
  ClusterQueueName cluster_queue;
  StopPolicy stop_policy = StopPolicy::kNone;
  Protection protection;
  quota::FairWeight fair_weight;
  std::optional<ConsumedResources> consumed;  ///< As its status says; absent: it does not.
  bool operator==(const LocalQueueSpec&) const = default;
};

struct NamespaceSpec {
  Namespace name;
  LabelMap labels;
  bool operator==(const NamespaceSpec&) const = default;
};

/// podset-{required,preferred,unconstrained}-topology.
struct TopologyRequest {
  enum class Mode { kRequired, kPreferred, kUnconstrained };
  Mode mode = Mode::kUnconstrained;
  std::string level;                              ///< Node label key; empty with kUnconstrained.
  std::vector<topology::SliceLayer> slices = {};  ///< As topology::PlaceRequest::slices.
  bool operator==(const TopologyRequest&) const = default;
};

struct PodSetSpec {
  PodSetName name;
  std::int64_t count = 1;
  std::optional<std::int64_t> min_count;  ///< Absent: no partial admission.
  std::int64_t reclaimable = 0;           ///< Pods that ended well: they need nothing any more.
  ResourceList quota_requests;            ///< Per pod, after transformations and exclusions.
  ResourceList node_requests;             ///< Per pod, the whole vector a node is charged with,
                                          ///< `pods`: 1 included.
  NodeConstraints constraints;
  std::optional<TopologyRequest> topology;  ///< Absent: none asked.
  std::string group;  ///< Pod sets of one group get the same flavors; empty: a group of its own.
  std::string unfit;  ///< Why its pods could never be created; empty: they can.

  /// The pods that are still to run.
  [[nodiscard]] std::int64_t pods_left() const {
    return std::max<std::int64_t>(0, count - std::max<std::int64_t>(0, reclaimable));
  }
  bool operator==(const PodSetSpec&) const = default;
};

/// The pod sets of a workload. Copies share them until one is edited, since most workloads of a
/// fleet look like another one.
class PodSets {
 public:
  PodSets() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for the vector.
  PodSets(std::vector<PodSetSpec> pod_sets)
      : shared_(std::make_shared<std::vector<PodSetSpec>>(std::move(pod_sets))) {}
  PodSets(std::initializer_list<PodSetSpec> pod_sets)
      : PodSets(std::vector<PodSetSpec>(pod_sets)) {}

  [[nodiscard]] auto begin() const { return all().begin(); }
  [[nodiscard]] auto end() const { return all().end(); }
  [[nodiscard]] std::size_t size() const { return all().size(); }
  [[nodiscard]] bool empty() const { return all().empty(); }
  [[nodiscard]] const PodSetSpec& operator[](std::size_t index) const { return all()[index]; }
  [[nodiscard]] const PodSetSpec& front() const { return all().front(); }
  /// Of its own from now on.
  [[nodiscard]] std::vector<PodSetSpec>& edit() {
    if (!shared_ || shared_.use_count() > 1) {
      shared_ = std::make_shared<std::vector<PodSetSpec>>(all());
    }
    return *shared_;
  }
  friend bool operator==(const PodSets& a, const PodSets& b) {
    return a.shared_ == b.shared_ || a.all() == b.all();
  }

 private:
  [[nodiscard]] const std::vector<PodSetSpec>& all() const {
    static const std::vector<PodSetSpec> kNone;
    return shared_ ? *shared_ : kNone;
  }
  std::shared_ptr<std::vector<PodSetSpec>> shared_;
};

/// `count` pods on one node.
struct NodeCount {
  NodeName node;
  std::int64_t count = 0;
  bool operator==(const NodeCount&) const = default;
};

/// What one pod set got. The plan is `nodes`, in slot order: the first node's slots go to the
/// lowest ranks.
struct PodSetAssignment {
  PodSetName name;
  std::int64_t count = 0;
  std::map<ResourceName, FlavorName> flavors;
  ResourceList usage;            ///< Total over `count` pods, quota view.
  std::vector<NodeCount> nodes;  ///< Empty: no plan (an elastic gang that does not fit).
  bool topology = false;         ///< The flavor has a topology (for reports).

  /// It has pods and flavors, and no nodes.
  [[nodiscard]] bool lacks_plan() const { return count > 0 && !flavors.empty() && nodes.empty(); }
  bool operator==(const PodSetAssignment&) const = default;
};

struct Admission {
  ClusterQueueName cluster_queue;
  std::vector<PodSetAssignment> pod_sets;  ///< Same order as the workload's pod sets.
  bool operator==(const Admission&) const = default;
};

/// Why a workload is being taken off its quota. Spelled as the API's condition reasons.
enum class EvictionReason {
  kPreempted,
  kClusterQueueStopped,
  kLocalQueueStopped,
  kNodeFailures,
  kDeactivated,
};

/// Which rule made a workload a victim (condition Preempted, semantics section d).
enum class PreemptionRule {
  kInClusterQueue,
  kInCohortReclamation,
  kInCohortReclaimWhileBorrowing,
  kInCohortFairSharing,
};

/// A Workload object, as far as decisions depend on it.
struct WorkloadSpec {
  WorkloadKey key;
  Uid uid;
  /// Controller owner (the Job), or the pod itself for a plain pod: members are recognised by it.
  Uid owner_uid;
  std::string queue_name;
  std::int64_t priority = 0;
  MaybeInstant created;  ///< Absent: after all that have one.
  bool active = true;
  PodSets pod_sets;
  Protection protection;         ///< Its own, then its priority class's.
  MaybeInstant last_checkpoint;  ///< Work lost on eviction is counted from here.

  Boxed<Admission> admission;      ///< status.admission with QuotaReserved=True.
  bool admitted = false;           ///< Condition Admitted=True.
  /// Admitted without a plan, and its pods are not created: no autoscaler sees them (elastic.hpp).
  bool uncreated = false;
  MaybeInstant quota_reserved_at;  ///< Absent while reserved: now.
  bool evicted = false;            ///< Condition Evicted=True: pods are on their way out.
  MaybeInstant requeue_at;         ///< Not considered before.
  MaybeInstant evicted_at;         ///< Its last eviction, for whatever reason.
  MaybeInstant preempted_at;       ///< Its last preemption; stays when it runs again.
  /// Uid of the Workload it had to make room for; empty: none, or it runs again.
  Uid preempted_for;
  bool finished = false;
  bool operator==(const WorkloadSpec&) const = default;
};

/// A pod that is bound to a node, or nominated to one, and not terminal: it takes room there.
struct PodUse {
  Uid uid;
  PodKey key;
  NodeName node;
  ResourceList requests;  ///< Effective request, `pods`: 1 included.
  std::int64_t priority = 0;
  Uid owner_uid;                     ///< Controller owner, or the pod's own uid. May be empty.
  std::string pod_set;               ///< Label kueue.x-k8s.io/podset; empty: none.
  std::optional<std::int64_t> rank;  ///< Completion or pod index; absent: no fixed rank.
  bool nominated = false;            ///< Unbound with status.nominatedNodeName: counts too.
  bool terminating = false;          ///< deletionTimestamp set; still holds its room.
  bool operator==(const PodUse&) const = default;
};

}  // namespace muster::engine

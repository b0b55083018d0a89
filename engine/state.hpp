#pragma once
// The mutable truth: what exists, who holds what. Only Engine::step changes it; a Trial borrows it
// and gives it back as it was.
//
//   a workload's phases:
//
//                 Settle: fits              seen written
//      Pending ────────────────▶ Assumed ────────────────▶ Reserved
//        ▲  ▲                      │                          │
//        │  └── AdmissionRefused ──┘                          │ Settle: victim, stopped, …
//        │                                                    ▼
//        └───────────────── QuotaReleased ────────────────  Evicting          Finished
//
// Assumed, Reserved and Evicting hold quota and the slots of the plan. Numbered invariants, checked
// by check_invariants():
//   1. Usage of the quota tree is the sum over workloads that hold quota, in their ClusterQueue.
//   2. Per node, planned use is the sum over slots of plans and kept ones, foreign use the sum over
//   pods that sit
//      in no slot (plus what a pod in a slot asks beyond the slot).
//   3. A slot is claimed by at most one pod; claims never exceed slots.
//   4. What is charged follows from the objects and the names that nodes offered so far, whichever
//      came first.

#include "base/boxed.hpp"
#include "base/shared.hpp"
#include "engine/held_use.hpp"
#include "engine/leaving_use.hpp"
#include "engine/options.hpp"
#include "engine/reason.hpp"
#include "engine/snapshot.hpp"
#include "engine/specs.hpp"
#include "engine/usage_history.hpp"
#include "quota/fair_share.hpp"
#include "quota/quota_tree.hpp"
#include "topology/fleet.hpp"
#include "topology/node_filter.hpp"
#include "topology/placement.hpp"

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace muster::engine {

enum class Phase { kPending, kAssumed, kReserved, kEvicting, kFinished };

/// Slots of one pod set on one node.
struct PlannedSlots {
  topology::NodeIndex node;
  std::size_t pod_set = 0;
  std::int64_t slots = 0;
  std::int64_t claimed = 0;  ///< Taken by bound pods.
  bool operator==(const PlannedSlots&) const = default;
};

struct PendingClass;

/// What every search for victims asks of a workload that holds quota.
struct Standing {
  Protection protection;    ///< State::protection_of.
  Amount accelerators;      ///< Of all its pods: what a second of its work counts.
  std::uint64_t rules = 0;  ///< State::protection_rules when this was found out.
};

struct WorkloadRecord {
  WorkloadSpec spec;
  Phase phase = Phase::kPending;
  /// Where it queues (its LocalQueue's ClusterQueue); empty: nowhere. While it holds quota: where.
  ClusterQueueName queue;

  // Held while Assumed, Reserved or Evicting.
  Boxed<Admission> admission;
  MaybeInstant reserved_at;
  Boxed<quota::FlavorAmounts> usage;
  /// Where the tree is charged with it, and how much; as long as the tree is not dirty. Nothing:
  /// its ClusterQueue was deleted.
  std::optional<quota::NodeIndex> charged_to;
  quota::FrAmounts charged;
  std::vector<PlannedSlots> plan;
  /// Room on nodes for slots that have no plan yet, charged as if it were one (elastic.hpp).
  std::vector<PlannedSlots> kept;
  std::vector<Resources> per_pod;  ///< By pod set, node view; names that State::resources knows.

  MaybeInstant evicting_since;  ///< While Evicting; nothing: longer than we know.
  MaybeInstant preempted_at;    ///< Its last preemption, written or not.
  /// When it came into the queue as it is now: created, or changed in what decides.
  MaybeInstant arrived;

  /// Of State::standing(); absent: not asked for since it holds what it holds.
  mutable Boxed<Standing> standing;

  PendingClass* pending_class = nullptr;  ///< While pending in a queue.
  /// What it adds to State::counts, and where; absent: nothing.
  std::optional<std::map<LocalQueueKey, LocalQueueCounts>::iterator> counted_in;
  Boxed<LocalQueueCounts> counted_holding;  ///< Absent: it counts as pending.

  [[nodiscard]] bool holds_quota() const {
    return phase == Phase::kAssumed || phase == Phase::kReserved || phase == Phase::kEvicting;
  }
  [[nodiscard]] std::int64_t total_pods() const;
};

struct PodRecord {
  Shared<PodUse> use;
  Resources requests;  ///< Of use->requests, what State::resources knows.
  topology::NodeIndex node;
  /// Index into its workload's plan; nothing: it sits in no slot and counts as foreign.
  std::optional<std::size_t> slot;
  Resources foreign;  ///< What it charges as foreign use: all of it, or what exceeds its slot.
};

/// The order inside a ClusterQueue: priority, then age (no timestamp last), then uid and key.
[[nodiscard]] std::strong_ordering queue_order(const WorkloadSpec& a, const WorkloadSpec& b);
struct InQueueOrder {
  bool operator()(const WorkloadRecord* a, const WorkloadRecord* b) const {
    return queue_order(a->spec, b->spec) < 0;
  }
};
using RecordsInOrder = std::set<WorkloadRecord*, InQueueOrder>;

struct ByKey {
  bool operator()(const WorkloadRecord* a, const WorkloadRecord* b) const {
    return a->spec.key < b->spec.key;
  }
};
using RecordsByKey = std::set<WorkloadRecord*, ByKey>;

struct ByOwner {
  using is_transparent = void;
  bool operator()(const WorkloadRecord* a, const WorkloadRecord* b) const {
    return a->spec.owner_uid < b->spec.owner_uid;
  }
  bool operator()(const WorkloadRecord* a, const Uid& b) const { return a->spec.owner_uid < b; }
  bool operator()(const Uid& a, const WorkloadRecord* b) const { return a < b->spec.owner_uid; }
};

/// Workloads of one queue for which every input of the verdict is the same; the first in order
/// stands for all (design section 5).
struct PendingClass {
  const std::string* key = nullptr;  ///< Of State::pending.
  RecordsInOrder members;
  RecordsInOrder unannounced;          ///< Members whose verdict has not been sent yet.
  std::optional<Explanation> verdict;  ///< Of the last pass that looked at it.
};

/// All inputs of the verdict but the order: queue, namespace, priority and the shape of every pod
/// set.
[[nodiscard]] std::string pending_class_key(const WorkloadSpec& spec,
                                            const ClusterQueueName& queue);

/// Quota and nodes kept for a pending workload for which others leave; charged while it exists.
struct Hold {
  quota::NodeIndex queue;
  quota::FrAmounts amounts;
  std::vector<topology::NodeUse> room;
  /// State::own_only of the workload.
  bool own_only = false;
};

/// Where scans of flavors begin: the first pod set of a group and the index of a resource group ->
/// index of the flavor. Absent: at the first one.
using ScanStart = std::map<std::pair<std::size_t, std::size_t>, std::size_t>;

/// What is remembered of a pending workload that failed in a cycle (PeerFacts::scans_go_on).
struct ScanProgress {
  ScanStart next;                  ///< Where the next cycle goes on.
  std::vector<Explanation> flaws;  ///< What was wrong with the flavors that were looked at.
};

/// Why a ClusterQueue admits nothing.
struct QueueProblem {
  std::string reason;  ///< The API's word: `Stopped`, `FlavorNotFound`, …
  std::string message;
  std::string needs;  ///< As QueueUnusable::needs.
};

class State {
 public:
  Options options;  ///< Never change.
  /// With Admission Fair Sharing: what LocalQueues used lately. Brought up to date by sync_usage().
  std::optional<UsageHistory> usage_history;

  // What exists. Written through the functions below.
  std::map<FlavorName, FlavorSpec> flavors;
  std::map<TopologyName, TopologySpec> topologies;
  std::map<CohortName, quota::CohortSpec> cohorts;
  std::map<ClusterQueueName, ClusterQueueSpec> queues;
  std::map<LocalQueueKey, LocalQueueSpec> local_queues;
  std::map<Namespace, LabelMap> namespaces;

  ResourceTable resources;
  quota::QuotaTree tree;
  quota::ShareCache shares;  ///< Of the tree.
  topology::Fleet fleet;
  topology::CandidateCache candidates;
  std::map<WorkloadKey, WorkloadRecord> workloads;
  std::map<Uid, PodRecord> pods;

  // Indices over the above.
  std::set<WorkloadRecord*, ByOwner> workload_by_owner;  ///< The last one of each owner.
  std::map<LocalQueueKey, RecordsByKey> workloads_by_local_queue;
  std::map<Uid, std::set<Uid>> pods_by_owner;
  std::map<topology::NodeIndex, std::set<Uid>> pods_by_node;
  std::map<topology::NodeIndex, std::set<WorkloadKey>> plans_by_node;
  // Those that ask for a name that no node has offered yet; it counts when one does.
  std::set<Uid> pods_of_unknown;
  std::set<WorkloadKey> plans_of_unknown;            ///< Holding quota.
  std::map<ClusterQueueName, RecordsByKey> holders;  ///< Holding quota, by queue.
  RecordsByKey evicting;
  std::set<WorkloadKey> unplanned;    ///< Gangs that hold quota, with a pod set that lacks a plan.
  std::set<WorkloadKey> keepers;      ///< Those with WorkloadRecord::kept.
  std::set<WorkloadKey> deactivated;  ///< Holding quota with spec.active false.
  /// Holding quota, and their plans may have slots of pods that ended well.
  std::set<WorkloadKey> shrinking;
  /// Pending workloads for which others were evicted, and when: until they start, or their need
  /// goes away, what is freed is kept for them.
  std::map<WorkloadKey, Instant> preemptors;
  /// What is kept for them. Only while a pass is open.
  std::map<WorkloadKey, Hold> holds;
  // Without Improvements::every_class only.
  /// PeerFacts::scans_go_on: of pending workloads that failed in the last cycle they were in.
  std::map<WorkloadKey, ScanProgress> scans;
  /// Cycles since somebody started, had to leave or was parked.
  std::size_t cycles_in_vain = 0;
  /// By queue: who failed, until something in its tree becomes free or changes.
  std::map<ClusterQueueName, std::set<WorkloadKey>> parked;
  /// By queue: whom others were preempted for, the last one; first until it leaves the queue.
  std::map<ClusterQueueName, WorkloadKey> sticky;
  /// queue -> class key -> class.
  std::map<ClusterQueueName, std::map<std::string, PendingClass>> pending;
  std::set<std::pair<Instant, WorkloadKey>> backing_off;  ///< Pending with a requeue time.
  std::set<WorkloadKey> homeless;  ///< Pending, but in no queue: see State::homeless_reason.
  std::set<WorkloadKey> homeless_unannounced;  ///< Those whose verdict has not been sent yet.
  std::vector<topology::NodeIndex> nodes_in_doubt;
  std::map<LocalQueueKey, LocalQueueCounts> counts;

  // What changed since the last publication (see publish.cpp) and since the last pass.
  std::set<topology::NodeIndex> dirty_nodes;
  std::set<Uid> dirty_owners;
  bool queues_dirty = true;
  bool wants_pass = false;
  /// The next pass looks at everything pending. Otherwise nobody left or started and no rule
  /// changed since the last one, so that its verdicts stand: it looks at fresh_classes only.
  bool look_at_all = true;
  std::map<ClusterQueueName, std::set<std::string>> fresh_classes;
  /// In the last look at all, somebody was spared who an arrival makes fair game again.
  bool arrivals_matter = false;
  Instant last_pass;  ///< When the last pass began: `now` while one is open.
  /// When time alone may change what the last pass decided; nothing: never.
  std::optional<Instant> wake_at;
  bool passed_once = false;  ///< What was told before the first pass is what there was already.
  /// The last loss of a node or change of quota; nothing: none since the first pass.
  std::optional<Instant> disturbed_at;
  std::optional<Instant> last_arrival;  ///< Of any workload: the latest WorkloadRecord::arrived.
  /// Grows with every change that protection_of() may depend on, but of the workload itself.
  std::uint64_t protection_rules = 0;
  bool tree_dirty = true;  ///< Quota specs changed: the tree is built anew by ensure_tree().
  /// Nodes whose plans may not hold any more (see repair.hpp).
  std::set<topology::NodeIndex> suspects;

  // Nodes.
  topology::NodeIndex upsert_node(const NodeSpec& node);
  void remove_node(topology::NodeIndex node);

  // Quota.
  /// Call after cohorts or queues changed.
  void mark_tree_dirty();
  /// Builds and charges the tree anew if needed; everything that reads the tree comes after it.
  void ensure_tree();
  [[nodiscard]] std::optional<QueueProblem> problem_of(const ClusterQueueSpec& queue) const;

  // Workloads.
  WorkloadRecord& upsert_record(const WorkloadSpec& spec);
  void erase_record(const WorkloadKey& key);
  [[nodiscard]] WorkloadRecord* find(const WorkloadKey& key);
  [[nodiscard]] const WorkloadRecord* find(const WorkloadKey& key) const;
  /// The workload that has this owner; nullptr: none, or no owner is meant.
  [[nodiscard]] WorkloadRecord* owned_by(const Uid& owner) const;
  /// Charges quota and plan; the workload must not hold any.
  void hold(WorkloadRecord& record, const Admission& admission, Phase phase, Instant reserved_at);
  /// Gives back quota and plan; it is pending (or finished) afterwards.
  void release(WorkloadRecord& record, Phase next);
  /// `now` only matters to kEvicting: since when.
  void set_phase(WorkloadRecord& record, Phase phase, std::optional<Instant> now = std::nullopt);
  /// What holds quota in the queue, less what is leaving. Valid until a workload or the tree
  /// changes.
  [[nodiscard]] const HeldUse& held_use(quota::NodeIndex queue);
  /// What those who are leaving hold. Valid until somebody begins or ends to leave, or an event.
  [[nodiscard]] const LeavingUse& leaving_use();
  /// As far as it was added up; for checks.
  [[nodiscard]] const std::optional<LeavingUse>& known_leaving_use() const { return leaving_use_; }
  /// Call when anything but the start of an eviction may have changed it.
  void forget_leaving_use() { leaving_use_.reset(); }
  void want_pass() { wants_pass = look_at_all = true; }
  /// Tells the usage history of every workload that changed since the last call.
  void sync_usage(Instant now);
  /// Replaces what is kept for a workload that holds quota.
  void keep(WorkloadRecord& record, std::vector<PlannedSlots> slots);
  /// Replaces the plan only; quota stays.
  void change_plan(WorkloadRecord& record, const Admission& admission);
  /// Files the record under its queue and class, or takes it out, as its phase says.
  void file(WorkloadRecord& record);
  /// After the queue changed: files the pending workloads of a LocalQueue, or of all that lead to a
  /// ClusterQueue, anew.
  void file_all_of(const LocalQueueKey& queue);
  void file_all_of(const ClusterQueueName& queue);

  // Pods.
  void place_pod(const Shared<PodUse>& shared);
  /// True when it was known.
  bool remove_pod(const Uid& uid);

  /// Why a pending workload is in no queue: deactivated, or its LocalQueue leads nowhere.
  [[nodiscard]] Explanation homeless_reason(const WorkloadRecord& record) const;

  [[nodiscard]] quota::NodeIndex queue_node(const ClusterQueueName& queue) const;

  // Preemption.
  /// What the workload, its priority class, its LocalQueue and its ClusterQueue say.
  [[nodiscard]] Protection protection_of(const WorkloadSpec& spec,
                                         const ClusterQueueName& queue) const;
  /// Of a workload that holds quota. Valid until it or any queue changes.
  [[nodiscard]] const Standing& standing(const WorkloadRecord& record) const;
  /// It may use only what is its queue's, and its cohorts' below the root, own: it is not
  /// preemptible, and what is borrowed can be taken back.
  [[nodiscard]] bool own_only(const WorkloadSpec& spec, const ClusterQueueName& queue) const {
    return !protection_of(spec, queue).preemptible.value_or(true);
  }
  /// Why `victim`, which holds quota, may not be preempted for `preemptor` now; nothing: it may.
  /// Asks to be woken when time alone changes that.
  [[nodiscard]] std::optional<SparedWorkload> spared(const WorkloadRecord& victim,
                                                     const WorkloadSpec& preemptor);
  /// It was preempted since it came into the queue as it is now.
  [[nodiscard]] static bool went_round(const WorkloadRecord& record);
  /// The workload must not have one.
  void add_hold(const WorkloadKey& key, Hold hold);
  void drop_hold(const WorkloadKey& key);
  using HoldsByKey = std::map<WorkloadKey, const Hold*>;
  [[nodiscard]] const HoldsByKey& holds_in(quota::NodeIndex queue) const;
  [[nodiscard]] const HoldsByKey& own_only_holds() const { return own_only_holds_; }
  /// After a restart: whom others had to leave for, as their conditions say.
  void recall_preemptors();
  /// The past is ignored.
  void ask_to_wake(Instant at);
  /// A node was lost or a quota changed: whoever was preempted before may be again.
  void disturb(Instant now);

  /// Quota amounts of an admission, by flavor and resource, without what ended pods gave back
  /// (semantics section 0).
  [[nodiscard]] static quota::FlavorAmounts usage_of(const WorkloadSpec& spec,
                                                     const Admission& admission);

 private:
  [[nodiscard]] std::optional<UsagePart> usage_part(const WorkloadKey& key) const;
  void adopt_owner(WorkloadRecord& record, const Uid& owner);
  void index_owner(WorkloadRecord& record);
  void unindex_owner(WorkloadRecord& record);
  void unfile(WorkloadRecord& record);
  /// Everybody parked in the queue's tree may be looked at again.
  void unpark_tree(const ClusterQueueName& queue);
  /// Call after names were learned.
  void charge_learned();
  void charge_plan(WorkloadRecord& record);
  void release_plan(WorkloadRecord& record);
  void seat_pods(WorkloadRecord& record);
  void seat(PodRecord& pod);
  void unseat(PodRecord& pod);
  void touch_node(topology::NodeIndex node) { dirty_nodes.insert(node); }
  void touch(WorkloadRecord& record);
  void uncount(WorkloadRecord& record);

  /// By queue: made when asked for, dropped when one of its workloads changes.
  std::map<ClusterQueueName, HeldUse> held_use_;
  std::map<quota::NodeIndex, HoldsByKey> holds_by_queue_;
  HoldsByKey own_only_holds_;
  std::optional<LeavingUse> leaving_use_;  ///< Of `evicting`, when somebody asked for it.
  std::set<WorkloadKey> unsynced_usage_;   ///< Empty without a usage history.
};

}  // namespace muster::engine

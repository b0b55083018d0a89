#pragma once
// What the extender said and has not seen the end of: foreign pods that may still land where they
// were allowed, slots handed to members that are not bound yet, and pods that were refused
// everywhere.
//
// Why it is needed: kube-scheduler tells nobody which node it took until the bind is watched. It
// works on one pod at a time, so a new filter call proves that the former pod's cycle is over, but
// not how it ended (reference: extender protocol, P1). Until the end is seen, the pod may sit on
// any node it was allowed, and nothing but a look at the API tells more: entries have no time-out.

#include "base/ids.hpp"
#include "base/resources.hpp"
#include "base/time.hpp"
#include "engine/snapshot.hpp"
#include "kube/codec/objects.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace muster::extender {

/// A node of a snapshot.
struct FoundNode {
  const engine::NodeView* node = nullptr;  ///< nullptr: unknown.
  std::size_t position = 0;                ///< In Snapshot::node_index.
  const engine::NodeTable* table = nullptr;
  std::size_t row = 0;  ///< Of the node, in `table`.
};

/// Looks nodes up without an allocation per name, and without a search where names come in the
/// order of the call before. Not for use by two threads.
class NodeFinder {
 public:
  explicit NodeFinder(const engine::Snapshot& snapshot) : snapshot_(snapshot) {}
  [[nodiscard]] FoundNode find(std::string_view name);
  [[nodiscard]] FoundNode at(std::size_t position) const;

 private:
  const engine::Snapshot& snapshot_;
  std::size_t last_ = 0;  ///< The node found last.
};

/// The nodes of one answer. Small (a bit per node of the fleet), since answers name hundreds.
class AnsweredNodes {
 public:
  /// Nothing yet; `index` gives nodes their positions.
  explicit AnsweredNodes(std::shared_ptr<const engine::NodeLookup> index);
  /// Every node there is or will be.
  [[nodiscard]] static AnsweredNodes everything();

  /// A node of the index, by its position there.
  void add_position(std::size_t position);
  /// A node that the index does not know.
  void add_unknown(std::string_view name);

  [[nodiscard]] bool contains(std::string_view name) const;
  /// The same for a node of a snapshot, by its position there: a bit while no node came or went.
  [[nodiscard]] bool contains(const engine::Snapshot& snapshot, std::size_t position,
                              const NodeName& name) const;
  /// Whether the predicate holds for one of these nodes, as the snapshot shows them; nodes that it
  /// does not know are left out, and everything() has none.
  [[nodiscard]] bool any_of(const engine::Snapshot& snapshot,
                            const std::function<bool(const FoundNode&)>& predicate) const;
  [[nodiscard]] bool is_everything() const { return everything_; }
  [[nodiscard]] bool empty() const;
  /// Sorted; empty for everything().
  [[nodiscard]] std::vector<NodeName> names() const;

 private:
  [[nodiscard]] bool has_bit(std::size_t position) const;

  std::shared_ptr<const engine::NodeLookup> index_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::string> unknown_;
  bool everything_ = false;
};

/// A pod outside every plan that was allowed on some nodes.
struct ForeignAnswer {
  Uid uid;
  Resources requests;            ///< Effective request, `pods`: 1 included.
  AnsweredNodes nodes;           ///< Where it may land.
  std::uint64_t generation = 0;  ///< Of the snapshot that the answer was made from.
  Instant at;
  std::string resource_version;  ///< Of the pod as the scheduler sent it.
  std::string verdict;           ///< scheduling_verdict() of that pod.
  /// Only an assumption, void from then on (a new leader knows no answers of the old one).
  std::optional<Instant> expires;
};

/// What the pod's PodScheduled condition says, in one string to compare; empty without one.
[[nodiscard]] std::string scheduling_verdict(const kube::Pod& pod);

/// A member asks for a slot.
struct SlotRequest {
  Uid owner;  ///< Of its workload, as in WorkloadView::owner_uid.
  PodSetName pod_set;
  Uid pod;
  /// Its rank, and the rank's node in `free`; nothing: any free slot will do.
  std::optional<std::int64_t> rank;
  /// Slots that no bound pod sits in, one entry a slot, in the order of the plan.
  std::vector<NodeName> free;
  /// Whether the picture that `free` was made from shows this pod bound to this node.
  std::function<bool(const Uid& pod, const NodeName& node)> is_bound;
  /// Whether the scheduler offers the node for this pod.
  std::function<bool(const NodeName& node)> is_offered;
};

/// A pod that no node was allowed to. kube-scheduler asks again only after an event of its own
/// world; that a plan went away is none (reference: extender protocol, P3). See wake.hpp.
struct RefusedPod {
  kube::Pod pod;
  AnsweredNodes nodes;           ///< What was offered.
  std::uint64_t generation = 0;  ///< Of the snapshot that the answer was made from.
};

struct LedgerLimits {
  std::size_t answers = 4096;
  std::size_t reservations = 65536;
  std::size_t refusals = 1024;
  std::size_t gone = 8192;
};

struct LedgerStats {
  std::size_t answers = 0;
  std::size_t reservations = 0;
  std::size_t refusals = 0;
  std::uint64_t dropped = 0;  ///< Oldest entries given up because a limit was reached.
};

/// Safe from any thread; no call holds its lock for longer than a walk over the entries.
///
/// kube-scheduler may ask about a pod that was deleted a moment ago. What is said then is not
/// noted, as nothing would ever end it: the last LedgerLimits::gone pods that ended are remembered.
class Ledger {
 public:
  explicit Ledger(LedgerLimits limits = {}) : limits_(limits) {}

  /// The answer to a foreign pod; replaces the pod's former one, for to be asked again proves that
  /// the former attempt is over. An answer without nodes only ends the former one.
  void record(ForeignAnswer answer);

  /// The pod is asked about again and gets nothing as a foreign pod.
  void retract(const Uid& uid);

  /// An unbound, ungated foreign pod found by a new leader: the old one may have allowed it
  /// anywhere. Void at `until`; does not replace an answer of our own.
  void assume_answered(const Uid& uid, Resources requests, Instant until);

  /// A pod as the watch shows it, after the snapshot of `generation`, which shows it too, was
  /// published. Ends the entry of a pod that is bound, terminal, or whose PodScheduled=False is
  /// news since the answer.
  void observe(const kube::Pod& pod, std::uint64_t generation);
  /// The pod was deleted, or is unable to run any more.
  void forget(const Uid& uid);

  /// Answers that are open for whoever looks at the snapshot of `generation`, oldest first,
  /// without those of `except`.
  [[nodiscard]] std::vector<std::shared_ptr<const ForeignAnswer>> open_answers(
      const Uid& except, std::uint64_t generation, Instant now);

  /// The commit barrier (design 2.4): pods that were answered before the plan was visible and that
  /// do not fit beside it on one of its nodes. Empty: the gang may start. `planned` is what the
  /// plan puts on each node; `generation` the first snapshot that shows the plan; `snapshot` any.
  [[nodiscard]] std::vector<Uid> blocking(const std::map<NodeName, ResourceList>& planned,
                                          std::uint64_t generation,
                                          const engine::Snapshot& snapshot, Instant now) const;

  /// kube-scheduler has no room on `node` for a member whose slot is there, though the snapshot
  /// shows some: the open answers that would explain it by having landed there unseen, oldest
  /// first, no more than it takes. Empty: the node has room beside the plan for all of them, or it
  /// is seen to have none.
  [[nodiscard]] std::vector<std::shared_ptr<const ForeignAnswer>> landed_unseen(
      const NodeName& node, const engine::Snapshot& snapshot, Instant now) const;
  /// The pod was not asked about again since, nor bound, nor gone.
  [[nodiscard]] bool is_open(const ForeignAnswer& answer) const;

  /// Nodes where an open answer may still land; sorted, each once. Assumed answers, which are about
  /// all nodes, are left out: a doubt about everything guides nobody.
  [[nodiscard]] std::vector<NodeName> nodes_in_doubt() const;

  /// The slot of a member. With a rank: the rank's, unless another live pod has the same rank.
  /// Without: the one it had, if it still can be had, else the first free one that is offered and
  /// given to no one else. Nothing: it is surplus, no free slot is offered, or the pod is gone.
  /// Given slots stay given until the pod is seen bound or gone.
  [[nodiscard]] std::optional<NodeName> reserve_slot(const SlotRequest& request);

  /// The pod was refused everywhere; replaces its former entry.
  void record_refusal(RefusedPod refused);
  /// Refusals made from snapshots older than `generation` that may be woken at `now`, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<const RefusedPod>> refusals_before(
      std::uint64_t generation, Instant now) const;
  /// The pod is woken; should that be in vain, not again before 1 s, then 2 s, 4 s up to 64 s.
  void mark_woken(const Uid& uid, Instant now);

  [[nodiscard]] LedgerStats stats() const;

 private:
  struct Entry {
    std::shared_ptr<const ForeignAnswer> answer;
    /// Bound, as shown by snapshots from this generation on.
    std::optional<std::uint64_t> bound_from;
    std::uint64_t sequence = 0;
    /// For whoever looks at the snapshot of `generation`: seen bound there, or void by now.
    [[nodiscard]] bool is_over(std::uint64_t generation, Instant now) const {
      return (bound_from && *bound_from <= generation) ||
             (answer->expires && *answer->expires <= now);
    }
  };
  using Group = std::pair<Uid, PodSetName>;  ///< Owner, pod set.
  struct Slot {
    NodeName node;
    std::optional<std::int64_t> rank;
  };
  struct Reservation {
    Group group;
    std::uint64_t sequence = 0;
  };
  struct Refused {
    std::shared_ptr<const RefusedPod> pod;
    std::int64_t woken = 0;  ///< How often since it was last allowed somewhere.
    std::optional<Instant> not_before;
    std::uint64_t sequence = 0;
  };

  void insert(std::shared_ptr<const ForeignAnswer> answer);
  void erase_answer(const Uid& uid);
  [[nodiscard]] std::optional<NodeName> choose_slot(const SlotRequest& request);
  void set_reservation(const Uid& pod, const Group& group, const Slot& slot);
  void erase_reservation(const Uid& pod);
  void erase_refusal(const Uid& uid);
  void erase_all(const Uid& uid);

  const LedgerLimits limits_;
  mutable std::mutex mutex_;  ///< Guards everything below.
  std::uint64_t next_sequence_ = 1;
  std::map<Uid, Entry> answers_;
  std::map<std::uint64_t, Uid> answers_by_age_;
  std::uint64_t answers_version_ = 1;  ///< Grows with every change of what nodes_in_doubt() says.
  mutable std::uint64_t doubt_version_ = 0;
  mutable std::vector<NodeName> doubt_;  ///< Right while the two versions are equal.
  std::map<Uid, Reservation> reservations_;
  std::map<Group, std::map<Uid, Slot>> reserved_;
  std::map<std::uint64_t, Uid> reservations_by_age_;
  std::map<Uid, Refused> refused_;
  std::map<std::uint64_t, Uid> refused_by_age_;
  std::unordered_set<Uid> gone_;
  std::deque<Uid> gone_by_age_;
  std::uint64_t dropped_ = 0;
};

}  // namespace muster::extender

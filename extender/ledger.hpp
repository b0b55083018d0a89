#pragma once
// What the extender said and has not seen the end of: foreign pods that may still land where they
// were allowed, and slots handed to members that have no rank.
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
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::extender {

/// The nodes of one answer. Small (a bit per node of the fleet), since answers name hundreds.
class AnsweredNodes {
 public:
  /// Nothing yet; `index` gives nodes their positions.
  explicit AnsweredNodes(std::shared_ptr<const engine::Snapshot::NodeIndexMap> index);
  /// Every node there is or will be.
  [[nodiscard]] static AnsweredNodes everything();

  /// A node of the index, by its position there.
  void add_position(std::size_t position);
  /// A node that the index does not know.
  void add_unknown(std::string_view name);

  [[nodiscard]] bool contains(std::string_view name) const;
  [[nodiscard]] bool is_everything() const { return everything_; }
  [[nodiscard]] bool empty() const;
  /// Sorted; empty for everything().
  [[nodiscard]] std::vector<NodeName> names() const;

 private:
  std::shared_ptr<const engine::Snapshot::NodeIndexMap> index_;
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

/// A member without a rank asks for a slot.
struct SlotRequest {
  Uid owner;  ///< Of its workload, as in WorkloadView::owner_uid.
  PodSetName pod_set;
  Uid pod;
  /// Slots that no bound pod sits in, one entry a slot, in the order of the plan.
  std::vector<NodeName> free;
  /// Whether the picture that `free` was made from shows this pod bound to this node.
  std::function<bool(const Uid& pod, const NodeName& node)> is_bound;
  /// Whether the scheduler offers the node for this pod.
  std::function<bool(const NodeName& node)> is_offered;
};

struct LedgerLimits {
  std::size_t answers = 4096;
  std::size_t reservations = 65536;
};

struct LedgerStats {
  std::size_t answers = 0;
  std::size_t reservations = 0;
  std::uint64_t dropped = 0;  ///< Oldest entries given up because a limit was reached.
};

/// Safe from any thread; no call holds its lock for longer than a walk over the entries.
class Ledger {
 public:
  explicit Ledger(LedgerLimits limits = {}) : limits_(limits) {}

  /// The answer to a foreign pod; replaces the pod's former one, for to be asked again proves that
  /// the former attempt is over. An answer without nodes only ends the former one.
  void record(ForeignAnswer answer);

  /// The pod is asked about again and gets nothing that would have to be remembered.
  void retract(const Uid& uid);

  /// An unbound, ungated foreign pod found by a new leader: the old one may have allowed it
  /// anywhere. Void at `until`; does not replace an answer of our own.
  void assume_answered(const Uid& uid, Resources requests, Instant until);

  /// A pod as the watch shows it, after the snapshot of `generation`, which shows it too, was
  /// published. Ends the entry of a pod that is bound, terminal, or whose PodScheduled=False is
  /// news since the answer.
  void observe(const kube::Pod& pod, std::uint64_t generation);
  /// The pod was deleted.
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

  /// Nodes where an open answer may still land; sorted, each once. Assumed answers, which are about
  /// all nodes, are left out: a doubt about everything guides nobody.
  [[nodiscard]] std::vector<NodeName> nodes_in_doubt() const;

  /// The slot of a rankless member: the one it had, if it still can be had, else the first free one
  /// that is offered and given to no one else. Nothing: it is surplus, or no free slot is offered.
  [[nodiscard]] std::optional<NodeName> reserve_slot(const SlotRequest& request);

  [[nodiscard]] LedgerStats stats() const;

 private:
  struct Entry {
    std::shared_ptr<const ForeignAnswer> answer;
    /// Bound, as shown by snapshots from this generation on.
    std::optional<std::uint64_t> bound_from;
    std::uint64_t sequence = 0;
  };
  using Group = std::pair<Uid, PodSetName>;  ///< Owner, pod set.
  struct Reservation {
    Group group;
    NodeName node;
    std::uint64_t sequence = 0;
  };

  void insert(std::shared_ptr<const ForeignAnswer> answer);
  void erase_answer(const Uid& uid);
  void set_reservation(const Uid& pod, const Group& group, const NodeName& node);
  void erase_reservation(const Uid& pod);

  const LedgerLimits limits_;
  mutable std::mutex mutex_;  ///< Guards everything below.
  std::uint64_t next_sequence_ = 1;
  std::map<Uid, Entry> answers_;
  std::map<std::uint64_t, Uid> answers_by_age_;
  std::map<Uid, Reservation> reservations_;
  std::map<Group, std::map<Uid, NodeName>> reserved_;
  std::map<std::uint64_t, Uid> reservations_by_age_;
  std::uint64_t dropped_ = 0;
};

}  // namespace muster::extender

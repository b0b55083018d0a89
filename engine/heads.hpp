#pragma once
// Whose turn it is: the heads of all queues, in the order in which a pass looks at them.

#include "engine/state.hpp"
#include "quota/fair_share.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::engine {

/// The next workload of one queue.
struct Head {
  std::int64_t borrow_level = 0;
  WorkloadRecord* record = nullptr;
  ClusterQueueName queue;
  quota::FrAmounts amounts;  ///< What it would use; empty: no flavor would do.
  /// Lower borrow level first, then priority, age, uid.
  bool operator<(const Head& other) const;
};

/// By priority, age, uid, whatever they borrow.
[[nodiscard]] bool goes_before(const Head& a, const Head& b);

/// Which head of a cohort tree has its turn under fair sharing (semantics c.4): in each cohort the
/// children compete, each for the best head below it, by what their share would be with that head.
/// A child that stays within its own quota of everything the head asks for comes first, then the
/// lowest share, then priority, age, uid.
///
/// Shares are those of the usage at the moment of the question. What did not change since the last
/// one is not counted again.
class Tournament {
 public:
  explicit Tournament(quota::QuotaTree& tree);

  /// At most one head a queue.
  void enter(const Head& head);
  /// Takes out the head whose turn it is; nothing when there is none. Trees of different roots do
  /// not compete: the best of each take turns by priority, age, uid.
  [[nodiscard]] std::optional<Head> pop();

 private:
  /// A node of the quota tree, with the best head below it.
  struct Seat {
    std::optional<quota::NodeIndex> winner;  ///< The queue of the best head; nothing: none below.
    bool borrowing = false;  ///< With that head, of something it asks for. Unset for a root.
    quota::FairShare share;  ///< With that head.
    std::uint64_t changes = 0;
    bool stale = true;
  };

  void refresh();
  void count(quota::NodeIndex node);
  void mark_stale(quota::NodeIndex queue);
  [[nodiscard]] bool before(quota::NodeIndex a, quota::NodeIndex b) const;
  [[nodiscard]] Seat& seat(quota::NodeIndex node) { return seats_[node.value()]; }
  [[nodiscard]] const Seat& seat(quota::NodeIndex node) const { return seats_[node.value()]; }

  quota::QuotaTree& tree_;
  std::vector<Seat> seats_;                      ///< By NodeIndex.
  std::vector<quota::NodeIndex> deepest_first_;  ///< Children stand before their parents.
  std::vector<quota::NodeIndex> roots_;
  std::map<quota::NodeIndex, Head> heads_;  ///< By queue.
};

/// Either order, as the configuration says.
class Heads {
 public:
  explicit Heads(State& state);
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// At most one a queue.
  void push(Head head);
  /// Precondition: not empty.
  [[nodiscard]] Head pop();

 private:
  std::set<Head> classical_;
  std::optional<Tournament> fair_;
  std::size_t size_ = 0;
};

}  // namespace muster::engine

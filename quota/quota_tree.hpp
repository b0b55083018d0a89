#pragma once
// The quota tree: cohorts and cluster queues, what each may use and does use, per flavor resource.
// The algebra is queueing semantics (a); letters in comments (T, G, U, Q, BL, LL) are its letters.

#include "quota/quota_spec.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace muster::quota {

/// Dense index of a tree node. Cohorts come first, then cluster queues, each in order of name, so
/// comparing indices compares names and never depends on the order of the input.
using NodeIndex = Strong<struct QuotaNodeTag, std::uint32_t>;

/// Dense index of a FlavorResource in one tree, in order of (resource, flavor): all flavors of one
/// resource are neighbours.
using FrId = Strong<struct FlavorResourceTag, std::uint32_t>;

/// Amounts per flavor resource, sorted by id, each id once.
using FrAmounts = std::vector<std::pair<FrId, Amount>>;

/// Usage is kept exactly, so that removing what was added always gives back the former state; what
/// leaves the tree is an Amount (clamped to the int64 range).
using ExactUsage = __int128;

/// The value a usage cell had before a change.
struct UsageUndo {
  NodeIndex node;
  FrId fr;
  ExactUsage before = 0;
};
/// Owned by whoever tries things out; see QuotaTree::restore.
using UsageLog = std::vector<UsageUndo>;

/// A cohort that is not part of the tree, and why.
struct TreeProblem {
  CohortName cohort;
  std::string message;
  bool operator==(const TreeProblem&) const = default;
};

/// How far up the tree a request borrows.
struct BorrowLevel {
  /// 0: within the queue's own nominal quota (or no cohort); else the height of the lowest cohort
  /// whose subtree quota still holds the rest of the request; the root's height when none does.
  std::int64_t level = 0;
  /// That node has a parent: what was lent out below it may be reclaimed.
  bool may_reclaim = false;
  bool operator==(const BorrowLevel&) const = default;
};

/// Why an amount does not fit: the lowest node whose quota, or whose borrowing limit, is in the
/// way. `missing` more nominal quota at this node would make it fit.
struct Limit {
  NodeIndex node;
  bool borrowing_limit = false;  ///< The node's borrowing limit binds, not a quota.
  Amount asked;                  ///< The part of the request that reaches this node.
  Amount available;              ///< What can be had of that, here and above; may be negative.
  Amount missing;                ///< asked - available, always positive.
  bool operator==(const Limit&) const = default;
};

/// All trees of the fleet, each under its root cohort; a cluster queue without a cohort is a tree
/// of its own. Structure and quota never change: build a new tree and charge it anew. Node and fr
/// arguments must come from this tree.
class QuotaTree {
 public:
  /// Names must be unique per kind; the order of the input does not matter. A cohort that is only
  /// referred to is a node without quota and without limits. Every cohort whose ancestor chain runs
  /// into a cycle is left out (`problems()`); its queues stay, each as a tree of its own, with
  /// `in_cycle()` set, so that what they hold can still be counted.
  /// `also_track` gives ids to flavor resources that no quota names (usage that outlived its
  /// quota).
  [[nodiscard]] static QuotaTree build(const std::vector<CohortSpec>& cohorts,
                                       const std::vector<QueueQuotaSpec>& queues,
                                       const std::vector<FlavorResource>& also_track = {});

  /// Sorted by cohort name.
  [[nodiscard]] const std::vector<TreeProblem>& problems() const { return problems_; }

  // Flavor resources.
  [[nodiscard]] std::size_t fr_count() const { return frs_.size(); }
  [[nodiscard]] std::optional<FrId> find_fr(const FlavorResource& flavor_resource) const;
  [[nodiscard]] const FlavorResource& fr(FrId id) const;
  /// Dense index of the resource of `id`, in order of name.
  [[nodiscard]] std::uint32_t resource_index(FrId id) const;
  /// Flavor resources that the tree does not know are dropped: nobody has quota of them.
  [[nodiscard]] FrAmounts to_fr_amounts(const FlavorAmounts& amounts) const;

  // Structure.
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] std::size_t cohort_count() const { return cohort_names_.size(); }
  /// All cluster queues, in order of name.
  [[nodiscard]] std::span<const NodeIndex> queues() const { return queues_; }
  [[nodiscard]] std::optional<NodeIndex> find_queue(const ClusterQueueName& name) const;
  /// Nothing for a cohort that was left out.
  [[nodiscard]] std::optional<NodeIndex> find_cohort(const CohortName& name) const;
  [[nodiscard]] bool is_queue(NodeIndex node) const;
  [[nodiscard]] const ClusterQueueName& queue_name(NodeIndex queue) const;
  [[nodiscard]] const CohortName& cohort_name(NodeIndex cohort) const;
  /// The name of either kind, for messages.
  [[nodiscard]] const std::string& name(NodeIndex node) const;
  [[nodiscard]] bool in_cycle(NodeIndex queue) const { return at(queue).in_cycle; }
  [[nodiscard]] std::optional<NodeIndex> parent(NodeIndex node) const { return at(node).parent; }
  [[nodiscard]] NodeIndex root(NodeIndex node) const { return at(node).root; }
  /// Child cohorts, then child queues, each in order of name.
  [[nodiscard]] std::span<const NodeIndex> children(NodeIndex node) const;
  /// Cluster queues of the subtree (a queue: itself), depth first along `children`.
  [[nodiscard]] std::span<const NodeIndex> queues_below(NodeIndex node) const;
  /// From the parent to the root; empty for a root.
  [[nodiscard]] std::vector<NodeIndex> ancestors(NodeIndex node) const;
  [[nodiscard]] bool is_ancestor_or_self(NodeIndex ancestor, NodeIndex node) const;
  /// The lowest node that is an ancestor of (or is) both; nothing when they are in different trees.
  [[nodiscard]] std::optional<NodeIndex> lowest_common_ancestor(NodeIndex a, NodeIndex b) const;
  /// The child of `ancestor` on the way down to `node`. Precondition: a true ancestor.
  [[nodiscard]] NodeIndex child_towards(NodeIndex ancestor, NodeIndex node) const;
  /// Edges from the node to the root.
  [[nodiscard]] std::uint32_t depth(NodeIndex node) const { return at(node).depth; }
  /// Queue or empty cohort: 0; else the longest path down to a leaf, at least 1.
  [[nodiscard]] std::int64_t height(NodeIndex node) const { return at(node).height; }
  [[nodiscard]] FairWeight fair_weight(NodeIndex node) const { return at(node).fair_weight; }
  /// Shares are compared as floating point numbers, with their rounding: as Kueue 0.17.0 does.
  /// False in a new tree.
  [[nodiscard]] bool rounded_shares() const { return rounded_shares_; }
  void round_shares(bool rounded) { rounded_shares_ = rounded; }

  // Quota: fixed at build.
  /// The node's own spec, or for a cohort any spec below it, names this flavor resource.
  [[nodiscard]] bool covers(NodeIndex node, FrId fr) const { return quota(node, fr).covered; }
  [[nodiscard]] Amount nominal(NodeIndex node, FrId fr) const { return quota(node, fr).nominal; }
  /// T: the quota of the whole subtree that the node can decide about.
  [[nodiscard]] Amount subtree_quota(NodeIndex node, FrId fr) const {
    return quota(node, fr).subtree;
  }
  /// G: what the node keeps for itself, because of a lending limit.
  [[nodiscard]] Amount guaranteed(NodeIndex node, FrId fr) const {
    return quota(node, fr).guaranteed;
  }
  [[nodiscard]] std::optional<Amount> borrowing_limit(NodeIndex node, FrId fr) const;
  /// The most the node could ever have, in an empty cluster.
  [[nodiscard]] Amount potential(NodeIndex node, FrId fr) const {
    return quota(node, fr).potential;
  }

  // Usage.
  /// U, clamped to the int64 range.
  [[nodiscard]] Amount usage(NodeIndex node, FrId fr) const;
  [[nodiscard]] Amount local_available(NodeIndex node, FrId fr) const;
  /// What a request at this node could have now. Negative when the tree is over-subscribed.
  [[nodiscard]] Amount available(NodeIndex node, FrId fr) const;
  /// `available`, at least 0: what admission compares with.
  [[nodiscard]] Amount available_clamped(NodeIndex queue, FrId fr) const;
  /// True when every amount is at most `available_clamped`.
  [[nodiscard]] bool fits(NodeIndex queue, const FrAmounts& amounts) const;
  /// T < U + amount (a queue's T is its nominal quota).
  [[nodiscard]] bool borrowing(NodeIndex node, FrId fr, Amount amount = Amount()) const;
  /// max(0, U - Q) of a queue; 0 without a cohort.
  [[nodiscard]] Amount borrowed(NodeIndex queue, FrId fr) const;
  /// T >= U for all of `frs`.
  [[nodiscard]] bool within_nominal(NodeIndex node, std::span<const FrId> frs) const;
  [[nodiscard]] BorrowLevel borrow_level(NodeIndex queue, FrId fr, Amount amount) const;
  /// What keeps `amount` from fitting now; nothing when it fits (amounts <= 0 always do).
  [[nodiscard]] std::optional<Limit> limiting_node(NodeIndex queue, FrId fr, Amount amount) const;
  /// What keeps `amount` from ever fitting; nothing when it is at most `potential`.
  [[nodiscard]] std::optional<Limit> limiting_node_ever(NodeIndex queue, FrId fr,
                                                        Amount amount) const;

  /// For work that may not borrow: the lowest node below the root whose own subtree quota `amount`
  /// would exceed, now or (ever) in an empty cluster; nothing when there is none. A queue without a
  /// cohort is a root.
  [[nodiscard]] std::optional<Limit> own_limit(NodeIndex queue, FrId fr, Amount amount) const;
  [[nodiscard]] std::optional<Limit> own_limit_ever(NodeIndex queue, FrId fr, Amount amount) const;

  /// Charges a queue (or cohort); what exceeds the guaranteed part goes on to the parent. A
  /// negative amount stays at the node. With a log, the old values are appended to it.
  void add_usage(NodeIndex node, const FrAmounts& amounts, UsageLog* log = nullptr);
  /// Takes back what add_usage charged, in any order. Amounts are not negative.
  void remove_usage(NodeIndex node, const FrAmounts& amounts, UsageLog* log = nullptr);
  /// Undoes the logged changes after the first `mark` entries, last first, and drops them from the
  /// log. `mark` is the size the log had at the moment to go back to.
  void restore(UsageLog& log, std::size_t mark);

  /// Grows whenever usage of the node, or of anything below it, was changed for good (without a
  /// log). What was computed from them holds while it stays the same.
  [[nodiscard]] std::uint64_t changes(NodeIndex node) const { return at(node).changes; }

  /// One line for every cohort and fr whose usage is not the sum of what its children pass up.
  /// Holds after any sequence of matched non-negative add_usage and remove_usage.
  [[nodiscard]] std::vector<std::string> check_usage() const;

  /// Usage of all nodes is the same (for tests and rebuild checks; the trees must have one shape).
  [[nodiscard]] bool same_usage(const QuotaTree& other) const { return usage_ == other.usage_; }

 private:
  struct Node {
    std::optional<NodeIndex> parent;
    NodeIndex root;
    std::uint32_t depth = 0;
    std::int64_t height = 0;
    std::uint32_t children_begin = 0;  ///< Range of children_.
    std::uint32_t children_end = 0;
    std::uint32_t queues_begin = 0;  ///< Range of queues_by_tree_.
    std::uint32_t queues_end = 0;
    std::uint64_t changes = 0;
    bool in_cycle = false;
    FairWeight fair_weight;
  };
  struct QuotaCell {
    Amount nominal;
    Amount subtree;
    Amount guaranteed;
    Amount potential;
    std::optional<Amount> borrowing_limit;
    bool covered = false;
  };
  class Builder;

  [[nodiscard]] const Node& at(NodeIndex node) const;
  [[nodiscard]] std::size_t cell(NodeIndex node, FrId fr) const;
  [[nodiscard]] const QuotaCell& quota(NodeIndex node, FrId fr) const {
    return quota_[cell(node, fr)];
  }
  [[nodiscard]] Amount borrowable(NodeIndex node, FrId fr, Amount limit) const;
  [[nodiscard]] Amount available_from_parent(NodeIndex node, FrId fr, Amount of_parent) const;
  void set_usage(NodeIndex node, FrId fr, ExactUsage value, UsageLog* log);
  void note_change(NodeIndex node);

  std::vector<FlavorResource> frs_;
  std::vector<std::uint32_t> fr_resources_;  ///< resource_index by FrId.
  std::map<FlavorResource, FrId> fr_ids_;
  std::vector<CohortName> cohort_names_;       ///< By index.
  std::vector<ClusterQueueName> queue_names_;  ///< By index - cohort_count().
  std::vector<NodeIndex> queues_;
  std::vector<Node> nodes_;
  std::vector<NodeIndex> children_;
  std::vector<NodeIndex> queues_by_tree_;
  std::vector<QuotaCell> quota_;   ///< Node-major matrix, nodes x frs.
  std::vector<ExactUsage> usage_;  ///< Same shape.
  std::vector<TreeProblem> problems_;
  bool rounded_shares_ = false;
};

}  // namespace muster::quota

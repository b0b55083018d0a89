#pragma once
// The nodes as placement sees them: what they are, what they can hold, what is on them.

#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "base/resources.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::topology {

/// Dense index of a node. Stable while the node exists or something is charged to it; after
/// Fleet::remove and the last release it may be given to another node.
using NodeIndex = Strong<struct FleetNodeTag, std::uint32_t>;

struct NodeFacts {
  NodeName name;
  LabelMap labels;
  std::vector<Taint> taints;
  Resources allocatable;
  bool ready = true;
  bool unschedulable = false;
  bool operator==(const NodeFacts&) const = default;
};

/// Who takes room: pods in no slot of a plan (bound or nominated), or slots of plans.
enum class UseKind { kForeign, kPlanned };

/// What a node's use was before a change.
struct UseUndo {
  NodeIndex node;
  UseKind kind = UseKind::kForeign;
  ResourceSum before;
};
/// Owned by whoever tries things out; see Fleet::restore.
using UseLog = std::vector<UseUndo>;

/// Node indices passed in must come from this fleet.
class Fleet {
 public:
  /// Adds the node or replaces what is known of it. Charges stay.
  NodeIndex upsert(NodeFacts facts);
  /// The index of a node that may be unknown so far: it is absent (never eligible, no room) until
  /// upsert brings it, but can be charged.
  NodeIndex ensure(const NodeName& name);
  /// The node is gone. What is charged to it stays charged; its index lives until that is released.
  void remove(NodeIndex node);

  /// Present nodes, and absent ones that still have an index.
  [[nodiscard]] std::optional<NodeIndex> find(const NodeName& name) const;
  [[nodiscard]] bool present(NodeIndex node) const { return at(node).present; }
  /// Of an absent node only the name means anything.
  [[nodiscard]] const NodeFacts& facts(NodeIndex node) const { return at(node).facts; }
  [[nodiscard]] const NodeName& name(NodeIndex node) const { return at(node).facts.name; }
  /// Label kubernetes.io/hostname, or the node's name when it has none.
  [[nodiscard]] const std::string& hostname(NodeIndex node) const;
  /// One more than the highest index in use.
  [[nodiscard]] std::size_t slots() const { return nodes_.size(); }
  /// Present nodes in order of name.
  [[nodiscard]] const std::vector<NodeIndex>& by_name() const { return by_name_; }

  [[nodiscard]] Resources use(NodeIndex node, UseKind kind) const;
  /// allocatable - foreign - planned; may be negative. All zero or less for an absent node.
  [[nodiscard]] const Resources& free(NodeIndex node) const { return at(node).free; }

  /// `count` times `each`. With a log, the old value is appended to it. What was charged may be
  /// released in any parts.
  void charge(NodeIndex node, UseKind kind, const Resources& each, std::int64_t count = 1,
              UseLog* log = nullptr);
  void release(NodeIndex node, UseKind kind, const Resources& each, std::int64_t count = 1,
               UseLog* log = nullptr);
  /// Undoes the logged changes after the first `mark` entries, last first, and drops them from the
  /// log. No node may have been added or removed in between.
  void restore(UseLog& log, std::size_t mark);

  /// Grows when the set of nodes, or anything of them but amounts, changes: what node filters
  /// depend on. Usage and allocatable do not count.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  struct Node {
    NodeFacts facts;
    bool present = false;
    std::array<ResourceSum, 2> use;  ///< By UseKind.
    Resources free;
  };

  [[nodiscard]] const Node& at(NodeIndex node) const;
  [[nodiscard]] Node& at(NodeIndex node);
  static void recount(Node& node);
  NodeIndex slot_for(const NodeName& name);
  void list(NodeIndex node);
  void unlist(NodeIndex node);

  std::vector<Node> nodes_;
  std::unordered_map<std::string, NodeIndex> index_;  ///< Looked up only, never walked.
  std::vector<NodeIndex> by_name_;
  std::vector<NodeIndex> removed_;  ///< May be reused once nothing is charged to them.
  std::uint64_t generation_ = 0;
};

}  // namespace muster::topology

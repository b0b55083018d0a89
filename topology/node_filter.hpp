#pragma once
// Which nodes a pod set may use at all, whatever is free on them, and how they group into topology
// domains. The answer depends on Fleet::generation() only, so it can be kept.

#include "topology/fleet.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::topology {

/// Which nodes are asked for. Taints are judged by the pod's and the flavor's tolerations together.
struct NodeQuery {
  LabelMap flavor_labels;  ///< Labels a node of the flavor has; empty: all nodes.
  std::vector<Toleration> flavor_tolerations;
  NodeConstraints constraints;      ///< Of the pod.
  std::vector<std::string> levels;  ///< Node label keys, widest first; empty: no topology.
  bool operator==(const NodeQuery&) const = default;
};

/// Why a node is left out; the first that applies, in this order.
enum class Exclusion {
  kFlavorLabels,  ///< Not a node of the flavor.
  kNotReady,
  kUnschedulable,
  kTaint,
  kSelector,         ///< nodeSelector or required node affinity.
  kHostnameMissing,  ///< The topology goes down to hosts and the node has no hostname label.
  kLevelMissing,     ///< The node lacks the label of another topology level.
};
inline constexpr std::size_t kExclusionCount = 7;

/// `not ready`, `taint`, `selector`, …
[[nodiscard]] std::string_view to_string(Exclusion exclusion);

/// The first reason against the node, or nothing when it is eligible. `levels` are checked too.
[[nodiscard]] std::optional<Exclusion> judge(const NodeQuery& query, const NodeFacts& node);

/// A topology domain: a run of neighbours in Candidates::nodes.
struct Domain {
  std::uint32_t nodes_begin = 0;
  std::uint32_t nodes_end = 0;
  std::uint32_t children_begin = 0;  ///< Domains one level down; an empty range at the lowest.
  std::uint32_t children_end = 0;
};

/// The eligible nodes of one query, in rank order: by full domain path, then by name. Domains of a
/// level are in order of their full path, too.
struct Candidates {
  std::uint64_t generation = 0;              ///< Fleet::generation() it was made from.
  std::vector<NodeIndex> nodes;              ///< Eligible.
  std::vector<std::string> levels;           ///< Of the query.
  std::vector<std::vector<Domain>> domains;  ///< By level, widest first; empty without topology.
  std::int64_t flavor_nodes = 0;             ///< Nodes of the flavor, eligible or not.
  std::array<std::int64_t, kExclusionCount> excluded{};  ///< Nodes left out, by Exclusion.
};

[[nodiscard]] Candidates find_candidates(const NodeQuery& query, const Fleet& fleet);

/// Keeps the candidates of recent queries until a node changes.
class CandidateCache {
 public:
  /// Valid until the fleet's next upsert or remove; shared, so it may be held across calls.
  [[nodiscard]] std::shared_ptr<const Candidates> get(const NodeQuery& query, const Fleet& fleet);

 private:
  static constexpr std::size_t kEntriesMax = 512;
  std::uint64_t generation_ = 0;
  std::map<std::string, std::shared_ptr<const Candidates>> entries_;  ///< By canonical query.
};

}  // namespace muster::topology

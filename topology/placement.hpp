#pragma once
// Where the pods of a gang go: queueing semantics (f), phases 1, 2a and 2b, on real nodes.
//
// Counts are always taken on single nodes, on the whole resource vector, and then added up into
// domains: room that no single pod can use counts for nothing.

#include "base/resources.hpp"
#include "topology/fleet.hpp"
#include "topology/node_filter.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::topology {

/// How strictly the pods must be together.
enum class Mode {
  kRequired,       ///< In one domain of the level, or not at all.
  kPreferred,      ///< In one domain of the level, else of the next wider one, …, else spread.
  kUnconstrained,  ///< Anywhere; smallest sufficient gaps first where there is a topology.
};

/// Room already promised on a node, beyond what the fleet is charged with.
struct NodeUse {
  NodeIndex node;
  Resources amount;
};

/// Pods that stand together in groups of `size`, each in one domain of `level`.
struct SliceLayer {
  std::string level;      ///< Node label key.
  std::int64_t size = 1;  ///< Pods, at least 1.
  bool operator==(const SliceLayer&) const = default;
};

/// Slices that cannot be made.
struct BadSlices {
  std::int64_t size = 0;   ///< Of them, in pods.
  std::int64_t outer = 0;  ///< The slices that were to be cut have so many pods; 0: it is all pods
                           ///< of the pod set.
  bool operator==(const BadSlices&) const = default;
};

struct PlaceRequest {
  std::int64_t count = 1;  ///< Pods; 0 or less asks for nothing and always fits.
  Resources per_pod;  ///< The whole vector a node is charged with for one pod, `pods` included.
  NodeQuery nodes;
  Mode mode = Mode::kUnconstrained;
  std::string level;  ///< Node label key; ignored when unconstrained or flat.
  /// The outermost first: each level is below the one before (and not above `level`), each size
  /// divides the one before. Empty: pods may stand alone. Ignored when flat.
  std::vector<SliceLayer> slices;
  /// One more pod, with the vector it is charged with, that shares the pods' domain: the leader of
  /// a pod set group. It stands on nodes that are eligible for the pods and by `leader_nodes`.
  /// Absent: none.
  std::optional<Resources> leader;
  NodeQuery leader_nodes;  ///< Only with a leader; levels do not matter.
  /// Of equal rooms the one in the domain with the least free is taken, of these the domain with
  /// the fewest nodes, so that whole and large domains stay free; else the first by path.
  bool pack = false;
  std::vector<NodeIndex> avoid;  ///< Used only when there is no placement without them.
  std::vector<NodeUse> assumed;  ///< Earlier pod sets of the same gang. Same node twice: added up.
};

/// Pods on one node.
struct NodeShare {
  NodeIndex node;
  std::int64_t count = 0;  ///< At least 1; where the leader stands, at least 0.
  bool leader = false;     ///< PlaceRequest::leader stands here.
  bool operator==(const NodeShare&) const = default;
};

/// In rank order: by full domain path, then by node name. The first node gets the lowest ranks.
using Placement = std::vector<NodeShare>;

/// Why there is no placement.
struct Unplaceable {
  std::int64_t asked = 0;  ///< Slices; pods where slice_size is 1.
  /// Those that fit at once now: in the best single domain if one is required, else altogether. All
  /// that is asked: it is the leader that does not fit beside them.
  std::int64_t fitting = 0;
  std::int64_t slice_size = 1;  ///< Pods.
  std::string slice_level;      ///< Where a slice has to stand together; empty with slice_size 1.
  std::string level;            ///< The required level; empty when none is required.
  /// Where they fit: the values of the best single domain's levels; empty when none is required, or
  /// nothing fits.
  std::vector<std::string> best_domain;
  /// The topology has no such level, or the levels asked for do not lie below each other; nothing
  /// else was looked at.
  std::string unknown_level;
  /// Present: a size is below 1, or does not divide what it is to divide; nothing else was looked
  /// at.
  std::optional<BadSlices> indivisible;
  std::int64_t nodes = 0;  ///< Nodes of the flavor, eligible or not.
  /// Nodes of the flavor that are left out, by cause; no zero entries.
  std::map<Exclusion, std::int64_t> excluded;
  /// Eligible nodes that could not take one pod if they were empty, by the first resource of which
  /// they have too little.
  std::map<ResourceId, std::int64_t> too_small;
  /// The others on which not even one more pod fits, by the first resource that is short.
  std::map<ResourceId, std::int64_t> short_of;
  bool operator==(const Unplaceable&) const = default;
};

/// For messages: an empty name is seen only with its quotes.
[[nodiscard]] std::string level_in_words(const std::string& level);

/// Flat (no levels): best fit. One node if one can take all, the one with the smallest sufficient
/// count; else the largest first, and the last chosen by best fit. Ties go by name.
/// With levels: best fit, or least free first when unconstrained; nodes inside a lowest domain are
/// chosen as on a flat fleet. A request for slices only, with no level of its own, is unconstrained
/// and begins at the widest level.
[[nodiscard]] tl::expected<Placement, Unplaceable> place(const PlaceRequest& request,
                                                         const Fleet& fleet);
/// The same with candidates found earlier for `request.nodes`; they must be of the fleet's current
/// generation.
[[nodiscard]] tl::expected<Placement, Unplaceable> place(const PlaceRequest& request,
                                                         const Candidates& candidates,
                                                         const Fleet& fleet);

/// The largest `count` for which the request would be placed now; `request.count` is ignored. At
/// most 2^40 a node, for pods that ask for nothing.
[[nodiscard]] std::int64_t max_gang(const PlaceRequest& request, const Fleet& fleet);
[[nodiscard]] std::int64_t max_gang(const PlaceRequest& request, const Candidates& candidates,
                                    const Fleet& fleet);

}  // namespace muster::topology

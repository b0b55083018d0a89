#pragma once
// What a start adds to a pod template, and how it is taken off again. Pure functions on JSON.
// Rules: design section 2, point 5; extender protocol sections 2.2, 4 and 4.1.

#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "kube/codec/json.hpp"

#include <string>
#include <vector>

namespace muster::controller {

/// Above this many alternatives the nodes are named by their hostname labels in one list instead.
inline constexpr std::size_t kMaxPinTerms = 512;

struct PinnedNode {
  NodeName name;
  std::string hostname;  ///< Its label kubernetes.io/hostname.
};

/// What the assignment of one pod set means for its pods.
struct PodSetPins {
  std::string workload;  ///< Name of the Workload.
  std::string pod_set;
  std::string cluster_queue;
  std::string local_queue;
  LabelMap node_labels;                 ///< Of the assigned flavors.
  std::vector<Toleration> tolerations;  ///< Of the assigned flavors.
  std::vector<PinnedNode> nodes;        ///< Of the plan, each once; empty: no plan.
};

/// `original` (metadata, spec) with labels, annotation, node selector, tolerations and required
/// node affinity for one of the nodes. The user's own terms stay in force: each is combined with
/// each node.
[[nodiscard]] kube::Json pinned_template(const kube::Json& original, const PodSetPins& pins);

/// True when a template carries the marks of a start of this workload (any workload when empty).
[[nodiscard]] bool is_pinned(const kube::Json& pod_template, std::string_view workload);

/// The marks and the node names taken off again, as far as that can be known without the original:
/// for an owner whose Workload was deleted while it ran.
[[nodiscard]] kube::Json unpinned_template(const kube::Json& pod_template);

/// A merge patch on a gated pod that pins it and takes our gate off: the user's terms are appended
/// to, never removed, as the API demands of gated pods. Other gates stay.
[[nodiscard]] kube::Json ungate_patch(const kube::Json& pod, const PodSetPins& pins);

/// RFC 7386 patch that makes `from` equal to `to`; absent when they are equal.
[[nodiscard]] kube::Json merge_diff(const kube::Json& from, const kube::Json& to);

}  // namespace muster::controller

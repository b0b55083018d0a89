#pragma once
// Which of a pod's requests count against quota, and as what: queueing semantics section 0, steps 4
// to 8. Nodes are charged with the requests themselves, whatever counts here.

#include "base/ids.hpp"
#include "base/resources.hpp"
#include "kube/codec/objects.hpp"

#include <string>
#include <vector>

namespace muster::kube {

/// `resources.transformations[]` of the Configuration: what one resource counts as.
struct ResourceTransformation {
  ResourceName input;
  bool retain = true;        ///< strategy Retain; false (Replace): the input does not count.
  ResourceName multiply_by;  ///< Times what the pod asks of this, if it does; empty: no factor.
  QuantityMap outputs;       ///< Per unit of input; may be negative.
};

/// `resources` of the Configuration, as far as it is about single requests.
struct ResourceRules {
  std::vector<std::string> exclude_prefixes;            ///< Names that do not count at all.
  std::vector<ResourceTransformation> transformations;  ///< One per input.
};

/// Per pod: the pod formula, exclusions, transformations, and only then rounded up. Outputs of all
/// transformations are added up per name; what a total of them is below zero counts as zero and
/// takes nothing from what was asked for directly. Never negative.
[[nodiscard]] ResourceList quota_requests(const PodSpec& spec, const ResourceRules& rules);

}  // namespace muster::kube

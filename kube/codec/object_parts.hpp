#pragma once
// Decoders of the parts that several kinds share; for the codec's own sources.

#include "kube/codec/objects.hpp"
#include "kube/codec/reader.hpp"

#include <optional>
#include <vector>

namespace muster::kube {

/// `metadata` of `object`, which must be an object.
[[nodiscard]] ObjectMeta read_meta(const Reader& object);
[[nodiscard]] std::vector<Condition> read_conditions(const Reader& conditions);
[[nodiscard]] LabelSelector read_label_selector(const Reader& selector);
[[nodiscard]] std::vector<Taint> read_taints(const Reader& taints);
[[nodiscard]] std::vector<Toleration> read_tolerations(const Reader& tolerations);
/// `nodeSelector`, required node affinity and tolerations of a pod's spec.
[[nodiscard]] NodeConstraints read_constraints(const Reader& pod_spec);
[[nodiscard]] PodSpec read_pod_spec(const Reader& spec);
[[nodiscard]] PodTemplate read_pod_template(const Reader& pod_template);
/// Either form: v1beta2 `slices` or v1beta1 `domains`.
[[nodiscard]] TopologyAssignment read_topology_assignment(const Reader& assignment);

/// Runs `read(const Reader&) -> T` over an object and turns the first noted error into the result.
template <class Read>
[[nodiscard]] auto decode_with(const Json& object, Read read)
    -> Result<decltype(read(std::declval<const Reader&>()))> {
  FirstError errors;
  const Reader root(object, errors);
  root.require_object();
  return errors.or_value(read(root));
}

}  // namespace muster::kube

#pragma once
// API objects -> what the engine knows, and decisions -> the API's form. Pure functions.
// Rules: queueing semantics sections 0 (requests), (h) (conditions, priority).

#include "base/ids.hpp"
#include "controller/request_defaults.hpp"
#include "engine/specs.hpp"
#include "kube/codec/objects.hpp"
#include "kube/codec/quota_requests.hpp"

#include <functional>
#include <optional>
#include <string>

namespace muster::controller {

[[nodiscard]] engine::NodeSpec to_node(const kube::Node& node);
[[nodiscard]] engine::NamespaceSpec to_namespace(const kube::Namespace_& ns);
/// Annotation `muster.dev/capacity` (`fixed`, `elastic`); anything else is `fallback`.
[[nodiscard]] engine::FlavorSpec to_flavor(const kube::ResourceFlavor& flavor,
                                           engine::Capacity fallback);
[[nodiscard]] engine::TopologySpec to_topology(const kube::Topology& topology);
[[nodiscard]] quota::CohortSpec to_cohort(const kube::Cohort& cohort);
/// Unknown words of enumerated fields read as the field's default (the CRD refuses them).
[[nodiscard]] engine::ClusterQueueSpec to_cluster_queue(const kube::ClusterQueue& queue);
[[nodiscard]] engine::LocalQueueSpec to_local_queue(const kube::LocalQueue& queue);
/// status.fairSharing.admissionFairSharingStatus of a LocalQueue, to the second and the billionth.
[[nodiscard]] kube::Json to_consumed(const engine::ConsumedResources& consumed);

/// By what a pod is recognised as a member: its own uid for a plain pod that queues for itself (our
/// gate or the managed label) and for one without a controller owner, else the owner's uid.
[[nodiscard]] Uid member_uid(const kube::Pod& pod);

/// The room a pod takes: bound and not terminal, or unbound with a nominated node. Nothing else.
[[nodiscard]] std::optional<engine::PodUse> to_pod_use(const kube::Pod& pod);
/// The room it takes on `node`: nominated, where it is not bound.
[[nodiscard]] engine::PodUse to_pod_use_on(const NodeName& node, const kube::Pod& pod);

/// What a stored Workload depends on besides itself.
struct ObjectLookup {
  /// The node with this value of kubernetes.io/hostname; nothing when there is none.
  std::function<std::optional<NodeName>(const std::string& hostname)> node_of_hostname;
  /// That label's value on a node; the node's name when it has none or is unknown.
  std::function<std::string(const NodeName& node)> hostname_of_node;
  /// False for an unknown flavor.
  std::function<bool(const FlavorName& flavor)> flavor_has_topology;
  const RequestDefaults* request_defaults = nullptr;    ///< nullptr: none are known.
  const kube::ResourceRules* resource_rules = nullptr;  ///< nullptr: requests count as they are.
};

/// `ns` is where its pods will be. `reclaimable` stays 0: that is status.
[[nodiscard]] engine::PodSetSpec to_pod_set(const Namespace& ns,
                                            const kube::WorkloadPodSet& pod_set,
                                            const ObjectLookup& lookup);

/// A Workload as decisions see it. The admission counts only with QuotaReserved=True; `evicted`
/// only while quota is still reserved. A hostname that no node has stands for itself, so that the
/// engine sees a plan with an unknown node and mends it.
[[nodiscard]] engine::WorkloadSpec to_workload(const kube::Workload& workload,
                                               const ObjectLookup& lookup);

/// Label `muster.dev/preemptible`, annotations `muster.dev/min-runtime` and
/// `muster.dev/checkpoint-grace`; what cannot be read counts as not said.
[[nodiscard]] engine::Protection to_protection(const kube::ObjectMeta& meta);

/// Adds what the workload's owner and its priority class say to what its own object says; `owner`
/// may be nullptr. The owner says when it wrote its last checkpoint.
void add_protection(engine::WorkloadSpec& spec, const kube::ObjectMeta* owner,
                    const engine::Protection& priority_class);

/// A decision in the API's form; plans are written as the single level kubernetes.io/hostname.
[[nodiscard]] kube::WorkloadAdmission to_admission(const engine::Admission& admission,
                                                   const ObjectLookup& lookup);

/// An amount in the API's spelling.
[[nodiscard]] Quantity to_quantity(const ResourceName& resource, Amount amount);

}  // namespace muster::controller

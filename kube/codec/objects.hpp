#pragma once
// The API types muster reads and writes, as far as it needs them. Decoders ignore unknown fields;
// writers patch single fields, so what we do not know is never lost.
// Sources: core/v1, batch/v1, scheduling.k8s.io/v1, kueue.x-k8s.io/v1beta2 (v1beta1 forms decoded).

#include "base/amount.hpp"
#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "base/quantity.hpp"
#include "base/resources.hpp"
#include "base/time.hpp"
#include "kube/codec/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::kube {

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  Uid uid;
  bool controller = false;
};

struct ObjectMeta {
  std::string name;  ///< Empty while the API server has not generated it.
  std::string generate_name;
  Namespace ns;  ///< Empty for cluster-scoped objects.
  Uid uid;
  std::string resource_version;  ///< Opaque to us but for equality; empty: not stored.
  std::int64_t generation = 0;
  std::optional<Instant> created;
  std::optional<Instant> deleted;  ///< deletionTimestamp.
  LabelMap labels;
  LabelMap annotations;
  std::vector<OwnerReference> owners;
  std::vector<std::string> finalizers;

  /// The owner with controller: true, or nullptr.
  [[nodiscard]] const OwnerReference* controller_owner() const;
  [[nodiscard]] const std::string* find_label(const std::string& key) const;
  [[nodiscard]] const std::string* find_annotation(const std::string& key) const;
};

/// metav1.Condition (and the older condition shapes of Pod, Node and Job).
struct Condition {
  std::string type;
  std::string status;  ///< `True`, `False`, `Unknown`.
  std::string reason;
  std::string message;
  std::int64_t observed_generation = 0;
  std::optional<Instant> last_transition;
};
[[nodiscard]] const Condition* find_condition(const std::vector<Condition>& conditions,
                                              std::string_view type);
[[nodiscard]] bool is_true(const std::vector<Condition>& conditions, std::string_view type);

/// Quantities by resource name, exact.
using QuantityMap = std::map<ResourceName, Quantity>;

struct Container {
  std::string name;
  QuantityMap requests;  ///< As written; defaulting from limits is effective_requests' business.
  QuantityMap limits;
  bool restart_always = false;  ///< An init container with restartPolicy Always: a sidecar.
};

struct PodSpec {
  std::vector<Container> containers;
  std::vector<Container> init_containers;
  QuantityMap overhead;
  std::optional<QuantityMap> pod_requests;  ///< spec.resources.requests; absent: none.
  std::optional<QuantityMap> pod_limits;
  NodeConstraints constraints;
  NodeName node_name;
  std::string scheduler_name;
  std::string priority_class_name;
  std::optional<std::int64_t> priority;
  std::string preemption_policy;
  std::string runtime_class_name;
  std::vector<std::string> scheduling_gates;
  bool has_scheduling_group = false;  ///< Native gang (spec.schedulingGroup): not ours.
};

struct Pod {
  ObjectMeta meta;
  PodSpec spec;
  std::string phase;  ///< `Pending`, `Running`, `Succeeded`, `Failed`; may be empty.
  NodeName nominated_node;
  std::vector<Condition> conditions;

  [[nodiscard]] bool terminal() const { return phase == "Succeeded" || phase == "Failed"; }
  /// The pod's index in its gang: of a Job, pod group, replica, leader-worker group or stateful
  /// set, from labels then annotations. Nothing when there is none, or none that is a number.
  [[nodiscard]] std::optional<std::int64_t> rank() const;
  /// The nodes that its required affinity names; empty: not pinned.
  [[nodiscard]] std::set<NodeName> pins() const;
  [[nodiscard]] bool is_mirror() const;  ///< Static pod (kubernetes.io/config.mirror).
  [[nodiscard]] bool is_daemon() const;  ///< Controlled by a DaemonSet.
};

/// Kubernetes' pod request formula, exact, before rounding: sum of containers and sidecars, maximum
/// with each init container beside the sidecars started before it, pod-level requests win where
/// given, plus overhead. Missing requests are taken from limits. `pods` is not included.
[[nodiscard]] QuantityMap effective_requests(const PodSpec& spec);

/// effective_requests rounded per resource (request_amount), with `pods`: 1: what a node is
/// charged.
[[nodiscard]] ResourceList node_charge(const PodSpec& spec);

struct PodTemplate {
  LabelMap labels;
  LabelMap annotations;
  PodSpec spec;
  Json raw;  ///< The whole template as it came, for copies that lose nothing.
};

struct Job {
  ObjectMeta meta;
  std::int64_t parallelism = 1;
  std::optional<std::int64_t> completions;  ///< Absent: a work queue.
  bool indexed = false;
  bool suspend = false;
  std::string managed_by;
  PodTemplate pod_template;
  std::int64_t active = 0;
  std::int64_t ready = 0;
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
  std::int64_t terminating = 0;
  std::optional<Instant> start_time;
  std::vector<Condition> conditions;

  /// min(parallelism, completions): the gang's size.
  [[nodiscard]] std::int64_t pod_count() const;
  /// Indexed with completions = parallelism: every pod has a rank of its own for ever.
  [[nodiscard]] bool fixed_ranks() const;
  /// Complete=True or Failed=True.
  [[nodiscard]] bool finished() const;
};

struct Node {
  ObjectMeta meta;
  bool unschedulable = false;
  std::vector<Taint> taints;
  ResourceList allocatable;  ///< Rounded as the scheduler does.
  bool ready = false;
};

struct Namespace_ {
  ObjectMeta meta;
};

struct PriorityClass {
  ObjectMeta meta;
  std::int64_t value = 0;
  bool global_default = false;
  std::string preemption_policy;
};

struct ResourceFlavor {
  ObjectMeta meta;
  LabelMap node_labels;
  std::vector<Taint> node_taints;
  std::vector<Toleration> tolerations;
  std::string topology_name;
};

struct QuotaEntry {
  ResourceName resource;
  Quantity nominal;
  std::optional<Quantity> borrowing_limit;
  std::optional<Quantity> lending_limit;
};
struct FlavorQuotas {
  std::string flavor;
  std::vector<QuotaEntry> resources;
};
struct ResourceGroup {
  std::vector<ResourceName> covered_resources;
  std::vector<FlavorQuotas> flavors;
};

struct ClusterQueue {
  ObjectMeta meta;
  std::vector<ResourceGroup> resource_groups;
  std::string cohort;                               ///< v1beta1 `cohort`, v1beta2 `cohortName`.
  std::string queueing_strategy;                    ///< Empty: BestEffortFIFO.
  std::optional<LabelSelector> namespace_selector;  ///< Absent: nobody.
  std::string when_can_borrow;  ///< Empty: default. v1beta1 `Borrow` reads as MayStopSearch.
  std::string when_can_preempt;
  std::string fungibility_preference;
  std::string within_cluster_queue;  ///< Empty: Never.
  std::string reclaim_within_cohort;
  std::string borrow_within_cohort_policy;
  std::optional<std::int64_t> borrow_max_priority_threshold;
  std::vector<std::string> admission_checks;
  std::string stop_policy;  ///< Empty: None.
  std::optional<Quantity> fair_weight;
  std::string admission_mode;  ///< admissionScope; empty: NoAdmissionFairSharing.
  std::vector<Condition> conditions;
};

struct Cohort {
  ObjectMeta meta;
  std::string parent;  ///< Empty: a root.
  std::vector<ResourceGroup> resource_groups;
  std::optional<Quantity> fair_weight;
};

/// status.fairSharing.admissionFairSharingStatus.
struct ConsumedResources {
  QuantityMap amounts;
  Instant last_update;
};

struct LocalQueue {
  ObjectMeta meta;
  std::string cluster_queue;
  std::string stop_policy;
  std::optional<Quantity> fair_weight;
  std::optional<ConsumedResources> consumed;  ///< Absent, also without its time: not told.
  std::vector<Condition> conditions;
};

struct WorkloadPriorityClass {
  ObjectMeta meta;
  std::int64_t value = 0;
};

struct Topology {
  ObjectMeta meta;
  std::vector<std::string> levels;  ///< Node label keys, widest first.
};

/// Pods of a pod set that stand together in groups.
struct TopologySlice {
  std::string level;      ///< Node label key.
  std::int64_t size = 1;  ///< Pods.
};

struct TopologyRequest {
  std::optional<std::string> required;  ///< Node label key of the level.
  std::optional<std::string> preferred;
  std::optional<bool> unconstrained;
  std::string group;  ///< podSetGroupName: pod sets of one group get the same flavors; empty: none.
  /// podSetSliceRequiredTopology and …Size, or the constraints that name several layers: the widest
  /// first. Empty: none.
  std::vector<TopologySlice> slices;
};

struct WorkloadPodSet {
  std::string name;
  std::int64_t count = 1;
  std::optional<std::int64_t> min_count;
  PodTemplate pod_template;
  std::optional<TopologyRequest> topology_request;
};

/// One domain of a topology assignment, expanded from the compressed form.
struct TopologyDomain {
  std::vector<std::string> values;  ///< One per level.
  std::int64_t count = 0;
};
struct TopologyAssignment {
  std::vector<std::string> levels;
  std::vector<TopologyDomain> domains;
};

struct PodSetAssignment {
  std::string name;
  std::map<ResourceName, std::string> flavors;
  QuantityMap resource_usage;  ///< Total over count.
  std::optional<std::int64_t> count;
  std::optional<TopologyAssignment> topology;
};

struct WorkloadAdmission {
  std::string cluster_queue;
  std::vector<PodSetAssignment> pod_sets;
};

struct Workload {
  ObjectMeta meta;
  std::vector<WorkloadPodSet> pod_sets;
  std::string queue_name;
  std::string priority_class_group;  ///< `kueue.x-k8s.io`, `scheduling.k8s.io` or empty.
  std::string priority_class_kind;
  std::string priority_class_name;
  std::optional<std::int64_t> priority;
  bool active = true;
  std::optional<WorkloadAdmission> admission;
  std::optional<Instant> requeue_at;
  std::int64_t requeue_count = 0;
  /// Pods by pod set that ended well and need nothing any more (status.reclaimablePods).
  std::map<std::string, std::int64_t> reclaimable_pods;
  std::vector<Condition> conditions;
};

// Decoders. Errors name the field path and what was wanted: `spec.podSets[0].count: …`.
[[nodiscard]] Result<ObjectMeta> decode_meta(const Json& object);
[[nodiscard]] Result<PodSpec> decode_pod_spec(const Json& spec);
[[nodiscard]] Result<Pod> decode_pod(const Json& object);
[[nodiscard]] Result<Job> decode_job(const Json& object);
[[nodiscard]] Result<Node> decode_node(const Json& object);
[[nodiscard]] Result<Namespace_> decode_namespace(const Json& object);
[[nodiscard]] Result<PriorityClass> decode_priority_class(const Json& object);
[[nodiscard]] Result<ResourceFlavor> decode_resource_flavor(const Json& object);
[[nodiscard]] Result<ClusterQueue> decode_cluster_queue(const Json& object);
[[nodiscard]] Result<Cohort> decode_cohort(const Json& object);
[[nodiscard]] Result<LocalQueue> decode_local_queue(const Json& object);
[[nodiscard]] Result<WorkloadPriorityClass> decode_workload_priority_class(const Json& object);
[[nodiscard]] Result<Topology> decode_topology(const Json& object);
[[nodiscard]] Result<Workload> decode_workload(const Json& object);

// Writers of the parts muster owns.
/// status.admission in v1beta2, topology assignments compressed.
[[nodiscard]] Json encode_admission(const WorkloadAdmission& admission);
[[nodiscard]] Json encode_condition(const Condition& condition);
/// `{levels, slices}` of v1beta2, one slice: per level one value for all domains, or a root each
/// with the common prefix and suffix cut off. No slice when there are no domains.
[[nodiscard]] Json encode_topology_assignment(const TopologyAssignment& assignment);

}  // namespace muster::kube

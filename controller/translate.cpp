#include "controller/translate.hpp"

#include "controller/names.hpp"
#include "controller/workload_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::controller {
namespace {

engine::StopPolicy stop_policy(std::string_view text) {
  if (text == "Hold") return engine::StopPolicy::kHold;
  if (text == "HoldAndDrain") return engine::StopPolicy::kHoldAndDrain;
  return engine::StopPolicy::kNone;
}

engine::PreemptionPolicy preemption_policy(std::string_view text) {
  if (text == "LowerPriority") return engine::PreemptionPolicy::kLowerPriority;
  if (text == "LowerOrNewerEqualPriority") {
    return engine::PreemptionPolicy::kLowerOrNewerEqualPriority;
  }
  if (text == "Any") return engine::PreemptionPolicy::kAny;
  return engine::PreemptionPolicy::kNever;
}

engine::FungibilitySpec fungibility(const kube::ClusterQueue& queue) {
  using Stop = engine::FungibilitySpec::Stop;
  using Preference = engine::FungibilitySpec::Preference;
  engine::FungibilitySpec spec;
  if (queue.when_can_borrow == "TryNextFlavor") spec.when_can_borrow = Stop::kTryNextFlavor;
  if (queue.when_can_preempt == "MayStopSearch") spec.when_can_preempt = Stop::kMayStopSearch;
  if (queue.fungibility_preference == "PreemptionOverBorrowing") {
    spec.preference = Preference::kPreemptionOverBorrowing;
  }
  return spec;
}

quota::Quota quota_of(const kube::QuotaEntry& entry) {
  quota::Quota quota;
  quota.nominal = quota_amount(entry.resource, entry.nominal);
  if (entry.borrowing_limit) {
    quota.borrowing_limit = quota_amount(entry.resource, *entry.borrowing_limit);
  }
  if (entry.lending_limit) quota.lending_limit = quota_amount(entry.resource, *entry.lending_limit);
  return quota;
}

std::vector<quota::ResourceGroup> resource_groups(const std::vector<kube::ResourceGroup>& groups) {
  std::vector<quota::ResourceGroup> result;
  result.reserve(groups.size());
  for (const kube::ResourceGroup& group : groups) {
    quota::ResourceGroup& out = result.emplace_back();
    out.covered_resources = group.covered_resources;
    for (const kube::FlavorQuotas& flavor : group.flavors) {
      quota::FlavorQuotas& quotas = out.flavors.emplace_back();
      quotas.flavor = FlavorName(flavor.flavor);
      for (const kube::QuotaEntry& entry : flavor.resources) {
        quotas.resources.emplace(entry.resource, quota_of(entry));
      }
    }
  }
  return result;
}

quota::FairWeight fair_weight(const std::optional<Quantity>& weight) {
  return weight ? quota::FairWeight{weight->nanos_saturated()} : quota::FairWeight{};
}

/// Billionths. A quantity has more of them than fit in 64 bits: whole units and the rest apart.
__int128 nanos_of(const Quantity& quantity) {
  const std::int64_t units = quantity.units_ceil();
  const Quantity rest = quantity + Quantity::from_units(-units);
  return __int128{units} * 1'000'000'000 + rest.nanos_saturated();
}

engine::PodSetAssignment to_assignment(const kube::PodSetAssignment& stored,
                                       std::int64_t default_count, const ObjectLookup& lookup) {
  engine::PodSetAssignment assignment;
  assignment.name = PodSetName(stored.name);
  assignment.count = stored.count.value_or(default_count);
  for (const auto& [resource, flavor] : stored.flavors) {
    assignment.flavors.emplace(resource, FlavorName(flavor));
    assignment.topology = assignment.topology || lookup.flavor_has_topology(FlavorName(flavor));
  }
  for (const auto& [resource, quantity] : stored.resource_usage) {
    assignment.usage.emplace(resource, request_amount(resource, quantity));
  }
  if (!stored.topology || stored.topology->levels.empty() ||
      stored.topology->levels.back() != kHostnameLabel) {
    return assignment;
  }
  for (const kube::TopologyDomain& domain : stored.topology->domains) {
    if (domain.values.empty() || domain.count <= 0) continue;
    const std::string& hostname = domain.values.back();
    assignment.nodes.push_back(engine::NodeCount{
        lookup.node_of_hostname(hostname).value_or(NodeName(hostname)), domain.count});
  }
  return assignment;
}

std::optional<Duration> duration_of(const kube::ObjectMeta& meta, const char* annotation) {
  const std::string* text = meta.find_annotation(annotation);
  if (text == nullptr) return std::nullopt;
  const auto duration = parse_duration(*text);
  if (!duration || *duration < Duration::zero()) return std::nullopt;
  return *duration;
}

std::optional<Instant> instant_of(const kube::ObjectMeta& meta, const char* annotation) {
  const std::string* text = meta.find_annotation(annotation);
  if (text == nullptr) return std::nullopt;
  const auto instant = parse_rfc3339(*text);
  if (!instant) return std::nullopt;
  return *instant;
}

/// When the condition was last True: since when it is, or what former_condition() kept.
std::optional<Instant> time_of(const kube::Condition* condition) {
  if (condition == nullptr) return std::nullopt;
  if (condition->status == "True") return condition->last_transition;
  return former_time(*condition);
}

/// The preemptor, in the words of muster and of Kueue: `… (UID: <uid>, …`.
Uid uid_in(std::string_view message) {
  constexpr std::string_view kBefore = "(UID: ";
  const std::size_t at = message.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = message.substr(at + kBefore.size());
  return Uid(std::string(rest.substr(0, rest.find_first_of(",)"))));
}

/// Since when it queues: its creation, or the eviction that cost it its place (semantics c.4).
std::optional<Instant> queue_time(const kube::Workload& workload) {
  const kube::Condition* evicted = kube::find_condition(workload.conditions, "Evicted");
  if (evicted == nullptr || evicted->status != "True" || !evicted->last_transition ||
      (evicted->reason != "PodsReadyTimeout" && evicted->reason != "AdmissionCheck")) {
    return workload.meta.created;
  }
  return evicted->last_transition;
}

}  // namespace

engine::NodeSpec to_node(const kube::Node& node) {
  return engine::NodeSpec{.name = NodeName(node.meta.name),
                          .labels = node.meta.labels,
                          .taints = node.taints,
                          .allocatable = node.allocatable,
                          .ready = node.ready,
                          .unschedulable = node.unschedulable};
}

engine::NamespaceSpec to_namespace(const kube::Namespace_& ns) {
  return engine::NamespaceSpec{Namespace(ns.meta.name), ns.meta.labels};
}

engine::FlavorSpec to_flavor(const kube::ResourceFlavor& flavor, engine::Capacity fallback) {
  engine::FlavorSpec spec;
  spec.name = FlavorName(flavor.meta.name);
  spec.node_labels = flavor.node_labels;
  spec.node_taints = flavor.node_taints;
  spec.tolerations = flavor.tolerations;
  if (!flavor.topology_name.empty()) spec.topology = TopologyName(flavor.topology_name);
  spec.capacity = fallback;
  if (const std::string* capacity = flavor.meta.find_annotation(kCapacityAnnotation)) {
    if (*capacity == "fixed") spec.capacity = engine::Capacity::kFixed;
    if (*capacity == "elastic") spec.capacity = engine::Capacity::kElastic;
  }
  return spec;
}

engine::TopologySpec to_topology(const kube::Topology& topology) {
  return engine::TopologySpec{TopologyName(topology.meta.name), topology.levels};
}

quota::CohortSpec to_cohort(const kube::Cohort& cohort) {
  quota::CohortSpec spec;
  spec.name = CohortName(cohort.meta.name);
  if (!cohort.parent.empty()) spec.parent = CohortName(cohort.parent);
  spec.resource_groups = resource_groups(cohort.resource_groups);
  spec.fair_weight = fair_weight(cohort.fair_weight);
  return spec;
}

engine::ClusterQueueSpec to_cluster_queue(const kube::ClusterQueue& queue) {
  engine::ClusterQueueSpec spec;
  spec.quota.name = ClusterQueueName(queue.meta.name);
  if (!queue.cohort.empty()) spec.quota.cohort = CohortName(queue.cohort);
  spec.quota.resource_groups = resource_groups(queue.resource_groups);
  spec.quota.fair_weight = fair_weight(queue.fair_weight);
  if (queue.queueing_strategy == "StrictFIFO") {
    spec.strategy = engine::QueueingStrategy::kStrictFifo;
  }
  spec.stop_policy = stop_policy(queue.stop_policy);
  spec.namespace_selector = queue.namespace_selector;
  spec.preemption.within_cluster_queue = preemption_policy(queue.within_cluster_queue);
  spec.preemption.reclaim_within_cohort = preemption_policy(queue.reclaim_within_cohort);
  spec.preemption.borrow_within_cohort.policy =
      preemption_policy(queue.borrow_within_cohort_policy);
  spec.preemption.borrow_within_cohort.max_priority_threshold = queue.borrow_max_priority_threshold;
  spec.fungibility = fungibility(queue);
  spec.admission_checks = queue.admission_checks;
  spec.protection = to_protection(queue.meta);
  spec.usage_based = queue.admission_mode == "UsageBasedAdmissionFairSharing";
  return spec;
}

engine::LocalQueueSpec to_local_queue(const kube::LocalQueue& queue) {
  engine::LocalQueueSpec spec;
  spec.key = LocalQueueKey{queue.meta.ns, queue.meta.name};
  spec.cluster_queue = ClusterQueueName(queue.cluster_queue);
  spec.stop_policy = stop_policy(queue.stop_policy);
  spec.protection = to_protection(queue.meta);
  spec.fair_weight = fair_weight(queue.fair_weight);
  if (queue.consumed) {
    engine::ConsumedResources& consumed = spec.consumed.emplace();
    consumed.at = queue.consumed->last_update;
    for (const auto& [resource, quantity] : queue.consumed->amounts) {
      consumed.amounts.emplace(resource,
                               quota::FineAmount::from_nanos(resource, nanos_of(quantity)));
    }
  }
  return spec;
}

kube::Json to_consumed(const engine::ConsumedResources& consumed) {
  std::vector<std::pair<std::string, kube::Json>> amounts;
  for (const auto& [resource, amount] : consumed.amounts) {
    const __int128 nanos = amount.nanos(resource);
    if (nanos == 0) continue;
    const auto quantity = Quantity::parse(fmt::format("{}n", nanos)).value_or(Quantity());
    amounts.emplace_back(resource.value(), kube::Json::string(quantity.to_string()));
  }
  return kube::Json::object({{"consumedResources", kube::Json::object(amounts)},
                             {"lastUpdate", kube::Json::string(format_rfc3339(consumed.at))}});
}

Uid member_uid(const kube::Pod& pod) {
  const auto& gates = pod.spec.scheduling_gates;
  const bool gated = std::find(gates.begin(), gates.end(), kAdmissionGate) != gates.end();
  const std::string* managed = pod.meta.find_label(kManagedLabel);
  if (gated || (managed != nullptr && *managed == "true")) return pod.meta.uid;
  const kube::OwnerReference* owner = pod.meta.controller_owner();
  return owner != nullptr ? owner->uid : pod.meta.uid;
}

std::optional<engine::PodUse> to_pod_use(const kube::Pod& pod) {
  if (pod.terminal()) return std::nullopt;
  const bool bound = !pod.spec.node_name.empty();
  const NodeName& node = bound ? pod.spec.node_name : pod.nominated_node;
  if (node.empty()) return std::nullopt;
  return to_pod_use_on(node, pod);
}

engine::PodUse to_pod_use_on(const NodeName& node, const kube::Pod& pod) {
  engine::PodUse use;
  use.uid = pod.meta.uid;
  use.key = PodKey{pod.meta.ns, pod.meta.name};
  use.node = node;
  use.requests = kube::node_charge(pod.spec);
  use.priority = pod.spec.priority.value_or(0);
  use.owner_uid = member_uid(pod);
  if (const std::string* pod_set = pod.meta.find_label(kPodSetLabel)) use.pod_set = *pod_set;
  use.rank = pod.rank();
  use.nominated = pod.spec.node_name.empty();
  use.terminating = pod.meta.deleted.has_value();
  return use;
}

engine::PodSetSpec to_pod_set(const Namespace& ns, const kube::WorkloadPodSet& pod_set,
                              const ObjectLookup& lookup) {
  using Mode = engine::TopologyRequest::Mode;
  engine::PodSetSpec spec;
  spec.name = PodSetName(pod_set.name);
  spec.count = pod_set.count;
  spec.min_count = pod_set.min_count;
  kube::PodSpec pod = pod_set.pod_template.spec;
  const RequestDefaults no_defaults;
  const RequestDefaults& defaults =
      lookup.request_defaults != nullptr ? *lookup.request_defaults : no_defaults;
  defaults.apply(ns, pod);
  spec.unfit = defaults.violation(ns, pod).value_or(std::string());
  const kube::ResourceRules no_rules;
  spec.quota_requests = kube::quota_requests(
      pod, lookup.resource_rules != nullptr ? *lookup.resource_rules : no_rules);
  spec.node_requests = kube::node_charge(pod);
  spec.constraints = std::move(pod.constraints);
  if (const auto& request = pod_set.topology_request) {
    spec.group = request->group;
    if (request->required) {
      spec.topology = engine::TopologyRequest{Mode::kRequired, *request->required};
    } else if (request->preferred) {
      spec.topology = engine::TopologyRequest{Mode::kPreferred, *request->preferred};
    } else if (request->unconstrained.value_or(false) || !request->slices.empty()) {
      spec.topology = engine::TopologyRequest{Mode::kUnconstrained, {}};
    }
    for (const kube::TopologySlice& slice : request->slices) {
      spec.topology->slices.push_back({slice.level, slice.size});
    }
  }
  return spec;
}

engine::WorkloadSpec to_workload(const kube::Workload& workload, const ObjectLookup& lookup) {
  engine::WorkloadSpec spec;
  spec.key = WorkloadKey{workload.meta.ns, workload.meta.name};
  spec.uid = workload.meta.uid;
  if (const kube::OwnerReference* owner = workload.meta.controller_owner()) {
    spec.owner_uid = owner->uid;
  }
  spec.queue_name = workload.queue_name;
  spec.priority = workload.priority.value_or(0);
  spec.created = queue_time(workload);
  spec.active = workload.active;
  for (const kube::WorkloadPodSet& pod_set : workload.pod_sets) {
    engine::PodSetSpec& added =
        spec.pod_sets.edit().emplace_back(to_pod_set(workload.meta.ns, pod_set, lookup));
    const auto reclaimable = workload.reclaimable_pods.find(pod_set.name);
    if (reclaimable != workload.reclaimable_pods.end()) {
      added.reclaimable = std::min(reclaimable->second, added.count);
    }
  }
  spec.protection = to_protection(workload.meta);
  spec.last_checkpoint = instant_of(workload.meta, kLastCheckpointAnnotation);
  spec.requeue_at = workload.requeue_at;
  spec.evicted_at = time_of(kube::find_condition(workload.conditions, "Evicted"));
  const kube::Condition* preempted = kube::find_condition(workload.conditions, "Preempted");
  spec.preempted_at = time_of(preempted);
  if (preempted != nullptr && preempted->status == "True") {
    spec.preempted_for = uid_in(preempted->message);
  }
  spec.finished = kube::is_true(workload.conditions, "Finished");

  const kube::Condition* reserved = kube::find_condition(workload.conditions, "QuotaReserved");
  if (reserved == nullptr || reserved->status != "True" || !workload.admission) return spec;
  engine::Admission admission;
  admission.cluster_queue = ClusterQueueName(workload.admission->cluster_queue);
  for (const engine::PodSetSpec& pod_set : spec.pod_sets) {
    for (const kube::PodSetAssignment& stored : workload.admission->pod_sets) {
      if (stored.name == pod_set.name.value()) {
        admission.pod_sets.push_back(to_assignment(stored, pod_set.count, lookup));
      }
    }
  }
  spec.admission = std::move(admission);
  spec.admitted = kube::is_true(workload.conditions, "Admitted");
  spec.quota_reserved_at = reserved->last_transition;
  spec.evicted = kube::is_true(workload.conditions, "Evicted");
  return spec;
}

engine::Protection to_protection(const kube::ObjectMeta& meta) {
  engine::Protection protection;
  if (const std::string* word = meta.find_label(kPreemptibleLabel)) {
    if (*word == "true") protection.preemptible = true;
    if (*word == "false") protection.preemptible = false;
  }
  protection.min_runtime = duration_of(meta, kMinRuntimeAnnotation);
  protection.checkpoint_grace = duration_of(meta, kCheckpointGraceAnnotation);
  return protection;
}

void add_protection(engine::WorkloadSpec& spec, const kube::ObjectMeta* owner,
                    const engine::Protection& priority_class) {
  if (owner != nullptr) {
    spec.protection = to_protection(*owner).or_else(spec.protection);
    if (const auto at = instant_of(*owner, kLastCheckpointAnnotation)) spec.last_checkpoint = at;
  }
  spec.protection = spec.protection.or_else(priority_class);
}

Quantity to_quantity(const ResourceName& resource, Amount amount) {
  return Quantity::parse(format_amount(resource, amount)).value_or(Quantity());
}

kube::WorkloadAdmission to_admission(const engine::Admission& admission,
                                     const ObjectLookup& lookup) {
  kube::WorkloadAdmission result;
  result.cluster_queue = admission.cluster_queue.value();
  for (const engine::PodSetAssignment& assignment : admission.pod_sets) {
    kube::PodSetAssignment& out = result.pod_sets.emplace_back();
    out.name = assignment.name.value();
    for (const auto& [resource, flavor] : assignment.flavors) {
      out.flavors.emplace(resource, flavor.value());
    }
    for (const auto& [resource, amount] : assignment.usage) {
      out.resource_usage.emplace(resource, to_quantity(resource, amount));
    }
    out.count = assignment.count;
    if (assignment.nodes.empty()) continue;
    kube::TopologyAssignment topology;
    topology.levels = {kHostnameLabel};
    for (const engine::NodeCount& slot : assignment.nodes) {
      topology.domains.push_back(
          kube::TopologyDomain{{lookup.hostname_of_node(slot.node)}, slot.count});
    }
    out.topology = std::move(topology);
  }
  return result;
}

}  // namespace muster::controller

// The queueing kinds other than Workload, v1beta2 and v1beta1.

#include "kube/codec/object_parts.hpp"

namespace muster::kube {
namespace {

QuotaEntry read_quota(const Reader& quota) {
  QuotaEntry result;
  result.resource = ResourceName(quota.get("name").string());
  result.nominal = quota.get("nominalQuota").quantity().value_or(Quantity());
  result.borrowing_limit = quota.get("borrowingLimit").quantity();
  result.lending_limit = quota.get("lendingLimit").quantity();
  return result;
}

std::vector<ResourceGroup> read_resource_groups(const Reader& groups) {
  std::vector<ResourceGroup> result;
  groups.each([&](const Reader& group) {
    ResourceGroup read;
    for (std::string& name : group.get("coveredResources").strings())
      read.covered_resources.emplace_back(std::move(name));
    const Reader flavors = group.get("flavors");
    flavors.each([&](const Reader& flavor) {
      FlavorQuotas quotas;
      quotas.flavor = flavor.get("name").string();
      const Reader resources = flavor.get("resources");
      resources.each(
          [&](const Reader& resource) { quotas.resources.push_back(read_quota(resource)); });
      read.flavors.push_back(std::move(quotas));
    });
    result.push_back(std::move(read));
  });
  return result;
}

std::optional<Quantity> read_fair_weight(const Reader& spec) {
  const Reader fair_sharing = spec.get("fairSharing");
  return fair_sharing.get("weight").quantity();
}

std::string read_stop_policy(const Reader& spec) {
  return spec.get("stopPolicy").word({"None", "Hold", "HoldAndDrain"});
}

/// v1beta1 names the act (Borrow, Preempt), v1beta2 its consequence.
std::string read_fungibility(const Reader& policy) {
  const std::string word = policy.word({"MayStopSearch", "TryNextFlavor", "Borrow", "Preempt"});
  return word == "Borrow" || word == "Preempt" ? "MayStopSearch" : word;
}

void read_preemption(const Reader& preemption, ClusterQueue& result) {
  result.within_cluster_queue = preemption.get("withinClusterQueue")
                                    .word({"Never", "LowerPriority", "LowerOrNewerEqualPriority"});
  result.reclaim_within_cohort =
      preemption.get("reclaimWithinCohort").word({"Never", "LowerPriority", "Any"});
  const Reader borrow = preemption.get("borrowWithinCohort");
  result.borrow_within_cohort_policy = borrow.get("policy").word({"Never", "LowerPriority"});
  result.borrow_max_priority_threshold = borrow.get("maxPriorityThreshold").priority();
}

std::vector<std::string> read_admission_checks(const Reader& spec) {
  std::vector<std::string> result = spec.get("admissionChecks").strings();  // v1beta1 only.
  const Reader strategy = spec.get("admissionChecksStrategy");
  const Reader checks = strategy.get("admissionChecks");
  checks.each([&](const Reader& check) { result.push_back(check.get("name").string()); });
  return result;
}

}  // namespace

Result<ResourceFlavor> decode_resource_flavor(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    ResourceFlavor result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    result.node_labels = spec.get("nodeLabels").string_map();
    const Reader taints = spec.get("nodeTaints");
    result.node_taints = read_taints(taints);
    const Reader tolerations = spec.get("tolerations");
    result.tolerations = read_tolerations(tolerations);
    result.topology_name = spec.get("topologyName").string();
    return result;
  });
}

Result<ClusterQueue> decode_cluster_queue(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    ClusterQueue result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    const Reader groups = spec.get("resourceGroups");
    result.resource_groups = read_resource_groups(groups);
    result.cohort = spec.get("cohortName").string();
    if (result.cohort.empty()) result.cohort = spec.get("cohort").string();
    result.queueing_strategy = spec.get("queueingStrategy").word({"StrictFIFO", "BestEffortFIFO"});
    const Reader selector = spec.get("namespaceSelector");
    if (!selector.missing()) result.namespace_selector = read_label_selector(selector);
    const Reader fungibility = spec.get("flavorFungibility");
    const Reader when_can_borrow = fungibility.get("whenCanBorrow");
    const Reader when_can_preempt = fungibility.get("whenCanPreempt");
    result.when_can_borrow = read_fungibility(when_can_borrow);
    result.when_can_preempt = read_fungibility(when_can_preempt);
    result.fungibility_preference =
        fungibility.get("preference").word({"BorrowingOverPreemption", "PreemptionOverBorrowing"});
    const Reader preemption = spec.get("preemption");
    read_preemption(preemption, result);
    result.admission_checks = read_admission_checks(spec);
    result.stop_policy = read_stop_policy(spec);
    result.fair_weight = read_fair_weight(spec);
    const Reader scope = spec.get("admissionScope");
    result.admission_mode = scope.get("admissionMode")
                                .word({"UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"});
    const Reader status = root.get("status");
    const Reader conditions = status.get("conditions");
    result.conditions = read_conditions(conditions);
    return result;
  });
}

Result<Cohort> decode_cohort(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    Cohort result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    result.parent = spec.get("parentName").string();
    const Reader groups = spec.get("resourceGroups");
    result.resource_groups = read_resource_groups(groups);
    result.fair_weight = read_fair_weight(spec);
    return result;
  });
}

Result<LocalQueue> decode_local_queue(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    LocalQueue result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    result.cluster_queue = spec.get("clusterQueue").string();
    result.stop_policy = read_stop_policy(spec);
    result.fair_weight = read_fair_weight(spec);
    const Reader status = root.get("status");
    const Reader conditions = status.get("conditions");
    result.conditions = read_conditions(conditions);
    const Reader sharing = status.get("fairSharing");
    const Reader consumed = sharing.get("admissionFairSharingStatus");
    if (const auto at = consumed.get("lastUpdate").time()) {
      result.consumed = ConsumedResources{consumed.get("consumedResources").quantities(), *at};
    }
    return result;
  });
}

Result<Topology> decode_topology(const Json& object) {
  return decode_with(object, [](const Reader& root) {
    Topology result;
    result.meta = read_meta(root);
    const Reader spec = root.get("spec");
    const Reader levels = spec.get("levels");
    levels.each(
        [&](const Reader& level) { result.levels.push_back(level.get("nodeLabel").string()); });
    return result;
  });
}

}  // namespace muster::kube

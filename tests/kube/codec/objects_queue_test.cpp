#include "kube/codec/objects.hpp"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

Json parsed(std::string_view text) {
  const Result<Json> json = Json::parse(text);
  EXPECT_TRUE(json) << text << ": " << (json ? "" : json.error().message);
  return json.value_or(Json());
}

Json with_spec(std::string_view spec) {
  return Json::object({{"spec", parsed(spec)}});
}

TEST(DecodeClusterQueue, ReadsTheStoredVersion) {
  const ClusterQueue queue = decode_cluster_queue(parsed(R"({
    "metadata":{"name":"q"},
    "spec":{"cohortName":"org","queueingStrategy":"StrictFIFO","namespaceSelector":{},
      "stopPolicy":"Hold",
      "flavorFungibility":{"whenCanBorrow":"TryNextFlavor","whenCanPreempt":"MayStopSearch",
                           "preference":"PreemptionOverBorrowing"},
      "preemption":{"withinClusterQueue":"LowerPriority","reclaimWithinCohort":"Any",
                    "borrowWithinCohort":{"policy":"LowerPriority","maxPriorityThreshold":-7}},
      "admissionChecksStrategy":{"admissionChecks":[{"name":"c1","onFlavors":["f"]},{"name":"c2"}]},
      "fairSharing":{"weight":"1500m"},
      "resourceGroups":[{"coveredResources":["cpu","nvidia.com/gpu"],
        "flavors":[{"name":"f","resources":[
          {"name":"cpu","nominalQuota":"10"},
          {"name":"nvidia.com/gpu","nominalQuota":8,"borrowingLimit":"0","lendingLimit":"4"}]}]}]},
    "status":{"conditions":[{"type":"Active","status":"True"}]}})"))
                                 .value();
  EXPECT_EQ(queue.cohort, "org");
  EXPECT_EQ(queue.queueing_strategy, "StrictFIFO");
  ASSERT_TRUE(queue.namespace_selector);
  EXPECT_EQ(queue.stop_policy, "Hold");
  EXPECT_EQ(queue.when_can_borrow, "TryNextFlavor");
  EXPECT_EQ(queue.when_can_preempt, "MayStopSearch");
  EXPECT_EQ(queue.fungibility_preference, "PreemptionOverBorrowing");
  EXPECT_EQ(queue.within_cluster_queue, "LowerPriority");
  EXPECT_EQ(queue.reclaim_within_cohort, "Any");
  EXPECT_EQ(queue.borrow_within_cohort_policy, "LowerPriority");
  EXPECT_EQ(queue.borrow_max_priority_threshold, -7);
  EXPECT_EQ(queue.admission_checks, (std::vector<std::string>{"c1", "c2"}));
  EXPECT_EQ(queue.fair_weight->to_string(), "1500m");
  ASSERT_EQ(queue.resource_groups.size(), 1U);
  EXPECT_EQ(queue.resource_groups[0].covered_resources[1].value(), "nvidia.com/gpu");
  const QuotaEntry& gpu = queue.resource_groups[0].flavors[0].resources[1];
  EXPECT_EQ(gpu.nominal.units_ceil(), 8);
  EXPECT_TRUE(gpu.borrowing_limit->is_zero());
  EXPECT_EQ(gpu.lending_limit->units_ceil(), 4);
  // An absent limit is absent, not zero.
  EXPECT_FALSE(queue.resource_groups[0].flavors[0].resources[0].borrowing_limit);
  EXPECT_TRUE(is_true(queue.conditions, "Active"));
}

TEST(DecodeClusterQueue, ReadsTheOlderVersion) {
  const ClusterQueue queue =
      decode_cluster_queue(with_spec(R"({"cohort":"org","admissionChecks":["c1"],
        "flavorFungibility":{"whenCanBorrow":"Borrow","whenCanPreempt":"Preempt"}})"))
          .value();
  EXPECT_EQ(queue.cohort, "org");
  EXPECT_EQ(queue.admission_checks, std::vector<std::string>{"c1"});
  EXPECT_EQ(queue.when_can_borrow, "MayStopSearch");
  EXPECT_EQ(queue.when_can_preempt, "MayStopSearch");
}

TEST(DecodeClusterQueue, TellsNoSelectorFromAnEmptyOne) {
  EXPECT_FALSE(decode_cluster_queue(with_spec("{}"))->namespace_selector);
  EXPECT_FALSE(
      decode_cluster_queue(with_spec(R"({"namespaceSelector":null})"))->namespace_selector);
  const ClusterQueue some =
      decode_cluster_queue(with_spec(R"({"namespaceSelector":{"matchLabels":{"a":"b"},
          "matchExpressions":[{"key":"k","operator":"DoesNotExist"}]}})"))
          .value();
  EXPECT_TRUE(matches(*some.namespace_selector, {{"a", "b"}}));
  EXPECT_FALSE(matches(*some.namespace_selector, {{"a", "b"}, {"k", ""}}));
}

TEST(DecodeClusterQueue, NamesTheFieldThatIsWrong) {
  const struct {
    const char* spec;
    const char* message;
  } cases[] = {
      {R"({"queueingStrategy":"LIFO"})",
       "spec.queueingStrategy: got string \"LIFO\", want one of StrictFIFO, BestEffortFIFO"},
      {R"({"stopPolicy":"hold"})",
       "spec.stopPolicy: got string \"hold\", want one of None, Hold, HoldAndDrain"},
      {R"({"resourceGroups":[{"flavors":[{"resources":[{},{"nominalQuota":"many"}]}]}]})",
       "spec.resourceGroups[0].flavors[0].resources[1].nominalQuota: bad quantity \"many\" (want "
       "e.g. \"500m\", \"2\", \"1.5Gi\")"},
      {R"({"resourceGroups":[{"coveredResources":["cpu",3]}]})",
       "spec.resourceGroups[0].coveredResources[1]: got 3, want a string"},
      {R"({"preemption":{"reclaimWithinCohort":"Always"}})",
       "spec.preemption.reclaimWithinCohort: got string \"Always\", want one of Never, "
       "LowerPriority, Any"},
      {R"({"preemption":{"borrowWithinCohort":{"maxPriorityThreshold":"1"}}})",
       "spec.preemption.borrowWithinCohort.maxPriorityThreshold: got string \"1\", want an integer "
       "from -2147483648 to 2147483647"},
      {R"({"namespaceSelector":{"matchLabels":[]}})",
       "spec.namespaceSelector.matchLabels: got an array, want an object"},
      {R"({"admissionChecksStrategy":{"admissionChecks":{"name":"x"}}})",
       "spec.admissionChecksStrategy.admissionChecks: got an object, want an array"},
      {R"({"fairSharing":{"weight":true}})", "spec.fairSharing.weight: got true, want a quantity"},
  };
  for (const auto& each : cases) {
    const Result<ClusterQueue> queue = decode_cluster_queue(with_spec(each.spec));
    ASSERT_FALSE(queue) << each.spec;
    EXPECT_EQ(queue.error().message, each.message);
  }
}

TEST(DecodeCohort, ReadsParentQuotaAndWeight) {
  const Cohort cohort =
      decode_cohort(with_spec(R"({"parentName":"root","fairSharing":{"weight":"2"},
        "resourceGroups":[{"flavors":[{"name":"f","resources":[{"name":"cpu","nominalQuota":"1"}]}]}]})"))
          .value();
  EXPECT_EQ(cohort.parent, "root");
  EXPECT_EQ(cohort.fair_weight->units_ceil(), 2);
  EXPECT_EQ(cohort.resource_groups[0].flavors[0].flavor, "f");
}

TEST(DecodeLocalQueue, ReadsItsClusterQueue) {
  const LocalQueue queue =
      decode_local_queue(with_spec(R"({"clusterQueue":"q","stopPolicy":"HoldAndDrain"})")).value();
  EXPECT_EQ(queue.cluster_queue, "q");
  EXPECT_EQ(queue.stop_policy, "HoldAndDrain");
  EXPECT_EQ(decode_local_queue(with_spec(R"({"clusterQueue":["q"]})")).error().message,
            "spec.clusterQueue: got an array, want a string");
}

TEST(DecodeLocalQueue, ReadsWhatItConsumed) {
  const LocalQueue queue =
      decode_local_queue(Json::parse(R"({"metadata":{"name":"main","namespace":"team"},
        "spec":{"clusterQueue":"q","fairSharing":{"weight":2}},
        "status":{"fairSharing":{"admissionFairSharingStatus":{
          "consumedResources":{"cpu":"1500m"},"lastUpdate":"2026-01-01T00:00:00Z"}}}})")
                             .value())
          .value();
  EXPECT_EQ(queue.fair_weight->units_ceil(), 2);
  ASSERT_TRUE(queue.consumed.has_value());
  EXPECT_EQ(queue.consumed->amounts.at(ResourceName("cpu")).millis_ceil(), 1500);
  EXPECT_EQ(format_rfc3339(queue.consumed->last_update), "2026-01-01T00:00:00Z");
}

TEST(DecodeResourceFlavor, ReadsLabelsTaintsAndTopology) {
  const ResourceFlavor flavor =
      decode_resource_flavor(with_spec(R"({"nodeLabels":{"gpu":"h100"},"topologyName":"dc",
        "nodeTaints":[{"key":"spot","value":"true","effect":"NoSchedule"}],
        "tolerations":[{"key":"spot","operator":"Exists"}]})"))
          .value();
  EXPECT_EQ(flavor.node_labels.at("gpu"), "h100");
  EXPECT_EQ(flavor.topology_name, "dc");
  EXPECT_TRUE(tolerates(flavor.tolerations.at(0), flavor.node_taints.at(0)));
  EXPECT_EQ(decode_resource_flavor(with_spec("{}"))->topology_name, "");
}

TEST(DecodeTopology, ReadsLevelsWidestFirst) {
  const Topology topology =
      decode_topology(
          with_spec(R"({"levels":[{"nodeLabel":"rack"},{"nodeLabel":"kubernetes.io/hostname"}]})"))
          .value();
  EXPECT_EQ(topology.levels, (std::vector<std::string>{"rack", "kubernetes.io/hostname"}));
  EXPECT_EQ(decode_topology(with_spec(R"({"levels":["rack"]})")).error().message,
            "spec.levels[0]: got string \"rack\", want an object");
}

}  // namespace
}  // namespace muster::kube

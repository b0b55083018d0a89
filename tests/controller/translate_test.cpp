#include "controller/translate.hpp"

#include "controller/workload_object.hpp"
#include "tests/controller/model_api.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster::controller::testing {
namespace {

using kube::Json;

ObjectLookup lookup() {
  return ObjectLookup{
      .node_of_hostname = [](const std::string& hostname) -> std::optional<NodeName> {
        if (!hostname.starts_with("host-")) return std::nullopt;
        return NodeName(hostname.substr(5));
      },
      .hostname_of_node = [](const NodeName& node) { return "host-" + node.value(); },
      .flavor_has_topology = [](const FlavorName& flavor) { return flavor.value() == "tas"; }};
}

template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result.value_or(T{});
}

TEST(Translate, FlavorCapacityComesFromItsAnnotationElseFromTheDefault) {
  const auto flavor = [](const std::string& annotations) {
    return to_flavor(
               must(kube::decode_resource_flavor(json(fmt::format(
                   R"({{"metadata":{{"name":"f","annotations":{}}},"spec":{{}}}})", annotations)))),
               engine::Capacity::kElastic)
        .capacity;
  };
  EXPECT_EQ(flavor(R"({"muster.dev/capacity":"fixed"})"), engine::Capacity::kFixed);
  EXPECT_EQ(flavor(R"({"muster.dev/capacity":"elastic"})"), engine::Capacity::kElastic);
  EXPECT_EQ(flavor(R"({"muster.dev/capacity":"?"})"), engine::Capacity::kElastic);
  EXPECT_EQ(flavor("{}"), engine::Capacity::kElastic);
}

TEST(Translate, QuotasAndPoliciesOfAClusterQueue) {
  const auto spec = to_cluster_queue(must(kube::decode_cluster_queue(json(R"({
    "metadata":{"name":"q"},
    "spec":{"cohortName":"org","queueingStrategy":"StrictFIFO","stopPolicy":"HoldAndDrain",
      "namespaceSelector":{},
      "preemption":{"withinClusterQueue":"LowerOrNewerEqualPriority","reclaimWithinCohort":"Any",
        "borrowWithinCohort":{"policy":"LowerPriority","maxPriorityThreshold":100}},
      "flavorFungibility":{"whenCanBorrow":"TryNextFlavor","whenCanPreempt":"TryNextFlavor",
        "preference":"PreemptionOverBorrowing"},
      "fairSharing":{"weight":"1500m"},
      "admissionScope":{"admissionMode":"UsageBasedAdmissionFairSharing"},
      "resourceGroups":[{"coveredResources":["cpu","nvidia.com/gpu"],"flavors":[{"name":"f",
        "resources":[{"name":"cpu","nominalQuota":"1500m","borrowingLimit":"2"},
                     {"name":"nvidia.com/gpu","nominalQuota":8,"lendingLimit":4}]}]}]}})"))));
  EXPECT_EQ(spec.quota.cohort, CohortName("org"));
  EXPECT_EQ(spec.strategy, engine::QueueingStrategy::kStrictFifo);
  EXPECT_EQ(spec.stop_policy, engine::StopPolicy::kHoldAndDrain);
  EXPECT_TRUE(spec.namespace_selector.has_value());
  EXPECT_EQ(spec.preemption.within_cluster_queue,
            engine::PreemptionPolicy::kLowerOrNewerEqualPriority);
  EXPECT_EQ(spec.preemption.reclaim_within_cohort, engine::PreemptionPolicy::kAny);
  EXPECT_EQ(spec.preemption.borrow_within_cohort.max_priority_threshold, 100);
  EXPECT_EQ(spec.fungibility.preference,
            engine::FungibilitySpec::Preference::kPreemptionOverBorrowing);
  EXPECT_EQ(spec.quota.fair_weight.nanos, 1'500'000'000);
  EXPECT_TRUE(spec.usage_based);
  const auto& quotas = spec.quota.resource_groups.at(0).flavors.at(0).resources;
  EXPECT_EQ(quotas.at(ResourceName("cpu")).nominal, Amount(1500));
  EXPECT_EQ(quotas.at(ResourceName("cpu")).borrowing_limit, Amount(2000));
  EXPECT_FALSE(quotas.at(ResourceName("cpu")).lending_limit);
  EXPECT_EQ(quotas.at(ResourceName("nvidia.com/gpu")).lending_limit, Amount(4));
}

TEST(Translate, WhatALocalQueueConsumedComesBackAsItWasWritten) {
  const auto object = json(R"({
    "metadata":{"name":"main","namespace":"team"},
    "spec":{"clusterQueue":"q","fairSharing":{"weight":"250m"}},
    "status":{"fairSharing":{"weightedShare":0,"admissionFairSharingStatus":{
      "consumedResources":{"cpu":"1171572875n","memory":"123456789012345678","nvidia.com/gpu":"3"},
      "lastUpdate":"2026-01-01T00:00:00Z"}}}})");
  const auto spec = to_local_queue(must(kube::decode_local_queue(object)));
  EXPECT_EQ(spec.fair_weight.nanos, 250'000'000);
  ASSERT_TRUE(spec.consumed.has_value());
  EXPECT_EQ(spec.consumed->amounts.at(ResourceName("nvidia.com/gpu")),
            quota::FineAmount(Amount(3)));
  EXPECT_EQ(to_consumed(*spec.consumed),
            object.get("status", "fairSharing", "admissionFairSharingStatus"))
      << to_consumed(*spec.consumed).dump();

  const auto without = json(R"({"metadata":{"name":"main","namespace":"team"},
    "spec":{"clusterQueue":"q"},"status":{"fairSharing":{"weightedShare":0}}})");
  const auto fresh = to_local_queue(must(kube::decode_local_queue(without)));
  EXPECT_EQ(fresh.fair_weight, quota::FairWeight{});
  EXPECT_FALSE(fresh.consumed.has_value());
}

TEST(Translate, RequestsOfAPodSetFollowDefaultsForNodesAndRulesForQuota) {
  RequestDefaults defaults;
  ASSERT_TRUE(defaults.upsert_limit_range(
      Namespace("ns"), "l",
      json(R"({"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"2"}}]}})")));
  kube::ResourceRules rules;
  rules.exclude_prefixes = {"example.com/"};
  ObjectLookup known = lookup();
  known.request_defaults = &defaults;
  known.resource_rules = &rules;
  const auto workload = must(kube::decode_workload(json(R"({"metadata":{"name":"w",
    "namespace":"ns"},"spec":{"podSets":[{"name":"main","count":3,
    "topologyRequest":{"podSetGroupName":"g"},"template":{"spec":{"containers":[
      {"name":"c","resources":{"requests":{"example.com/foo":"500m"}}}]}}}]},
    "status":{"reclaimablePods":[{"name":"main","count":5},{"name":"other","count":1}]}})")));
  const auto pod_set = to_workload(workload, known).pod_sets[0];
  EXPECT_EQ(pod_set.quota_requests, (ResourceList{{ResourceName("cpu"), Amount(2000)}}));
  EXPECT_EQ(pod_set.node_requests, (ResourceList{{ResourceName("cpu"), Amount(2000)},
                                                 {ResourceName("example.com/foo"), Amount(1)},
                                                 {ResourceName("pods"), Amount(1)}}));
  EXPECT_EQ(pod_set.reclaimable, 3);  // Never more than there are.
  EXPECT_EQ(pod_set.pods_left(), 0);
  EXPECT_EQ(pod_set.group, "g");
  EXPECT_FALSE(pod_set.topology.has_value());
}

TEST(Translate, APodTakesRoomWhileBoundOrNominatedAndNotTerminal) {
  struct Case {
    const char* sentence;
    const char* pod;
    const char* node;  // empty: no room
    bool nominated;
  };
  const Case cases[] = {
      {"an unbound pod takes none", R"({"spec":{},"status":{"phase":"Pending"}})", "", false},
      {"a bound pod takes its node's", R"({"spec":{"nodeName":"n"},"status":{}})", "n", false},
      {"a nominated pod counts there", R"({"spec":{},"status":{"nominatedNodeName":"m"}})", "m",
       true},
      {"a bound pod is where it is bound, whatever was nominated",
       R"({"spec":{"nodeName":"n"},"status":{"nominatedNodeName":"m"}})", "n", false},
      {"a succeeded pod takes none", R"({"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}})",
       "", false},
      {"a failed pod takes none", R"({"spec":{"nodeName":"n"},"status":{"phase":"Failed"}})", "",
       false},
  };
  for (const Case& c : cases) {
    const Json object =
        kube::merge_patch(json(R"({"metadata":{"name":"p","namespace":"ns","uid":"u"},
                                   "spec":{"containers":[{"name":"c"}]}})"),
                          json(c.pod));
    const auto use = to_pod_use(must(kube::decode_pod(object)));
    EXPECT_EQ(use ? use->node.value() : "", c.node) << c.sentence;
    EXPECT_EQ(use && use->nominated, c.nominated) << c.sentence;
  }
}

TEST(Translate, MembersAreKnownByTheirControllerAndPlainPodsByThemselves) {
  const auto member = [](const std::string& metadata, const std::string& spec) {
    return member_uid(must(kube::decode_pod(json(fmt::format(
                          R"({{"metadata":{{"name":"p","uid":"own",{}
        "ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"owner",
                             "controller":true}}]}},
        "spec":{{"containers":[{{"name":"c"}}]{}}}}})",
                          metadata, spec)))))
        .value();
  };
  EXPECT_EQ(member("", ""), "owner");
  EXPECT_EQ(member("", R"(,"schedulingGates":[{"name":"kueue.x-k8s.io/admission"}])"), "own");
  EXPECT_EQ(member(R"("labels":{"kueue.x-k8s.io/managed":"true"},)", ""), "own");
}

TEST(Translate, AnAdmissionSurvivesTheWayToTheApiAndBack) {
  engine::Admission admission;
  admission.cluster_queue = ClusterQueueName("q");
  engine::PodSetAssignment assignment;
  assignment.name = PodSetName("main");
  assignment.count = 5;
  assignment.flavors = {{ResourceName("cpu"), FlavorName("tas")},
                        {ResourceName("memory"), FlavorName("tas")}};
  assignment.usage = {{ResourceName("cpu"), Amount(7500)},
                      {ResourceName("memory"), Amount(5LL << 30)}};
  assignment.nodes = {{NodeName("b"), 2}, {NodeName("a"), 3}};  // slot order, not name order
  assignment.topology = true;
  admission.pod_sets = {assignment};

  const Json status = Json::object(
      {{"admission", kube::encode_admission(to_admission(admission, lookup()))},
       {"conditions", json(R"([{"type":"QuotaReserved","status":"True","reason":"QuotaReserved",
          "message":"","lastTransitionTime":"2026-11-29T16:00:00Z"}])")}});
  const Json object = json(R"({"metadata":{"name":"w","namespace":"ns","uid":"u"},
    "spec":{"queueName":"lq","podSets":[{"name":"main","count":5,"template":{"spec":{
      "containers":[{"name":"c","resources":{"requests":{"cpu":"1500m","memory":"1Gi"}}}]}}}]}})")
                          .with("status", status);
  const auto spec = to_workload(must(kube::decode_workload(object)), lookup());
  ASSERT_TRUE(spec.admission);
  EXPECT_EQ(*spec.admission, admission);
  EXPECT_FALSE(spec.admitted);
  EXPECT_EQ(*spec.quota_reserved_at, *parse_rfc3339("2026-11-29T16:00:00Z"));
  EXPECT_EQ(spec.pod_sets[0].quota_requests.at(ResourceName("cpu")), Amount(1500));
  EXPECT_EQ(spec.pod_sets[0].node_requests.at(ResourceName("pods")), Amount(1));
}

TEST(Translate, AnEvictionCountsOnlyWhileQuotaIsReserved) {
  const auto spec = [](const std::string& reserved) {
    return to_workload(must(kube::decode_workload(json(fmt::format(R"({{
      "metadata":{{"name":"w","namespace":"ns","uid":"u"}},
      "spec":{{"podSets":[{{"name":"main","count":1,"template":{{"spec":{{"containers":[
        {{"name":"c"}}]}}}}}}]}},
      "status":{{"admission":{{"clusterQueue":"q","podSetAssignments":[{{"name":"main"}}]}},
        "conditions":[
          {{"type":"QuotaReserved","status":"{}","reason":"R","message":"",
            "lastTransitionTime":"2026-11-29T16:00:00Z"}},
          {{"type":"Evicted","status":"True","reason":"Preempted","message":"",
            "lastTransitionTime":"2026-11-29T16:00:00Z"}}]}}}})",
                                                                   reserved)))),
                       lookup());
  };
  EXPECT_TRUE(spec("True").evicted);
  EXPECT_TRUE(spec("True").admission);
  EXPECT_FALSE(spec("False").evicted);
  EXPECT_FALSE(spec("False").admission);
}

TEST(Priority, IsTakenFromTheFirstPlaceThatSaysIt) {
  PriorityTable table;
  table.workload_classes = {{"gold", 70}};
  table.pod_classes = {{"high", 500}, {"muster-managed", 1'000'000'000}, {"base", 5}};
  struct Case {
    const char* sentence;
    LabelMap labels;
    LabelMap annotations;  // of the template
    const char* pod_class;
    bool with_default;
    std::int64_t value;
    const char* name;
    bool missing;
  };
  const std::vector<Case> cases = {
      {"the WorkloadPriorityClass label wins",
       {{"kueue.x-k8s.io/priority-class", "gold"}},
       {},
       "high",
       true,
       70,
       "gold",
       false},
      {"one that does not exist is missing",
       {{"kueue.x-k8s.io/priority-class", "x"}},
       {},
       "high",
       true,
       0,
       "x",
       true},
      {"else the pod's class", {}, {}, "high", true, 500, "high", false},
      {"else the cluster's default", {}, {}, "", true, 5, "base", false},
      {"else nothing", {}, {}, "", false, 0, "", false},
      {"a replaced class is found in the annotation",
       {},
       {{"muster.dev/priority-class", "high"}},
       "muster-managed",
       true,
       500,
       "high",
       false},
      {"replaced where there was none: the default",
       {},
       {{"muster.dev/priority-class", ""}},
       "muster-managed",
       true,
       5,
       "base",
       false},
      {"our own class by itself says nothing", {}, {}, "muster-managed", false, 0, "", false},
  };
  for (const Case& c : cases) {
    PriorityTable with = table;
    if (c.with_default) with.default_pod_classes = {{"base", 5}};
    kube::ObjectMeta owner;
    owner.labels = c.labels;
    const ResolvedPriority priority = resolve_priority(owner, c.annotations, c.pod_class, with);
    EXPECT_EQ(priority.value, c.value) << c.sentence;
    EXPECT_EQ(priority.name, c.name) << c.sentence;
    EXPECT_EQ(priority.missing, c.missing) << c.sentence;
  }
}

TEST(WorkloadObject, OfAJobIsWhatTheDecoderReads) {
  const auto job = must(kube::decode_job(json(R"({
    "metadata":{"name":"train","namespace":"ns","uid":"u-1",
                "labels":{"kueue.x-k8s.io/queue-name":"lq"}},
    "spec":{"parallelism":4,"completions":3,"template":{
      "metadata":{"creationTimestamp":null,
                  "annotations":{"kueue.x-k8s.io/podset-required-topology":"rack"}},
      "spec":{"containers":[{"name":"c","x":{"unknown":[1,{"deep":true}]}}]}}}})")));
  const Json object = workload_for_job(job, {});
  const auto workload = must(kube::decode_workload(object));
  EXPECT_TRUE(workload.meta.name.starts_with("job-train-"));
  EXPECT_EQ(workload.meta.name.size(), std::string("job-train-").size() + 5);
  EXPECT_EQ(workload.queue_name, "lq");
  EXPECT_EQ(workload.priority, 0);
  ASSERT_NE(workload.meta.controller_owner(), nullptr);
  EXPECT_EQ(workload.meta.controller_owner()->uid, Uid("u-1"));
  EXPECT_EQ(*workload.meta.find_label("kueue.x-k8s.io/job-uid"), "u-1");
  ASSERT_EQ(workload.pod_sets.size(), 1U);
  EXPECT_EQ(workload.pod_sets[0].count, 3);  // min(parallelism, completions)
  EXPECT_EQ(workload.pod_sets[0].topology_request->required, "rack");
  const Json pod_template = object.get("spec", "podSets").at(0).get("template");
  EXPECT_FALSE(pod_template.get("metadata", "creationTimestamp").present());
  EXPECT_TRUE(pod_template.get("spec", "containers")
                  .at(0)
                  .get("x", "unknown")
                  .at(1)
                  .get("deep")
                  .bool_or(false));
}

TEST(WorkloadObject, NamesFitAndTellOwnersOfOneNameApart) {
  EXPECT_EQ(workload_name("Job", "a", Uid("1")), workload_name("Job", "a", Uid("1")));
  EXPECT_NE(workload_name("Job", "a", Uid("1")), workload_name("Job", "a", Uid("2")));
  EXPECT_EQ(workload_name("Job", std::string(253, 'x'), Uid("1")).size(), 253U);
}

}  // namespace
}  // namespace muster::controller::testing

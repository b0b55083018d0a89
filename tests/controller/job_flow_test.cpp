// Jobs from creation to their end, against the model API.

#include "engine/state.hpp"
#include "tests/controller/cluster.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace muster::controller::testing {
namespace {

using kube::Json;
using ::testing::IsEmpty;

constexpr const char* kReclaim = R"({"reclaimWithinCohort": "Any"})";

TEST(JobFlow, AOneNodeJobCostsFourWritesOfOurs) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("a"), 1);
  cluster.api.finish_pods("team", "a");
  ASSERT_TRUE(cluster.settle());

  EXPECT_TRUE(cluster.is_true("a", "Finished"));
  EXPECT_EQ(cluster.writes(WriteKind::kCreateWorkload), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kAdmit), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kResume), 1);
  EXPECT_EQ(cluster.writes(WriteKind::kFinish), 1);
  EXPECT_EQ(cluster.workload_writes(), 4);
  EXPECT_THAT(cluster.api.events(), IsEmpty());
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, AGangStartsOnItsPlannedNodesAndASecondOneHasNoPodUntilItEnds) {
  Cluster cluster;
  cluster.add_nodes(5);
  cluster.add_flavor();
  cluster.add_queue("q", 1000);
  cluster.add_job("first", 4, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("second", 4, "q");
  ASSERT_TRUE(cluster.settle());

  EXPECT_EQ(cluster.bound_pods("first"), 4);
  EXPECT_EQ(cluster.pods("second"), 0);
  EXPECT_TRUE(cluster.suspended("second"));
  const kube::Workload waiting = cluster.workload_of("second");
  const kube::Condition* reserved = kube::find_condition(waiting.conditions, "QuotaReserved");
  ASSERT_NE(reserved, nullptr);
  EXPECT_EQ(reserved->status, "False");
  EXPECT_EQ(reserved->reason, "TopologyPlacementFailed");

  cluster.api.finish_pods("team", "first");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("second"), 4);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, AFloodOfPendingJobsIsWrittenDownBitByBitAndNotAtAllForThoseThatStart) {
  Cluster cluster;
  cluster.options.pending_burst = 4;
  cluster.options.pending_interval = std::chrono::minutes(10);
  cluster.restart();
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  for (int i = 0; i < 12; ++i) cluster.add_job(fmt::format("j-{:02}", i), 1, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.writes(WriteKind::kPending), 4);
  for (int i = 0; i < 11; ++i) {
    cluster.api.finish_pods("team", fmt::format("j-{:02}", i));
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.bound_pods(fmt::format("j-{:02}", i + 1)), 1);
  }
  EXPECT_EQ(cluster.writes(WriteKind::kPending), 4);

  for (int i = 12; i < 20; ++i) cluster.add_job(fmt::format("j-{:02}", i), 1, "q");
  for (int i = 0; i < 10; ++i) {
    cluster.pass_time(std::chrono::minutes(10));
    ASSERT_TRUE(cluster.settle());
  }
  for (int i = 12; i < 20; ++i) {
    const kube::Workload waiting = cluster.workload_of(fmt::format("j-{:02}", i));
    EXPECT_NE(kube::find_condition(waiting.conditions, "QuotaReserved"), nullptr) << i;
  }
}

TEST(JobFlow, TheWordsOfAPendingJobFollowWhatIsTrue) {
  Cluster cluster;
  cluster.add_flavor();
  cluster.add_queue("q", 80);
  cluster.add_job("a", 3, "q");
  ASSERT_TRUE(cluster.settle());
  const auto words = [&] {
    const kube::Workload waiting = cluster.workload_of("a");
    const kube::Condition* reserved = kube::find_condition(waiting.conditions, "QuotaReserved");
    return reserved == nullptr ? std::string() : reserved->message;
  };
  EXPECT_THAT(words(), ::testing::HasSubstr("room for 0 of 3 pods"));
  cluster.add_nodes(2);
  ASSERT_TRUE(cluster.settle());
  cluster.pass_time(std::chrono::seconds(30));
  ASSERT_TRUE(cluster.settle());
  EXPECT_THAT(words(), ::testing::HasSubstr("room for 2 of 3 pods"));
}

TEST(JobFlow, TheResumedTemplateCarriesPinsAndKeepsWhatTheUserWrote) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 2, "q");
  ASSERT_TRUE(cluster.settle());

  const Json pod_template = cluster.job("a").get("spec", "template");
  EXPECT_EQ(pod_template.get("metadata", "labels", "app").string_or(""), "a");
  EXPECT_EQ(pod_template.get("metadata", "labels", "kueue.x-k8s.io/podset").string_or(""), "main");
  EXPECT_EQ(pod_template.get("metadata", "annotations", "kueue.x-k8s.io/workload").string_or(""),
            cluster.workload_of("a").meta.name);
  EXPECT_EQ(pod_template.get("spec", "nodeSelector", "pool").string_or(""), "gpu");
  EXPECT_EQ(pod_template.get("spec", "tolerations").size(), 1U);
  const Json terms = pod_template.get("spec", "affinity", "nodeAffinity")
                         .get("requiredDuringSchedulingIgnoredDuringExecution")
                         .get("nodeSelectorTerms");
  ASSERT_EQ(terms.size(), 2U);  // one per planned node
  EXPECT_EQ(terms.at(0).get("matchFields").at(0).get("key").string_or(""), "metadata.name");

  // The plan in the status names hosts, the pins name nodes.
  const auto workload = cluster.workload_of("a");
  ASSERT_TRUE(workload.admission && workload.admission->pod_sets.at(0).topology);
  EXPECT_EQ(workload.admission->pod_sets.at(0).topology->levels,
            std::vector<std::string>{"kubernetes.io/hostname"});
  EXPECT_TRUE(
      workload.admission->pod_sets.at(0).topology->domains.at(0).values.at(0).starts_with("host-"));
}

TEST(JobFlow, AGuaranteedQueueTakesItsQuotaBackWholeGangAtATime) {
  Cluster cluster;
  cluster.add_nodes(4);
  cluster.add_flavor();
  cluster.add_queue("regular", 0, "org");
  cluster.add_queue("prod", 32, "org", kReclaim);
  cluster.add_job("borrower", 4, "regular");
  ASSERT_TRUE(cluster.settle());
  ASSERT_EQ(cluster.bound_pods("borrower"), 4);
  const Json before = cluster.workload_of("borrower").pod_sets.at(0).pod_template.raw;

  cluster.add_job("owner", 2, "prod");
  ASSERT_TRUE(cluster.settle());

  EXPECT_EQ(cluster.pods("borrower"), 0);
  EXPECT_EQ(cluster.bound_pods("owner"), 2);
  EXPECT_TRUE(cluster.suspended("borrower"));
  EXPECT_TRUE(cluster.job("borrower").get("spec", "template") == before);  // restored
  const kube::Workload victim = cluster.workload_of("borrower");
  const kube::Condition* preempted = kube::find_condition(victim.conditions, "Preempted");
  ASSERT_NE(preempted, nullptr);
  EXPECT_EQ(preempted->status, "True");
  EXPECT_EQ(preempted->reason, "InCohortReclamation");
  EXPECT_TRUE(cluster.is_true("borrower", "Requeued"));
  EXPECT_FALSE(victim.admission);
  ASSERT_EQ(cluster.api.events().size(), 1U);
  EXPECT_EQ(cluster.api.events()[0].get("reason").string_or(""), "Preempted");
  EXPECT_EQ(cluster.api.events()[0].get("involvedObject", "kind").string_or(""), "Job");

  cluster.api.finish_pods("team", "owner");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("borrower"), 4);
  EXPECT_FALSE(cluster.is_true("borrower", "Evicted"));
  EXPECT_FALSE(cluster.is_true("borrower", "Preempted"));
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, QuotaIsReleasedOnlyWhenTheLastPodIsGone) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("regular", 0, "org");
  cluster.add_queue("prod", 16, "org", kReclaim);
  cluster.add_job("borrower", 2, "regular");
  ASSERT_TRUE(cluster.settle());
  cluster.api.grace_steps = 40;
  cluster.add_job("owner", 2, "prod");
  for (int i = 0; i < 30; ++i) cluster.step();
  // Suspended, no pod active any more, but both still shut down on their nodes.
  EXPECT_TRUE(cluster.suspended("borrower"));
  EXPECT_EQ(cluster.job("borrower").get("status", "active").int_or(-1), 0);
  EXPECT_TRUE(cluster.workload_of("borrower").admission.has_value());
  EXPECT_EQ(cluster.pods("owner"), 0);
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("owner"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, QuotaOfADeletedJobIsHeldUntilItsPodsAreGone) {
  Cluster cluster;
  cluster.add_nodes(4);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("first", 2, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.api.grace_steps = 40;
  cluster.api.erase(ResourceKind::kJob, "team", "first");
  cluster.add_job("second", 2, "q");
  for (int i = 0; i < 30; ++i) cluster.step();
  EXPECT_FALSE(cluster.has_workload("first"));
  EXPECT_TRUE(cluster.api.any_dying());
  EXPECT_EQ(cluster.pods("second"), 0);
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("second"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, PodsThatADeletedJobLeavesBehindHoldItsQuotaAndThenGiveItBack) {
  Cluster cluster;
  cluster.add_nodes(4);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("first", 2, "q");
  ASSERT_TRUE(cluster.settle());
  // kubectl delete job first --cascade=orphan
  const Json orphan = json(R"({"metadata":{"ownerReferences":null}})");
  cluster.api.store(
      ResourceKind::kJob,
      kube::merge_patch(cluster.job("first"),
                        json(R"({"metadata":{"deletionTimestamp":"2023-11-14T22:13:20Z"}})")));
  for (int i = 0; i < 3; ++i) cluster.step();
  for (const ResourceKind kind : {ResourceKind::kPod, ResourceKind::kWorkload}) {
    for (const Json& object : cluster.api.list(kind)) {
      cluster.api.store(kind, kube::merge_patch(object, orphan));
    }
  }
  for (int i = 0; i < 3; ++i) cluster.step();
  cluster.api.erase(ResourceKind::kJob, "team", "first");
  cluster.add_job("second", 2, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.pass_time(std::chrono::minutes(10));
  ASSERT_TRUE(cluster.settle());
  EXPECT_FALSE(cluster.has_workload("first"));
  EXPECT_EQ(cluster.api.list(ResourceKind::kPod).size(), 2U);
  EXPECT_EQ(cluster.pods("second"), 0);

  for (const Json& pod : cluster.api.list(ResourceKind::kPod)) {
    cluster.api.erase(ResourceKind::kPod, "team",
                      std::string(pod.get("metadata", "name").string_or("")));
  }
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("second"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, APodThatIsTakenFromItsJobIsDeletedAndNotPaidForTwice) {
  Cluster cluster;
  cluster.add_nodes(4);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 2, "q");
  ASSERT_TRUE(cluster.settle());
  const Json taken = cluster.api.list(ResourceKind::kPod).front();
  cluster.api.store(ResourceKind::kPod,
                    kube::merge_patch(taken, json(R"({"metadata":{"ownerReferences":null}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("a"), 2);
  EXPECT_EQ(cluster.api.list(ResourceKind::kPod).size(), 2U);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, APodOfAnotherNamespaceIsNoMemberWhateverItSays) {
  Cluster cluster;
  cluster.add_nodes(3);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  Json stranger = cluster.api.list(ResourceKind::kPod).front();
  stranger = kube::merge_patch(stranger, json(R"({"metadata":{"namespace":"other","name":"stranger",
      "uid":null,"resourceVersion":null},"spec":{"nodeName":"n2"}})"));
  cluster.api.create(ResourceKind::kPod, stranger);
  cluster.api.finish_pods("team", "a");
  cluster.add_job("b", 2, "q");
  ASSERT_TRUE(cluster.settle());
  // Neither its quota nor its slot: `a` is over, and `b` has the two nodes that are left.
  EXPECT_TRUE(cluster.is_true("a", "Finished"));
  EXPECT_EQ(cluster.bound_pods("b"), 2);
}

TEST(JobFlow, ARunningJobThatIsSuspendedAndGrownQueuesForItsNewSize) {
  Cluster cluster;
  cluster.add_nodes(6);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("a"), 1);
  cluster.api.store(ResourceKind::kJob, kube::merge_patch(cluster.job("a"), json(R"({"spec":{
                      "suspend":true,"parallelism":6,"completions":6}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_TRUE(cluster.suspended("a"));
  EXPECT_EQ(cluster.pods("a"), 0);
  EXPECT_EQ(cluster.workload_of("a").pod_sets.at(0).count, 6);
  EXPECT_FALSE(cluster.is_true("a", "QuotaReserved"));

  cluster.api.store(ResourceKind::kJob, kube::merge_patch(cluster.job("a"), json(R"({"spec":{
                      "parallelism":2,"completions":2}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("a"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, AJobThatGrowsWhileItRunsIsStoppedAndQueuesForItsNewSize) {
  Cluster cluster;
  cluster.add_nodes(6);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  // As while no webhook answers.
  cluster.api.store(ResourceKind::kJob, kube::merge_patch(cluster.job("a"), json(R"({"spec":{
                      "parallelism":6,"completions":6}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_TRUE(cluster.suspended("a"));
  EXPECT_EQ(cluster.pods("a"), 0);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, ARunningJobThatIsSuspendedAndLeavesItsQueueIsLeftSuspendedAsItWas) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  const Json before = cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.api.store(ResourceKind::kJob, kube::merge_patch(cluster.job("a"), json(R"({"spec":{
                      "suspend":true},"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_TRUE(cluster.suspended("a"));
  EXPECT_EQ(cluster.pods("a"), 0);
  EXPECT_FALSE(cluster.has_workload("a"));
  EXPECT_EQ(cluster.job("a").get("spec", "template"), before.get("spec", "template"));
}

TEST(JobFlow, APodOnANodeThatDoesNotAnswerHoldsItsQuotaForSixtySecondsAfterItsGrace) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("regular", 0, "org");
  cluster.add_queue("prod", 16, "org", kReclaim);
  cluster.add_job("borrower", 2, "regular");
  ASSERT_TRUE(cluster.settle());
  cluster.api.grace_steps = 1'000'000;  // the pods never go
  cluster.add_job("owner", 2, "prod");
  for (int i = 0; i < 20; ++i) cluster.step();
  ASSERT_TRUE(cluster.is_true("borrower", "Evicted"));
  for (const char* name : {"n0", "n1"}) {
    const Json node = cluster.api.get(ResourceKind::kNode, "", name);
    cluster.api.store(ResourceKind::kNode, kube::merge_patch(node, json(R"({"status":{"conditions":[
                        {"type":"Ready","status":"Unknown"}]}})")));
  }
  for (int i = 0; i < 30; ++i) cluster.step();
  EXPECT_TRUE(cluster.workload_of("borrower").admission.has_value());
  cluster.pass_time(std::chrono::seconds(59));
  for (int i = 0; i < 30; ++i) cluster.step();
  EXPECT_TRUE(cluster.workload_of("borrower").admission.has_value());
  cluster.pass_time(std::chrono::seconds(2));
  for (int i = 0; i < 30; ++i) cluster.step();
  EXPECT_FALSE(cluster.workload_of("borrower").admission.has_value());
}

TEST(JobFlow, AJobThatIsStartedBehindOurBackIsSuspended) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  cluster.add_job("holder", 1, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("cheat", 1, "q");
  ASSERT_TRUE(cluster.settle());
  const Json job = cluster.job("cheat");
  cluster.api.store(ResourceKind::kJob,
                    kube::merge_patch(job, json(R"({"spec":{"suspend":false}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_TRUE(cluster.suspended("cheat"));
  EXPECT_EQ(cluster.pods("cheat"), 0);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, AWorkloadThatIsDeletedUnderARunningJobStopsItAndQueuesItAgain) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 2, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.api.erase(ResourceKind::kWorkload, "team", cluster.workload_of("a").meta.name);
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.writes(WriteKind::kSuspend), 1);
  EXPECT_EQ(cluster.bound_pods("a"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
  // The pins of the first life are no part of the template the second one keeps.
  const Json kept = cluster.workload_of("a").pod_sets.at(0).pod_template.raw;
  EXPECT_FALSE(kept.get("spec", "affinity").present());
  EXPECT_FALSE(kept.get("metadata", "annotations").present());
}

TEST(JobFlow, ChangesOfASuspendedJobReachItsWorkload) {
  Cluster cluster;
  cluster.add_nodes(4);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  cluster.add_queue("wide", 32);
  cluster.add_job("a", 4, "q");  // 32 GPUs never fit 8
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.pods("a"), 0);
  cluster.api.store(ResourceKind::kJob, kube::merge_patch(cluster.job("a"), json(R"({"spec":{
                      "parallelism":3,"completions":3},
                      "metadata":{"labels":{"kueue.x-k8s.io/queue-name":"wide"}}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.workload_of("a").pod_sets.at(0).count, 3);
  EXPECT_EQ(cluster.bound_pods("a"), 3);
  EXPECT_EQ(cluster.writes(WriteKind::kUpdateWorkload), 1);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

// Kubernetes 1.34: a stopped Job keeps its start time, and its template is fixed as long as it has
// one.
TEST(JobFlow, AJobIsRestoredAndStartedAgainWhereItsStartTimeKeepsTheTemplateFixed) {
  Cluster cluster;
  cluster.api.started_templates_are_fixed = true;
  cluster.add_nodes(4);
  cluster.add_flavor();
  cluster.add_queue("regular", 0, "org");
  cluster.add_queue("prod", 32, "org", kReclaim);
  const Json before = cluster.add_job("borrower", 4, "regular").get("spec", "template");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("borrower"), 4);

  cluster.add_job("owner", 3, "prod");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.pods("borrower"), 0);
  EXPECT_EQ(cluster.bound_pods("owner"), 3);
  EXPECT_EQ(cluster.job("borrower").get("spec", "template"), before);

  cluster.api.finish_pods("team", "owner");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("borrower"), 4);

  // Once told no, it takes the start time away first.
  cluster.add_job("owner-2", 3, "prod");
  ASSERT_TRUE(cluster.settle());
  cluster.api.finish_pods("team", "owner-2");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("borrower"), 4);
  EXPECT_EQ(cluster.controller->stats().writes_refused, 1U);
  EXPECT_EQ(cluster.writes(WriteKind::kForgetStart), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, AJobThatMayBeSmallerStartsWithFewerPodsAndIsRestored) {
  for (const bool completions_follow : {true, false}) {
    Cluster cluster;
    cluster.add_nodes(4);
    cluster.add_flavor();
    cluster.add_queue("regular", 0, "org");
    cluster.add_queue("prod", 16, "org", kReclaim);
    const Json job = cluster.add_job("borrower", 4, "regular");
    Json annotations = Json::object({{"kueue.x-k8s.io/job-min-parallelism", Json::string("1")},
                                     {"kueue.x-k8s.io/job-completions-equal-parallelism",
                                      Json::string(completions_follow ? "true" : "false")}});
    cluster.api.store(ResourceKind::kJob,
                      job.with("metadata", job.get("metadata").with("annotations", annotations)));
    const auto number = [&](const char* field) {
      return cluster.job("borrower").get("spec", field).int_or(-1);
    };
    ASSERT_TRUE(cluster.settle());
    // 16 of 32 GPUs can be had.
    EXPECT_EQ(cluster.bound_pods("borrower"), 2);
    EXPECT_EQ(number("parallelism"), 2);
    EXPECT_EQ(number("completions"), completions_follow ? 2 : 4);
    const kube::Workload workload = cluster.workload_of("borrower");
    EXPECT_EQ(workload.pod_sets.at(0).count, 4);
    EXPECT_EQ(workload.pod_sets.at(0).min_count, 1);
    EXPECT_EQ(workload.admission->pod_sets.at(0).count, 2);

    cluster.add_job("owner", 2, "prod");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.pods("borrower"), 0);
    EXPECT_EQ(cluster.bound_pods("owner"), 2);
    EXPECT_EQ(number("parallelism"), 4);
    EXPECT_EQ(number("completions"), 4);

    cluster.api.finish_pods("team", "owner");
    cluster.restart();
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.bound_pods("borrower"), 2);
    EXPECT_EQ(number("parallelism"), 2);
    EXPECT_THAT(cluster.broken_promises(), IsEmpty());
  }
}

TEST(JobFlow, PodsThatEndedWellGiveTheirQuotaAndTheirNodesBack) {
  Cluster cluster;
  cluster.add_nodes(3);
  cluster.add_flavor();
  cluster.add_queue("q", 24);
  const Json job = cluster.add_job("gang", 3, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("next", 1, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("next"), 0);
  const Json pod =
      cluster.api.pods_of(std::string(job.get("metadata", "uid").string_or(""))).front();
  cluster.api.store(ResourceKind::kPod,
                    pod.with("status", pod.get("status").with("phase", Json::string("Succeeded"))));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.workload_of("gang").reclaimable_pods,
            (std::map<std::string, std::int64_t>{{"main", 1}}));
  EXPECT_EQ(cluster.writes(WriteKind::kReclaim), 1);
  EXPECT_EQ(cluster.bound_pods("next"), 1);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, LimitRangesAndRuntimeClassesCountAsTheyWillForThePods) {
  Cluster cluster;
  cluster.add_nodes(4);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("running", 1, "q");
  ASSERT_TRUE(cluster.settle());
  // From now on a pod of the namespace asks for 16 more: only the next job does.
  cluster.api.create(ResourceKind::kRuntimeClass,
                     json(R"({"metadata": {"name": "large"}, "overhead": {"podFixed": {
                              "nvidia.com/gpu": "16"}}})"));
  Json job = cluster.add_job("next", 1, "q");
  const Json pod_template = job.get("spec", "template");
  const Json spec = pod_template.get("spec").with("runtimeClassName", Json::string("large"));
  cluster.api.store(
      ResourceKind::kJob,
      job.with("spec", job.get("spec").with("template", pod_template.with("spec", spec))));
  ASSERT_TRUE(cluster.settle());
  const auto reason = [&](const char* name) {
    const kube::Workload waiting = cluster.workload_of(name);
    const kube::Condition* reserved = kube::find_condition(waiting.conditions, "QuotaReserved");
    return reserved == nullptr ? std::string() : reserved->reason;
  };
  EXPECT_EQ(cluster.bound_pods("running"), 1);
  EXPECT_EQ(reason("next"), "ExceedsMaxQuota");  // 8 + 16 of 16
  cluster.api.erase(ResourceKind::kRuntimeClass, "", "large");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("next"), 1);
  cluster.api.create(ResourceKind::kLimitRange,
                     json(R"({"metadata": {"name": "l", "namespace": "team"}, "spec": {"limits": [
                              {"type": "Container", "defaultRequest": {"cpu": "1"}}]}})"));
  cluster.add_job("last", 1, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(reason("last"), "NoMatchingFlavor");  // cpu, which the queue does not know
  EXPECT_EQ(cluster.bound_pods("running"), 1);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, AMissingWorkloadPriorityClassIsWaitedForAndSaidOnce) {
  Cluster cluster;
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  Json job = cluster.add_job("a", 1, "q");
  cluster.api.store(ResourceKind::kJob, kube::merge_patch(job, json(R"({"metadata":{"labels":{
      "kueue.x-k8s.io/priority-class":"gold"}}})")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_FALSE(cluster.has_workload("a"));
  EXPECT_EQ(cluster.api.events().size(), 1U);
  cluster.add_priority_class("gold", 70);
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.workload_of("a").priority, 70);
  EXPECT_EQ(cluster.bound_pods("a"), 1);
}

TEST(JobFlow, ADeletedJobLeavesNeitherWorkloadNorUsage) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 2, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.api.erase(ResourceKind::kJob, "team", "a");
  ASSERT_TRUE(cluster.settle());
  EXPECT_FALSE(cluster.has_workload("a"));
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
  cluster.add_job("b", 2, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("b"), 2);
}

TEST(JobFlow, QueueStatusSaysWhatTheEngineCounts) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  for (const auto& [kind, ns] :
       {std::pair{ResourceKind::kClusterQueue, ""}, std::pair{ResourceKind::kLocalQueue, "team"}}) {
    const Json status = cluster.api.get(kind, ns, "q").get("status");
    EXPECT_EQ(status.get("admittedWorkloads").int_or(-1), 1);
    EXPECT_EQ(status.get("pendingWorkloads").int_or(-1), 0);
    EXPECT_EQ(status.get("conditions").at(0).get("type").string_or(""), "Active");
    EXPECT_EQ(status.get("conditions").at(0).get("status").string_or(""), "True");
    const Json usage = status.get("flavorsUsage").at(0);
    EXPECT_EQ(usage.get("name").string_or(""), "gpu");
    EXPECT_EQ(usage.get("resources").at(0).get("total").string_or(""), "8");
  }
}

/// `owner` of prod takes back what `guest` borrowed; guest has 60 s for a checkpoint.
void start_eviction_with_grace(Cluster& cluster) {
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("prod", 16, "org", kReclaim);
  cluster.add_queue("regular", 0, "org");
  const Json guest = cluster.add_job("guest", 2, "regular");
  cluster.api.store(ResourceKind::kJob,
                    kube::merge_patch(guest, json(R"({"metadata": {"annotations":
                        {"muster.dev/checkpoint-grace": "60s"}}})")));
  ASSERT_TRUE(cluster.settle());
  ASSERT_EQ(cluster.bound_pods("guest"), 2);
  cluster.add_job("owner", 2, "prod");
  ASSERT_TRUE(cluster.settle());
}

TEST(CheckpointGrace, PodsAreToldAndGoWhenItEnds) {
  Cluster cluster;
  start_eviction_with_grace(cluster);
  EXPECT_TRUE(cluster.is_true("guest", "Evicted"));
  EXPECT_EQ(cluster.bound_pods("guest"), 2);
  EXPECT_FALSE(cluster.suspended("guest"));
  EXPECT_EQ(cluster.writes(WriteKind::kAnnounceEviction), 2);
  const kube::Workload guest = cluster.workload_of("guest");
  const Instant evicted = *kube::find_condition(guest.conditions, "Evicted")->last_transition;
  for (const Json& object : cluster.api.list(ResourceKind::kPod)) {
    const auto pod = kube::decode_pod(object);
    ASSERT_TRUE(pod.has_value());
    const std::string* at = pod->meta.find_annotation("muster.dev/evict-at");
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(*at, format_rfc3339(evicted + std::chrono::seconds(60)));
    EXPECT_TRUE(kube::is_true(pod->conditions, "DisruptionTarget"));
  }

  cluster.restart();  // Another controller finds them told, and goes on waiting.
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.writes(WriteKind::kAnnounceEviction), 2);
  EXPECT_EQ(cluster.bound_pods("guest"), 2);

  cluster.pass_time(std::chrono::seconds(61));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("guest"), 0);
  EXPECT_EQ(cluster.bound_pods("owner"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(CheckpointGrace, EndsWithANewerCheckpoint) {
  Cluster cluster;
  start_eviction_with_grace(cluster);
  ASSERT_EQ(cluster.bound_pods("guest"), 2);
  const std::string now = format_rfc3339(cluster.now() + std::chrono::seconds(1));
  cluster.api.store(
      ResourceKind::kJob,
      kube::merge_patch(cluster.job("guest"), json(fmt::format(R"({{"metadata": {{"annotations":
                        {{"muster.dev/last-checkpoint": "{}"}}}}}})",
                                                               now))));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("guest"), 0);
  EXPECT_EQ(cluster.bound_pods("owner"), 2);
}

TEST(CheckpointGrace, ATornGangGetsNone) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  const Json gang = cluster.add_job("gang", 2, "q");
  cluster.api.store(ResourceKind::kJob, kube::merge_patch(gang, json(R"({"metadata": {"annotations":
                        {"muster.dev/checkpoint-grace": "60s"}}})")));
  ASSERT_TRUE(cluster.settle());
  ASSERT_EQ(cluster.bound_pods("gang"), 2);
  const Json pod = cluster.api.list(ResourceKind::kPod).front();
  cluster.api.preempt_pod("team", std::string(pod.get("metadata", "name").string_or("")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.writes(WriteKind::kAnnounceEviction), 0);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(JobFlow, FairSharesAndUseAreShownAndUseSurvivesARestart) {
  Cluster cluster;
  cluster.engine_options.fair_sharing.emplace();
  engine::AdmissionFairSharing& use = cluster.engine_options.admission_fair_sharing.emplace();
  use.usage_half_life = std::chrono::hours(1);
  cluster.restart();
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.api.create(ResourceKind::kCohort, json(R"({"metadata":{"name":"team-a"},
    "spec":{"parentName":"org"}})"));
  cluster.add_queue("q", 0, "team-a");
  cluster.add_queue("lender", 16, "org");
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  // 8 borrowed of 16 that can be lent, seen from the queue and from its cohort.
  for (const auto& [kind, name] :
       {std::pair{ResourceKind::kClusterQueue, "q"}, std::pair{ResourceKind::kCohort, "team-a"}}) {
    EXPECT_EQ(
        cluster.api.get(kind, "", name).get("status", "fairSharing", "weightedShare").int_or(-1),
        500)
        << name;
  }
  EXPECT_LE(cluster.writes(WriteKind::kCohortStatus), 2);

  const auto consumed = [&] {
    return cluster.api.get(ResourceKind::kLocalQueue, "team", "q")
        .get("status", "fairSharing", "admissionFairSharingStatus");
  };
  const Json first = consumed();
  EXPECT_TRUE(first.get("lastUpdate").is_string()) << first.dump();
  cluster.pass_time(std::chrono::hours(1));
  ASSERT_TRUE(cluster.settle());
  // After an hour a half of 8, but for a few seconds that settling takes.
  const auto cores =
      Quantity::parse(consumed().get("consumedResources", "nvidia.com/gpu").string_or(""));
  ASSERT_TRUE(cores.has_value()) << consumed().dump();
  EXPECT_NEAR(static_cast<double>(cores->millis_ceil()), 4'000, 50);

  const auto in_engine = [&] {
    return cluster.engine->state().usage_history->consumed(LocalQueueKey{Namespace("team"), "q"},
                                                           cluster.now());
  };
  const auto before = in_engine();
  cluster.restart();
  ASSERT_TRUE(cluster.settle());
  const auto after = in_engine();
  const ResourceName gpu("nvidia.com/gpu");
  EXPECT_NEAR(static_cast<double>(before.at(gpu).nanos(gpu)),
              static_cast<double>(after.at(gpu).nanos(gpu)), 10'000'000);

  // Without fair sharing what was shown is taken away; what was used stays to be read.
  cluster.engine_options = {};
  cluster.restart();
  ASSERT_TRUE(cluster.settle());
  EXPECT_FALSE(
      cluster.api.get(ResourceKind::kClusterQueue, "", "q").get("status", "fairSharing").present());
  EXPECT_TRUE(consumed().get("lastUpdate").is_string());
}

}  // namespace
}  // namespace muster::controller::testing

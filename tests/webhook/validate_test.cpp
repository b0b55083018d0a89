#include "webhook/validate.hpp"

#include "tests/extender/snapshot_builder.hpp"
#include "tests/webhook/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace muster::webhook {
namespace {

using engine::WorkloadPhase;
using kube::Json;
using testing::create;
using testing::json;
using testing::SnapshotBuilder;
using testing::update;
using testing::with;

using Paths = std::vector<std::string>;
constexpr const char* kMuster = "system:serviceaccount:muster-system:muster";

WebhookOptions options() {
  WebhookOptions result;
  result.own_identities = {kMuster};
  return result;
}

Paths paths_of(const Validation& validation) {
  Paths paths;
  for (const FieldError& error : validation.errors) {
    paths.push_back(error.path);
    EXPECT_FALSE(error.message.empty()) << error.path;
  }
  return paths;
}

Paths refused(const AdmissionRequest& request, const engine::Snapshot& snapshot = {}) {
  return paths_of(validate(request, snapshot, options()));
}

// ---- ClusterQueue, Cohort, LocalQueue, ResourceFlavor
// --------------------------------------------

const std::string kQueue = R"({"metadata":{"name":"q"},"spec":{"cohortName":"org","resourceGroups":[
  {"coveredResources":["cpu","nvidia.com/gpu"],"flavors":[
    {"name":"h100","resources":[{"name":"cpu","nominalQuota":"10","borrowingLimit":"1"},
                                {"name":"nvidia.com/gpu","nominalQuota":8,"lendingLimit":"8"}]}]}]}})";

struct QueueCase {
  const char* sentence;
  std::string object;
  Paths refused;
};

void check(const char* kind, const std::vector<QueueCase>& cases) {
  for (const QueueCase& c : cases) {
    SCOPED_TRACE(c.sentence);
    EXPECT_EQ(refused(create("kueue.x-k8s.io", kind, json(c.object), "")), c.refused);
  }
}

TEST(ValidateClusterQueue, Table) {
  const std::string group = "spec.resourceGroups[0]";
  check("ClusterQueue",
        {
            {"a good one", kQueue, {}},
            {"one without quotas", R"({"metadata":{"name":"q"},"spec":{}})", {}},
            {"resources in another order than covered",
             with(kQueue, R"(["cpu","nvidia.com/gpu"])", R"(["nvidia.com/gpu","cpu"])"),
             {group + ".flavors[0].resources[0].name", group + ".flavors[0].resources[1].name"}},
            {"a resource too few",
             with(kQueue, R"(["cpu","nvidia.com/gpu"])", R"(["cpu","nvidia.com/gpu","memory"])"),
             {group + ".flavors[0].resources"}},
            {"a negative quota",
             with(kQueue, R"("10")", R"("-1")"),
             {group + ".flavors[0].resources[0].nominalQuota"}},
            {"a quota that is none",
             with(kQueue, R"("10")", R"("ten")"),
             {group + ".flavors[0].resources[0].nominalQuota"}},
            {"no quota",
             with(kQueue, R"("nominalQuota":"10",)", ""),
             {group + ".flavors[0].resources[0].nominalQuota"}},
            {"limits without a cohort",
             with(kQueue, R"("cohortName":"org",)", ""),
             {group + ".flavors[0].resources[0].borrowingLimit",
              group + ".flavors[0].resources[1].lendingLimit"}},
            {"lending more than there is",
             with(kQueue, R"("lendingLimit":"8")", R"("lendingLimit":"9")"),
             {group + ".flavors[0].resources[1].lendingLimit"}},
            {"a covered name that is no resource's",
             with(kQueue, R"(["cpu",)", R"(["c pu",)"),
             {group + ".coveredResources[0]", group + ".flavors[0].resources[0].name"}},
            {"a cohort name with capitals",
             with(kQueue, R"("org")", R"("Org")"),
             {"spec.cohortName"}},
            {"a resource and a flavor in two groups",
             R"({"spec":{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"a",)"
             R"("resources":[{"name":"cpu","nominalQuota":1}]}]},{"coveredResources":["cpu"],)"
             R"("flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":1}]}]}]}})",
             {"spec.resourceGroups[1].coveredResources[0]",
              "spec.resourceGroups[1].flavors[0].name"}},
            {"borrowing by preemption without reclaiming",
             R"({"spec":{"preemption":{"borrowWithinCohort":{"policy":"LowerPriority"}}}})",
             {"spec.preemption.borrowWithinCohort.policy"}},
            {"a weight below the finest step",
             R"({"spec":{"fairSharing":{"weight":"1n"}}})",
             {"spec.fairSharing.weight"}},
            {"a weight of zero", R"({"spec":{"fairSharing":{"weight":"0"}}})", {}},
            {"a check on a flavor of others",
             with(kQueue, R"("cohortName":"org")",
                  R"("cohortName":"org","admissionChecksStrategy":{"admissionChecks":[)"
                  R"({"name":"c","onFlavors":["h100","spot"]}]})"),
             {"spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]"}},
            {"a selector that selects in no known way",
             R"({"spec":{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Near"},)"
             R"({"key":"a","operator":"In"}]}}})",
             {"spec.namespaceSelector.matchExpressions[0].operator",
              "spec.namespaceSelector.matchExpressions[1].values"}},
            {"a preemptible label that is neither true nor false",
             R"({"metadata":{"labels":{"muster.dev/preemptible":"no"}},"spec":{}})",
             {"metadata.labels[muster.dev/preemptible]"}},
        });
}

TEST(ValidateClusterQueue, OldFaultsDoNotBlockNewUpdates) {
  const std::string broken = with(kQueue, R"("10")", R"("-1")");
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "ClusterQueue", json(broken), json(broken))), Paths{});
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "ClusterQueue", json(kQueue), json(broken))),
            Paths{"spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"});
}

TEST(ValidateClusterQueue, TooManyFlavorsAreTooMany) {
  std::string flavors;
  for (int i = 0; i < 257; ++i) {
    flavors += (i > 0 ? "," : "") + std::string(R"({"name":"f)") + std::to_string(i) +
               R"(","resources":[{"name":"cpu","nominalQuota":1}]})";
  }
  EXPECT_EQ(
      refused(create("kueue.x-k8s.io", "ClusterQueue",
                     json(R"({"spec":{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[)" +
                          flavors + "]}]}}"))),
      Paths{"spec.resourceGroups"});
}

TEST(ValidateCohort, Table) {
  const std::string cohort = with(kQueue, R"("cohortName")", R"("parentName")");
  check(
      "Cohort",
      {
          {"a good one", cohort, {}},
          {"a Cohort may lend more than it has itself",
           with(cohort, R"("lendingLimit":"8")", R"("lendingLimit":"80")"),
           {}},
          {"its own parent", with(cohort, R"("name":"q")", R"("name":"org")"), {"spec.parentName"}},
      });
}

TEST(ValidateLocalQueue, WarnsOfAMissingClusterQueue) {
  SnapshotBuilder world;
  world.local_queue("team", "main", "cq", 8);
  const auto good =
      create("kueue.x-k8s.io", "LocalQueue", json(R"({"spec":{"clusterQueue":"cq"}})"));
  const auto lost =
      create("kueue.x-k8s.io", "LocalQueue", json(R"({"spec":{"clusterQueue":"x"}})"));
  EXPECT_TRUE(validate(good, world.build(), options()).warnings.empty());
  const Validation validation = validate(lost, world.build(), options());
  EXPECT_TRUE(validation.errors.empty());
  EXPECT_EQ(validation.warnings.size(), 1U);
  EXPECT_EQ(
      refused(create("kueue.x-k8s.io", "LocalQueue", json(R"({"spec":{"clusterQueue":"X"}})"))),
      Paths{"spec.clusterQueue"});
}

TEST(ValidateResourceFlavor, Table) {
  check(
      "ResourceFlavor",
      {
          {"a good one",
           R"({"spec":{"nodeLabels":{"a/b":"c"},"nodeTaints":[{"key":"a","value":"b","effect":"NoSchedule"},)"
           R"({"key":"a","effect":"NoExecute"}],"tolerations":[{"operator":"Exists"}]}})",
           {}},
          {"a label value with a blank",
           R"({"spec":{"nodeLabels":{"a":"b c"}}})",
           {"spec.nodeLabels[a]"}},
          {"one taint twice",
           R"({"spec":{"nodeTaints":[{"key":"a","value":"b","effect":"NoSchedule"},)"
           R"({"key":"a","value":"c","effect":"NoSchedule"}]}})",
           {"spec.nodeTaints[1]"}},
          {"an unknown way of capacity",
           R"({"metadata":{"annotations":{"muster.dev/capacity":"rubber"}},"spec":{}})",
           {"metadata.annotations[muster.dev/capacity]"}},
      });
}

// ---- Workload
// ------------------------------------------------------------------------------------

const std::string kWorkload =
    R"({"metadata":{"name":"w"},"spec":{"podSets":[{"name":"main","count":2,"template":{"spec":{)"
    R"("containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}}]},)"
    R"("status":{"conditions":[{"type":"QuotaReserved","status":"True"}]}})";

TEST(ValidateWorkload, Table) {
  check(
      "Workload",
      {
          {"a good one", kWorkload, {}},
          {"a request for pods",
           with(kWorkload, R"({"cpu":"1"})", R"({"pods":"1"})"),
           {"spec.podSets[0].template.spec.containers[0].resources.requests[pods]"}},
          {"a negative request",
           with(kWorkload, R"({"cpu":"1"})", R"({"cpu":"-1"})"),
           {"spec.podSets[0].template.spec.containers[0].resources.requests[cpu]"}},
          {"two pod sets of one name, both partial",
           R"({"spec":{"podSets":[{"name":"a","count":2,"minCount":1},{"name":"a","count":2,"minCount":1}]}})",
           {"spec.podSets[1].name", "spec.podSets[1].minCount"}},
      });
}

TEST(ValidateWorkload, PodSetsStayWhileQuotaIsReserved) {
  const std::string grown = with(kWorkload, R"("count":2)", R"("count":3)");
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "Workload", json(kWorkload), json(grown))),
            Paths{"spec.podSets"});
  const std::string free = with(kWorkload, R"("True")", R"("False")");
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "Workload", json(free), json(grown))), Paths{});
  // What a Job asks for is not smaller because its Workload says so.
  const std::string owned =
      R"({"metadata":{"name":"w","ownerReferences":[{"kind":"Job","name":"j",)"
      R"("uid":"j","apiVersion":"batch/v1","controller":true}]},)";
  const std::string of_job = owned + free.substr(free.find(R"("spec")"));
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "Workload", json(of_job),
                           json(with(of_job, R"("count":2)", R"("count":1)")))),
            Paths{"spec.podSets"});
}

TEST(ValidateWorkload, HoldsItsQuotaByTheTermsItWasGivenItBy) {
  const std::string kept = with(kWorkload, R"("metadata":{)",
                                R"("metadata":{"annotations":{"muster.dev/min-runtime":"9h"},)");
  const std::string waiting = with(kWorkload, R"("QuotaReserved")", R"("Evicted")");
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "Workload", json(kWorkload), json(kept))),
            Paths{"metadata.annotations[muster.dev/min-runtime]"});
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "Workload", json(waiting), json(kept))), Paths{});
}

TEST(ValidateWorkload, FollowsItsOwnerAndKeepsIt) {
  const std::string owned =
      R"({"metadata":{"name":"w","labels":{"kueue.x-k8s.io/job-uid":"j"},"ownerReferences":[)"
      R"({"kind":"Job","name":"j","uid":"j","apiVersion":"batch/v1","controller":true}]},)"
      R"("spec":{"active":true,"priority":0,"queueName":"main","podSets":[]}})";
  const std::string orphan = with(
      owned,
      R"("ownerReferences":[{"kind":"Job","name":"j","uid":"j","apiVersion":"batch/v1","controller":true}])",
      R"("x":1)");
  struct Row {
    const char* sentence;
    std::string before;
    std::string now;
    Paths refused;
  };
  const std::vector<Row> rows = {
      {"it may be told to rest", owned, with(owned, "true,\"priority", "false,\"priority"), {}},
      {"a priority of its own",
       owned,
       with(owned, R"("priority":0)", R"("priority":2000000000)"),
       {"spec.priority"}},
      {"another queue, and a field that was not there",
       owned,
       with(owned, R"("queueName":"main")", R"("queueName":"other","priorityClassRef":{})"),
       {"spec.priorityClassRef", "spec.queueName"}},
      {"another owner",
       owned,
       with(owned, R"("uid":"j")", R"("uid":"k")"),
       {"metadata.ownerReferences"}},
      {"an owner for an orphan", orphan, owned, {"metadata.ownerReferences"}},
      {"the garbage collector makes orphans", owned, orphan, {}},
      {"and whose it was is not rewritten",
       orphan,
       with(orphan, R"(job-uid":"j")", R"(job-uid":"k")"),
       {"metadata.labels[kueue.x-k8s.io/job-uid]"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sentence);
    auto request = update("kueue.x-k8s.io", "Workload", json(row.before), json(row.now));
    EXPECT_EQ(refused(request), row.refused);
    request.username = kMuster;
    EXPECT_EQ(refused(request), Paths{});
  }
  EXPECT_EQ(refused(create("kueue.x-k8s.io", "Workload", json(owned))),
            Paths{"metadata.ownerReferences"});
  // Controllers of other kinds make their own.
  EXPECT_EQ(refused(create("kueue.x-k8s.io", "Workload",
                           json(with(owned, R"("kind":"Job")", R"("kind":"AppWrapper")")))),
            Paths{});
}

TEST(ValidateWorkload, StatusIsMustersToWrite) {
  const std::string evicted = with(kWorkload, R"("QuotaReserved")", R"("Evicted")");
  auto request = update("kueue.x-k8s.io", "Workload", json(kWorkload), json(evicted), "status");
  EXPECT_EQ(refused(request), Paths{"status"});
  request.username = kMuster;
  EXPECT_EQ(refused(request), Paths{});
  const std::string checked =
      with(kWorkload, R"("conditions")", R"("admissionChecks":[{"name":"c"}],"conditions")");
  EXPECT_EQ(refused(update("kueue.x-k8s.io", "Workload", json(kWorkload), json(checked), "status")),
            Paths{});
  // Without a name of its own muster cannot tell who is who.
  EXPECT_TRUE(
      validate(update("kueue.x-k8s.io", "Workload", json(kWorkload), json(evicted), "status"),
               engine::Snapshot{}, WebhookOptions{})
          .errors.empty());
}

// ---- Job
// -----------------------------------------------------------------------------------------

const std::string kJob =
    R"({"metadata":{"name":"j","uid":"j","labels":{"kueue.x-k8s.io/queue-name":"main"},)"
    R"("annotations":{"x":"y"}},"spec":{"suspend":true,"parallelism":2,"completions":2,)"
    R"("template":{"metadata":{"annotations":{"x":"y"}},"spec":{"containers":[{"name":"c",)"
    R"("resources":{"requests":{"nvidia.com/gpu":"4"}}}]}}}})";
const std::string kRunning = with(kJob, R"("suspend":true)", R"("suspend":false)");

TEST(ValidateJob, NewJobs) {
  const std::string label = "metadata.labels[kueue.x-k8s.io/";
  const std::string note = "spec.template.metadata.annotations";
  const std::string layers = note + "[kueue.x-k8s.io/podset-slice-required-topology-constraints]";
  const auto annotated = [](const std::string& annotations) {
    return with(kJob, R"("template":{"metadata":{"annotations":{"x":"y"}})",
                R"("template":{"metadata":{"annotations":{)" + annotations + "}}");
  };
  const std::vector<QueueCase> cases = {
      {"a good one", kJob, {}},
      {"an unqueued one may do as it likes",
       with(with(kRunning, R"("kueue.x-k8s.io/queue-name":"main")", ""), R"("spec":{"containers")",
            R"("spec":{"nodeName":"n1","containers")"),
       {}},
      {"all faults are told at once",
       with(with(with(kRunning, R"("main")", R"("Main")"), R"("x":"y"}},"spec":{"suspend")",
                 R"("muster.dev/min-runtime":"soon"}},"spec":{"suspend")"),
            R"("spec":{"containers")",
            R"("spec":{"nodeName":"n1","schedulerName":"mine","containers")"),
       {label + "queue-name]", "metadata.annotations[muster.dev/min-runtime]",
        "spec.template.spec.nodeName", "spec.template.spec.schedulerName", "spec.suspend"}},
      {"a maximum time that is none",
       with(kJob, R"("labels":{)", R"("labels":{"kueue.x-k8s.io/max-exec-time-seconds":"0",)"),
       {label + "max-exec-time-seconds]"}},
      {"partial admission of everything",
       with(kJob, R"("annotations":{"x":"y"}},"spec":{"suspend")",
            R"("annotations":{"kueue.x-k8s.io/job-min-parallelism":"2"}},"spec":{"suspend")"),
       {"metadata.annotations[kueue.x-k8s.io/job-min-parallelism]"}},
      {"two kinds of topology",
       annotated(R"("kueue.x-k8s.io/podset-required-topology":"rack",)"
                 R"("kueue.x-k8s.io/podset-preferred-topology":"block")"),
       {note}},
      {"a slice without a size",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology":"rack")"),
       {note + "[kueue.x-k8s.io/podset-slice-size]"}},
      {"a slice larger than the Job",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology":"rack",)"
                 R"("kueue.x-k8s.io/podset-slice-size":"3")"),
       {note + "[kueue.x-k8s.io/podset-slice-size]"}},
      {"slices said in two ways",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology":"rack",)"
                 R"("kueue.x-k8s.io/podset-slice-size":"2",)"
                 R"("kueue.x-k8s.io/podset-slice-required-topology-constraints":)"
                 R"("[{\"topology\":\"rack\",\"size\":2}]")"),
       {layers}},
      {"layers that are no list",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology-constraints":"rack")"),
       {layers}},
      {"too many layers",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology-constraints":)"
                 R"("[{\"topology\":\"a\",\"size\":2},{\"topology\":\"b\",\"size\":2},)"
                 R"({\"topology\":\"c\",\"size\":2},{\"topology\":\"d\",\"size\":1}]")"),
       {layers}},
      {"a layer that does not divide the one before",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology-constraints":)"
                 R"("[{\"topology\":\"a\",\"size\":1},{\"topology\":\"b\",\"size\":2}]")"),
       {layers}},
      {"a level twice",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology-constraints":)"
                 R"("[{\"topology\":\"a\",\"size\":2},{\"topology\":\"a\",\"size\":1}]")"),
       {layers}},
      {"good layers",
       annotated(R"("kueue.x-k8s.io/podset-slice-required-topology-constraints":)"
                 R"("[{\"topology\":\"a\",\"size\":2},{\"topology\":\"b\",\"size\":1}]")"),
       {}},
      {"the mark of plain pods in the template",
       with(kJob, R"("template":{"metadata":{)",
            R"("template":{"metadata":{"labels":{"kueue.x-k8s.io/managed":"true"},)"),
       {"spec.template.metadata.labels[kueue.x-k8s.io/managed]"}},
  };
  for (const QueueCase& c : cases) {
    SCOPED_TRACE(c.sentence);
    EXPECT_EQ(refused(create("batch", "Job", json(c.object))), c.refused);
  }
}

struct ChangeCase {
  const char* sentence;
  std::string before;
  std::string now;
  Paths refused;
  std::function<void(SnapshotBuilder&)> world = [](auto&) {};
};

TEST(ValidateJob, Changes) {
  const auto admitted = [](SnapshotBuilder& w) { w.node("n1").gang("j", {"n1", "n1"}, 4); };
  const auto waiting = [](SnapshotBuilder& w) { w.workload("j", WorkloadPhase::kPending, 2); };
  const std::string queue = "metadata.labels[kueue.x-k8s.io/queue-name]";
  const std::string priority = R"("kueue.x-k8s.io/priority-class":"high",)";
  const auto labelled = [&](const std::string& job) {
    return with(job, R"("labels":{)", R"("labels":{)" + priority);
  };
  const auto kept = [](const std::string& job) {
    return with(
        with(job, R"("labels":{)", R"("labels":{"muster.dev/preemptible":"false",)"),
        R"("annotations":{"x")",
        R"("annotations":{"muster.dev/min-runtime":"9h","muster.dev/checkpoint-grace":"9h","x")");
  };
  const Paths kTerms = {"metadata.labels[muster.dev/preemptible]",
                        "metadata.annotations[muster.dev/min-runtime]",
                        "metadata.annotations[muster.dev/checkpoint-grace]"};
  const std::vector<ChangeCase> cases = {
      {"a waiting Job is not resumed by its user", kJob, kRunning, {"spec.suspend"}, waiting},
      {"nor one that we have not seen yet", kJob, kRunning, {"spec.suspend"}},
      {"nor an admitted one: it might not be what was admitted any more",
       kJob,
       kRunning,
       {"spec.suspend"},
       admitted},
      {"to suspend is free", kRunning, kJob, {}, admitted},
      {"more pods than were admitted",
       kRunning,
       with(with(kRunning, R"("parallelism":2)", R"("parallelism":3)"), R"("completions":2)",
            R"("completions":3)"),
       {"spec.parallelism"},
       admitted},
      {"fewer, and back to what was admitted",
       with(kRunning, R"("parallelism":2)", R"("parallelism":1)"),
       kRunning,
       {},
       admitted},
      {"more pods while suspended",
       kJob,
       with(kJob, R"("parallelism":2)", R"("parallelism":9)"),
       {},
       waiting},
      {"another queue while it runs",
       kRunning,
       with(kRunning, R"("main")", R"("other")"),
       {queue},
       admitted},
      {"no queue while it runs",
       kRunning,
       with(kRunning, R"("kueue.x-k8s.io/queue-name":"main")", ""),
       {queue},
       admitted},
      {"a queue while it runs without one",
       with(kRunning, R"("kueue.x-k8s.io/queue-name":"main")", ""),
       kRunning,
       {queue}},
      {"another queue while it waits", kJob, with(kJob, R"("main")", R"("other")"), {}, waiting},
      {"no queue where everything is queued",
       kJob,
       with(kJob, R"("kueue.x-k8s.io/queue-name":"main")", ""),
       {queue},
       [&](SnapshotBuilder& w) {
         waiting(w);
         w.local_queue("team", "default", "cq", 8);
       }},
      {"a queue and a start in one",
       with(kJob, R"("kueue.x-k8s.io/queue-name":"main")", ""),
       kRunning,
       {"spec.suspend", queue}},
      {"no queue any more for a template that is marked as queued work",
       with(kJob, R"("spec":{"containers")",
            R"("spec":{"priorityClassName":"muster-managed","containers")"),
       with(with(kJob, R"("spec":{"containers")",
                 R"("spec":{"priorityClassName":"muster-managed","containers")"),
            R"("kueue.x-k8s.io/queue-name":"main")", ""),
       {queue},
       waiting},
      {"no queue any more, otherwise",
       kJob,
       with(kJob, R"("kueue.x-k8s.io/queue-name":"main")", ""),
       {},
       waiting},
      {"not preemptible any more while it holds what it borrowed", kRunning, kept(kRunning), kTerms,
       admitted},
      {"nor while it is being started", kJob, kept(kJob), kTerms, admitted},
      {"nor preemptible again, for its queue may say otherwise", kept(kRunning), kRunning, kTerms,
       admitted},
      {"it may be before it is admitted", kJob, kept(kJob), {}, waiting},
      {"and where it queues anew for it", kRunning, kept(kJob), {}, admitted},
      {"a newer checkpoint is welcome",
       kRunning,
       with(kRunning, R"("x":"y")",
            R"("x":"y","muster.dev/last-checkpoint":"2026-11-29T16:00:00Z")"),
       {},
       admitted},
      {"a priority class while it runs",
       kRunning,
       labelled(kRunning),
       {"metadata.labels[kueue.x-k8s.io/priority-class]"},
       admitted},
      {"no priority class any more",
       labelled(kJob),
       kJob,
       {"metadata.labels[kueue.x-k8s.io/priority-class]"},
       waiting},
      {"a fault that was there before",
       with(kRunning, R"("main")", R"("Main")"),
       with(with(kRunning, R"("main")", R"("Main")"), R"("name":"j")", R"("name":"j","x":1)"),
       {}},
      {"a fault that was there before it came to a queue",
       with(with(kJob, R"("kueue.x-k8s.io/queue-name":"main")", ""), R"("spec":{"containers")",
            R"("spec":{"nodeName":"n1","containers")"),
       with(kJob, R"("spec":{"containers")", R"("spec":{"nodeName":"n1","containers")"),
       {"spec.template.spec.nodeName"}},
      {"a Job that claims to be part of something admitted is not started by that",
       with(
           kJob, R"("uid":"j")",
           R"("uid":"j","ownerReferences":[{"kind":"Thing","apiVersion":"x/v1","name":"s","uid":"set","controller":true}])"),
       with(
           kRunning, R"("uid":"j")",
           R"("uid":"j","ownerReferences":[{"kind":"Thing","apiVersion":"x/v1","name":"s","uid":"set","controller":true}])"),
       {"spec.suspend"},
       [](SnapshotBuilder& w) { w.workload("set", WorkloadPhase::kAdmitted, 1); }},
  };
  for (const ChangeCase& c : cases) {
    SCOPED_TRACE(c.sentence);
    SnapshotBuilder world;
    c.world(world);
    auto request = update("batch", "Job", json(c.before), json(c.now));
    EXPECT_EQ(refused(request, world.build()), c.refused);
    request.username = kMuster;
    EXPECT_EQ(refused(request, world.build()), Paths{});
  }
}

TEST(ValidateJob, WarnsOfWhatCanNeverFit) {
  SnapshotBuilder world;
  world.local_queue("team", "main", "cq", 7);  // 2 pods x 4 GPUs = 8
  const auto warnings = [&](const std::string& job) {
    return validate(create("batch", "Job", json(job)), world.build(), options()).warnings;
  };
  ASSERT_EQ(warnings(kJob).size(), 1U);
  EXPECT_EQ(warnings(kJob).front(),
            "asks for 8 nvidia.com/gpu, but ClusterQueue cq can have 7 at most: it can never be "
            "admitted there");
  EXPECT_TRUE(warnings(with(kJob, R"("4")", R"("3")")).empty());
  ASSERT_EQ(warnings(with(kJob, "nvidia.com/gpu", "amd.com/gpu")).size(), 1U);
  ASSERT_EQ(warnings(with(kJob, R"("main")", R"("nowhere")")).size(), 1U);
  // What counts is what the rules make of it: 2 pods x 4 slices, of which the queue knows nothing.
  WebhookOptions rules = options();
  rules.resource_rules.transformations = {
      {ResourceName("nvidia.com/mig-1g"), false, ResourceName(), {}},
      {ResourceName("nvidia.com/gpu"),
       false,
       ResourceName(),
       {{ResourceName("example.com/slices"), Quantity::from_units(1)}}}};
  const auto ruled = [&](const std::string& job) {
    return validate(create("batch", "Job", json(job)), world.build(), rules).warnings;
  };
  EXPECT_TRUE(ruled(with(kJob, "nvidia.com/gpu", "nvidia.com/mig-1g")).empty());
  ASSERT_EQ(ruled(kJob).size(), 1U);
  EXPECT_NE(ruled(kJob).front().find("example.com/slices"), std::string::npos);
  rules.ignore_undeclared_resources = true;
  EXPECT_TRUE(ruled(kJob).empty());
  // One pod may do where partial admission is asked for.
  EXPECT_TRUE(warnings(with(kJob, R"("annotations":{"x":"y"}},"spec":{"suspend")",
                            R"("annotations":{"kueue.x-k8s.io/job-min-parallelism":"1"}},)"
                            R"("spec":{"suspend")"))
                  .empty());
}

// ---- Pod
// -----------------------------------------------------------------------------------------

const std::string kGated =
    R"({"metadata":{"name":"p","uid":"p","labels":{"kueue.x-k8s.io/queue-name":"main",)"
    R"("kueue.x-k8s.io/managed":"true"}},"spec":{"schedulingGates":[{"name":"x/y"},)"
    R"({"name":"kueue.x-k8s.io/admission"}],"schedulerName":"default-scheduler","containers":[)"
    R"({"name":"c","resources":{"requests":{"cpu":"1"}}}]}})";
const std::string kUngated =
    with(kGated, R"({"name":"kueue.x-k8s.io/admission"})", R"({"name":"z"})");
const std::string kMember =
    R"({"metadata":{"name":"m","labels":{"kueue.x-k8s.io/podset":"main"},"annotations":{)"
    R"("kueue.x-k8s.io/workload":"g"},"ownerReferences":[{"kind":"Job","apiVersion":"batch/v1",)"
    R"("name":"g","uid":"g","controller":true}]},"spec":{"containers":[{"name":"c",)"
    R"("resources":{"requests":{"cpu":"1"}}}]}})";

TEST(ValidatePod, NewPods) {
  const std::string copy = with(
      kMember,
      R"(,"ownerReferences":[{"kind":"Job","apiVersion":"batch/v1","name":"g","uid":"g","controller":true}])",
      "");
  const std::string label = "metadata.labels[kueue.x-k8s.io/podset]";
  const std::string note = "metadata.annotations[kueue.x-k8s.io/workload]";
  struct Row {
    const char* sentence;
    std::string pod;
    Paths refused;
    bool by_controller = false;
  };
  const std::vector<Row> rows = {
      {"a gated pod", kGated, {}},
      {"a pod that is not ours", R"({"spec":{"nodeName":"n1","schedulerName":"mine"}})", {}},
      {"one whose gate another webhook took away", kUngated, {"spec.schedulingGates"}},
      {"past the scheduler",
       with(kUngated, R"("spec":{)", R"("spec":{"nodeName":"n1",)"),
       {"spec.nodeName"}},
      {"to another scheduler", with(kGated, "default-scheduler", "mine"), {"spec.schedulerName"}},
      {"a member", kMember, {}, true},
      {"a member that a user makes, whose size nobody looked at",
       kMember,
       {"metadata.ownerReferences"}},
      {"and without any label",
       with(kMember, R"("labels":{"kueue.x-k8s.io/podset":"main"},)", ""),
       {"metadata.ownerReferences"}},
      {"of a Job that is not queued",
       with(with(with(kMember, R"("labels":{"kueue.x-k8s.io/podset":"main"},)", ""),
                 R"("annotations":{"kueue.x-k8s.io/workload":"g"},)", ""),
            R"("uid":"g")", R"("uid":"h")"),
       {}},
      {"a member past the scheduler",
       with(kMember, R"("spec":{)", R"("spec":{"nodeName":"n1",)"),
       {"spec.nodeName"},
       true},
      {"a copy of a member's marks", copy, {label, note}},
      {"a member of one gang with the mark of another",
       with(kMember, R"("kueue.x-k8s.io/workload":"g")", R"("kueue.x-k8s.io/workload":"h")"),
       {note},
       true},
      {"the marks with an owner that is no workload's",
       with(kMember, R"("uid":"g")", R"("uid":"h")"),
       {label, note}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sentence);
    SnapshotBuilder world;
    world.node("n1").gang("g", {"n1"});
    auto request = create("", "Pod", json(row.pod));
    if (row.by_controller) request.username = "system:serviceaccount:kube-system:job-controller";
    EXPECT_EQ(refused(request, world.build()), row.refused);
  }
}

TEST(ValidatePod, IsPutIntoAQueuedJobByTheJobControllerAlone) {
  SnapshotBuilder world;
  world.node("n1").gang("g", {"n1"});
  const std::string released = R"({"metadata":{"name":"m"},"spec":{"containers":[{"name":"c"}]}})";
  const std::string adopted = with(
      released, R"("name":"m")",
      R"("name":"m","ownerReferences":[{"kind":"Job","apiVersion":"batch/v1","name":"g","uid":"g","controller":true}])");
  auto request = update("", "Pod", json(released), json(adopted));
  EXPECT_EQ(refused(request, world.build()), Paths{"metadata.ownerReferences"});
  EXPECT_EQ(refused(update("", "Pod", json(adopted),
                           json(with(adopted, R"("spec":{)", R"("spec":{"x":1,)"))),
                    world.build()),
            Paths{});
  request.username = "system:serviceaccount:kube-system:job-controller";
  EXPECT_EQ(refused(request, world.build()), Paths{});
}

TEST(ValidatePod, WithoutALabelInANamespaceThatIsGivenOver) {
  SnapshotBuilder world;
  world.node("n1").gang("g", {"n1"}).local_queue("team", "default", "cq", 8);
  world.ns("team", {{"muster.dev/managed", "true"}});
  const std::string bound =
      R"({"metadata":{"name":"x"},"spec":{"nodeName":"n1","containers":[{"name":"c"}]}})";
  EXPECT_EQ(refused(create("", "Pod", json(bound)), world.build()), Paths{"spec.nodeName"});
  const std::string of_unqueued_job = with(
      bound, R"("name":"x"},"spec":{"nodeName":"n1",)",
      R"("name":"x","ownerReferences":[{"kind":"Job","apiVersion":"batch/v1","name":"h","uid":"h","controller":true}]},"spec":{)");
  EXPECT_EQ(refused(create("", "Pod", json(of_unqueued_job)), world.build()),
            Paths{"metadata.ownerReferences"});
}

TEST(ValidatePod, TheJobControllerMayReplaceAPodThatWeStillSee) {
  SnapshotBuilder world;
  world.node("n1").gang("g", {"n1"}).bound("g", "g-0", "n1", std::nullopt);
  auto request = create("", "Pod", json(kMember));
  request.username = "system:serviceaccount:kube-system:job-controller";
  EXPECT_EQ(refused(request, world.build()), Paths{});
}

TEST(ValidatePod, Changes) {
  const std::string queue = "metadata.labels[kueue.x-k8s.io/queue-name]";
  const std::vector<ChangeCase> cases = {
      {"our gate is ours to remove", kGated, kUngated, {"spec.schedulingGates"}},
      {"another's gate is not", kGated, with(kGated, R"({"name":"x/y"},)", ""), {}},
      {"a place of its own choice while it waits",
       kGated,
       with(
           kGated, R"("spec":{)",
           R"("spec":{"nodeSelector":{"a":"b"},"affinity":{"nodeAffinity":{}},"tolerations":[{"key":"a"}],)"),
       {"spec.nodeSelector", "spec.affinity", "spec.tolerations"}},
      {"nothing written as an empty list",
       kGated,
       with(kGated, R"("spec":{)",
            R"("spec":{"nodeSelector":{},"affinity":null,"tolerations":[],)"),
       {}},
      {"out of the queue while it waits",
       kGated,
       with(kGated, R"("kueue.x-k8s.io/queue-name":"main",)", ""),
       {queue}},
      {"to another queue while it waits", kGated, with(kGated, R"("main")", R"("other")"), {}},
      {"to another queue while it runs",
       kUngated,
       with(kUngated, R"("main")", R"("other")"),
       {queue}},
      {"not preemptible any more",
       kUngated,
       with(kUngated, R"("labels":{)", R"("labels":{"muster.dev/preemptible":"false",)"),
       {"metadata.labels[muster.dev/preemptible]"}},
      {"not preemptible while it waits",
       kGated,
       with(kGated, R"("labels":{)", R"("labels":{"muster.dev/preemptible":"false",)"),
       {}},
      {"our mark taken off",
       kUngated,
       with(kUngated, R"(,"kueue.x-k8s.io/managed":"true")", ""),
       {"metadata.labels[kueue.x-k8s.io/managed]"}},
      {"a member's marks put on",
       R"({"metadata":{"name":"x"}})",
       R"({"metadata":{"name":"x","labels":{"kueue.x-k8s.io/podset":"main"},)"
       R"("annotations":{"kueue.x-k8s.io/workload":"g"}}})",
       {"metadata.labels[kueue.x-k8s.io/podset]", "metadata.annotations[kueue.x-k8s.io/workload]"}},
      {"annotations of one's own",
       kUngated,
       with(kUngated, R"("uid":"p",)", R"("uid":"p","annotations":{"a":"b"},)"),
       {}},
      {"anything on its way out",
       kGated,
       with(kUngated, R"("uid":"p",)", R"("uid":"p","deletionTimestamp":"2026-11-29T16:00:00Z",)"),
       {}},
  };
  for (const ChangeCase& c : cases) {
    SCOPED_TRACE(c.sentence);
    auto request = update("", "Pod", json(c.before), json(c.now));
    EXPECT_EQ(refused(request), c.refused);
    request.username = kMuster;
    EXPECT_EQ(refused(request), Paths{});
  }
}

TEST(ValidatePod, QueuedPodsDoNotGrow) {
  const std::string unqueued = R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"c",)"
                               R"("resources":{"requests":{"cpu":"1"}}}]}})";
  for (const std::string& pod : {kMember, kGated, kUngated, unqueued}) {
    const Paths expected = pod == unqueued ? Paths{} : Paths{"spec.containers"};
    const std::string larger = with(pod, R"({"cpu":"1"})", R"({"cpu":"1001m"})");
    const std::string smaller = with(pod, R"({"cpu":"1"})", R"({"cpu":"1e-1"})");
    EXPECT_EQ(refused(update("", "Pod", json(pod), json(larger), "resize")), expected) << pod;
    EXPECT_EQ(refused(update("", "Pod", json(pod), json(smaller), "resize")), Paths{}) << pod;
  }
  EXPECT_EQ(refused(update("", "Pod", json(kGated), json(kUngated), "status")), Paths{});
}

TEST(Validate, NeverRefusesADeletionOrKindsItDoesNotKnow) {
  auto request = create("batch", "Job", json(kRunning));
  request.operation = Operation::kDelete;
  EXPECT_EQ(refused(request), Paths{});
  EXPECT_EQ(refused(create("apps", "Deployment", json(kRunning))), Paths{});
}

}  // namespace
}  // namespace muster::webhook

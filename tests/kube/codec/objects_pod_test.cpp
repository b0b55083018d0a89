#include "kube/codec/objects.hpp"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

Json parsed(std::string_view text) {
  const Result<Json> json = Json::parse(text);
  EXPECT_TRUE(json) << text << ": " << (json ? "" : json.error().message);
  return json.value_or(Json());
}

TEST(DecodePod, ReadsWhatSchedulingNeeds) {
  const Pod pod = decode_pod(parsed(R"({
    "metadata":{"name":"p","namespace":"ml"},
    "spec":{"nodeName":"n1","schedulerName":"default-scheduler","priorityClassName":"high",
      "priority":1000,"preemptionPolicy":"Never","runtimeClassName":"kata",
      "schedulingGates":[{"name":"kueue.x-k8s.io/admission"}],
      "containers":[{"name":"c","resources":{"requests":{"cpu":"500m","nvidia.com/gpu":8},
                                             "limits":{"memory":1.5e9}}}],
      "initContainers":[{"name":"s","restartPolicy":"Always"},{"name":"i"}],
      "overhead":{"cpu":"10m"},"resources":{"requests":{"cpu":"1"}},
      "nodeSelector":{"zone":"a"},
      "tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"},
                     {"key":"n","value":"v","tolerationSeconds":30},
                     {"key":"level","operator":"Gt","value":"5"}],
      "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"NotIn","values":["x"]}]},
                              {"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}}},
    "status":{"phase":"Pending","nominatedNodeName":"n2",
              "conditions":[{"type":"PodScheduled","status":"False","lastProbeTime":null}]}})"))
                      .value();
  EXPECT_EQ(pod.spec.node_name.value(), "n1");
  EXPECT_EQ(pod.spec.priority, 1000);
  EXPECT_EQ(pod.spec.scheduling_gates, std::vector<std::string>{"kueue.x-k8s.io/admission"});
  EXPECT_EQ(pod.spec.containers[0].requests.at(ResourceName("nvidia.com/gpu")).units_ceil(), 8);
  EXPECT_EQ(pod.spec.containers[0].limits.at(ResourceName("memory")).units_ceil(), 1'500'000'000);
  EXPECT_TRUE(pod.spec.init_containers[0].restart_always);
  EXPECT_FALSE(pod.spec.init_containers[1].restart_always);
  EXPECT_EQ(pod.spec.overhead.at(ResourceName("cpu")).millis_ceil(), 10);
  ASSERT_TRUE(pod.spec.pod_requests);
  EXPECT_FALSE(pod.spec.pod_limits);
  EXPECT_EQ(pod.spec.constraints.node_selector.at("zone"), "a");
  // An operator that we cannot evaluate tolerates nothing.
  ASSERT_EQ(pod.spec.constraints.tolerations.size(), 2U);
  EXPECT_EQ(pod.spec.constraints.tolerations[0].op, Toleration::Operator::kExists);
  EXPECT_EQ(pod.spec.constraints.tolerations[1].toleration_seconds, 30);
  ASSERT_TRUE(pod.spec.constraints.required_affinity);
  ASSERT_EQ(pod.spec.constraints.required_affinity->size(), 2U);
  EXPECT_EQ((*pod.spec.constraints.required_affinity)[0].match_expressions[0].op,
            SelectorRequirement::Operator::kNotIn);
  EXPECT_EQ((*pod.spec.constraints.required_affinity)[1].match_fields[0].values[0], "n1");
  EXPECT_EQ(pod.nominated_node.value(), "n2");
  EXPECT_FALSE(pod.terminal());
  EXPECT_FALSE(pod.spec.has_scheduling_group);
}

TEST(DecodePod, NamesTheFieldThatIsWrong) {
  const struct {
    const char* spec;
    const char* message;
  } cases[] = {
      {R"("x")", "spec: got string \"x\", want an object"},
      {R"({"containers":{}})", "spec.containers: got an object, want an array"},
      {R"({"containers":[{"resources":{"requests":{"cpu":"1O"}}}]})",
       "spec.containers[0].resources.requests.cpu: bad quantity \"1O\" (want e.g. \"500m\", \"2\", "
       "\"1.5Gi\")"},
      {R"({"containers":[{"resources":{"requests":{"nvidia.com/gpu":[8]}}}]})",
       "spec.containers[0].resources.requests[\"nvidia.com/gpu\"]: got an array, want a quantity"},
      {R"({"initContainers":[{"restartPolicy":true}]})",
       "spec.initContainers[0].restartPolicy: got true, want a string"},
      {R"({"priority":9999999999})",
       "spec.priority: got 9999999999, want an integer from -2147483648 to 2147483647"},
      {R"({"tolerations":[{"effect":"Never"}]})",
       "spec.tolerations[0].effect: got string \"Never\", want one of NoSchedule, "
       "PreferNoSchedule, NoExecute"},
      {R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
          {"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"Is"}]}]}}}})",
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms[0].matchExpressions[0].operator: got string \"Is\", want one of In, "
       "NotIn, Exists, DoesNotExist, Gt, Lt"},
      {R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
          {"nodeSelectorTerms":[{"matchExpressions":[{"key":"k"}]}]}}}})",
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms[0].matchExpressions[0].operator: got nothing, want an operator"},
      {R"({"schedulingGates":["gate"]})",
       "spec.schedulingGates[0]: got string \"gate\", want an object"},
  };
  for (const auto& each : cases) {
    const Result<Pod> pod = decode_pod(Json::object({{"spec", parsed(each.spec)}}));
    ASSERT_FALSE(pod) << each.spec;
    EXPECT_EQ(pod.error().message, each.message);
  }
}

TEST(DecodePod, SeesNativeGangs) {
  EXPECT_TRUE(decode_pod(parsed(R"({"spec":{"schedulingGroup":{"podGroupName":"g"}}})"))
                  ->spec.has_scheduling_group);
  EXPECT_FALSE(
      decode_pod(parsed(R"({"spec":{"schedulingGroup":null}})"))->spec.has_scheduling_group);
}

TEST(PodRank, PrefersTheMoreSpecificIndexAndLabelsToAnnotations) {
  const struct {
    const char* sentence;
    const char* meta;
    std::optional<std::int64_t> rank;
  } cases[] = {
      {"no index", R"({})", std::nullopt},
      {"a Job's completion index", R"({"labels":{"batch.kubernetes.io/job-completion-index":"3"}})",
       3},
      {"as an annotation only",
       R"({"annotations":{"batch.kubernetes.io/job-completion-index":"4"}})", 4},
      {"label before annotation",
       R"({"labels":{"apps.kubernetes.io/pod-index":"1"},
           "annotations":{"batch.kubernetes.io/job-completion-index":"4"}})",
       1},
      {"worker index before the stateful set's",
       R"({"labels":{"apps.kubernetes.io/pod-index":"7",
                     "leaderworkerset.sigs.k8s.io/worker-index":"2"}})",
       2},
      {"a replica of a training job", R"({"labels":{"training.kubeflow.org/replica-index":"5"}})",
       5},
      {"a pod group", R"({"labels":{"kueue.x-k8s.io/pod-group-pod-index":"6"}})", 6},
      {"no number", R"({"labels":{"batch.kubernetes.io/job-completion-index":"x"}})", std::nullopt},
      {"negative", R"({"labels":{"batch.kubernetes.io/job-completion-index":"-1"}})", std::nullopt},
      {"beyond 32 bits", R"({"labels":{"batch.kubernetes.io/job-completion-index":"4294967296"}})",
       std::nullopt},
      {"empty", R"({"labels":{"batch.kubernetes.io/job-completion-index":""}})", std::nullopt},
      {"trailing text", R"({"labels":{"batch.kubernetes.io/job-completion-index":"1 "}})",
       std::nullopt},
  };
  for (const auto& each : cases) {
    const Pod pod = decode_pod(Json::object({{"metadata", parsed(each.meta)}})).value();
    EXPECT_EQ(pod.rank(), each.rank) << each.sentence;
  }
}

TEST(Pod, KnowsStaticAndDaemonPods) {
  EXPECT_TRUE(
      decode_pod(parsed(R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}})"))
          ->is_mirror());
  const char* const owned = R"({"metadata":{"ownerReferences":[
      {"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"u","controller":true}]}})";
  EXPECT_TRUE(decode_pod(parsed(owned))->is_daemon());
  EXPECT_FALSE(decode_pod(parsed(owned))->is_mirror());
  // An owner that does not control it is none.
  EXPECT_FALSE(decode_pod(parsed(R"({"metadata":{"ownerReferences":[
      {"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"u"}]}})"))
                   ->is_daemon());
  EXPECT_TRUE(decode_pod(parsed(R"({"status":{"phase":"Failed"}})"))->terminal());
  EXPECT_TRUE(decode_pod(parsed(R"({"status":{"phase":"Succeeded"}})"))->terminal());
}

TEST(DecodePodSpec, WorksOnASpecAlone) {
  EXPECT_EQ(decode_pod_spec(parsed(R"({"nodeName":"n"})"))->node_name.value(), "n");
  EXPECT_EQ(decode_pod_spec(parsed(R"({"nodeName":1})")).error().message,
            "nodeName: got 1, want a string");
}

}  // namespace
}  // namespace muster::kube

#include "cli/config.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

using testing::Test;

constexpr const char* kBoth = R"(
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: muster-system
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector: {matchLabels: {queued: "yes"}}
leaderElection: {leaderElect: true, resourceName: other-lease, resourceNamespace: other}
integrations: {frameworks: [batch/job]}
---
apiVersion: muster.dev/v1
kind: ServerConfig
extenderAddress: 127.0.0.1:9444
webhookAddress: none
controller: "off"
leaderElect: yes
certDir: certs
logLevel: debug
secondScheduler: muster-scheduler
managedResources: [nvidia.com/gpu, amd.com/gpu]
elasticWindow: 8
profile: kueue
podPriority: keep
)";

TEST(Config, ReadsBothDocuments) {
  const auto config = parse_config(kBoth);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_TRUE(config->warnings.empty());
  const Configuration& queueing = config->queueing;
  EXPECT_TRUE(queueing.manage_jobs_without_queue_name);
  EXPECT_TRUE(matches(queueing.managed_namespaces, {{"queued", "yes"}}));
  EXPECT_FALSE(matches(queueing.managed_namespaces, {}));
  EXPECT_EQ(queueing.leader_elect, true);
  EXPECT_EQ(queueing.peer_lease.name, "other-lease");
  EXPECT_EQ(queueing.peer_lease.ns, "other");
  EXPECT_TRUE(queueing.manage_jobs);
  EXPECT_FALSE(queueing.manage_pods);

  const ServerConfig& server = config->server;
  EXPECT_EQ(server.extender_address, "127.0.0.1:9444");
  EXPECT_EQ(server.webhook_address, "none");
  EXPECT_FALSE(server.metrics_address.has_value());
  EXPECT_EQ(server.controller, false);
  EXPECT_EQ(server.leader_elect, true);
  EXPECT_EQ(server.cert_dir, "certs");
  EXPECT_EQ(server.log_level, log::Level::kDebug);
  EXPECT_EQ(server.second_scheduler, "muster-scheduler");
  ASSERT_TRUE(server.managed_resources.has_value());
  EXPECT_EQ(*server.managed_resources,
            (std::vector{ResourceName("nvidia.com/gpu"), ResourceName("amd.com/gpu")}));
  EXPECT_EQ(server.elastic_window, 8);
  EXPECT_EQ(server.profile, Profile::kKueue);
  const engine::Options plain = under_profile(*server.profile, queueing.engine);
  EXPECT_FALSE(plain.joint_flavors);
  EXPECT_EQ(plain.improvements, engine::Improvements::none());
  EXPECT_EQ(server.pod_priority, PodPriority::kKeep);
}

TEST(Config, DefaultsLeaveSystemNamespacesAlone) {
  const auto config = parse_config("");
  ASSERT_TRUE(config.has_value());
  const auto& selector = config->queueing.managed_namespaces;
  EXPECT_TRUE(matches(selector, {{"kubernetes.io/metadata.name", "team-a"}}));
  EXPECT_FALSE(matches(selector, {{"kubernetes.io/metadata.name", "kube-system"}}));
  EXPECT_EQ(config->queueing.peer_lease.name, "c1f6bfd2.kueue.x-k8s.io");
  EXPECT_FALSE(config->server.elastic_window.has_value());
  const engine::Options ours = under_profile(Profile::kMuster, config->queueing.engine);
  EXPECT_TRUE(ours.joint_flavors);
  EXPECT_EQ(ours.improvements, engine::Improvements());
}

TEST(Config, AnEmptyListOfManagedResourcesIsNotAnAbsentOne) {
  const auto config =
      parse_config("apiVersion: muster.dev/v1\nkind: ServerConfig\nmanagedResources: []\n");
  ASSERT_TRUE(config.has_value());
  ASSERT_TRUE(config->server.managed_resources.has_value());
  EXPECT_TRUE(config->server.managed_resources->empty());
}

TEST(Config, ReadsHowRequestsCount) {
  const auto config = parse_config(R"(
apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
resources:
  excludeResourcePrefixes: [example.com/, ""]
  deviceClassMappings: []
  transformations:
    - {input: nvidia.com/mig-1g.5gb, strategy: Replace, multiplyBy: x, outputs: {slices: 1500m}}
    - {input: nvidia.com/gpu, outputs: {credits: 10}}
)");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const kube::ResourceRules& rules = config->queueing.resource_rules;
  EXPECT_EQ(rules.exclude_prefixes, (std::vector<std::string>{"example.com/"}));
  ASSERT_EQ(rules.transformations.size(), 2U);
  EXPECT_FALSE(rules.transformations[0].retain);
  EXPECT_EQ(rules.transformations[0].multiply_by, ResourceName("x"));
  EXPECT_EQ(rules.transformations[0].outputs.at(ResourceName("slices")),
            Quantity::from_millis(1500));
  EXPECT_TRUE(rules.transformations[1].retain);
  EXPECT_FALSE(config->queueing.engine.ignore_undeclared_resources);
  ASSERT_EQ(config->warnings.size(), 1U);
  EXPECT_NE(config->warnings[0].find("resources.deviceClassMappings"), std::string::npos);
}

TEST(Config, RefusesRequestRulesThatCannotBeMeant) {
  const std::string head =
      "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nresources: ";
  const std::pair<const char*, const char*> cases[] = {
      {"{quotaCheckStrategy: Ignore}", "resources.quotaCheckStrategy"},
      {"{quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a]}",
       "resources.quotaCheckStrategy"},
      {"{transformations: [{outputs: {a: 1}}]}", "resources.transformations[0].input"},
      {"{transformations: [{input: a}, {input: a}]}", "resources.transformations[1]"},
      {"{transformations: [{input: a, strategy: Keep}]}", "transformations[0].strategy"},
      {"{transformations: [{input: a, outputs: {b: x}}]}", "transformations[0].outputs"},
  };
  for (const auto& [text, mention] : cases) {
    const auto config = parse_config(head + text + "\n");
    ASSERT_FALSE(config.has_value()) << text;
    EXPECT_NE(config.error().message.find(mention), std::string::npos) << config.error().message;
  }
}

TEST(Config, NamesWhatItDoesNotServe) {
  const auto config = parse_config(R"(
apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
waitForPodsReady: {enable: true}
multiKueue: {gcInterval: 1m}
leaderElection: {leaseDuration: 15s}
integrations: {frameworks: [pod, ray.io/rayjob], podOptions: {}}
)");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  std::string all;
  for (const std::string& warning : config->warnings) all += warning + "\n";
  for (const char* field : {"waitForPodsReady", "multiKueue", "leaderElection.leaseDuration",
                            "ray.io/rayjob", "integrations.podOptions"}) {
    EXPECT_NE(all.find(field), std::string::npos) << field << " in\n" << all;
  }
  EXPECT_EQ(config->warnings.size(), 5U) << all;
}

TEST(Config, SaysWhetherSharesDecide) {
  using engine::FairStrategy;
  constexpr auto kFinal = FairStrategy::kLessThanOrEqualToFinalShare;
  constexpr auto kInitial = FairStrategy::kLessThanInitialShare;
  struct Case {
    const char* says;
    const char* version;
    const char* text;
    std::vector<FairStrategy> strategies;  ///< Empty: off.
  };
  const std::vector<Case> cases{
      {"v1beta2, absent", "v1beta2", "", {}},
      {"v1beta2, there", "v1beta2", "fairSharing: {}", {kFinal, kInitial}},
      {"v1beta2, one",
       "v1beta2",
       "fairSharing: {preemptionStrategies: [LessThanInitialShare]}",
       {kInitial}},
      {"v1beta1, not enabled",
       "v1beta1",
       "fairSharing: {preemptionStrategies: [LessThanInitialShare]}",
       {}},
      {"v1beta1, enabled", "v1beta1", "fairSharing: {enable: true}", {kFinal, kInitial}},
      {"v1beta1, the other one",
       "v1beta1",
       "fairSharing: {enable: true, preemptionStrategies: [LessThanOrEqualToFinalShare]}",
       {kFinal}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    const auto config = parse_config(std::string("apiVersion: config.kueue.x-k8s.io/") +
                                     each.version + "\nkind: Configuration\n" + each.text + "\n");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_TRUE(config->warnings.empty());
    const auto& sharing = config->queueing.engine.fair_sharing;
    EXPECT_EQ(sharing.has_value(), !each.strategies.empty());
    if (sharing) {
      EXPECT_EQ(sharing->strategies, each.strategies);
    }
  }
}

TEST(Config, SaysHowUseFades) {
  const std::string head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
  EXPECT_FALSE(parse_config(head)->queueing.engine.admission_fair_sharing.has_value());
  const auto config = parse_config(head +
                                   "admissionFairSharing:\n"
                                   "  usageHalfLifeTime: 168h\n"
                                   "  resourceWeights: {cpu: 2.5, memory: 0, gpu: \"1\"}\n");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const auto& sharing = config->queueing.engine.admission_fair_sharing;
  ASSERT_TRUE(sharing.has_value());
  EXPECT_EQ(sharing->usage_half_life, std::chrono::hours(168));
  EXPECT_EQ(sharing->usage_sampling_interval, std::chrono::minutes(5));
  EXPECT_EQ(sharing->resource_weights.at(ResourceName("cpu")).nanos, 2'500'000'000);
  EXPECT_EQ(sharing->resource_weights.at(ResourceName("memory")).nanos, 0);
  EXPECT_EQ(sharing->resource_weights.at(ResourceName("gpu")).nanos, 1'000'000'000);
  for (const char* wrong :
       {"usageHalfLifeTime: -1h", "usageHalfLifeTime: soon", "usageSamplingInterval: 0s",
        "resourceWeights: {cpu: -1}", "resourceWeights: [cpu]"}) {
    EXPECT_FALSE(parse_config(head + "admissionFairSharing: {" + wrong + "}\n").has_value())
        << wrong;
  }
}

TEST(Config, RefusesWhatItCannotMean) {
  struct Case {
    const char* says;
    const char* text;
    const char* mention;
  };
  const std::string server = "apiVersion: muster.dev/v1\nkind: ServerConfig\n";
  const std::vector<Case> cases{
      {"an unknown key of ours", "elasticWidow: 3", "elasticWidow: unknown key"},
      {"an address without a port", "apiAddress: localhost", "apiAddress"},
      {"a port that is none", "apiAddress: localhost:70000", "apiAddress"},
      {"a level that is none", "logLevel: loud", "want one of debug"},
      {"a profile that is none", "profile: slurm", "profile"},
      {"a pod priority that is none", "podPriority: high", "podPriority"},
      {"no window at all", "elasticWindow: 0", "elasticWindow"},
      {"a switch that is none", "controller: maybe", "controller"},
      {"a list of one", "managedResources: gpu", "managedResources"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    const auto config = parse_config(server + each.text + "\n");
    ASSERT_FALSE(config.has_value());
    EXPECT_NE(config.error().message.find(each.mention), std::string::npos)
        << config.error().message;
    EXPECT_TRUE(config.error().message.starts_with("document 1: ")) << config.error().message;
  }
  EXPECT_FALSE(parse_config(server + "---\n" + server).has_value()) << "two of one kind";
  EXPECT_FALSE(parse_config("apiVersion: v1\nkind: ConfigMap\n").has_value()) << "another kind";
  EXPECT_FALSE(parse_config("hello").has_value()) << "no object";
  EXPECT_FALSE(read_config("no/such/file").has_value());
}

TEST(Config, TheShippedOneIsRead) {
  const auto config = read_config(std::string(MUSTER_EXAMPLES) + "/../base/config.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_TRUE(config->warnings.empty());
  EXPECT_EQ(config->server.elastic_window, 64);
}

}  // namespace
}  // namespace muster::cli

// Random small fleets: whatever is decided keeps the contract, never takes more than there is, is
// the same a second time, and stays as it is when it is read again.

#include "cli/decide.hpp"
#include "kube/codec/objects.hpp"
#include "kube/codec/yaml.hpp"
#include "tests/cli/fragment.hpp"
#include "tests/rounds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>

namespace muster::cli {
namespace {

using kube::Json;

constexpr int kGpusPerNode = 8;

class Fleet {
 public:
  explicit Fleet(unsigned seed) : random_(seed) {
    const bool racks = chance(50);
    nodes_ = below(3) == 0 ? 0 : 2 + below(6);
    for (int i = 0; i < nodes_; ++i) add_node(i);
    add("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata: {name: racks}\n"
        "spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}");
    add(
        fmt::format("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\n"
                    "metadata: {{name: gpu{}}}\nspec: {{nodeLabels: {{pool: gpu}}{}}}",
                    chance(20) ? ", annotations: {muster.dev/capacity: elastic}" : "",
                    racks && nodes_ > 0 ? ", topologyName: racks" : ""));
    for (int value : {1, 10, 100}) {
      add(
          fmt::format("apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                      "metadata: {{name: p{}}}\nvalue: {}",
                      value, value));
    }
    if (chance(50)) {
      add("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: left}\n"
          "spec: {parentName: root}");
    }
    queues_ = 1 + below(4);
    for (int i = 0; i < queues_; ++i) add_queue(i);
    add_jobs("first", 1 + below(12));
  }

  void add_jobs(const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) {
      const bool required = nodes_ > 0 && chance(20);
      add(fmt::format(
          "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {}-{}\n  namespace: team\n{}"
          "  labels: {{kueue.x-k8s.io/queue-name: q{}, kueue.x-k8s.io/priority-class: p{}}}\n"
          "spec:\n  parallelism: {}\n  completions: 9\n  suspend: true\n  template:\n{}"
          "    spec: {{containers: [{{name: c, resources: {{requests: {{nvidia.com/gpu: "
          "{}}}}}}}]}}",
          prefix, i,
          chance(70) ? fmt::format("  creationTimestamp: \"2026-01-0{}T00:00:00Z\"\n", 1 + below(9))
                     : std::string(),
          below(queues_), pick({1, 10, 100}), 1 + below(4),
          required
              ? "    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}\n"
              : "",
          pick({1, 4, 8})));
    }
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] int nodes() const { return nodes_; }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  bool chance(int percent) { return below(100) < percent; }
  int pick(std::initializer_list<int> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

  void add(const std::string& document) { text_ += document + "\n---\n"; }

  void add_node(int i) {
    add(fmt::format(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: node-{0}, labels: {{pool: gpu, rack: "
        "r{1}}}}}\nstatus: {{allocatable: {{nvidia.com/gpu: {2}, pods: 110}}}}",
        i, i / 2, kGpusPerNode));
    if (chance(20)) {
      add(
          fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: stranger-{0}, namespace: x}}\n"
                      "spec: {{nodeName: node-{0}, containers: [{{name: c, resources: {{requests: "
                      "{{nvidia.com/gpu: {1}}}}}}}]}}",
                      i, 1 + below(kGpusPerNode)));
    }
  }

  void add_queue(int i) {
    const char* policies[] = {"Never", "LowerPriority", "Any"};
    const char* within[] = {"Never", "LowerPriority", "LowerOrNewerEqualPriority"};
    const int reclaim = below(3);
    add(fmt::format(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: q{}}}\nspec:\n"
        "  namespaceSelector: {{}}\n  cohortName: {}\n  queueingStrategy: {}\n"
        "  preemption: {{reclaimWithinCohort: {}, withinClusterQueue: {}{}}}\n"
        "  resourceGroups:\n    - coveredResources: [nvidia.com/gpu]\n"
        "      flavors: [{{name: gpu, resources: [{{name: nvidia.com/gpu, nominalQuota: {}{}}}]}}]",
        i, chance(50) ? "left" : "root", chance(30) ? "StrictFIFO" : "BestEffortFIFO",
        policies[reclaim], within[below(3)],
        reclaim > 0 && chance(40) ? ", borrowWithinCohort: {policy: LowerPriority}" : "",
        4 * below(9),
        chance(30) ? fmt::format(", borrowingLimit: {}", 4 * below(5)) : std::string()));
    add(
        fmt::format("apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{name: q{0}, "
                    "namespace: team}}\nspec: {{clusterQueue: q{0}}}",
                    i));
  }

  std::mt19937 random_;
  std::string text_;
  int nodes_ = 0;
  int queues_ = 0;
};

/// The configuration of all that follows; empty: none.
std::string g_config;

Result<std::string> decided(const std::string& text, ReportFormat format) {
  auto manifests = parse_manifests({{"input.yaml", text}});
  if (!manifests) return fail(manifests.error());
  DecideOptions options;
  options.format = format;
  if (!g_config.empty()) options.config = parse_config(g_config).value();
  const auto result = decide(*std::move(manifests), options);
  if (!result) return fail(result.error());
  return result->report;
}

Json report_of(const std::string& text) {
  const auto report = decided(text, ReportFormat::kJson);
  if (!report) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  const Json json = Json::parse(*report).value_or(Json());
  EXPECT_EQ(test::contract_breach(json), "") << *report;
  EXPECT_EQ(decided(text, ReportFormat::kJson).value_or(""), *report) << "a second time";
  return json;
}

/// Slots of everything that holds one, per node.
std::map<std::string, std::int64_t> planned_gpus(const std::string& yaml) {
  std::map<std::string, std::int64_t> planned;
  const auto documents = kube::parse_yaml(yaml);
  const Json items = documents->front().get("items");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items.at(i).get("kind").string_or("") == "Pod") {
      const auto pod = kube::decode_pod(items.at(i)).value();
      const auto gpus = kube::effective_requests(pod.spec).at(ResourceName("nvidia.com/gpu"));
      if (!pod.terminal()) planned[pod.spec.node_name.value()] += gpus.units_ceil();
    }
    if (items.at(i).get("kind").string_or("") != "Workload") continue;
    const auto workload = kube::decode_workload(items.at(i)).value();
    if (!workload.admission) continue;
    for (const auto& pod_set : workload.admission->pod_sets) {
      if (!pod_set.topology) continue;
      const std::int64_t total =
          pod_set.resource_usage.at(ResourceName("nvidia.com/gpu")).units_ceil();
      for (const auto& domain : pod_set.topology->domains) {
        planned[domain.values.back()] += domain.count * (total / *pod_set.count);
      }
    }
  }
  return planned;
}

void check_settled(const std::string& text) {
  const Json report = report_of(text);
  if (!report.present()) return;
  const std::string yaml = decided(text, ReportFormat::kYaml).value_or("");
  for (const auto& [node, gpus] : planned_gpus(yaml)) EXPECT_LE(gpus, kGpusPerNode) << node;
  const Json again = report_of(yaml);
  const Json decisions = again.get("decisions");
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    EXPECT_EQ(decisions.at(i).get("type").string_or(""), "Pending")
        << decisions.at(i).dump() << "\nafter " << report.get("decisions").pretty();
  }
  EXPECT_EQ(again.get("clusterQueues").dump(), report.get("clusterQueues").dump());
}

void check_fleets() {
  const std::uint64_t seeds = muster::test::rounds(40, 200);
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Fleet fleet(seed);
    check_settled(fleet.text());
    // And on from there, with new work.
    const auto yaml = decided(fleet.text(), ReportFormat::kYaml);
    if (!yaml) continue;
    const std::size_t before = fleet.text().size();
    fleet.add_jobs("second", 6);
    check_settled(*yaml + "---\n" + fleet.text().substr(before));
  }
}

TEST(DecideProperty, DecisionsHoldAndStay) {
  check_fleets();
}

TEST(DecideProperty, DecisionsHoldAndStayUnderFairSharing) {
  for (const char* strategies : {"LessThanOrEqualToFinalShare", "LessThanInitialShare",
                                 "LessThanOrEqualToFinalShare, LessThanInitialShare"}) {
    SCOPED_TRACE(strategies);
    g_config = fmt::format(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
        "fairSharing: {{preemptionStrategies: [{}]}}\n",
        strategies);
    check_fleets();
  }
  g_config.clear();
}

}  // namespace
}  // namespace muster::cli

#pragma once
// A small fleet for engine tests: builders with sensible defaults, and a driver that plays the API
// server (writes succeed at once) and checks the invariants after every step.

#include "engine/engine.hpp"
#include "engine/explain.hpp"
#include "engine/state.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::engine::test {

inline ResourceName gpu() {
  return ResourceName("nvidia.com/gpu");
}

struct QueueOptions {
  std::string cohort;
  std::int64_t nominal = 8;
  std::optional<std::int64_t> borrowing_limit;
  std::optional<std::int64_t> lending_limit;
  std::string flavor = "h100";
  QueueingStrategy strategy = QueueingStrategy::kBestEffortFifo;
  PreemptionSpec preemption;
  StopPolicy stop = StopPolicy::kNone;
  std::int64_t weight_nanos = 1'000'000'000;
  bool usage_based = false;
};

struct JobOptions {
  std::string queue = "a";  ///< LocalQueue of the same name.
  std::int64_t pods = 1;
  std::int64_t gpus = 8;  ///< Per pod.
  std::int64_t priority = 0;
  std::int64_t created_s = 0;
  std::optional<TopologyRequest> topology;
  NodeConstraints constraints;
  std::string flavor = "h100";     ///< Of World::run().
  std::vector<std::string> nodes;  ///< Its plan, likewise.
};

class World {
 public:
  explicit World(std::size_t budget = 0) : World(Options{.settle_budget = budget}) {}
  explicit World(const Options& options) : engine(options) {
    send(NamespaceUpserted{NamespaceSpec{Namespace("team"), {}}});
  }

  void send(const Event& event) {
    const Effects effects = engine.step(event, now);
    EXPECT_TRUE(effects.list.empty());
    (void)engine.publish();
    check();
  }

  void check() {
    for (const std::string& line : engine.check_invariants()) ADD_FAILURE() << line;
  }

  void flavor(const std::string& name, LabelMap labels = {}, std::string topology = "",
              Capacity capacity = Capacity::kFixed) {
    FlavorSpec spec;
    spec.name = FlavorName(name);
    spec.node_labels = std::move(labels);
    spec.capacity = capacity;
    if (!topology.empty()) spec.topology = TopologyName(topology);
    send(FlavorUpserted{spec});
  }

  void nodes(const std::string& prefix, int count, std::int64_t gpus = 8, LabelMap labels = {}) {
    for (int i = 1; i <= count; ++i) node(prefix + std::to_string(i), gpus, labels);
  }

  void node(const std::string& name, std::int64_t gpus = 8, LabelMap labels = {},
            bool ready = true) {
    NodeSpec spec;
    spec.name = NodeName(name);
    spec.labels = std::move(labels);
    spec.labels.emplace(kHostnameLabel, name);
    spec.allocatable = {{gpu(), Amount(gpus)},
                        {ResourceName("cpu"), Amount(96'000)},
                        {ResourceName("pods"), Amount(110)}};
    spec.ready = ready;
    send(NodeUpserted{spec});
  }

  /// A ClusterQueue and a LocalQueue of the same name in namespace `team`.
  void queue(const std::string& name, const QueueOptions& options = {}) {
    ClusterQueueSpec spec;
    spec.quota.name = ClusterQueueName(name);
    if (!options.cohort.empty()) spec.quota.cohort = CohortName(options.cohort);
    quota::Quota entry{Amount(options.nominal), std::nullopt, std::nullopt};
    if (options.borrowing_limit) entry.borrowing_limit = Amount(*options.borrowing_limit);
    if (options.lending_limit) entry.lending_limit = Amount(*options.lending_limit);
    spec.quota.resource_groups = {{{gpu()}, {{FlavorName(options.flavor), {{gpu(), entry}}}}}};
    spec.quota.fair_weight = quota::FairWeight{options.weight_nanos};
    spec.usage_based = options.usage_based;
    spec.strategy = options.strategy;
    spec.preemption = options.preemption;
    spec.stop_policy = options.stop;
    spec.namespace_selector = LabelSelector{};
    send(ClusterQueueUpserted{spec});
    send(LocalQueueUpserted{
        LocalQueueSpec{{Namespace("team"), name}, ClusterQueueName(name), StopPolicy::kNone}});
  }

  /// A Cohort with quota of its own of flavor `h100`. An empty parent: a root.
  void cohort(const std::string& name, const std::string& parent = "", std::int64_t nominal = 0,
              std::int64_t weight_nanos = 1'000'000'000) {
    quota::CohortSpec spec;
    spec.name = CohortName(name);
    if (!parent.empty()) spec.parent = CohortName(parent);
    spec.resource_groups = {
        {{gpu()},
         {{FlavorName("h100"), {{gpu(), {Amount(nominal), std::nullopt, std::nullopt}}}}}}};
    spec.fair_weight = quota::FairWeight{weight_nanos};
    send(CohortUpserted{spec});
  }

  static WorkloadKey key(const std::string& name) { return {Namespace("team"), name}; }

  WorkloadSpec job(const std::string& name, const JobOptions& options = {}) {
    WorkloadSpec spec;
    spec.key = key(name);
    spec.uid = Uid("uid-" + name);
    spec.owner_uid = Uid("owner-" + name);
    spec.queue_name = options.queue;
    spec.priority = options.priority;
    spec.created = Instant{options.created_s * 1'000'000};
    PodSetSpec pod_set;
    pod_set.name = PodSetName("main");
    pod_set.count = options.pods;
    pod_set.quota_requests = {{gpu(), Amount(options.gpus)}};
    pod_set.node_requests = {{gpu(), Amount(options.gpus)}, {ResourceName("pods"), Amount(1)}};
    pod_set.topology = options.topology;
    pod_set.constraints = options.constraints;
    spec.pod_sets = {pod_set};
    return spec;
  }

  void submit(const std::string& name, const JobOptions& options = {}) {
    specs[key(name)] = job(name, options);
    send(WorkloadUpserted{specs[key(name)]});
  }

  /// One that runs already; amounts in all.
  void run(const std::string& name, const JobOptions& options, std::int64_t reserved_s,
           Protection protection = {}) {
    WorkloadSpec spec = job(name, options);
    PodSetAssignment assignment;
    assignment.name = PodSetName("main");
    assignment.count = options.pods;
    assignment.flavors = {{gpu(), FlavorName(options.flavor)}};
    assignment.usage = {{gpu(), Amount(options.gpus * options.pods)}};
    for (const std::string& node : options.nodes) {
      assignment.nodes.push_back(NodeCount{NodeName(node), 1});
    }
    spec.admission = Admission{ClusterQueueName(options.queue), {assignment}};
    spec.admitted = true;
    spec.quota_reserved_at = Instant{reserved_s * 1'000'000};
    spec.protection = protection;
    specs[key(name)] = spec;
    send(WorkloadUpserted{spec});
  }

  void pass_time(std::int64_t seconds) { now.us += seconds * 1'000'000; }

  void finish(const std::string& name) {
    specs[key(name)].finished = true;
    send(WorkloadUpserted{specs[key(name)]});
  }

  /// A bound pod. `owner`: the job it belongs to; empty: foreign.
  void pod(const std::string& name, const std::string& node, std::int64_t gpus,
           const std::string& owner = "", std::optional<std::int64_t> rank = std::nullopt) {
    PodUse use;
    use.uid = Uid("pod-" + name);
    use.key = {Namespace("team"), name};
    use.node = NodeName(node);
    use.requests = {{gpu(), Amount(gpus)}, {ResourceName("pods"), Amount(1)}};
    use.rank = rank;
    use.owner_uid = owner.empty() ? use.uid : Uid("owner-" + owner);
    send(PodPlaced{use});
  }
  void pod_gone(const std::string& name) { send(PodGone{Uid("pod-" + name)}); }

  /// One whole pass (all its slices); effects are recorded, and written unless `write` is false.
  Effects settle(bool write = true) {
    Effects all;
    bool more = true;
    while (more) {
      Effects effects = engine.step(Settle{}, now);
      more = effects.more;
      all.list.insert(all.list.end(), effects.list.begin(), effects.list.end());
    }
    (void)engine.publish();
    check();
    for (const Effect& effect : all.list) {
      if (const auto* admit = std::get_if<Admit>(&effect)) {
        log.push_back("admit " + admit->workload.name);
        if (write) confirm(admit->workload, admit->admission);
      } else if (const auto* evict = std::get_if<Evict>(&effect)) {
        log.push_back("evict " + evict->workload.name +
                      (evict->rule ? " " + std::string(to_string(*evict->rule)) : "") +
                      (evict->preemptor ? " for " + evict->preemptor->name : ""));
        leaving.insert(evict->workload);
        ++evictions[evict->workload];
        WorkloadSpec& spec = specs[evict->workload];
        spec.evicted_at = now;
        if (evict->rule) {
          spec.preempted_at = now;
          spec.preempted_for = evict->preemptor_uid;
        }
      } else if (const auto* replan = std::get_if<Replan>(&effect)) {
        log.push_back("replan " + replan->workload.name);
        if (write) confirm(replan->workload, replan->admission);
      }
    }
    return all;
  }

  void confirm(const WorkloadKey& workload, const Admission& admission) {
    WorkloadSpec& spec = specs[workload];
    spec.admission = admission;
    spec.admitted = true;
    spec.quota_reserved_at = now;
    spec.preempted_for = Uid();
    send(WorkloadUpserted{spec});
  }

  /// All pods of every workload on its way out are gone.
  void let_leave() {
    for (const WorkloadKey& workload : leaving) {
      send(QuotaReleased{workload});
      WorkloadSpec& spec = specs[workload];
      spec.admission.reset();
      spec.admitted = false;
      spec.evicted = false;
      send(WorkloadUpserted{spec});
    }
    leaving.clear();
  }

  [[nodiscard]] bool admitted(const std::string& name) const {
    const WorkloadRecord* record = engine.state().find(key(name));
    return record != nullptr && record->holds_quota() && record->phase != Phase::kEvicting;
  }
  /// `n1 n1 n2`: the slots in order.
  [[nodiscard]] std::string plan(const std::string& name) const {
    std::string text;
    const WorkloadRecord* record = engine.state().find(key(name));
    if (record == nullptr || !record->admission) return text;
    for (const PodSetAssignment& pod_set : record->admission->pod_sets) {
      for (const NodeCount& entry : pod_set.nodes) {
        for (std::int64_t i = 0; i < entry.count; ++i) {
          text += (text.empty() ? "" : " ") + entry.node.value();
        }
      }
    }
    return text;
  }
  [[nodiscard]] std::string why(const std::string& name) const {
    const auto explanation = engine.explanation(key(name));
    return explanation ? std::string(to_string(explanation->reason)) : "";
  }
  [[nodiscard]] std::string needs_of(const std::string& name) const {
    const auto explanation = engine.explanation(key(name));
    return explanation ? needs(*explanation) : "";
  }

  Engine engine;
  Instant now{1'000'000'000};
  std::map<WorkloadKey, WorkloadSpec> specs;
  std::set<WorkloadKey> leaving;
  std::map<WorkloadKey, int> evictions;
  std::vector<std::string> log;
};

}  // namespace muster::engine::test

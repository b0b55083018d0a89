// What decisions about nodes cost, in one process on one core: the engine alone, driven by events,
// the API played by writes that succeed at once. Prints one line per measurement.
//
//   topology_bench [place|preemption|node|replan]...      (default: all)
//
// The fleet: superpods of 256 hosts in scalable units of 32, 8 GPUs a host. Only worth reading from
// an optimised build. Targets are in docs/performance.md.

#include "engine/engine.hpp"
#include "tests/bench/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster::engine {
namespace {

const ResourceName kGpu("nvidia.com/gpu");
const ResourceName kPods("pods");
const FlavorName kFlavor("h100");
const Namespace kTeam("team");
constexpr const char* kSuperpod = "example.com/superpod";
constexpr const char* kUnit = "example.com/unit";
constexpr int kUnitHosts = 32;
constexpr int kSuperpodHosts = 256;

/// The same sequence on every machine (numbers of Numerical Recipes).
class Random {
 public:
  int below(int limit) {
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<int>(
        (static_cast<std::uint64_t>(state_) * static_cast<std::uint64_t>(limit)) >> 32U);
  }

 private:
  std::uint32_t state_ = 1;
};

TopologyRequest required(const std::string& level) {
  return {TopologyRequest::Mode::kRequired, level};
}

class World {
 public:
  explicit World(int hosts, PreemptionPolicy within = PreemptionPolicy::kNever) {
    send(NamespaceUpserted{NamespaceSpec{kTeam, {}}});
    send(
        TopologyUpserted{TopologySpec{TopologyName("fabric"), {kSuperpod, kUnit, kHostnameLabel}}});
    FlavorSpec flavor;
    flavor.name = kFlavor;
    flavor.topology = TopologyName("fabric");
    send(FlavorUpserted{flavor});
    for (int i = 0; i < hosts; ++i) send(NodeUpserted{host(i)});
    ClusterQueueSpec queue;
    queue.quota.name = ClusterQueueName("q");
    queue.quota.resource_groups = {
        {{kGpu}, {{kFlavor, {{kGpu, quota::Quota{Amount(8 * hosts), {}, {}}}}}}}};
    queue.namespace_selector = LabelSelector{};
    queue.preemption.within_cluster_queue = within;
    send(ClusterQueueUpserted{queue});
    send(
        LocalQueueUpserted{LocalQueueSpec{{kTeam, "q"}, ClusterQueueName("q"), StopPolicy::kNone}});
    publish();
  }

  static NodeSpec host(int number) {
    NodeSpec node;
    node.name = NodeName(fmt::format("host-{:05}", number));
    node.labels = {{kSuperpod, fmt::format("s{:03}", number / kSuperpodHosts)},
                   {kUnit, fmt::format("u{:04}", number / kUnitHosts)},
                   {kHostnameLabel, node.name.value()}};
    node.allocatable = {{kGpu, Amount(8)}, {kPods, Amount(110)}};
    return node;
  }

  void send(const Event& event) { (void)engine_.step(event, now_); }
  void publish() { snapshot_ = engine_.publish(); }

  /// A gang of one-host pods.
  WorkloadKey submit(int pods, const TopologyRequest& topology, std::int64_t priority = 0) {
    const std::size_t number = jobs_++;
    WorkloadSpec spec;
    spec.key = {kTeam, fmt::format("job-{:06}", number)};
    spec.uid = Uid(fmt::format("uid-{:06}", number));
    spec.owner_uid = Uid(fmt::format("owner-{:06}", number));
    spec.queue_name = std::string("q");
    spec.priority = priority;
    spec.created = Instant{static_cast<std::int64_t>(number) * 1'000};
    PodSetSpec pod_set;
    pod_set.name = PodSetName("main");
    pod_set.count = pods;
    pod_set.quota_requests = {{kGpu, Amount(8)}};
    pod_set.node_requests = {{kGpu, Amount(8)}, {kPods, Amount(1)}};
    pod_set.topology = topology;
    spec.pod_sets = {pod_set};
    specs_[spec.key] = spec;
    send(WorkloadUpserted{spec});
    return spec.key;
  }

  void finish(const WorkloadKey& key) {
    specs_.erase(key);
    send(WorkloadDeleted{key});
  }

  struct Settled {
    double ms = 0;
    std::vector<WorkloadKey> admitted;
    std::vector<WorkloadKey> evicted;
    std::size_t replanned = 0;
  };

  /// Takes every decision there is; what was admitted is stored afterwards.
  Settled settle() {
    now_.us += 1'000'000;
    Settled result;
    std::vector<Effect> effects;
    const auto begin = bench::Clock::now();
    bool more = true;
    while (more) {
      Effects step = engine_.step(Settle{}, now_);
      more = step.more;
      effects.insert(effects.end(), step.list.begin(), step.list.end());
    }
    publish();
    result.ms = bench::milliseconds_since(begin);
    for (const Effect& effect : effects) {
      if (const auto* admit = std::get_if<Admit>(&effect)) {
        result.admitted.push_back(admit->workload);
        store(admit->workload, admit->admission);
      } else if (const auto* evict = std::get_if<Evict>(&effect)) {
        result.evicted.push_back(evict->workload);
      } else if (const auto* replan = std::get_if<Replan>(&effect)) {
        ++result.replanned;
        store(replan->workload, replan->admission);
      }
    }
    return result;
  }

 private:
  void store(const WorkloadKey& key, const Admission& admission) {
    WorkloadSpec& spec = specs_.at(key);
    spec.admission = admission;
    spec.admitted = true;
    if (!spec.quota_reserved_at) spec.quota_reserved_at = now_;
    send(WorkloadUpserted{spec});
  }

  Engine engine_;
  std::shared_ptr<const Snapshot> snapshot_;
  Instant now_{1'000'000'000};
  std::size_t jobs_ = 0;
  std::map<WorkloadKey, WorkloadSpec> specs_;
};

void print(const char* what, const std::vector<double>& ms) {
  fmt::print("{}: p50 {:.3f} ms, p99 {:.3f} ms, {} times\n", what, bench::quantile(ms, 0.5),
             bench::quantile(ms, 0.99), ms.size());
}

void bench_place() {
  World world(15'000);
  Random random;
  for (int i = 0; i < 1'500; ++i) (void)world.submit(1 + random.below(8), required(kUnit));
  (void)world.settle();
  std::vector<double> took;
  for (int i = 0; i < 500; ++i) {
    const WorkloadKey gang = world.submit(128, required(kSuperpod));
    const World::Settled settled = world.settle();
    if (settled.admitted.size() != 1) fmt::print("place: gang {} did not fit\n", i);
    took.push_back(settled.ms);
    world.finish(gang);
    (void)world.settle();
  }
  print("place: a gang of 128 hosts among 15,000, 1,500 gangs running", took);
}

void bench_preemption() {
  World world(2'000, PreemptionPolicy::kLowerPriority);
  Random random;
  // 700 gangs on all hosts: sizes of 2 and 3, then what is left.
  for (int i = 0; i < 700; ++i) (void)world.submit(2 + random.below(2), required(kUnit));
  (void)world.settle();
  for (int i = 0; i < 300; ++i) (void)world.submit(1, required(kUnit));
  (void)world.settle();
  std::vector<double> took;
  std::size_t evicted = 0;
  for (int i = 0; i < 200; ++i) {
    const WorkloadKey gang = world.submit(4 + 4 * (i % 4), required(kUnit), 10);
    const World::Settled settled = world.settle();
    took.push_back(settled.ms);
    evicted += settled.evicted.size();
    for (const WorkloadKey& victim : settled.evicted) world.finish(victim);
    (void)world.settle();
    world.finish(gang);
    for (std::size_t back = 0; back < settled.evicted.size(); ++back) {
      (void)world.submit(2 + random.below(2), required(kUnit));
    }
    (void)world.settle();
  }
  print("preemption: 4 to 16 hosts of one unit among some 700 gangs on 2,000 hosts", took);
  fmt::print("preemption: {} evicted\n", evicted);
}

void bench_node() {
  World world(15'000);
  Random random;
  for (int i = 0; i < 1'500; ++i) (void)world.submit(1 + random.below(8), required(kUnit));
  (void)world.settle();
  std::vector<double> took;
  for (int i = 0; i < 2'000; ++i) {
    NodeSpec node = World::host(14'999 - random.below(2'000));
    node.unschedulable = i % 2 == 0;
    const auto begin = bench::Clock::now();
    world.send(NodeUpserted{node});
    world.publish();
    took.push_back(bench::milliseconds_since(begin));
  }
  print("node: one of 15,000 cordoned or uncordoned, published", took);
}

void bench_replan() {
  World world(15'000);
  for (int i = 0; i < 1'000; ++i) {
    (void)world.submit(4, {TopologyRequest::Mode::kPreferred, kUnit});
  }
  (void)world.settle();
  // They stand side by side on the first 4,000 hosts.
  for (int i = 0; i < 1'000; ++i) world.send(NodeDeleted{World::host(4 * i).name});
  const World::Settled settled = world.settle();
  fmt::print("replan: 1,000 gangs lost a host each: {} planned anew, {} evicted, {:.1f} ms\n",
             settled.replanned, settled.evicted.size(), settled.ms);
}

}  // namespace
}  // namespace muster::engine

int main(int argc, char** argv) {
  using muster::engine::bench_node;
  using muster::engine::bench_place;
  using muster::engine::bench_preemption;
  using muster::engine::bench_replan;
  const std::vector<std::pair<std::string, std::function<void()>>> all = {
      {"place", bench_place},
      {"preemption", bench_preemption},
      {"node", bench_node},
      {"replan", bench_replan}};
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  for (const auto& [name, run] : all) {
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) run();
  }
}

#include "tests/differential/topology_worlds.hpp"

#include "tests/differential/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace muster::differential {
namespace {

constexpr const char* kBlock = "example.com/block";
constexpr const char* kRack = "example.com/rack";
constexpr const char* kHost = "kubernetes.io/hostname";

struct Node {
  std::string name;
  std::size_t flavor = 0;
  std::map<std::string, int> free;
  bool usable = true;  ///< Something that runs may stand here.
};

struct Queue {
  std::string name;
  bool in_cohort = false;
  std::vector<std::size_t> flavors;  ///< In its order.
};

struct PodSet {
  int count = 1;
  int min_count = 0;  ///< 0: none.
  std::map<std::string, int> requests;
  std::string topology;  ///< The inside of topologyRequest; empty: implied.
  bool tolerates = false;
  std::string kind;  ///< Of node; empty: any.
  bool by_affinity = false;
};

using Counts = std::map<std::size_t, int>;  ///< Pods by node.

class Generator {
 public:
  // Other draws than those of `world_of` for the same seed.
  explicit Generator(std::uint64_t seed) : random_(seed * 2 + 0x70706F6C) { world_.seed = seed; }

  World run() {
    world_.fair_sharing = random_.chance(25);
    if (world_.fair_sharing && random_.chance(40)) world_.strategies = some_strategies(random_);
    partial_ = random_.chance(6);
    one_queue_ = random_.chance(45);
    few_pods_ = one_queue_ && random_.chance(20);
    taints_ = random_.chance(8);
    kinds_ = random_.chance(12);
    with_cpu_ = random_.chance(35);
    add_topology();
    add_nodes();
    add_foreign_pods();
    add_cohorts();
    add_queues();
    add_workloads();
    std::vector<std::string> all = node_objects();
    all.insert(all.end(), objects_.begin(), objects_.end());
    world_.manifests = list_of_objects(all);
    return std::move(world_);
  }

 private:
  void add_topology() {
    levels_ = {kRack, kHost};
    if (random_.chance(45)) levels_.insert(levels_.begin(), kBlock);
    std::vector<std::string> labels;
    for (const std::string& level : levels_) {
      labels.push_back(fmt::format(R"({{"nodeLabel":"{}"}})", level));
    }
    objects_.push_back(fmt::format(
        R"({{{},"kind":"Topology","metadata":{{"name":"fabric"}},"spec":{{"levels":[{}]}}}})", kApi,
        joined(labels)));
    flavors_ = one_queue_ && random_.chance(35) ? 2 : 1;
    for (std::size_t i = 0; i < flavors_; ++i) {
      objects_.push_back(fmt::format(
          R"({{{},"kind":"ResourceFlavor","metadata":{{"name":"f{}"}},"spec":{{"nodeLabels":{{"tier":"f{}"}},"topologyName":"fabric"}}}})",
          kApi, i, i));
    }
  }

  void add_nodes() {
    const int racks = 1 + random_.below(4);
    const int blocks = levels_.size() > 2 ? 1 + random_.below(2) : 1;
    const int most_gpus = random_.pick({2, 4, 4, 6});
    const int count = 3 + random_.below(random_.chance(20) ? 10 : 5);
    // So that the order of names is not the order of racks.
    const std::vector<int> names = random_.order_of(count);
    for (int i = 0; i < count; ++i) {
      Node node;
      node.name = fmt::format("x{}", names[static_cast<std::size_t>(i)] + 1);
      node.flavor = static_cast<std::size_t>(random_.below(static_cast<int>(flavors_)));
      node.free = {{kGpu, 1 + random_.below(most_gpus)},
                   {"cpu", 1 + random_.below(8)},
                   {"pods", few_pods_ ? 1 + random_.below(4) : 110}};
      const int rack = random_.below(racks);
      rack_of_.push_back(fmt::format("r{}", rack));
      block_of_.push_back(fmt::format("b{}", rack % blocks));
      kind_of_.push_back(random_.chance(70) ? "big" : "small");
      state_of_.push_back(random_.below(100));
      node.usable = state_of_.back() >= 7;
      nodes_.push_back(node);
      capacity_.push_back(node.free);
    }
  }

  [[nodiscard]] std::vector<std::string> node_objects() const {
    std::vector<std::string> objects;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      std::string labels = fmt::format(R"("{}":"{}","{}":"{}","tier":"f{}")", kHost, nodes_[i].name,
                                       kRack, rack_of_[i], nodes_[i].flavor);
      if (levels_.size() > 2) labels += fmt::format(R"(,"{}":"{}")", kBlock, block_of_[i]);
      if (kinds_) labels += fmt::format(R"(,"kind":"{}")", kind_of_[i]);
      const int state = state_of_[i];
      std::string spec;
      if (state < 2) spec = R"("unschedulable":true)";
      if (state >= 4 && state < 7 && taints_) {
        spec = R"("taints":[{"key":"spot","value":"true","effect":"NoSchedule"}])";
      }
      std::vector<std::string> allocatable;
      for (const auto& [resource, amount] : capacity_[i]) {
        allocatable.push_back(fmt::format(R"("{}":"{}")", resource, amount));
      }
      objects.push_back(fmt::format(
          R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}","labels":{{{}}}}},"spec":{{{}}},"status":{{"allocatable":{{{}}},"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
          nodes_[i].name, labels, spec, joined(allocatable),
          state == 2 || state == 3 ? "False" : "True"));
    }
    return objects;
  }

  void add_foreign_pods() {
    if (!random_.chance(35)) return;
    const int count = 1 + random_.below(3);
    for (int i = 0; i < count; ++i) {
      Node& node = nodes_[static_cast<std::size_t>(random_.below(static_cast<int>(nodes_.size())))];
      const int gpus = random_.below(2);
      const int cpus = 1 - gpus;
      if (node.free[kGpu] < gpus || node.free["cpu"] < cpus || node.free["pods"] < 1) continue;
      node.free[kGpu] -= gpus;
      node.free["cpu"] -= cpus;
      --node.free["pods"];
      objects_.push_back(fmt::format(
          R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"other{}","namespace":"else","uid":"other{}"}},"spec":{{"nodeName":"{}","containers":[{{"name":"c","image":"i","resources":{{"requests":{{"{}":"1"}}}}}}]}},"status":{{"phase":"Running"}}}})",
          i, i, node.name, gpus > 0 ? kGpu : "cpu"));
    }
  }

  void add_cohorts() {
    const int shape = random_.below(100);
    // Under fair sharing chance decides in 0.17.0 between queues of different trees, and here they
    // want the same nodes.
    if (shape < 8 && !world_.fair_sharing) return;
    cohorts_.emplace_back("root");
    if (shape < 60) return;
    cohorts_.emplace_back("left");
    objects_.push_back(fmt::format(
        R"({{{},"kind":"Cohort","metadata":{{"name":"left"}},"spec":{{"parentName":"root"}}}})",
        kApi));
  }

  [[nodiscard]] std::vector<std::string> resources() const {
    return with_cpu_ ? std::vector<std::string>{"cpu", kGpu} : std::vector<std::string>{kGpu};
  }

  std::string quotas(const Queue& queue, std::size_t flavor, int queues) {
    std::vector<std::string> texts;
    for (const std::string& resource : resources()) {
      int total = 0;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].flavor == flavor) total += capacity_[i].at(resource);
      }
      // Now the quota is what limits, now the nodes are.
      const int share = 1 + total / queues;
      const int nominal = random_.chance(12) ? 0 : share / 2 + random_.below(share + 1) + 1;
      nominal_[{flavor, resource}] += nominal;
      std::string text = fmt::format(R"({{"name":"{}","nominalQuota":"{}")", resource, nominal);
      if (queue.in_cohort && random_.chance(15)) {
        text += fmt::format(R"(,"borrowingLimit":"{}")", random_.below(7));
      }
      if (queue.in_cohort && random_.chance(15)) {
        text += fmt::format(R"(,"lendingLimit":"{}")", random_.below(nominal + 1));
      }
      texts.push_back(text + "}");
    }
    return joined(texts);
  }

  void add_queues() {
    const int count = one_queue_ ? 1 : 2 + random_.below(3);
    for (int i = 0; i < count; ++i) {
      Queue queue{fmt::format("q{}", i), !cohorts_.empty(), {}};
      for (std::size_t flavor = 0; flavor < flavors_; ++flavor) queue.flavors.push_back(flavor);
      if (random_.chance(25)) std::reverse(queue.flavors.begin(), queue.flavors.end());
      std::vector<std::string> flavors;
      for (const std::size_t flavor : queue.flavors) {
        flavors.push_back(fmt::format(R"({{"name":"f{}","resources":[{}]}})", flavor,
                                      quotas(queue, flavor, count)));
      }
      std::vector<std::string> covered;
      for (const std::string& resource : resources()) {
        covered.push_back(fmt::format("\"{}\"", resource));
      }
      const std::string cohort =
          queue.in_cohort ? fmt::format(R"(,"cohortName":"{}")", random_.one_of(cohorts_)) : "";
      const std::string preemption = some_preemption(random_);
      const std::string fungibility = some_fungibility(random_);
      objects_.push_back(fmt::format(
          R"({{{},"kind":"ClusterQueue","metadata":{{"name":"{}"}},"spec":{{"namespaceSelector":{{}},"queueingStrategy":"{}"{}{}{},"resourceGroups":[{{"coveredResources":[{}],"flavors":[{}]}}]}}}})",
          kApi, queue.name, random_.chance(25) ? "StrictFIFO" : "BestEffortFIFO", cohort,
          preemption, fungibility, joined(covered), joined(flavors)));
      objects_.push_back(local_queue(queue.name));
      queues_.push_back(std::move(queue));
    }
  }

  /// A level that has others below it, or any.
  std::string some_level() { return random_.one_of(levels_); }

  /// Slices inside `at`, a place in the levels; the count is made to divide.
  std::string slices(std::size_t at, int& count) {
    const auto below = static_cast<int>(levels_.size() - at);
    const auto level = at + static_cast<std::size_t>(random_.below(below));
    const int size = random_.pick({1, 2, 2, 3, 4});
    count = size * (1 + random_.below(size > 2 ? 2 : 3));
    if (level + 1 < levels_.size() && size == 4 && random_.chance(60)) {
      const auto inner =
          level + 1 +
          static_cast<std::size_t>(random_.below(static_cast<int>(levels_.size() - level - 1)));
      return fmt::format(
          R"("podsetSliceRequiredTopologyConstraints":[{{"topology":"{}","size":4}},{{"topology":"{}","size":2}}])",
          levels_[level], levels_[inner]);
    }
    return fmt::format(R"("podSetSliceRequiredTopology":"{}","podSetSliceSize":{})", levels_[level],
                       size);
  }

  std::string together() {
    return fmt::format(R"("{}":"{}")", random_.chance(50) ? "required" : "preferred", some_level());
  }

  /// How the pods have to stand; may change their count.
  std::string topology_request(int& count) {
    const int way = random_.below(100);
    if (way < 14) return "";
    if (way < 28) return R"("unconstrained":true)";
    if (way < 78) return together();
    if (way < 86) return slices(0, count);
    const std::string wide = together();
    std::size_t at = 0;
    while (wide.find(levels_[at]) == std::string::npos) ++at;
    return wide + "," + slices(at, count);
  }

  PodSet pod_set() {
    PodSet result;
    result.count = random_.pick({1, 1, 1, 2, 2, 3, 4});
    result.topology = topology_request(result.count);
    if (partial_ && random_.chance(60) && result.topology.find("lice") == std::string::npos) {
      result.count = 2 + random_.below(4);
      result.min_count = 1 + random_.below(result.count);
    }
    result.requests[kGpu] = random_.pick({1, 1, 1, 2, 2, 3});
    if (with_cpu_) {
      const int cpus = random_.below(4);
      if (cpus > 0) result.requests["cpu"] = cpus;
    }
    result.tolerates = taints_ && random_.chance(40);
    if (kinds_ && random_.chance(40)) {
      result.kind = random_.chance(70) ? "big" : "small";
      result.by_affinity = random_.chance(50);
    }
    return result;
  }

  std::vector<PodSet> pod_sets() {
    std::vector<PodSet> result{pod_set()};
    if (result[0].min_count > 0 || !one_queue_) return result;
    const int shape = random_.below(100);
    if (shape < 18 && flavors_ == 1) {
      PodSet leader = pod_set();
      leader.count = 1;
      leader.min_count = 0;
      if (result[0].topology.empty() || result[0].topology.find("lice") != std::string::npos) {
        result[0].topology = together();
      }
      result[0].topology += R"(,"podSetGroupName":"group")";
      leader.topology = result[0].topology;
      leader.kind = result[0].kind;
      leader.by_affinity = result[0].by_affinity;
      leader.tolerates = result[0].tolerates;
      result.insert(random_.chance(70) ? result.begin() : result.end(), leader);
    } else if (shape < 42) {
      result.push_back(pod_set());
      result.back().min_count = 0;
    }
    return result;
  }

  [[nodiscard]] static std::string pod_set_json(const PodSet& pod_set, std::size_t index) {
    std::string spec = pod_spec(pod_set.requests, pod_set.tolerates);
    if (!pod_set.kind.empty() && !pod_set.by_affinity) {
      spec += fmt::format(R"(,"nodeSelector":{{"kind":"{}"}})", pod_set.kind);
    } else if (!pod_set.kind.empty()) {
      spec += fmt::format(
          R"(,"affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{{"matchExpressions":[{{"key":"kind","operator":"In","values":["{}"]}}]}}]}}}}}})",
          pod_set.kind);
    }
    std::string text = fmt::format(R"("name":"p{}","count":{})", index, pod_set.count);
    if (pod_set.min_count > 0) text += fmt::format(R"(,"minCount":{})", pod_set.min_count);
    if (!pod_set.topology.empty()) {
      text += fmt::format(R"(,"topologyRequest":{{{}}})", pod_set.topology);
    }
    return fmt::format(R"({{{},"template":{{"metadata":{{}},"spec":{{{}}}}}}})", text, spec);
  }

  /// Nodes for all pods of a set, anywhere with room; takes the room. Nothing: not enough.
  Counts stand(const PodSet& pod_set, std::size_t flavor) {
    Counts counts;
    int rest = pod_set.count;
    for (const int place : random_.order_of(static_cast<int>(nodes_.size()))) {
      Node& node = nodes_[static_cast<std::size_t>(place)];
      if (node.flavor != flavor || !node.usable) continue;
      if (!pod_set.kind.empty() && kind_of_[static_cast<std::size_t>(place)] != pod_set.kind) {
        continue;
      }
      while (rest > 0 && has_room(node, pod_set)) {
        charge(node, pod_set, 1);
        ++counts[static_cast<std::size_t>(place)];
        --rest;
      }
    }
    if (rest == 0) return counts;
    for (const auto& [place, count] : counts) charge(nodes_[place], pod_set, -count);
    return {};
  }
  [[nodiscard]] static bool has_room(const Node& node, const PodSet& pod_set) {
    return node.free.at("pods") > 0 &&
           std::all_of(pod_set.requests.begin(), pod_set.requests.end(), [&](const auto& asked) {
             return node.free.at(asked.first) >= asked.second;
           });
  }
  static void charge(Node& node, const PodSet& pod_set, int count) {
    for (const auto& [resource, amount] : pod_set.requests) node.free[resource] -= amount * count;
    node.free["pods"] -= count;
  }

  [[nodiscard]] bool has_quota(const std::vector<PodSet>& pod_sets, std::size_t flavor) {
    std::map<std::string, int> totals;
    for (const PodSet& pod_set : pod_sets) {
      for (const auto& [resource, amount] : pod_set.requests) {
        totals[resource] += amount * pod_set.count;
      }
    }
    return std::all_of(totals.begin(), totals.end(), [&](const auto& asked) {
      const std::pair what(flavor, asked.first);
      return used_[what] + asked.second <= nominal_[what];
    });
  }

  /// By host, in order of the path (semantics f), as one slice of v1beta2's compressed form.
  [[nodiscard]] std::string assignment(const Counts& counts) const {
    std::vector<std::pair<std::string, std::size_t>> order;
    for (const auto& [place, count] : counts) {
      const std::string block = levels_.size() > 2 ? block_of_[place] + "/" : "";
      order.emplace_back(block + rack_of_[place] + "/" + nodes_[place].name, place);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::string> roots;
    std::vector<std::string> pods;
    for (const auto& [path, place] : order) {
      roots.push_back(fmt::format("\"{}\"", nodes_[place].name.substr(1)));
      pods.push_back(fmt::format("{}", counts.at(place)));
    }
    return fmt::format(
        R"({{"levels":["{}"],"slices":[{{"domainCount":{},"valuesPerLevel":[{{"individual":{{"prefix":"x","roots":[{}]}}}}],"podCounts":{{"individual":[{}]}}}}]}})",
        kHost, order.size(), joined(roots), joined(pods));
  }

  /// Nothing where the tree would use more than it has, or the nodes are full: a world begins full,
  /// not broken.
  std::string running_status(const Queue& queue, const std::vector<PodSet>& pod_sets, int since) {
    const std::size_t flavor = random_.one_of(queue.flavors);
    if (!has_quota(pod_sets, flavor)) return "";
    std::vector<Counts> places;
    for (const PodSet& pod_set : pod_sets) {
      places.push_back(stand(pod_set, flavor));
      if (!places.back().empty()) continue;
      for (std::size_t i = 0; i + 1 < places.size(); ++i) {
        for (const auto& [place, count] : places[i]) charge(nodes_[place], pod_sets[i], -count);
      }
      return "";
    }
    std::vector<std::string> assignments;
    for (std::size_t i = 0; i < pod_sets.size(); ++i) {
      std::vector<std::string> flavors;
      std::vector<std::string> usage;
      for (const auto& [resource, amount] : pod_sets[i].requests) {
        const int total = amount * pod_sets[i].count;
        flavors.push_back(fmt::format(R"("{}":"f{}")", resource, flavor));
        usage.push_back(fmt::format(R"("{}":"{}")", resource, total));
        used_[{flavor, resource}] += total;
      }
      assignments.push_back(fmt::format(
          R"({{"name":"p{}","count":{},"flavors":{{{}}},"resourceUsage":{{{}}},"topologyAssignment":{}}})",
          i, pod_sets[i].count, joined(flavors), joined(usage), assignment(places[i])));
    }
    return running_since(since, queue.name, assignments);
  }

  void add_workloads() {
    const int count = 3 + random_.below(6);
    // Most worlds begin with more that runs than that waits: else little has to be preempted.
    const int running =
        random_.chance(93) ? 1 + std::max(random_.below(count - 1), random_.below(count - 1)) : 0;
    const std::vector<int> since = random_.order_of(count);
    const std::vector<int> age = random_.order_of(count);
    for (int i = 0; i < count; ++i) {
      const Queue& queue = random_.one_of(queues_);
      const auto place = static_cast<std::size_t>(i);
      std::vector<PodSet> sets = pod_sets();
      std::string status;
      for (int tries = 0; i < running && status.empty() && tries < 3; ++tries) {
        if (tries > 0) sets = pod_sets();
        status = running_status(queue, sets, since[place]);
      }
      std::vector<std::string> texts;
      for (std::size_t p = 0; p < sets.size(); ++p) texts.push_back(pod_set_json(sets[p], p));
      const int priority = i < running ? random_.below(2) : 1 + random_.below(3);
      objects_.push_back(
          workload({i, age[place], queue.name, priority, std::move(texts), std::move(status)}));
    }
  }

  Random random_;
  World world_;
  std::vector<std::string> objects_;
  bool partial_ = false;
  /// Only then workloads have several pod sets, and there is a choice of flavors: 0.17.0 differs in
  /// how it looks at these, and in what it does when heads of several queues want the same nodes.
  /// Worlds with both would differ for two reasons.
  bool one_queue_ = false;
  bool few_pods_ = false;  ///< Nodes take only a few.
  bool taints_ = false;
  bool kinds_ = false;
  bool with_cpu_ = false;
  std::vector<std::string> levels_;
  std::size_t flavors_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::map<std::string, int>> capacity_;
  std::vector<std::string> rack_of_;
  std::vector<std::string> block_of_;
  std::vector<std::string> kind_of_;
  std::vector<int> state_of_;  ///< In percent: some are unschedulable, not ready or tainted.
  std::vector<std::string> cohorts_;
  std::vector<Queue> queues_;
  /// Of all queues, and used by running workloads; by flavor and resource.
  std::map<std::pair<std::size_t, std::string>, int> nominal_;
  std::map<std::pair<std::size_t, std::string>, int> used_;
};

}  // namespace

World topology_world_of(std::uint64_t seed) {
  return Generator(seed).run();
}

}  // namespace muster::differential

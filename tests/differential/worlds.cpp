#include "tests/differential/worlds.hpp"

#include "tests/differential/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace muster::differential {
namespace {

struct Group {
  std::vector<std::string> resources;
  std::vector<std::string> flavors;
};

struct Queue {
  std::string name;
  std::string cohort;
  std::vector<Group> groups;  ///< Flavors in the order of this queue.
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed * 2 + 1) { world_.seed = seed; }

  World run() {
    world_.fair_sharing = random_.chance(35);
    if (world_.fair_sharing && random_.chance(40)) {
      world_.strategies = some_strategies(random_);
    }
    partial_ = random_.chance(12);
    taints_ = random_.chance(15);
    selectors_ = random_.chance(15);
    pods_ = random_.chance(10);
    add_flavors();
    add_cohorts();
    add_queues();
    add_workloads();
    world_.manifests = list_of_objects(objects_);
    return std::move(world_);
  }

  [[nodiscard]] const std::vector<std::string>& objects() const { return objects_; }

 private:
  void add_flavors() {
    const int count = 1 + random_.below(3);
    for (int i = 0; i < count; ++i) {
      const bool tainted = taints_ && i + 1 == count;
      flavors_.push_back(fmt::format("f{}", i));
      objects_.push_back(fmt::format(
          R"({{{},"kind":"ResourceFlavor","metadata":{{"name":"f{}"}},"spec":{{"nodeLabels":{{"tier":"f{}"}}{}}}}})",
          kApi, i, i,
          tainted ? R"(,"nodeTaints":[{"key":"spot","value":"true","effect":"NoSchedule"}])" : ""));
    }
    const int shape = random_.below(100);
    if (shape < 50) {
      groups_ = {{{kGpu}, flavors_}};
    } else if (shape < 85 || flavors_.size() == 1) {
      groups_ = {{{"cpu", kGpu}, flavors_}};
    } else {
      groups_ = {{{"cpu"}, {flavors_.front()}}, {{kGpu}, {flavors_.begin() + 1, flavors_.end()}}};
    }
    if (pods_) groups_.back().resources.emplace_back("pods");
  }

  /// `"nominalQuota":"4"` and limits; a queue may lend at most its nominal quota.
  std::string quota(const std::string& flavor, const std::string& resource, bool limits, int most,
                    bool is_queue) {
    const int nominal = random_.chance(20) ? 0 : 1 + random_.below(most);
    nominal_[{flavor, resource}] += nominal;
    std::string text = fmt::format(R"({{"name":"{}","nominalQuota":"{}")", resource, nominal);
    if (limits && random_.chance(25)) {
      text += fmt::format(R"(,"borrowingLimit":"{}")", random_.below(7));
    }
    if (limits && random_.chance(25)) {
      text +=
          fmt::format(R"(,"lendingLimit":"{}")", random_.below(is_queue ? nominal + 1 : most + 1));
    }
    return text + "}";
  }

  std::string resource_groups(const std::vector<Group>& groups, bool limits, int most,
                              bool is_queue) {
    std::vector<std::string> texts;
    for (const Group& group : groups) {
      std::vector<std::string> flavors;
      for (const std::string& flavor : group.flavors) {
        std::vector<std::string> quotas;
        for (const std::string& resource : group.resources) {
          quotas.push_back(quota(flavor, resource, limits, most, is_queue));
        }
        flavors.push_back(
            fmt::format(R"({{"name":"{}","resources":[{}]}})", flavor, joined(quotas)));
      }
      std::vector<std::string> covered;
      for (const std::string& resource : group.resources) {
        covered.push_back(fmt::format("\"{}\"", resource));
      }
      texts.push_back(fmt::format(R"({{"coveredResources":[{}],"flavors":[{}]}})", joined(covered),
                                  joined(flavors)));
    }
    return joined(texts);
  }

  std::string weight() {
    if (!world_.fair_sharing || random_.chance(50)) return "";
    return fmt::format(R"(,"fairSharing":{{"weight":"{}"}})",
                       random_.pick<const char*>({"1", "2", "500m", "3", "0"}));
  }

  void add_cohort(const std::string& name, const std::string& parent) {
    cohorts_.push_back(name);
    // A cohort need not have an object where it needs no parent.
    if (parent.empty() && random_.chance(50)) return;
    const std::string of =
        parent.empty() ? std::string() : fmt::format(R"(,"parentName":"{}")", parent);
    const std::string groups =
        random_.chance(35) ? fmt::format(R"(,"resourceGroups":[{}])",
                                         resource_groups(groups_, !parent.empty(), 5, false))
                           : std::string();
    std::string spec = of + groups + weight();
    if (!spec.empty()) spec.erase(0, 1);
    objects_.push_back(fmt::format(
        R"({{{},"kind":"Cohort","metadata":{{"name":"{}"}},"spec":{{{}}}}})", kApi, name, spec));
  }

  void add_cohorts() {
    const int shape = random_.below(100);
    if (shape < 6) return;
    add_cohort("root", "");
    if (shape < 50) return;
    add_cohort("left", "root");
    if (shape < 75) return;
    const char* parent = random_.chance(50) ? "root" : "left";
    add_cohort(random_.pick<const char*>({"right", "inner"}), parent);
  }

  void add_queues() {
    const int count = 1 + random_.below(4);
    for (int i = 0; i < count; ++i) {
      Queue queue{fmt::format("q{}", i), "", groups_};
      if (!cohorts_.empty()) {
        queue.cohort =
            cohorts_[static_cast<std::size_t>(random_.below(static_cast<int>(cohorts_.size())))];
      }
      for (Group& group : queue.groups) {
        if (group.flavors.size() > 1 && random_.chance(25)) {
          std::reverse(group.flavors.begin(), group.flavors.end());
        }
        if (group.flavors.size() > 1 && random_.chance(15)) group.flavors.pop_back();
      }
      const std::string cohort =
          queue.cohort.empty() ? std::string() : fmt::format(R"(,"cohortName":"{}")", queue.cohort);
      // One statement each: compilers differ in the order in which they evaluate arguments.
      const std::string groups = resource_groups(queue.groups, !queue.cohort.empty(), 5, true);
      const std::string shares = weight();
      const std::string fungibility = some_fungibility(random_);
      const std::string preemption = some_preemption(random_);
      objects_.push_back(fmt::format(
          R"({{{},"kind":"ClusterQueue","metadata":{{"name":"{}"}},"spec":{{"namespaceSelector":{{}},"queueingStrategy":"{}"{}{}{}{},"resourceGroups":[{}]}}}})",
          kApi, queue.name, random_.chance(25) ? "StrictFIFO" : "BestEffortFIFO", cohort,
          preemption, fungibility, shares, groups));
      objects_.push_back(local_queue(queue.name));
      queues_.push_back(std::move(queue));
    }
  }

  struct PodSet {
    int count = 1;
    int min_count = 0;  ///< 0: none.
    std::map<std::string, int> requests;
    bool tolerates = false;
    std::string selects;
  };

  PodSet pod_set() {
    PodSet result;
    result.count = random_.pick({1, 1, 1, 1, 2, 3});
    if (partial_ && random_.chance(50)) {
      result.count = 2 + random_.below(4);
      result.min_count = 1 + random_.below(result.count);
    }
    for (const Group& group : groups_) {
      for (const std::string& resource : group.resources) {
        if (resource == "pods") continue;
        const int amount = resource == kGpu ? 1 + random_.below(4) : random_.below(3);
        if (amount > 0) result.requests[resource] = amount;
      }
    }
    result.tolerates = taints_ && random_.chance(50);
    if (selectors_ && random_.chance(40)) {
      result.selects =
          flavors_[static_cast<std::size_t>(random_.below(static_cast<int>(flavors_.size())))];
    }
    return result;
  }

  [[nodiscard]] static std::string pod_set_json(const PodSet& pod_set, int index) {
    std::string spec = pod_spec(pod_set.requests, pod_set.tolerates);
    if (!pod_set.selects.empty()) {
      spec += fmt::format(R"(,"nodeSelector":{{"tier":"{}"}})", pod_set.selects);
    }
    return fmt::format(
        R"({{"name":"p{}","count":{}{},"template":{{"metadata":{{}},"spec":{{{}}}}}}})", index,
        pod_set.count,
        pod_set.min_count > 0 ? fmt::format(R"(,"minCount":{})", pod_set.min_count) : "", spec);
  }

  [[nodiscard]] static std::map<std::string, int> totals_of(const std::vector<PodSet>& pod_sets,
                                                            const Group& group) {
    std::map<std::string, int> totals;
    for (const std::string& resource : group.resources) {
      for (const PodSet& pod_set : pod_sets) {
        const auto asked = pod_set.requests.find(resource);
        if (asked != pod_set.requests.end()) totals[resource] += asked->second * pod_set.count;
        if (resource == "pods") totals[resource] += pod_set.count;
      }
    }
    return totals;
  }

  /// The first one from a random one on.
  const std::string* flavor_with_room(const Group& group, const std::vector<PodSet>& pod_sets) {
    const std::map<std::string, int> totals = totals_of(pod_sets, group);
    const std::size_t first = random_.next() % group.flavors.size();
    for (std::size_t i = 0; i < group.flavors.size(); ++i) {
      const std::string& flavor = group.flavors[(first + i) % group.flavors.size()];
      if (std::all_of(totals.begin(), totals.end(), [&](const auto& asked) {
            const std::pair what(flavor, asked.first);
            return used_[what] + asked.second <= nominal_[what];
          })) {
        return &flavor;
      }
    }
    return nullptr;
  }

  /// An admission on some flavors of the queue, or nothing where its tree would use more than it
  /// has: a world begins full, not broken.
  std::string running_status(const Queue& queue, const std::vector<PodSet>& pod_sets, int index) {
    std::map<std::string, std::string> flavor_of;
    for (const Group& group : queue.groups) {
      const std::string* flavor = flavor_with_room(group, pod_sets);
      if (flavor == nullptr) return "";
      for (const std::string& resource : group.resources) flavor_of[resource] = *flavor;
    }
    std::vector<std::string> assignments;
    for (std::size_t i = 0; i < pod_sets.size(); ++i) {
      const PodSet& pod_set = pod_sets[i];
      std::vector<std::string> flavors;
      std::vector<std::string> usage;
      std::map<std::string, int> totals;
      for (const auto& [resource, amount] : pod_set.requests) totals[resource] = amount;
      if (pods_) totals["pods"] = 1;
      for (const auto& [resource, amount] : totals) {
        const int total = amount * pod_set.count;
        flavors.push_back(fmt::format(R"("{}":"{}")", resource, flavor_of.at(resource)));
        usage.push_back(fmt::format(R"("{}":"{}")", resource, total));
        used_[{flavor_of.at(resource), resource}] += total;
      }
      assignments.push_back(
          fmt::format(R"({{"name":"p{}","count":{},"flavors":{{{}}},"resourceUsage":{{{}}}}})", i,
                      pod_set.count, joined(flavors), joined(usage)));
    }
    return running_since(random_order_[static_cast<std::size_t>(index)], queue.name, assignments);
  }

  void add_workloads() {
    const int count = 3 + random_.below(6);
    const bool ties = world_.ties = random_.chance(15);
    // Most worlds begin with more that runs than that waits: else little has to be preempted.
    const int running =
        random_.chance(95) ? 1 + std::max(random_.below(count - 1), random_.below(count - 1)) : 0;
    random_order_ = random_.order_of(count);
    const std::vector<int> age = random_order_;
    for (int i = 0; i < count; ++i) {
      const Queue& queue =
          queues_[static_cast<std::size_t>(random_.below(static_cast<int>(queues_.size())))];
      std::vector<PodSet> pod_sets{pod_set()};
      if (pod_sets[0].min_count == 0 && random_.chance(12)) {
        pod_sets.push_back(pod_set());
        if (pod_sets[1].min_count > 0) pod_sets[1].min_count = 0;
      }
      std::vector<std::string> texts;
      for (std::size_t p = 0; p < pod_sets.size(); ++p) {
        texts.push_back(pod_set_json(pod_sets[p], static_cast<int>(p)));
      }
      const int created =
          ties ? age[static_cast<std::size_t>(i)] / 2 : age[static_cast<std::size_t>(i)];
      std::string status = i < running ? running_status(queue, pod_sets, i) : "";
      const int priority = i < running ? random_.below(2) : 1 + random_.below(3);
      objects_.push_back(
          workload({i, created, queue.name, priority, std::move(texts), std::move(status)}));
    }
  }

  Random random_;
  World world_;
  std::vector<std::string> objects_;
  bool partial_ = false;
  bool taints_ = false;
  bool selectors_ = false;
  bool pods_ = false;
  std::vector<std::string> flavors_;
  std::vector<Group> groups_;
  std::vector<std::string> cohorts_;
  std::vector<Queue> queues_;
  /// Of all queues and cohorts, and used by running workloads; by flavor and resource.
  std::map<std::pair<std::string, std::string>, int> nominal_;
  std::map<std::pair<std::string, std::string>, int> used_;
  std::vector<int> random_order_;
};

}  // namespace

World world_of(std::uint64_t seed) {
  return Generator(seed).run();
}

std::string configuration_of(const World& world, const std::string& profile) {
  std::string text =
      fmt::format("apiVersion: muster.dev/v1\nkind: ServerConfig\nprofile: {}\n", profile);
  if (!world.fair_sharing) return text;
  text += "---\napiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";
  return text +
         fmt::format("fairSharing: {{preemptionStrategies: [{}]}}\n", joined(world.strategies));
}

std::string shuffled(const World& world, std::uint64_t salt) {
  Generator again(world.seed);
  (void)again.run();
  std::vector<std::string> objects = again.objects();
  Random random(salt);
  for (std::size_t i = objects.size(); i > 1; --i) {
    std::swap(objects[i - 1], objects[random.next() % i]);
  }
  return list_of_objects(objects);
}

std::string peer_line(const World& world) {
  std::vector<std::string> strategies;
  for (const std::string& strategy : world.strategies) {
    strategies.push_back(fmt::format("\"{}\"", strategy));
  }
  return fmt::format(
      R"({{"seed":{},"fingerprint":"{:08x}","fairSharing":{},"strategies":[{}],"list":{}}})",
      world.seed, fingerprint(world), world.fair_sharing, joined(strategies), world.manifests);
}

std::uint32_t fingerprint(const World& world) {
  std::uint32_t hash = 2166136261U;
  for (const char c :
       fmt::format("{}{}", world.fair_sharing, joined(world.strategies)) + world.manifests) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return hash;
}

}  // namespace muster::differential

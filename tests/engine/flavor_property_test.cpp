// Flavors and counts of random workloads against all there are.

#include "engine/attempt.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace muster::engine::test {
namespace {

const ResourceName kGpu("nvidia.com/gpu");

/// One queue without a cohort, its flavors elastic: quota alone decides.
struct Fleet {
  State state;
  ClusterQueueSpec queue;

  explicit Fleet(const std::vector<int>& nominal) {
    queue.quota.name = ClusterQueueName("q");
    quota::ResourceGroup group;
    group.covered_resources = {kGpu};
    for (std::size_t i = 0; i < nominal.size(); ++i) {
      FlavorSpec flavor;
      flavor.name = FlavorName(fmt::format("f{}", i));
      flavor.capacity = Capacity::kElastic;
      state.flavors.emplace(flavor.name, flavor);
      group.flavors.push_back(
          {flavor.name, {{kGpu, quota::Quota{Amount(nominal[i]), std::nullopt, std::nullopt}}}});
    }
    queue.quota.resource_groups = {group};
    state.queues.emplace(queue.name(), queue);
    state.mark_tree_dirty();
    state.ensure_tree();
  }

  Attempt attempt(const WorkloadSpec& workload) {
    std::size_t work = 0;
    FlavorAssigner flavors(state, workload, queue);
    return engine::attempt(state, workload, queue, flavors, work);
  }
};

WorkloadSpec workload_of(const std::vector<int>& gpus) {
  WorkloadSpec workload;
  for (const int each : gpus) {
    PodSetSpec& pod_set = workload.pod_sets.edit().emplace_back();
    pod_set.name = PodSetName(fmt::format("s{}", workload.pod_sets.size()));
    pod_set.quota_requests = {{kGpu, Amount(each)}};
  }
  return workload;
}

/// Some choice of a flavor for each pod set stays within every quota.
bool fits_somehow(std::vector<int> free, const std::vector<int>& gpus, std::size_t next = 0) {
  if (next == gpus.size()) return true;
  for (int& left : free) {
    if (left < gpus[next]) continue;
    left -= gpus[next];
    if (fits_somehow(free, gpus, next + 1)) return true;
    left += gpus[next];
  }
  return false;
}

TEST(FlavorProperty, AWorkloadThatFitsInSomeCombinationStarts) {
  EXPECT_TRUE(rc::check("admitted exactly when a combination fits, within every quota", [] {
    const std::size_t flavors = *rc::gen::inRange<std::size_t>(1, 4);
    const std::size_t pod_sets = *rc::gen::inRange<std::size_t>(1, flavors == 3 ? 4 : 5);
    const auto nominal = *rc::gen::container<std::vector<int>>(flavors, rc::gen::inRange(0, 13));
    const auto gpus = *rc::gen::container<std::vector<int>>(pod_sets, rc::gen::inRange(1, 9));
    Fleet fleet(nominal);
    const Attempt attempt = fleet.attempt(workload_of(gpus));
    const bool admitted = attempt.assignment.mode == Mode::kFit;
    RC_ASSERT(admitted == fits_somehow(nominal, gpus));
    if (!admitted) return;
    std::map<std::string, std::int64_t> used;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      used[attempt.assignment.admission.pod_sets.at(i).flavors.at(kGpu).value()] += gpus[i];
    }
    for (std::size_t i = 0; i < nominal.size(); ++i) {
      RC_ASSERT(used[fmt::format("f{}", i)] <= nominal[i]);
    }
  }));
}

TEST(FlavorProperty, FewerPodsAreAsManyAsFit) {
  EXPECT_TRUE(rc::check("the largest count from minCount up that some flavor holds", [] {
    const auto nominal = *rc::gen::container<std::vector<int>>(2, rc::gen::inRange(0, 200));
    const int per_pod = *rc::gen::inRange(1, 4);
    const int count = *rc::gen::inRange(1, 100);
    const int least = *rc::gen::inRange(1, count + 1);
    const int ended = *rc::gen::inRange(0, count + 1);
    Fleet fleet(nominal);
    WorkloadSpec workload = workload_of({per_pod});
    workload.pod_sets.edit()[0].count = count;
    workload.pod_sets.edit()[0].min_count = least;
    workload.pod_sets.edit()[0].reclaimable = ended;
    const Attempt attempt = fleet.attempt(workload);
    const int most = *std::max_element(nominal.begin(), nominal.end()) / per_pod;
    const int wanted = count - ended;
    const bool admitted = attempt.assignment.mode == Mode::kFit;
    // Pods that ended are not asked for again, whatever the least is.
    RC_ASSERT(admitted == (most >= std::min(least, wanted)));
    if (!admitted) return;
    const PodSetAssignment& assigned = attempt.assignment.admission.pod_sets.at(0);
    RC_ASSERT(assigned.count == std::min(wanted, most));
    RC_ASSERT(assigned.usage.at(kGpu) == Amount(assigned.count * per_pod));
  }));
}

}  // namespace
}  // namespace muster::engine::test

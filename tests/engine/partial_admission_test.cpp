// Workloads that start with fewer pods: queueing semantics (b), partial admission.

#include "engine/attempt.hpp"
#include "tests/engine/world.hpp"

namespace muster::engine::test {
namespace {

using Counts = std::vector<std::int64_t>;

/// Pods of 1 GPU in one pod set, down to `least`.
WorkloadSpec shrinkable(World& world, const std::string& name, std::int64_t count,
                        std::int64_t least, const JobOptions& options = {}) {
  WorkloadSpec spec = world.job(name, options);
  spec.pod_sets.edit()[0].count = count;
  spec.pod_sets.edit()[0].min_count = least;
  spec.pod_sets.edit()[0].quota_requests = {{gpu(), Amount(1)}};
  spec.pod_sets.edit()[0].node_requests = {{gpu(), Amount(1)}, {ResourceName("pods"), Amount(1)}};
  return spec;
}

void submit(World& world, const WorkloadSpec& spec) {
  world.specs[spec.key] = spec;
  world.send(WorkloadUpserted{spec});
}

Counts admitted_counts(const World& world, const std::string& name) {
  Counts counts;
  const WorkloadRecord* record = world.engine.state().find(World::key(name));
  if (record == nullptr || !record->admission) return counts;
  for (const PodSetAssignment& each : record->admission->pod_sets) counts.push_back(each.count);
  return counts;
}

TEST(PartialAdmission, CountsGoDownStepByStep) {
  WorkloadSpec spec;
  spec.pod_sets.edit().resize(2);
  spec.pod_sets.edit()[0].count = 4;
  spec.pod_sets.edit()[0].min_count = 4;
  spec.pod_sets.edit()[1].count = 10;
  spec.pod_sets.edit()[1].min_count = 5;
  EXPECT_EQ(reduction_steps(spec), 5);
  EXPECT_EQ(reduced_counts(spec, 3), (Counts{4, 7}));  // 10 - floor(5 x 3 / 5)
  EXPECT_EQ(reduced_counts(spec, 5), (Counts{4, 5}));
  spec.pod_sets.edit()[0].min_count = 1;  // Together 3 + 5 steps.
  EXPECT_EQ(reduction_steps(spec), 8);
  EXPECT_EQ(reduced_counts(spec, 3), (Counts{3, 9}));  // floor(9 / 8), floor(15 / 8)
  spec.pod_sets.edit()[0].min_count.reset();
  spec.pod_sets.edit()[1].min_count = 12;  // More than there are: no slack.
  EXPECT_EQ(reduction_steps(spec), 0);
  EXPECT_EQ(reduced_counts(spec, 0), (Counts{4, 10}));
  spec.pod_sets.edit()[1].count = 2147483647;
  spec.pod_sets.edit()[1].min_count = 0;
  EXPECT_EQ(reduced_counts(spec, reduction_steps(spec)), (Counts{4, 0}));
}

TEST(PartialAdmission, CountsAreWholeSlices) {
  struct Case {
    std::int64_t count;
    std::int64_t least;
    std::int64_t slice;
    Counts by_step;  ///< From step 1.
  };
  const std::vector<Case> cases = {
      {8, 2, 4, {4, 4, 4, 4, 4, 4}},
      {10, 6, 4, {8, 8, 8, 8}},  // 7 and 6 are rounded up: 4 would be too few
      {10, 9, 4, {9}},           // no number of slices will do
      {3, 0, 2, {2, 2, 2}},
      {4, 2, 0, {3, 2}},  // no slices at all
  };
  for (const Case& one : cases) {
    WorkloadSpec spec;
    spec.pod_sets.edit().resize(1);
    PodSetSpec& pod_set = spec.pod_sets.edit()[0];
    pod_set.count = one.count;
    pod_set.min_count = one.least;
    pod_set.topology = TopologyRequest{};
    pod_set.topology->slices = {{"rack", one.slice}};
    Counts by_step;
    for (std::int64_t step = 1; step <= reduction_steps(spec); ++step) {
      by_step.push_back(reduced_counts(spec, step, true)[0]);
    }
    EXPECT_EQ(by_step, one.by_step) << one.count << " in slices of " << one.slice;
  }
}

TEST(PartialAdmission, AsManyAsTheQuotaHasAreAdmitted) {
  struct Case {
    const char* sentence;
    std::int64_t nominal;
    Counts counts;
  };
  const Case cases[] = {
      {"all of them where they fit", 20, {10}},
      {"as many as fit else", 7, {7}},
      {"down to the least", 4, {4}},
      {"and not below it", 3, {}},
  };
  for (const Case& c : cases) {
    World world;
    world.flavor("spot", {}, "", Capacity::kElastic);
    world.queue("a", {.nominal = c.nominal, .flavor = "spot"});
    submit(world, shrinkable(world, "job", 10, 4));
    world.settle();
    EXPECT_EQ(admitted_counts(world, "job"), c.counts) << c.sentence;
    if (!c.counts.empty()) continue;
    // What it needs is said for all of its pods.
    EXPECT_EQ(world.why("job"), "ExceedsMaxQuota");
  }
}

TEST(PartialAdmission, PlanAndUsageHaveTheReducedCount) {
  World world;
  world.flavor("h100");
  world.nodes("n", 2, 3);
  world.queue("a", {.nominal = 100});
  submit(world, shrinkable(world, "job", 10, 2));
  world.settle();
  // 6 GPUs on two nodes of 3.
  EXPECT_EQ(admitted_counts(world, "job"), (Counts{6}));
  EXPECT_EQ(world.plan("job"), "n1 n1 n1 n2 n2 n2");
  const WorkloadRecord* record = world.engine.state().find(World::key("job"));
  EXPECT_EQ(record->usage->at({FlavorName("h100"), gpu()}), Amount(6));
  world.finish("job");
  world.submit("other", {.pods = 2, .gpus = 3});
  world.settle();
  EXPECT_TRUE(world.admitted("other"));
}

TEST(PartialAdmission, AllPodsByPreemptionComeBeforeFewerWithout) {
  World world;
  world.flavor("spot", {}, "", Capacity::kElastic);
  PreemptionSpec preemption;
  preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
  world.queue("a", {.nominal = 8, .flavor = "spot", .preemption = preemption});
  world.submit("low", {.gpus = 4, .priority = -1});
  world.settle();
  submit(world, shrinkable(world, "job", 8, 2, {.created_s = 2}));
  world.settle();
  EXPECT_EQ(world.log.back(), "evict low InClusterQueue for job");
  world.let_leave();
  world.settle();
  EXPECT_EQ(admitted_counts(world, "job"), (Counts{8}));
}

TEST(PartialAdmission, FewerPodsMayPreemptToo) {
  World world;
  world.flavor("spot", {}, "", Capacity::kElastic);
  PreemptionSpec preemption;
  preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
  world.queue("a", {.nominal = 8, .flavor = "spot", .preemption = preemption});
  world.submit("low", {.gpus = 4, .priority = -1});
  world.submit("high", {.gpus = 4, .priority = 9});
  world.settle();
  submit(world, shrinkable(world, "job", 8, 3, {.created_s = 2}));
  world.settle();
  EXPECT_EQ(world.log.back(), "evict low InClusterQueue for job");
  world.let_leave();
  world.settle();
  EXPECT_EQ(admitted_counts(world, "job"), (Counts{4}));
  EXPECT_TRUE(world.admitted("high"));
}

TEST(PartialAdmission, StrictFifoWaitsForTheHeadOnlyWhileNotEvenItsLeastFits) {
  for (const std::int64_t least : {2, 5}) {
    World world;
    world.flavor("spot", {}, "", Capacity::kElastic);
    world.queue("a", {.nominal = 8, .flavor = "spot", .strategy = QueueingStrategy::kStrictFifo});
    world.submit("running", {.gpus = 4});
    world.settle();
    submit(world, shrinkable(world, "head", 6, least, {.created_s = 1}));
    submit(world, shrinkable(world, "next", 1, 1, {.created_s = 2}));
    world.settle();
    // 4 are free: a head that can do with 2 takes all of them.
    EXPECT_EQ(admitted_counts(world, "head"), least == 2 ? (Counts{4}) : Counts{});
    EXPECT_FALSE(world.admitted("next"));
  }
}

TEST(PartialAdmission, MembersOfAClassGetWhatIsLeftForEach) {
  World world;
  world.flavor("spot", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 9, .flavor = "spot"});
  for (const char* name : {"x", "y", "z"}) submit(world, shrinkable(world, name, 6, 2));
  world.settle();
  EXPECT_EQ(admitted_counts(world, "x"), (Counts{6}));
  EXPECT_EQ(admitted_counts(world, "y"), (Counts{3}));
  EXPECT_EQ(admitted_counts(world, "z"), (Counts{}));
}

TEST(PartialAdmission, PodsThatEndedAreNotAskedForAgain) {
  World world;
  world.flavor("spot", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 5, .flavor = "spot"});
  WorkloadSpec spec = shrinkable(world, "job", 10, 2);
  spec.pod_sets.edit()[0].reclaimable = 7;
  submit(world, spec);
  world.settle();
  EXPECT_EQ(admitted_counts(world, "job"), (Counts{3}));
}

}  // namespace
}  // namespace muster::engine::test

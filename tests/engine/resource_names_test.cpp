// Who may bring names into the resource table, and what becomes of a name that comes late.

#include "tests/engine/world.hpp"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>

namespace muster::engine::test {
namespace {

using ::testing::HasSubstr;

ResourceName gaudi() {
  return ResourceName("habana.ai/gaudi");
}
ResourceName roce() {
  return ResourceName("rdma/roce");
}

ResourceList invented(int count) {
  ResourceList list;
  for (int i = 0; i < count; ++i) {
    list.emplace(ResourceName("example.com/x" + std::to_string(i)), Amount(1));
  }
  return list;
}

/// With 96 CPUs and 110 pods beside `offered`.
NodeUpserted node_with(const std::string& name, ResourceList offered) {
  NodeSpec spec;
  spec.name = NodeName(name);
  spec.labels.emplace(kHostnameLabel, name);
  spec.allocatable = std::move(offered);
  spec.allocatable.emplace(ResourceName("cpu"), Amount(96'000));
  spec.allocatable.emplace(ResourceName("pods"), Amount(110));
  return NodeUpserted{spec};
}

NodeUpserted gaudi_node(const std::string& name) {
  return node_with(name, {{gaudi(), Amount(8)}, {roce(), Amount(100)}});
}

PodUse bound_pod(const std::string& name, const std::string& node, ResourceList requests) {
  PodUse use;
  use.uid = Uid("pod-" + name);
  use.key = {Namespace("team"), name};
  use.node = NodeName(node);
  use.requests = std::move(requests);
  use.requests.emplace(ResourceName("pods"), Amount(1));
  use.owner_uid = use.uid;
  return use;
}

/// Queue `a` has quota of flavor h100 for gaudi and GPUs, more than the nodes have.
void prepare(World& world) {
  world.flavor("h100");
  world.queue("a", {.nominal = 100});
  ClusterQueueSpec queue = world.engine.state().queues.at(ClusterQueueName("a"));
  const quota::Quota entry{Amount(100), std::nullopt, std::nullopt};
  queue.quota.resource_groups = {
      {{gpu(), gaudi()}, {{FlavorName("h100"), {{gpu(), entry}, {gaudi(), entry}}}}}};
  world.send(ClusterQueueUpserted{queue});
}

/// `pods` of one gaudi and one roce each.
WorkloadSpec gaudi_job(World& world, const std::string& name, std::int64_t pods) {
  WorkloadSpec spec = world.job(name, {.pods = pods});
  PodSetSpec& pod_set = spec.pod_sets.edit()[0];
  pod_set.quota_requests = {{gaudi(), Amount(1)}};
  pod_set.node_requests = {
      {gaudi(), Amount(1)}, {roce(), Amount(1)}, {ResourceName("pods"), Amount(1)}};
  return spec;
}

void submit(World& world, const WorkloadSpec& spec) {
  world.specs[spec.key] = spec;
  world.send(WorkloadUpserted{spec});
}

void submit_gaudi_job(World& world, const std::string& name, std::int64_t pods) {
  submit(world, gaudi_job(world, name, pods));
}

/// The same, admitted with all its pods on one node.
void run_gaudi_job(World& world, const std::string& name, std::int64_t pods,
                   const std::string& node) {
  WorkloadSpec spec = gaudi_job(world, name, pods);
  PodSetAssignment assignment;
  assignment.name = PodSetName("main");
  assignment.count = pods;
  assignment.flavors = {{gaudi(), FlavorName("h100")}};
  assignment.usage = {{gaudi(), Amount(pods)}};
  assignment.nodes = {{NodeName(node), pods}};
  spec.admission = Admission{ClusterQueueName("a"), {assignment}};
  spec.admitted = true;
  spec.quota_reserved_at = world.now;
  submit(world, spec);
}

std::string text_of(const World& world, const std::string& name) {
  const auto explanation = world.engine.explanation(World::key(name));
  return explanation ? describe(*explanation) : "";
}

Amount use_on(const World& world, const std::string& node, topology::UseKind kind,
              const ResourceName& name) {
  const State& state = world.engine.state();
  const ResourceList use =
      state.fleet.use(*state.fleet.find(NodeName(node)), kind).to_list(state.resources);
  const auto found = use.find(name);
  return found == use.end() ? Amount() : found->second;
}

void expect_eight_gaudis(World& world) {
  world.send(gaudi_node("g1"));
  submit_gaudi_job(world, "too-large", 16);
  world.settle();
  EXPECT_FALSE(world.admitted("too-large"));
  EXPECT_THAT(text_of(world, "too-large"), HasSubstr("room for 8 of 16"));
  submit_gaudi_job(world, "right", 8);
  world.settle();
  EXPECT_EQ(world.plan("right"), "g1 g1 g1 g1 g1 g1 g1 g1");
}

TEST(ResourceNames, APodThatInventsSomeTakesNoPlaceOfThoseThatNodesBringLater) {
  World world;
  prepare(world);
  world.nodes("n", 1);
  const std::size_t before = world.engine.state().resources.size();
  world.send(PodPlaced{bound_pod("flood", "n1", invented(1500))});
  world.settle();
  EXPECT_EQ(world.engine.state().resources.size(), before);
  world.pod_gone("flood");
  expect_eight_gaudis(world);
}

TEST(ResourceNames, APendingWorkloadThatInventsSomeTakesNoPlaceEither) {
  World world;
  prepare(world);
  world.nodes("n", 1);
  WorkloadSpec flood = world.job("flood");
  flood.pod_sets.edit()[0].node_requests.merge(invented(1500));
  submit(world, flood);
  world.settle();
  // It was looked at, and does not fit where no node offers what it asks for.
  EXPECT_THAT(text_of(world, "flood"), HasSubstr("room for 0 of 1"));
  EXPECT_THAT(text_of(world, "flood"), ::testing::Not(HasSubstr("counted")));
  expect_eight_gaudis(world);
}

TEST(ResourceNames, WhatAPodInventsCountsNowhereAndMovesNobodysPlan) {
  World world;
  prepare(world);
  world.nodes("n", 2);
  world.submit("gang", {.pods = 1});
  world.settle();
  ASSERT_EQ(world.plan("gang"), "n1");
  world.send(PodPlaced{bound_pod("odd", "n1", invented(3))});
  world.settle();
  EXPECT_EQ(world.plan("gang"), "n1");
  EXPECT_EQ(use_on(world, "n1", topology::UseKind::kForeign, ResourceName("pods")), Amount(1));
}

TEST(ResourceNames, APendingWorkloadIsPlannedOnceANodeBringsTheName) {
  World world;
  prepare(world);
  world.nodes("n", 1);
  submit_gaudi_job(world, "early", 2);
  world.settle();
  EXPECT_THAT(text_of(world, "early"), HasSubstr("nodes of flavor h100 have room for 0 of 2"));
  world.send(gaudi_node("g1"));
  world.settle();
  EXPECT_EQ(world.plan("early"), "g1 g1");
}

TEST(ResourceNames, BoundPodsCountFromTheMomentTheirNodeBringsTheName) {
  World world;
  prepare(world);
  world.send(node_with("g1", {}));
  world.send(PodPlaced{bound_pod("old", "g1", {{gaudi(), Amount(3)}})});
  world.send(PodPlaced{bound_pod("brief", "g1", {{gaudi(), Amount(1)}})});
  world.pod_gone("brief");
  EXPECT_EQ(use_on(world, "g1", topology::UseKind::kForeign, gaudi()), Amount());
  world.send(gaudi_node("g1"));
  EXPECT_EQ(use_on(world, "g1", topology::UseKind::kForeign, gaudi()), Amount(3));
  EXPECT_EQ(world.engine.publish()->find_node("g1")->pods.front().requests[*(
                world.engine.state().resources.find(gaudi()))],
            Amount(3));
  submit_gaudi_job(world, "next", 6);
  world.settle();
  EXPECT_THAT(text_of(world, "next"), HasSubstr("room for 5 of 6"));
  world.pod_gone("old");
  world.settle();
  EXPECT_TRUE(world.admitted("next"));
}

TEST(ResourceNames, PlansAndTheirPodsThatAreKnownBeforeTheNodeCountOnce) {
  World world;
  prepare(world);
  run_gaudi_job(world, "gang", 2, "g1");
  PodUse member = bound_pod(
      "gang-0", "g1",
      {{gaudi(), Amount(1)}, {roce(), Amount(1)}, {ResourceName("example.com/never"), Amount(1)}});
  member.owner_uid = Uid("owner-gang");
  world.send(PodPlaced{member});
  // The one name after the other.
  world.send(node_with("g2", {{roce(), Amount(1)}}));
  EXPECT_EQ(use_on(world, "g1", topology::UseKind::kPlanned, roce()), Amount(2));
  world.send(gaudi_node("g1"));
  EXPECT_EQ(use_on(world, "g1", topology::UseKind::kPlanned, gaudi()), Amount(2));
  EXPECT_EQ(use_on(world, "g1", topology::UseKind::kForeign, gaudi()), Amount());
  world.settle();
  EXPECT_TRUE(world.log.empty());
  EXPECT_EQ(world.plan("gang"), "g1 g1");
  submit_gaudi_job(world, "next", 7);
  world.settle();
  EXPECT_THAT(text_of(world, "next"), HasSubstr("room for 6 of 7"));
}

TEST(ResourceNames, APlanOfWhatNoNodeOffersIsGivenUpAndNoOther) {
  World world;
  prepare(world);
  world.nodes("n", 1);
  world.run("other", {.gpus = 4, .nodes = {"n1"}}, 0);
  run_gaudi_job(world, "gang", 2, "n1");
  world.settle();
  EXPECT_THAT(world.log, ::testing::ElementsAre("evict gang"));
  EXPECT_TRUE(world.admitted("other"));
}

TEST(ResourceNames, WhatFindsTheTableFullIsNeverGivenAway) {
  World world;
  prepare(world);
  // GPUs and 1,019 more, with 4 that are always there: 1,024.
  ResourceList many = invented(1019);
  many.emplace(gpu(), Amount(8));
  world.send(node_with("n1", many));
  ASSERT_TRUE(world.engine.state().resources.full());
  world.send(gaudi_node("g1"));
  world.send(PodPlaced{bound_pod("old", "g1", {{gaudi(), Amount(3)}})});
  submit_gaudi_job(world, "gang", 1);
  world.submit("gpus", {.gpus = 4});
  WorkloadSpec last = world.job("last", {.gpus = 1});
  last.pod_sets.edit()[0].node_requests[ResourceName("example.com/x1018")] = Amount(2);
  submit(world, last);
  world.settle();
  EXPECT_FALSE(world.admitted("gang"));
  EXPECT_EQ(text_of(world, "gang"),
            "nodes of flavor h100 have room for 0 of 1 pod of main (2 nodes; left out: 2 whose "
            "habana.ai/gaudi is beyond the 1024 resources that are counted)");
  // The others are counted as before, each for itself.
  EXPECT_EQ(world.plan("gpus"), "n1");
  EXPECT_THAT(text_of(world, "last"), HasSubstr("room for 0 of 1 pod of main"));
  EXPECT_THAT(text_of(world, "last"), ::testing::Not(HasSubstr("counted")));
}

// ---------------------------------------------------------------- by name, whatever the order

int up_to(int limit) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, limit + 1));
}

/// Some of four names, up to `most` of each; `share` of five, roughly, are in it.
ResourceList some(int share, int most) {
  ResourceList list;
  for (const char* name : {"example.com/a", "example.com/b", "habana.ai/gaudi", "rdma/roce"}) {
    if (up_to(4) < share) list.emplace(ResourceName(name), Amount(1 + up_to(most - 1)));
  }
  return list;
}

struct Objects {
  std::vector<NodeUpserted> nodes;
  std::vector<PodPlaced> pods;
  std::vector<WorkloadSpec> jobs;
};

Objects some_objects(World& world) {
  Objects objects;
  for (int i = 1 + up_to(2); i > 0; --i) {
    objects.nodes.push_back(node_with("n" + std::to_string(i), some(3, 8)));
  }
  for (int i = up_to(3); i > 0; --i) {  // n4 is never there.
    objects.pods.push_back(
        PodPlaced{bound_pod(std::to_string(i), "n" + std::to_string(1 + up_to(3)), some(2, 3))});
  }
  for (int i = 1 + up_to(2); i > 0; --i) {
    WorkloadSpec job = gaudi_job(world, "job" + std::to_string(i), 1 + up_to(5));
    ResourceList requests = some(2, 2);
    requests.merge(ResourceList{{ResourceName("pods"), Amount(1)}, {gaudi(), Amount(1)}});
    job.pod_sets.edit()[0].quota_requests = {{gaudi(), requests.at(gaudi())}};
    job.pod_sets.edit()[0].node_requests = requests;
    objects.jobs.push_back(job);
  }
  return objects;
}

void send_nodes_first(World& world, const Objects& objects) {
  for (const auto& event : objects.nodes) world.send(event);
  for (const auto& event : objects.pods) world.send(event);
  for (const WorkloadSpec& job : objects.jobs) submit(world, job);
}

/// More names are asked for than the table has places before the first node offers one.
void send_nodes_last(World& world, const Objects& objects) {
  world.send(PodPlaced{bound_pod("flood", "n1", invented(1100))});
  world.pod_gone("flood");
  for (const WorkloadSpec& job : objects.jobs) submit(world, job);
  for (const auto& event : objects.pods) world.send(event);
  for (const auto& event : objects.nodes) {
    world.settle();
    for (const WorkloadSpec& job : objects.jobs) {
      // Nobody stays where only the first nodes were seen.
      if (world.admitted(job.key.name)) world.send(QuotaReleased{job.key});
      submit(world, job);
    }
    world.send(event);
  }
}

void add(ResourceList& sum, const ResourceList& list, std::int64_t times) {
  for (const auto& [name, amount] : list) sum[name] += amount * times;
}

/// Adds up by name, without any table, what stands on each node where a job is planned.
void expect_room(const World& world, const Objects& objects) {
  for (const NodeUpserted& node : objects.nodes) {
    ResourceList planned;
    for (const WorkloadSpec& job : objects.jobs) {
      const WorkloadRecord* record = world.engine.state().find(job.key);
      if (record == nullptr || !record->admission) continue;
      for (const NodeCount& entry : record->admission->pod_sets[0].nodes) {
        if (entry.node != node.node.name) continue;
        add(planned, job.pod_sets[0].node_requests, entry.count);
      }
    }
    ResourceList used = planned;
    for (const PodPlaced& pod : objects.pods) {
      if (pod.pod->node == node.node.name) add(used, pod.pod->requests, 1);
    }
    for (const auto& [name, amount] : planned) {
      const auto offered = node.node.allocatable.find(name);
      RC_ASSERT(offered != node.node.allocatable.end());
      RC_ASSERT(used.at(name) <= offered->second);
    }
  }
}

TEST(ResourceNamesProperty, NoMoreIsPlannedThanNodesOfferWhicheverCameFirst) {
  EXPECT_TRUE(rc::check([] {
    World first;
    World last;
    prepare(first);
    prepare(last);
    const Objects objects = some_objects(first);
    send_nodes_first(first, objects);
    send_nodes_last(last, objects);
    for (const NodeUpserted& node : objects.nodes) {
      for (const auto& [name, amount] : node.node.allocatable) {
        const std::string& at = node.node.name.value();
        RC_ASSERT(use_on(first, at, topology::UseKind::kForeign, name) ==
                  use_on(last, at, topology::UseKind::kForeign, name));
      }
    }
    first.settle();
    last.settle();
    expect_room(first, objects);
    expect_room(last, objects);
    RC_CLASSIFY(std::any_of(objects.jobs.begin(), objects.jobs.end(),
                            [&](const auto& job) { return first.admitted(job.key.name); }),
                "a job is admitted");
  }));
}

}  // namespace
}  // namespace muster::engine::test

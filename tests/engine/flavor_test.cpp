// Which flavors: queueing semantics (b).

#include "engine/flavor_assigner.hpp"
#include "tests/engine/world.hpp"

#include <fmt/format.h>

namespace muster::engine::test {
namespace {

using Stop = FungibilitySpec::Stop;
using Preference = FungibilitySpec::Preference;

struct NamedQuota {
  std::string flavor;
  std::int64_t nominal = 0;
};

/// Room is no question here: flavors are elastic unless they have a topology.
class Flavors : public World {
 public:
  explicit Flavors(const Options& options = {}) : World(options) {}

  void elastic(const std::string& name, LabelMap labels = {}) {
    flavor(name, std::move(labels), "", Capacity::kElastic);
  }

  static quota::ResourceGroup group(const ResourceName& resource,
                                    const std::vector<NamedQuota>& quotas) {
    quota::ResourceGroup result;
    result.covered_resources = {resource};
    for (const NamedQuota& each : quotas) {
      result.flavors.push_back(
          {FlavorName(each.flavor),
           {{resource, quota::Quota{Amount(each.nominal), std::nullopt, std::nullopt}}}});
    }
    return result;
  }

  static ClusterQueueSpec spec(const std::string& name, const std::string& cohort,
                               std::vector<quota::ResourceGroup> groups) {
    ClusterQueueSpec result;
    result.quota.name = ClusterQueueName(name);
    if (!cohort.empty()) result.quota.cohort = CohortName(cohort);
    result.quota.resource_groups = std::move(groups);
    result.namespace_selector = LabelSelector{};
    return result;
  }

  void add(const ClusterQueueSpec& spec) {
    send(ClusterQueueUpserted{spec});
    send(LocalQueueUpserted{
        LocalQueueSpec{{Namespace("team"), spec.name().value()}, spec.name(), StopPolicy::kNone}});
  }

  /// Submits a workload with one pod per pod set, each asking for so many GPUs.
  void submit_sets(const std::string& name, const std::vector<std::int64_t>& gpus,
                   const std::string& group = "") {
    WorkloadSpec workload = job(name, {.gpus = gpus.front()});
    const PodSetSpec first = workload.pod_sets.front();
    workload.pod_sets = {};
    for (const std::int64_t each : gpus) {
      PodSetSpec pod_set = first;
      pod_set.name = PodSetName(fmt::format("set{}", workload.pod_sets.size()));
      pod_set.quota_requests.clear();
      if (each > 0) pod_set.quota_requests = {{gpu(), Amount(each)}};
      pod_set.group = group;
      workload.pod_sets.edit().push_back(pod_set);
    }
    submit_spec(workload);
  }

  void submit_spec(const WorkloadSpec& workload) {
    specs[workload.key] = workload;
    send(WorkloadUpserted{workload});
  }

  /// Runs as `name` in queue `queue` on a flavor of our choice.
  void run_on(const std::string& name, const std::string& queue, const std::string& flavor,
              std::int64_t gpus, std::int64_t priority = 0) {
    WorkloadSpec workload = job(name, {.queue = queue, .gpus = gpus, .priority = priority});
    PodSetAssignment assignment;
    assignment.name = PodSetName("main");
    assignment.count = 1;
    assignment.flavors = {{gpu(), FlavorName(flavor)}};
    assignment.usage = {{gpu(), Amount(gpus)}};
    workload.admission = Admission{ClusterQueueName(queue), {assignment}};
    workload.admitted = true;
    workload.quota_reserved_at = now;
    submit_spec(workload);
  }

  /// Settles until nothing leaves any more.
  void settle_all() {
    do {
      let_leave();
      settle();
    } while (!leaving.empty());
  }

  /// `h100`, or one per pod set: `multi single`; empty: not admitted.
  [[nodiscard]] std::string flavors_of(const std::string& name) const {
    const WorkloadRecord* record = engine.state().find(key(name));
    if (record == nullptr || !record->admission) return "";
    std::string text;
    for (const PodSetAssignment& pod_set : record->admission->pod_sets) {
      std::string of_set;
      for (const auto& [resource, flavor] : pod_set.flavors) {
        if (!of_set.empty()) of_set += "+";
        of_set += flavor.value();
      }
      text += (text.empty() ? "" : " ") + (of_set.empty() ? std::string("-") : of_set);
    }
    return text;
  }
};

TEST(Fungibility, StopRulesAndPreferenceChooseAmongFlavors) {
  enum class First { kReclaim, kNoCandidates, kBorrow, kOwnQueue };
  struct Case {
    const char* sentence;
    First first;         ///< How the first flavor could be had.
    const char* second;  ///< `borrow`, `fit` or `reclaim`: the second one.
    FungibilitySpec fungibility;
    const char* chosen;
  };
  const Case cases[] = {
      {"preempting may stop the search: the first flavor is taken back",
       First::kReclaim,
       "borrow",
       {Stop::kMayStopSearch, Stop::kMayStopSearch, Preference::kBorrowingOverPreemption},
       "one"},
      {"not by default: the second flavor is borrowed",
       First::kReclaim,
       "borrow",
       {Stop::kMayStopSearch, Stop::kTryNextFlavor, Preference::kBorrowingOverPreemption},
       "two"},
      {"neither stops: borrowing is preferred to preempting",
       First::kReclaim,
       "borrow",
       {Stop::kTryNextFlavor, Stop::kTryNextFlavor, Preference::kBorrowingOverPreemption},
       "two"},
      {"neither stops: preempting is preferred to borrowing, if they say so",
       First::kReclaim,
       "borrow",
       {Stop::kTryNextFlavor, Stop::kTryNextFlavor, Preference::kPreemptionOverBorrowing},
       "one"},
      {"preempting may stop and borrowing not: the first is within its quota",
       First::kReclaim,
       "borrow",
       {Stop::kTryNextFlavor, Stop::kMayStopSearch, Preference::kBorrowingOverPreemption},
       "one"},
      {"a flavor without anyone to preempt loses under either preference",
       First::kNoCandidates,
       "borrow",
       {Stop::kTryNextFlavor, Stop::kTryNextFlavor, Preference::kPreemptionOverBorrowing},
       "two"},
      {"and never stops the search",
       First::kNoCandidates,
       "borrow",
       {Stop::kMayStopSearch, Stop::kMayStopSearch, Preference::kBorrowingOverPreemption},
       "two"},
      {"borrowing stops the search by default",
       First::kBorrow,
       "fit",
       {Stop::kMayStopSearch, Stop::kTryNextFlavor, Preference::kBorrowingOverPreemption},
       "one"},
      {"else quota of one's own is looked for",
       First::kBorrow,
       "fit",
       {Stop::kTryNextFlavor, Stop::kTryNextFlavor, Preference::kBorrowingOverPreemption},
       "two"},
      {"taking back is preferred to preempting in the own queue",
       First::kOwnQueue,
       "reclaim",
       {Stop::kMayStopSearch, Stop::kTryNextFlavor, Preference::kBorrowingOverPreemption},
       "two"},
      {"unless preempting may stop the search",
       First::kOwnQueue,
       "reclaim",
       {Stop::kMayStopSearch, Stop::kMayStopSearch, Preference::kBorrowingOverPreemption},
       "one"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.sentence);
    Flavors world;
    world.elastic("one");
    world.elastic("two");
    const std::string second = c.second;
    const std::int64_t own_one = c.first == First::kBorrow ? 0 : 8;
    const std::int64_t own_two = second == "borrow" ? 0 : 8;
    ClusterQueueSpec a =
        Flavors::spec("a", "org", {Flavors::group(gpu(), {{"one", own_one}, {"two", own_two}})});
    a.fungibility = c.fungibility;
    a.preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
    a.preemption.reclaim_within_cohort =
        c.first == First::kNoCandidates ? PreemptionPolicy::kNever : PreemptionPolicy::kAny;
    world.add(a);
    world.add(Flavors::spec("b", "org",
                            {Flavors::group(gpu(), {{"one", 8 - own_one}, {"two", 8 - own_two}})}));
    if (c.first == First::kOwnQueue) world.run_on("low", "a", "one", 8, -1);
    if (c.first == First::kReclaim || c.first == First::kNoCandidates) {
      world.run_on("lent-one", "b", "one", 8);
    }
    if (second == "reclaim") world.run_on("lent-two", "b", "two", 8);
    world.submit("job");
    world.settle_all();
    EXPECT_EQ(world.flavors_of("job"), c.chosen);
  }
}

TEST(Fungibility, TheLevelCountsOnceTheVictimsAreGone) {
  // a has 8 of flavor one, and its own low workload uses 16. As things are, 8 more would be
  // borrowed from the root; once low is gone they are a's own. Those of flavor two are the root's.
  Flavors world;
  world.elastic("one");
  world.elastic("two");
  world.send(CohortUpserted{{CohortName("inner"), CohortName("root"), {}, {}}});
  world.send(CohortUpserted{{CohortName("root"), std::nullopt, {}, {}}});
  ClusterQueueSpec a =
      Flavors::spec("a", "inner", {Flavors::group(gpu(), {{"one", 8}, {"two", 0}})});
  a.fungibility = {Stop::kTryNextFlavor, Stop::kTryNextFlavor,
                   Preference::kPreemptionOverBorrowing};
  a.preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
  world.add(a);
  world.add(Flavors::spec("b", "inner", {Flavors::group(gpu(), {{"one", 0}, {"two", 0}})}));
  world.add(Flavors::spec("c", "root", {Flavors::group(gpu(), {{"one", 8}, {"two", 8}})}));
  world.run_on("low", "a", "one", 16, -1);
  world.submit("job");
  world.settle_all();
  EXPECT_EQ(world.flavors_of("job"), "one");
}

TEST(Flavors, AScanThatStoppedCanGoOn) {
  State state;
  for (const char* name : {"one", "two", "three"}) {
    FlavorSpec flavor;
    flavor.name = FlavorName(name);
    flavor.capacity = Capacity::kElastic;
    state.flavors.emplace(flavor.name, flavor);
  }
  ClusterQueueSpec queue =
      Flavors::spec("a", "", {Flavors::group(gpu(), {{"one", 8}, {"two", 8}, {"three", 8}})});
  queue.fungibility.when_can_preempt = Stop::kMayStopSearch;
  state.queues.emplace(queue.name(), queue);
  state.mark_tree_dirty();
  state.ensure_tree();
  const auto one = state.tree.find_fr({FlavorName("one"), gpu()});
  ASSERT_TRUE(one.has_value());
  state.tree.add_usage(state.queue_node(queue.name()), {{*one, Amount(8)}});

  WorkloadSpec workload;
  workload.pod_sets.edit().resize(1);
  workload.pod_sets.edit()[0].quota_requests = {{gpu(), Amount(8)}};
  AssignOptions options;
  options.oracle = [](const OracleQuery&) { return OracleAnswer{Oracle::kOwnQueue, 0}; };
  FlavorAssigner flavors(state, workload, queue);
  const Assignment first = flavors.assign(options);
  EXPECT_EQ(first.mode, Mode::kPreempt);
  EXPECT_EQ(first.rest, (ScanStart{{{0, 0}, 1}}));
  options.start = first.rest;
  const Assignment next = flavors.assign(options);
  EXPECT_EQ(next.mode, Mode::kFit);
  EXPECT_EQ(next.admission.pod_sets.at(0).flavors.at(gpu()), FlavorName("two"));
  EXPECT_EQ(next.rest, (ScanStart{{{0, 0}, 2}}));
  options.start = next.rest;
  const Assignment last = flavors.assign(options);
  EXPECT_EQ(last.admission.pod_sets.at(0).flavors.at(gpu()), FlavorName("three"));
  EXPECT_TRUE(last.rest.empty()) << "it saw the last flavor";
}

TEST(Flavors, PodSetsAreFittedTogetherWhereOneByOneLeadsNowhere) {
  // One by one, a small pod set takes the flavor that only it can leave to the large one.
  Flavors world;
  world.elastic("single");
  world.elastic("multi");
  world.add(Flavors::spec("a", "", {Flavors::group(gpu(), {{"single", 16}, {"multi", 8}})}));
  world.submit_sets("job", {8, 16});
  world.settle_all();
  EXPECT_EQ(world.flavors_of("job"), "multi single");
}

TEST(Flavors, AnyCombinationThatFitsIsFound) {
  for (const bool jointly : {true, false}) {
    Options options;
    options.joint_flavors = jointly;
    // 4 + 8 in each; moving the two small ones together, as scans do, never does it.
    Flavors world(options);
    world.elastic("one");
    world.elastic("two");
    world.add(Flavors::spec("a", "", {Flavors::group(gpu(), {{"one", 12}, {"two", 12}})}));
    world.submit_sets("job", {4, 4, 8, 8});
    world.settle_all();
    EXPECT_EQ(world.flavors_of("job"), jointly ? "one two one two" : "");
  }
}

TEST(Flavors, ResourcesOfOtherGroupsGetTheirOwn) {
  Flavors world;
  world.elastic("h100");
  world.elastic("shared");
  const ResourceName cpu("cpu");
  world.add(Flavors::spec(
      "a", "", {Flavors::group(gpu(), {{"h100", 8}}), Flavors::group(cpu, {{"shared", 4000}})}));
  WorkloadSpec workload = world.job("job");
  workload.pod_sets.edit()[0].quota_requests[cpu] = Amount(4000);
  world.submit_spec(workload);
  WorkloadSpec large = world.job("large", {.gpus = 16, .created_s = 2});
  large.pod_sets.edit()[0].quota_requests[cpu] = Amount(4000);
  world.submit_spec(large);
  world.settle_all();
  EXPECT_EQ(world.flavors_of("job"), "shared+h100");
  // GPUs it can never have, cpu it could wait for: what has to change first is said.
  EXPECT_EQ(world.why("large"), "ExceedsMaxQuota");
}

TEST(Flavors, TheMildestReasonOfTheFlavorsIsShown) {
  Flavors world;
  world.elastic("other", {{"arch", "arm"}});
  world.elastic("small");
  world.elastic("full");
  world.add(
      Flavors::spec("a", "", {Flavors::group(gpu(), {{"other", 99}, {"small", 4}, {"full", 8}})}));
  world.run_on("running", "a", "full", 8);
  WorkloadSpec workload = world.job("job");
  workload.pod_sets.edit()[0].constraints.node_selector = {{"arch", "x86"}};
  world.submit_spec(workload);
  world.settle_all();
  EXPECT_EQ(world.why("job"), "WaitingForQuota");
  EXPECT_EQ(world.needs_of("job"), "8 nvidia.com/gpu in ClusterQueue a");
}

TEST(Flavors, OnlyKeysOfTheFlavorJudgeIt) {
  struct Case {
    const char* sentence;
    NodeConstraints constraints;
    bool matches;
  };
  using Op = SelectorRequirement::Operator;
  const auto terms = [](std::vector<std::vector<SelectorRequirement>> alternatives) {
    std::vector<NodeSelectorTerm> result;
    for (auto& each : alternatives) result.push_back({std::move(each), {}});
    return NodeConstraints{{}, std::move(result), {}};
  };
  const SelectorRequirement spot{"type", Op::kIn, {"spot"}};
  const SelectorRequirement demand{"type", Op::kIn, {"on-demand"}};
  const SelectorRequirement zone{"zone", Op::kIn, {"z1"}};
  const Case cases[] = {
      {"a selector on another key says nothing", {{{"zone", "z1"}}, {}, {}}, true},
      {"one on its key does", {{{"type", "on-demand"}}, {}, {}}, false},
      {"and must hold", {{{"type", "spot"}, {"zone", "z1"}}, {}, {}}, true},
      {"an affinity that wants another value excludes it", terms({{demand}}), false},
      {"one of the alternatives suffices", terms({{demand}, {spot}}), true},
      {"an alternative on other keys only is no restriction", terms({{demand}, {zone}}), true},
      {"within an alternative all must hold", terms({{spot, demand}}), false},
      {"keys of others are left out of an alternative", terms({{spot, zone}}), true},
      {"NotIn is judged, too", terms({{{"type", Op::kNotIn, {"spot"}}}}), false},
      {"a dropped affinity does not drop the selector",
       {{{"type", "on-demand"}}, terms({{zone}}).required_affinity, {}},
       false},
  };
  for (const Case& c : cases) {
    Flavors world;
    world.elastic("spot", {{"type", "spot"}});
    world.add(Flavors::spec("a", "", {Flavors::group(gpu(), {{"spot", 8}})}));
    WorkloadSpec workload = world.job("job");
    workload.pod_sets.edit()[0].constraints = c.constraints;
    world.submit_spec(workload);
    world.settle_all();
    EXPECT_EQ(world.admitted("job"), c.matches) << c.sentence;
    EXPECT_EQ(world.why("job"), c.matches ? "" : "NoMatchingFlavor") << c.sentence;
  }
}

TEST(Flavors, TopologyFlavorsServeWhoAsksForATopology) {
  struct Case {
    const char* sentence;
    bool asks;
    std::vector<NamedQuota> quotas;
    const char* chosen;
  };
  const Case cases[] = {
      {"who asks for none passes them over", false, {{"tas", 8}, {"plain", 8}}, "plain"},
      {"where all flavors have one, it is implied", false, {{"tas", 8}}, "tas"},
      {"who asks passes over the others", true, {{"plain", 8}, {"tas", 8}}, "tas"},
      {"and waits where there is none", true, {{"plain", 8}}, ""},
  };
  for (const Case& c : cases) {
    Flavors world;
    world.send(TopologyUpserted{{TopologyName("hosts"), {kHostnameLabel}}});
    world.flavor("tas", {}, "hosts");
    world.elastic("plain");
    world.node("n1");
    world.add(Flavors::spec("a", "", {Flavors::group(gpu(), c.quotas)}));
    JobOptions options;
    if (c.asks) {
      options.topology = TopologyRequest{TopologyRequest::Mode::kRequired, kHostnameLabel};
    }
    world.submit("job", options);
    world.settle_all();
    EXPECT_EQ(world.flavors_of("job"), c.chosen) << c.sentence;
  }
}

TEST(Flavors, AGroupThatOnlyCountsNeedsNoTopology) {
  Flavors world;
  world.send(TopologyUpserted{{TopologyName("hosts"), {kHostnameLabel}}});
  world.flavor("tas", {}, "hosts");
  world.elastic("credits");
  world.node("n1");
  const ResourceName credit("example.com/credits");
  world.add(Flavors::spec(
      "a", "", {Flavors::group(gpu(), {{"tas", 8}}), Flavors::group(credit, {{"credits", 100}})}));
  WorkloadSpec workload = world.job(
      "job", {.topology = TopologyRequest{TopologyRequest::Mode::kRequired, kHostnameLabel}});
  workload.pod_sets.edit()[0].quota_requests[credit] =
      Amount(10);  // Derived: the pod does not ask it.
  world.submit_spec(workload);
  world.settle_all();
  EXPECT_EQ(world.flavors_of("job"), "credits+tas");
  EXPECT_EQ(world.plan("job"), "n1");
}

TEST(Flavors, PodSetsOfAGroupGetTheSame) {
  for (const bool grouped : {false, true}) {
    Flavors world;
    world.elastic("one");
    world.elastic("two");
    world.add(Flavors::spec("a", "", {Flavors::group(gpu(), {{"one", 8}, {"two", 16}})}));
    world.submit_sets("job", {8, 8}, grouped ? "g" : "");
    world.settle_all();
    // 16 together fit only the second flavor.
    EXPECT_EQ(world.flavors_of("job"), grouped ? "two two" : "one two");
  }
}

TEST(Flavors, AMemberThatAsksForNothingStandsWhereItsGroupDoes) {
  Flavors world;
  world.send(TopologyUpserted{{TopologyName("hosts"), {kHostnameLabel}}});
  world.flavor("tas", {}, "hosts");
  world.node("n1", 16);
  world.add(Flavors::spec("a", "", {Flavors::group(gpu(), {{"tas", 8}})}));
  world.submit_sets("job", {8, 0}, "g");
  world.settle_all();
  EXPECT_EQ(world.flavors_of("job"), "tas tas");
  world.submit_sets("alone", {0});
  world.settle_all();
  EXPECT_EQ(world.flavors_of("alone"), "-");
}

TEST(Flavors, UndeclaredResourcesBlockOrAreIgnored) {
  for (const bool ignore : {false, true}) {
    Options options;
    options.ignore_undeclared_resources = ignore;
    Flavors world(options);
    world.elastic("one");
    world.add(Flavors::spec("a", "", {Flavors::group(gpu(), {{"one", 8}})}));
    WorkloadSpec workload = world.job("job");
    workload.pod_sets.edit()[0].quota_requests[ResourceName("example.com/rdma")] = Amount(1);
    world.submit_spec(workload);
    world.settle_all();
    EXPECT_EQ(world.flavors_of("job"), ignore ? "one" : "");
  }
}

}  // namespace
}  // namespace muster::engine::test

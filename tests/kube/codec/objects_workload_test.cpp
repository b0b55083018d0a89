#include "kube/codec/objects.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace muster::kube {
namespace {

Json parsed(std::string_view text) {
  const Result<Json> json = Json::parse(text);
  EXPECT_TRUE(json) << text << ": " << (json ? "" : json.error().message);
  return json.value_or(Json());
}

/// A Workload whose only assignment carries `topology`, decoded.
Result<Workload> with_topology(const Json& topology) {
  const Json assignment =
      Json::object({{"name", Json::string("main")}, {"topologyAssignment", topology}});
  const Json admission = Json::object(
      {{"clusterQueue", Json::string("q")}, {"podSetAssignments", Json::array({assignment})}});
  return decode_workload(Json::object({{"status", Json::object({{"admission", admission}})}}));
}

constexpr const char* kTopologyPath = "status.admission.podSetAssignments[0].topologyAssignment";

TEST(DecodeWorkload, ReadsTheStoredVersion) {
  const Workload workload = decode_workload(parsed(R"({
    "metadata":{"name":"w","namespace":"ml"},
    "spec":{"queueName":"lq","priority":10,"active":false,
      "priorityClassRef":{"group":"kueue.x-k8s.io","kind":"WorkloadPriorityClass","name":"high"},
      "podSets":[{"count":4,"minCount":2,"template":{"spec":{"containers":[{"name":"c"}]}},
                  "topologyRequest":{"required":"rack","podSetGroupName":"g"}},
                 {"name":"b","template":{},"topologyRequest":{"unconstrained":true}}]},
    "status":{"conditions":[{"type":"QuotaReserved","status":"True"}],
      "requeueState":{"count":3,"requeueAt":"2026-11-29T16:00:00Z"},
      "reclaimablePods":[{"name":"main","count":3}],
      "admission":{"clusterQueue":"q","podSetAssignments":[
        {"name":"main","count":4,"flavors":{"cpu":"f"},"resourceUsage":{"cpu":"4"}}]}}})"))
                                .value();
  EXPECT_EQ(workload.queue_name, "lq");
  EXPECT_EQ(workload.priority, 10);
  EXPECT_FALSE(workload.active);
  EXPECT_EQ(workload.priority_class_group, "kueue.x-k8s.io");
  EXPECT_EQ(workload.priority_class_kind, "WorkloadPriorityClass");
  EXPECT_EQ(workload.priority_class_name, "high");
  ASSERT_EQ(workload.pod_sets.size(), 2U);
  EXPECT_EQ(workload.pod_sets[0].name, "main");
  EXPECT_EQ(workload.pod_sets[0].count, 4);
  EXPECT_EQ(workload.pod_sets[0].min_count, 2);
  EXPECT_EQ(workload.pod_sets[0].topology_request->required, "rack");
  EXPECT_FALSE(workload.pod_sets[0].topology_request->unconstrained);
  EXPECT_EQ(workload.pod_sets[0].topology_request->group, "g");
  EXPECT_EQ(workload.pod_sets[1].count, 1);
  EXPECT_EQ(workload.pod_sets[1].topology_request->unconstrained, true);
  EXPECT_EQ(workload.requeue_count, 3);
  EXPECT_TRUE(workload.requeue_at);
  EXPECT_EQ(workload.reclaimable_pods, (std::map<std::string, std::int64_t>{{"main", 3}}));
  ASSERT_TRUE(workload.admission);
  EXPECT_EQ(workload.admission->pod_sets[0].flavors.at(ResourceName("cpu")), "f");
  EXPECT_EQ(workload.admission->pod_sets[0].resource_usage.at(ResourceName("cpu")).units_ceil(), 4);
  EXPECT_FALSE(workload.admission->pod_sets[0].topology);
}

TEST(DecodeWorkload, ReadsTheOlderVersion) {
  const struct {
    const char* spec;
    const char* group;
    const char* kind;
  } cases[] = {
      {R"({"priorityClassName":"p","priorityClassSource":"kueue.x-k8s.io/workloadpriorityclass"})",
       "kueue.x-k8s.io", "WorkloadPriorityClass"},
      {R"({"priorityClassName":"p","priorityClassSource":"scheduling.k8s.io/priorityclass"})",
       "scheduling.k8s.io", "PriorityClass"},
      {R"({"priorityClassName":"p"})", "", ""},
  };
  for (const auto& each : cases) {
    const Workload workload = decode_workload(Json::object({{"spec", parsed(each.spec)}})).value();
    EXPECT_EQ(workload.priority_class_name, "p");
    EXPECT_EQ(workload.priority_class_group, each.group);
    EXPECT_EQ(workload.priority_class_kind, each.kind);
    EXPECT_TRUE(workload.active);
    EXPECT_FALSE(workload.admission);
  }
}

TEST(DecodeWorkload, NamesTheFieldThatIsWrong) {
  const struct {
    const char* object;
    const char* message;
  } cases[] = {
      {R"({"spec":{"podSets":[{},{"count":-1}]}})",
       "spec.podSets[1].count: got -1, want an integer from 0 to 2147483647"},
      {R"({"spec":{"podSets":[{"count":99999999999}]}})",
       "spec.podSets[0].count: got 99999999999, want an integer from 0 to 2147483647"},
      {R"({"spec":{"podSets":[{"template":[]}]}})",
       "spec.podSets[0].template: got an array, want an object"},
      {R"({"spec":{"podSets":[{"template":{"spec":{"containers":[{"resources":
          {"requests":{"cpu":true}}}]}}}]}})",
       "spec.podSets[0].template.spec.containers[0].resources.requests.cpu: got true, want a "
       "quantity"},
      {R"({"spec":{"priorityClassSource":"x"}})",
       "spec.priorityClassSource: got string \"x\", want one of "
       "kueue.x-k8s.io/workloadpriorityclass, scheduling.k8s.io/priorityclass"},
      {R"({"status":{"admission":{"podSetAssignments":[{"flavors":{"cpu":1}}]}}})",
       "status.admission.podSetAssignments[0].flavors.cpu: got 1, want a string"},
      {R"({"status":{"requeueState":{"count":"x"}}})",
       "status.requeueState.count: got string \"x\", want an integer from 0 to 2147483647"},
  };
  for (const auto& each : cases) {
    const Result<Workload> workload = decode_workload(parsed(each.object));
    ASSERT_FALSE(workload) << each.object;
    EXPECT_EQ(workload.error().message, each.message);
  }
}

TEST(TopologyAssignment, ReadsBothForms) {
  const char* const expanded = R"({"levels":["rack","kubernetes.io/hostname"],"domains":[
      {"values":["r1","gpu-07-a"],"count":8},{"values":["r1","gpu-12-a"],"count":4}]})";
  const char* const compressed = R"({"levels":["rack","kubernetes.io/hostname"],"slices":[
      {"domainCount":2,"valuesPerLevel":[{"universal":"r1"},
        {"individual":{"prefix":"gpu-","suffix":"-a","roots":["07","12"]}}],
       "podCounts":{"individual":[8,4]}}]})";
  for (const char* text : {expanded, compressed}) {
    const Workload workload = with_topology(parsed(text)).value();
    const TopologyAssignment& topology = *workload.admission->pod_sets[0].topology;
    ASSERT_EQ(topology.domains.size(), 2U) << text;
    EXPECT_EQ(topology.domains[0].values, (std::vector<std::string>{"r1", "gpu-07-a"}));
    EXPECT_EQ(topology.domains[0].count, 8);
    EXPECT_EQ(topology.domains[1].values, (std::vector<std::string>{"r1", "gpu-12-a"}));
    EXPECT_EQ(topology.domains[1].count, 4);
    EXPECT_EQ(
        encode_topology_assignment(topology).dump(),
        R"({"levels":["rack","kubernetes.io/hostname"],"slices":[{"domainCount":2,)"
        R"("valuesPerLevel":[{"universal":"r1"},{"individual":{"prefix":"gpu-","suffix":"-a",)"
        R"("roots":["07","12"]}}],"podCounts":{"individual":[8,4]}}]})");
  }
}

TEST(TopologyAssignment, JoinsSlices) {
  const Workload workload = with_topology(parsed(R"({"levels":["h"],"slices":[
      {"domainCount":1,"valuesPerLevel":[{"universal":"a"}],"podCounts":{"universal":1}},
      {"domainCount":2,"valuesPerLevel":[{"individual":{"roots":["b","c"]}}],
       "podCounts":{"universal":2}}]})"))
                                .value();
  const TopologyAssignment& topology = *workload.admission->pod_sets[0].topology;
  ASSERT_EQ(topology.domains.size(), 3U);
  EXPECT_EQ(topology.domains[2].values, std::vector<std::string>{"c"});
  EXPECT_EQ(topology.domains[2].count, 2);
}

TEST(TopologyAssignment, EncodesTheCornerCases) {
  const auto encoded = [](std::vector<TopologyDomain> domains) {
    return encode_topology_assignment({{"h"}, std::move(domains)}).get("slices").dump();
  };
  EXPECT_EQ(encoded({}), "[]");
  EXPECT_EQ(encoded({{{"n1"}, 2}}), R"([{"domainCount":1,"valuesPerLevel":[{"universal":"n1"}],)"
                                    R"("podCounts":{"universal":2}}])");
  // Prefix and suffix never overlap: "aa" is all prefix, and its root is empty.
  EXPECT_EQ(encoded({{{"aa"}, 1}, {{"aaa"}, 1}}),
            R"([{"domainCount":2,"valuesPerLevel":[{"individual":{"prefix":"aa",)"
            R"("roots":["","a"]}}],"podCounts":{"universal":1}}])");
  // Nothing is cut inside a character of several bytes.
  EXPECT_EQ(encoded({{{"\xC3\xA9"}, 1}, {{"\xC3\xA8"}, 1}}),
            "[{\"domainCount\":2,\"valuesPerLevel\":[{\"individual\":{\"roots\":[\"\xC3\xA9\","
            "\"\xC3\xA8\"]}}],\"podCounts\":{\"universal\":1}}]");
}

TEST(TopologyAssignment, RefusesWhatDoesNotAddUp) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {R"({"levels":["h"],"domains":[{"values":["a","b"],"count":1}]})",
       ".domains[0].values: got 2 values, want 1"},
      {R"({"levels":["h"],"domains":[{"values":["a"],"count":-1}]})",
       ".domains[0].count: got -1, want an integer from 0 to 2147483647"},
      {R"({"levels":["h"],"slices":[{"domainCount":0}]})",
       ".slices[0].domainCount: got 0, want an integer from 1 to 2147483647"},
      {R"({"levels":["h"],"slices":[{}]})",
       ".slices[0].domainCount: got nothing, want a number of domains"},
      {R"({"levels":["h"],"slices":[{"domainCount":2,"valuesPerLevel":[]}]})",
       ".slices[0].valuesPerLevel: got values for 0 levels, want 1"},
      {R"({"levels":["h"],"slices":[{"domainCount":2,"valuesPerLevel":[{}]}]})",
       ".slices[0].valuesPerLevel[0]: want exactly one of universal and individual"},
      {R"({"levels":["h"],"slices":[{"domainCount":2,"valuesPerLevel":[
          {"individual":{"roots":["a"]}}]}]})",
       ".slices[0].valuesPerLevel[0].individual.roots: got 1 roots, want 2"},
      {R"({"levels":["h"],"slices":[{"domainCount":1,"valuesPerLevel":[{"universal":"a"}]}]})",
       ".slices[0].podCounts: want exactly one of universal and individual"},
      {R"({"levels":["h"],"slices":[{"domainCount":1,"valuesPerLevel":[{"universal":"a"}],
          "podCounts":{"individual":[1,2]}}]})",
       ".slices[0].podCounts.individual: got 2 counts, want 1"},
      {R"({"levels":["h"],"slices":[{"domainCount":2147483647,"valuesPerLevel":[
          {"universal":"a"}],"podCounts":{"universal":1}}]})",
       ".slices[0].domainCount: too many domains (want at most 100000)"},
      {R"({"levels":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"]})",
       ".levels: got 17 levels, want at most 16"},
  };
  for (const auto& each : cases) {
    const Result<Workload> workload = with_topology(parsed(each.text));
    ASSERT_FALSE(workload) << each.text;
    EXPECT_EQ(workload.error().message, kTopologyPath + std::string(each.message));
  }
}

TEST(TopologyAssignment, DoesNotExpandWithoutBound) {
  const std::string value(5000, 'x');
  const Json topology = Json::object(
      {{"levels", Json::array({Json::string("h")})},
       {"slices",
        Json::array({Json::object(
            {{"domainCount", Json::number(std::int64_t{50'000})},
             {"valuesPerLevel", Json::array({Json::object({{"universal", Json::string(value)}})})},
             {"podCounts", Json::object({{"universal", Json::number(std::int64_t{1})}})}})})}});
  const Result<Workload> workload = with_topology(topology);
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().code, ErrorCode::kTooLarge);
}

TEST(TopologyAssignmentProperty, SurvivesItsEncoding) {
  EXPECT_TRUE(rc::check([] {
    const auto name = rc::gen::container<std::string>(rc::gen::element('a', 'b', '-', '1'));
    const int levels = *rc::gen::inRange(1, 4);
    TopologyAssignment assignment;
    for (int i = 0; i < levels; ++i) assignment.levels.push_back(fmt::format("level-{}", i));
    const int count = *rc::gen::inRange(0, 20);
    for (int i = 0; i < count; ++i) {
      TopologyDomain domain;
      for (int k = 0; k < levels; ++k) domain.values.push_back(*name);
      domain.count = *rc::gen::inRange<std::int64_t>(0, 3);
      assignment.domains.push_back(std::move(domain));
    }
    const Result<Workload> workload = with_topology(encode_topology_assignment(assignment));
    RC_ASSERT(workload.has_value());
    const TopologyAssignment& read = *workload->admission->pod_sets[0].topology;
    RC_ASSERT(read.levels == assignment.levels);
    RC_ASSERT(read.domains.size() == assignment.domains.size());
    for (std::size_t i = 0; i < read.domains.size(); ++i) {
      RC_ASSERT(read.domains[i].values == assignment.domains[i].values);
      RC_ASSERT(read.domains[i].count == assignment.domains[i].count);
    }
  }));
}

TEST(EncodeAdmission, IsReadBackAsItWas) {
  WorkloadAdmission admission;
  admission.cluster_queue = "q";
  PodSetAssignment main;
  main.name = "main";
  main.flavors = {{ResourceName("cpu"), "f"}, {ResourceName("nvidia.com/gpu"), "h100"}};
  main.resource_usage = {{ResourceName("cpu"), Quantity::from_millis(1500)},
                         {ResourceName("nvidia.com/gpu"), Quantity::from_units(16)}};
  main.count = 2;
  main.topology = TopologyAssignment{{"kubernetes.io/hostname"}, {{{"n1"}, 2}}};
  admission.pod_sets = {main, PodSetAssignment{}};
  admission.pod_sets[1].name = "b";
  const Json encoded = encode_admission(admission);
  EXPECT_EQ(encoded.dump(),
            R"({"clusterQueue":"q","podSetAssignments":[{"name":"main",)"
            R"("flavors":{"cpu":"f","nvidia.com/gpu":"h100"},)"
            R"("resourceUsage":{"cpu":"1500m","nvidia.com/gpu":"16"},"count":2,)"
            R"("topologyAssignment":{"levels":["kubernetes.io/hostname"],"slices":[)"
            R"({"domainCount":1,"valuesPerLevel":[{"universal":"n1"}],)"
            R"("podCounts":{"universal":2}}]}},{"name":"b"}]})");
  const Json status = Json::object({{"admission", encoded}});
  const Workload workload = decode_workload(Json::object({{"status", status}})).value();
  EXPECT_EQ(encode_admission(*workload.admission), encoded);
}

}  // namespace
}  // namespace muster::kube

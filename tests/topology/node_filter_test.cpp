#include "topology/node_filter.hpp"

#include "tests/topology/fleet_builders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::topology::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(const Fleet& fleet, const Candidates& candidates) {
  std::vector<std::string> result;
  for (const NodeIndex index : candidates.nodes) result.push_back(fleet.name(index).value());
  return result;
}

NodeQuery h100_query() {
  NodeQuery query;
  query.flavor_labels = {{"gpu", "h100"}};
  return query;
}

struct JudgeCase {
  const char* sentence;
  NodeQuery query;
  NodeFacts facts;
  std::optional<Exclusion> want;
};

std::vector<JudgeCase> judge_cases() {
  const NodeFacts good = node("n", 8, {{"gpu", "h100"}, {"zone", "z1"}});
  const Taint spot{"spot", "true", TaintEffect::kNoSchedule};
  std::vector<JudgeCase> cases;
  cases.push_back({"a plain node is eligible", NodeQuery(), node("n", 8), std::nullopt});
  cases.push_back({"a node of the flavor is eligible", h100_query(), good, std::nullopt});
  cases.push_back({"another label value is another flavor", h100_query(),
                   node("n", 8, {{"gpu", "a100"}}), Exclusion::kFlavorLabels});
  NodeFacts off = good;
  off.ready = false;
  off.unschedulable = true;
  cases.push_back(
      {"not ready comes before unschedulable", h100_query(), off, Exclusion::kNotReady});
  NodeFacts cordoned = good;
  cordoned.unschedulable = true;
  cases.push_back(
      {"a cordoned node is left out", h100_query(), cordoned, Exclusion::kUnschedulable});
  NodeFacts tainted = good;
  tainted.taints = {spot};
  cases.push_back({"an untolerated taint excludes", h100_query(), tainted, Exclusion::kTaint});
  NodeQuery by_flavor = h100_query();
  by_flavor.flavor_tolerations = {{"spot", Toleration::Operator::kEqual, "true", {}, {}}};
  cases.push_back({"the flavor tolerates for the pod", by_flavor, tainted, std::nullopt});
  NodeQuery by_pod = h100_query();
  by_pod.constraints.tolerations = {{"", Toleration::Operator::kExists, "", {}, {}}};
  cases.push_back({"the pod tolerates by itself", by_pod, tainted, std::nullopt});
  NodeFacts two_taints = tainted;
  two_taints.taints.push_back({"maintenance", "", TaintEffect::kNoExecute});
  cases.push_back(
      {"one tolerated taint of two is not enough", by_flavor, two_taints, Exclusion::kTaint});
  NodeQuery both = by_flavor;
  both.constraints.tolerations = {{"maintenance", Toleration::Operator::kExists, "", {}, {}}};
  cases.push_back({"pod and flavor tolerate one taint each", both, two_taints, std::nullopt});
  NodeFacts soft = good;
  soft.taints = {{"busy", "", TaintEffect::kPreferNoSchedule}};
  cases.push_back({"PreferNoSchedule excludes nothing", h100_query(), soft, std::nullopt});
  NodeQuery zone = h100_query();
  zone.constraints.node_selector = {{"zone", "z2"}};
  cases.push_back({"the pod's nodeSelector excludes", zone, good, Exclusion::kSelector});
  NodeQuery affinity = h100_query();
  affinity.constraints.required_affinity = {
      {{}, {{"metadata.name", SelectorRequirement::Operator::kIn, {"m"}}}}};
  cases.push_back({"required affinity on the name excludes", affinity, good, Exclusion::kSelector});
  NodeQuery levels;
  levels.levels = {"zone", "kubernetes.io/hostname"};
  cases.push_back(
      {"a level that is the hostname is told apart", levels, good, Exclusion::kHostnameMissing});
  cases.push_back({"a node outside the topology is left out", levels,
                   node("n", 8, {{"kubernetes.io/hostname", "n"}}), Exclusion::kLevelMissing});
  return cases;
}

TEST(NodeFilter, Judges) {
  for (const JudgeCase& test : judge_cases()) {
    SCOPED_TRACE(test.sentence);
    EXPECT_EQ(judge(test.query, test.facts), test.want);
  }
}

TEST(NodeFilter, CountsEveryCause) {
  Fleet fleet;
  fleet.upsert(node("other", 8));
  fleet.upsert(node("good", 8, {{"gpu", "h100"}}));
  for (const char* name : {"down1", "down2"}) {
    NodeFacts down = node(name, 8, {{"gpu", "h100"}});
    down.ready = false;
    fleet.upsert(down);
  }
  const NodeIndex gone = fleet.upsert(node("gone", 8, {{"gpu", "h100"}}));
  fleet.remove(gone);
  const Candidates found = find_candidates(h100_query(), fleet);
  EXPECT_THAT(names(fleet, found), ElementsAre("good"));
  EXPECT_EQ(found.flavor_nodes, 3);  // good, down1, down2
  EXPECT_EQ(found.excluded[static_cast<std::size_t>(Exclusion::kNotReady)], 2);
  EXPECT_EQ(found.excluded[static_cast<std::size_t>(Exclusion::kFlavorLabels)], 1);
  EXPECT_THAT(found.domains, IsEmpty());
}

TEST(NodeFilter, GroupsNodesIntoDomainsByFullPath) {
  Fleet fleet;
  // Rack r1 exists in both blocks and is a different domain in each.
  fleet.upsert(node("a", 1, {{"block", "b2"}, {"rack", "r1"}}));
  fleet.upsert(node("b", 1, {{"block", "b1"}, {"rack", "r2"}}));
  fleet.upsert(node("c", 1, {{"block", "b1"}, {"rack", "r1"}}));
  fleet.upsert(node("d", 1, {{"block", "b1"}, {"rack", "r2"}}));
  NodeQuery query;
  query.levels = {"block", "rack"};
  const Candidates found = find_candidates(query, fleet);
  EXPECT_THAT(names(fleet, found), ElementsAre("c", "b", "d", "a"));
  ASSERT_EQ(found.domains.size(), 2U);
  const auto range = [](const Domain& domain) {
    return std::vector<std::uint32_t>{domain.nodes_begin, domain.nodes_end, domain.children_begin,
                                      domain.children_end};
  };
  ASSERT_EQ(found.domains[0].size(), 2U);
  EXPECT_THAT(range(found.domains[0][0]), ElementsAre(0, 3, 0, 2));  // b1: c b d in r1, r2
  EXPECT_THAT(range(found.domains[0][1]), ElementsAre(3, 4, 2, 3));  // b2: a in its r1
  ASSERT_EQ(found.domains[1].size(), 3U);
  EXPECT_THAT(range(found.domains[1][0]), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(range(found.domains[1][1]), ElementsAre(1, 3, 0, 0));
  EXPECT_THAT(range(found.domains[1][2]), ElementsAre(3, 4, 0, 0));
}

TEST(CandidateCache, KeepsAnAnswerUntilANodeChanges) {
  Fleet fleet;
  fleet.upsert(node("a", 8, {{"gpu", "h100"}}));
  CandidateCache cache;
  const auto first = cache.get(h100_query(), fleet);
  EXPECT_EQ(cache.get(h100_query(), fleet), first);
  EXPECT_NE(cache.get(NodeQuery(), fleet), first);
  fleet.charge(first->nodes[0], UseKind::kPlanned, gpus(8, 8));
  EXPECT_EQ(cache.get(h100_query(), fleet), first);
  fleet.upsert(node("b", 8, {{"gpu", "h100"}}));
  EXPECT_THAT(names(fleet, *cache.get(h100_query(), fleet)), ElementsAre("a", "b"));
  EXPECT_THAT(first->nodes, ::testing::SizeIs(1));  // what was handed out stays as it was
}

TEST(CandidateCache, TellsQueriesApartThatWouldJoinToTheSameText) {
  Fleet fleet;
  fleet.upsert(node("a", 8, {{"k", "v"}}));
  CandidateCache cache;
  NodeQuery as_label;
  as_label.flavor_labels = {{"k", "v"}};
  NodeQuery as_selector;
  as_selector.constraints.node_selector = {{"k", "v"}};
  NodeQuery split;
  split.flavor_labels = {{"k1", ":v"}};
  NodeQuery exists;
  exists.constraints.required_affinity = {
      {{{"k", SelectorRequirement::Operator::kExists, {}}}, {}}};
  NodeQuery not_exists;
  not_exists.constraints.required_affinity = {
      {{{"k", SelectorRequirement::Operator::kDoesNotExist, {}}}, {}}};
  NodeQuery no_term;
  no_term.constraints.required_affinity.emplace();
  const std::vector<NodeQuery> queries = {NodeQuery(), as_label,   as_selector, split,
                                          exists,      not_exists, no_term};
  for (std::size_t i = 0; i < queries.size(); ++i) {
    for (std::size_t j = i + 1; j < queries.size(); ++j) {
      EXPECT_NE(cache.get(queries[i], fleet), cache.get(queries[j], fleet)) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace muster::topology::testing

#include "extender/extender.hpp"

#include "kube/codec/json.hpp"
#include "kube/codec/json_text.hpp"
#include "tests/extender/snapshot_builder.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace muster::extender {
namespace {

using kube::Json;
using testing::SnapshotBuilder;

const std::string kPod =
    R"({"metadata":{"name":"p","namespace":"team","uid":"u","creationTimestamp":null},)"
    R"("spec":{"containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"8"}}}]},)"
    R"("status":{"conditions":[{"type":"PodScheduled","status":"False","lastProbeTime":null}]}})";

struct World {
  World() {
    builder.node("n1").node("n2").gang("g", {"n1"}).bound("g", "g-0", "n1", 0);
    builder.foreign("n2", "f", 8);
    snapshot = builder.build();
  }
  Answer ask(std::string_view verb, const std::string& body) {
    return answer(verb, body, snapshot, ledger, Instant{});
  }
  std::string body_of(std::string_view verb, const std::string& body) {
    const Answer got = ask(verb, body);
    EXPECT_EQ(got.status, 200) << got.body;
    return got.body;
  }
  SnapshotBuilder builder;
  engine::Snapshot snapshot;
  Ledger ledger;
};

TEST(Extender, FilterAnswersInTheWireFormat) {
  World world;
  EXPECT_EQ(
      world.body_of("filter", R"({"Pod":)" + kPod + R"(,"Nodes":null,"NodeNames":["n2","n1"]})"),
      R"({"Nodes":null,"NodeNames":["n2"],"FailedNodes":null,"FailedAndUnresolvableNodes":)"
      R"({"n1":"muster: the free room is planned for queued workloads"},"Error":""})");
  EXPECT_EQ(
      world.body_of("filter", R"({"Pod":)" + kPod + R"(,"NodeNames":["n2"]})"),
      R"({"Nodes":null,"NodeNames":["n2"],"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""})");
}

TEST(Extender, KeysAreReadAsGoReadsThem) {
  World world;
  const std::string expected =
      world.body_of("filter", R"({"Pod":)" + kPod + R"(,"NodeNames":["n2"]})");
  for (const std::string& body : {
           R"({"pod":)" + kPod + R"(,"nodenames":["n2"]})",
           R"({"POD":)" + kPod + R"(,"nodeNames":["n1"],"NodeNames":["n2"]})",
           R"({"NodeNames":["n2"],"Extra":{"a":[1]},"Pod":)" + kPod + "}",
       }) {
    EXPECT_EQ(world.body_of("filter", body), expected) << body;
  }
}

TEST(Extender, WholeNodesComeBackAsTheyCame) {
  World world;
  const std::string node =
      R"({"metadata":{"name":"n2","labels":{"a":"<b>"}},"spec":{},"status":{"x":1.5}})";
  EXPECT_EQ(world.body_of("filter", R"({"Pod":)" + kPod + R"(,"NodeNames":null,"Nodes":)" +
                                        R"({"metadata":{},"items":[{"metadata":{"name":"n1"}},)" +
                                        node + "]}}"),
            R"({"Nodes":{"metadata":{},"items":[)" + node +
                R"(]},"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":)"
                R"({"n1":"muster: the free room is planned for queued workloads"},"Error":""})");
}

TEST(Extender, APodWeCannotReadIsLeftAloneUnlessItIsAMember) {
  World world;
  const std::string strange =
      R"("spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":{"new":1}}}}]}})";
  EXPECT_NE(world
                .body_of("filter", R"({"Pod":{"metadata":{"uid":"u"},)" + strange +
                                       R"(,"NodeNames":["n1","n2"]})")
                .find(R"("NodeNames":["n1","n2"])"),
            std::string::npos);
  EXPECT_NE(
      world
          .body_of("filter", R"({"Pod":{"metadata":{"uid":"g-0","namespace":"team",)"
                             R"("ownerReferences":[{"kind":"Job",)"
                             R"("apiVersion":"batch/v1","name":"g","uid":"g","controller":true}],)"
                             R"("labels":{"batch.kubernetes.io/job-completion-index":"0"}},)" +
                                 strange + R"(,"NodeNames":["n1","n2"]})")
          .find(R"("NodeNames":["n1"])"),
      std::string::npos);
}

TEST(Extender, PrioritizeAnswersABareList) {
  World world;
  EXPECT_EQ(world.body_of("prioritize", R"({"Pod":)" + kPod + R"(,"NodeNames":["n1","x"]})"),
            R"([{"Host":"n1","Score":10},{"Host":"x","Score":0}])");
}

TEST(Extender, PreemptAnswersWithoutNullsWhateverTheForm) {
  World world;
  const std::string by_meta =
      R"("NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"g-0"}],"NumPDBViolations":0},)"
      R"("n2":{"Pods":[{"UID":"f"}],"NumPDBViolations":3},"n3":{"Pods":null},"n4":null})";
  const std::string by_pod = R"("NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"g-0"}}]},)"
                             R"("n2":{"pods":[{"metadata":{"uid":"f"}}],"numPDBViolations":3}})";
  const std::string expected =
      R"({"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"f"}],"NumPDBViolations":3}}})";
  EXPECT_EQ(world.body_of("preempt", R"({"Pod":)" + kPod + "," + by_meta + "}"), expected);
  EXPECT_EQ(world.body_of("preempt", R"({"Pod":)" + kPod + "," + by_pod + "}"), expected);
  EXPECT_EQ(world.body_of("preempt", R"({"Pod":)" + kPod + "}"), R"({"NodeNameToMetaVictims":{}})");
}

TEST(Extender, StrangeNodeNamesAreEscapedWhereverTheyStand) {
  World world;
  for (const std::string& name :
       {std::string("a\"b"), std::string("12345678\\"), std::string("1234\n67890"),
        std::string("\x1f"), std::string("\xC3\xA9toile-du-nord"), std::string()}) {
    std::string quoted;
    kube::append_json_string(quoted, name);
    const auto answered = Json::parse(
        world.body_of("filter", R"({"Pod":)" + kPod + R"(,"NodeNames":[)" + quoted + "]}"));
    ASSERT_TRUE(answered) << quoted;
    EXPECT_EQ(answered->get("NodeNames").at(0).string_or("?"), name);
  }
}

TEST(Extender, BrokenBodiesAreRefusedWithAReason) {
  World world;
  const std::vector<std::string> bodies = {
      "",
      "null",
      "[]",
      "{",
      "{}",
      R"({"Pod":null,"NodeNames":["n1"]})",
      R"({"Pod":[],"NodeNames":["n1"]})",
      R"({"Pod":)" + kPod + R"(,"NodeNames":"n1"})",
      R"({"Pod":)" + kPod + R"(,"NodeNames":[null]})",
      R"({"Pod":)" + kPod + R"(,"NodeNames":null,"Nodes":{"items":[{}]}})",
      R"({"Pod":{"metadata":{"labels":7}},"NodeNames":["n1"]})",
      std::string(1000, '[') + std::string(1000, ']'),
      R"({"Pod":)" + kPod + R"(,"NodeNames":["n1"]} trailing)",
  };
  for (const std::string& body : bodies) {
    const Answer got = world.ask("filter", body);
    EXPECT_EQ(got.status, 400) << body;
    const auto parsed = Json::parse(got.body);
    ASSERT_TRUE(parsed) << got.body;
    EXPECT_FALSE(parsed->get("Error").string_or("").empty()) << body;
  }
  EXPECT_EQ(world
                .ask("preempt",
                     R"({"Pod":)" + kPod + R"(,"NodeNameToMetaVictims":{"n1":{"Pods":[null]}}})")
                .status,
            400);
  EXPECT_EQ(world.ask("bind", "{}").status, 404);
}

RC_GTEST_PROP(Extender, NoBytesDoHarm, ()) {
  World world;
  std::string body =
      R"({"Pod":)" + kPod +
      R"(,"NodeNames":["n1"],"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"f"}]}}})";
  const auto cuts = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, body.size()), rc::gen::arbitrary<char>()));
  for (const auto& [at, byte] : cuts) body[at] = byte;
  for (const char* verb : {"filter", "prioritize", "preempt"}) {
    const Answer got = world.ask(verb, body);
    RC_ASSERT(got.status == 200 || got.status == 400);
    RC_ASSERT(Json::parse(got.body).has_value());
  }
}

}  // namespace
}  // namespace muster::extender

#include "webhook/webhook.hpp"

#include "kube/codec/base64.hpp"
#include "kube/codec/json.hpp"
#include "tests/extender/snapshot_builder.hpp"
#include "tests/webhook/requests.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace muster::webhook {
namespace {

using kube::Json;
using testing::SnapshotBuilder;

std::string review(const std::string& object, const std::string& rest = "") {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r-1",)"
         R"("kind":{"group":"batch","version":"v1","kind":"Job"},"resource":{"group":"batch",)"
         R"("version":"v1","resource":"jobs"},"namespace":"team","name":"j","operation":"CREATE",)"
         R"("userInfo":{"username":"jane","groups":["devs"]},"dryRun":true,"oldObject":null,)" +
         rest + R"("object":)" + object + "}}";
}

const std::string kJob =
    R"({"metadata":{"name":"j","labels":{"kueue.x-k8s.io/queue-name":"main"}},)"
    R"("spec":{"template":{"spec":{"containers":[]}}}})";

Json response_of(const Answer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  const Json body = testing::json(answer.body);
  EXPECT_EQ(body.get("kind").string_or(""), "AdmissionReview");
  EXPECT_EQ(body.get("apiVersion").string_or(""), "admission.k8s.io/v1");
  EXPECT_EQ(body.get("response", "uid").string_or(""), "r-1");
  return body.get("response");
}

TEST(Webhook, MutateAnswersWithAPatchInBase64) {
  const Json response =
      response_of(answer("/mutate", review(kJob), engine::Snapshot{}, WebhookOptions{}));
  EXPECT_TRUE(response.get("allowed").bool_or(false));
  EXPECT_EQ(response.get("patchType").string_or(""), "JSONPatch");
  const auto patch = kube::base64_decode(response.get("patch").string_or(""));
  ASSERT_TRUE(patch);
  EXPECT_EQ(
      *patch,
      R"([{"op":"add","path":"/spec/template/spec/priorityClassName","value":"muster-managed"},)"
      R"({"op":"add","path":"/spec/suspend","value":true}])");
}

TEST(Webhook, WithNothingToChangeThereIsNoPatch) {
  const Json response = response_of(
      answer("/mutate", review(R"({"metadata":{}})"), engine::Snapshot{}, WebhookOptions{}));
  EXPECT_TRUE(response.get("allowed").bool_or(false));
  EXPECT_FALSE(response.get("patch").present());
  EXPECT_FALSE(response.get("patchType").present());
}

TEST(Webhook, ARefusalNamesEveryField) {
  const Json response =
      response_of(answer("/validate", review(kJob), engine::Snapshot{}, WebhookOptions{}));
  EXPECT_FALSE(response.get("allowed").bool_or(true));
  EXPECT_EQ(response.get("status", "code").int_or(0), 403);
  EXPECT_EQ(response.get("status", "message").string_or(""),
            "spec.suspend: Forbidden: the Job waits in its queue; muster resumes it when it is "
            "admitted");
  EXPECT_EQ(response.get("status", "details", "causes").at(0).get("field").string_or(""),
            "spec.suspend");
  EXPECT_FALSE(response.get("patch").present());
}

TEST(Webhook, WarningsComeWithAnAnswerThatAllows) {
  SnapshotBuilder world;
  world.local_queue("team", "other", "cq", 8);
  const std::string job =
      testing::with(kJob, R"("spec":{"template")", R"("spec":{"suspend":true,"template")");
  const Json response =
      response_of(answer("/validate", review(job), world.build(), WebhookOptions{}));
  EXPECT_TRUE(response.get("allowed").bool_or(false));
  EXPECT_EQ(response.get("warnings").at(0).string_or(""),
            "LocalQueue main does not exist in namespace team: it waits there");
}

TEST(Webhook, BodiesWithoutAUidAre400) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("null"), std::string("{}"), std::string("[1]"),
        std::string(R"({"request":{"object":{}}})"), std::string(R"({"request":{"uid":7}})"),
        std::string(100000, '['), std::string(R"({"request":"x"})")}) {
    const Answer got = answer("/mutate", body, engine::Snapshot{}, WebhookOptions{});
    EXPECT_EQ(got.status, 400) << body.substr(0, 60);
    EXPECT_FALSE(testing::json(got.body).get("error").string_or("").empty());
  }
  EXPECT_EQ(answer("/convert", "{}", engine::Snapshot{}, WebhookOptions{}).status, 404);
}

TEST(Webhook, WhatCannotBeReadOtherwiseIsRefusedWithAReason) {
  for (const std::string& body :
       {review("null"), review("[]"), review("7"),
        testing::with(review(kJob), R"("CREATE")", R"("GUESS")"),
        testing::with(review(kJob), R"("CREATE")", R"("UPDATE")"),
        testing::with(review(kJob), R"({"group":"batch","version":"v1","kind":"Job"})", "null"),
        review(R"({"metadata":{"labels":["x"]}})")}) {
    const Json response =
        response_of(answer("/mutate", body, engine::Snapshot{}, WebhookOptions{}));
    EXPECT_FALSE(response.get("allowed").bool_or(true)) << body;
    EXPECT_FALSE(response.get("status", "message").string_or("").empty()) << body;
  }
}

TEST(Webhook, LongWarningsAreCutBetweenCharacters) {
  AdmissionResponse response;
  for (int i = 0; i < 40; ++i)
    response.warnings.push_back(std::string(255, 'x') + "\xC3\xA9\xC3\xA9");
  const Json body = testing::json(encode_response("u", response));
  const Json warnings = body.get("response", "warnings");
  EXPECT_EQ(warnings.at(0).string_or("").size(), 255U);
  EXPECT_EQ(warnings.size(), 16U);  // 16 x 255 <= 4096
}

RC_GTEST_PROP(Webhook, NoBytesDoHarm, ()) {
  SnapshotBuilder world;
  world.node("n1").gang("g", {"n1"}).local_queue("team", "main", "cq", 8);
  const std::string pod =
      R"({"metadata":{"name":"m","labels":{"kueue.x-k8s.io/podset":"main"},"ownerReferences":[)"
      R"({"kind":"Job","apiVersion":"batch/v1","name":"g","uid":"g","controller":true}]},)"
      R"("spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}],"affinity":{)"
      R"("nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)"
      R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}}}})";
  std::string body =
      *rc::gen::element(review(kJob), review(pod),
                        testing::with(review(pod), R"("batch","version":"v1","kind":"Job")",
                                      R"("","version":"v1","kind":"Pod")"));
  const auto cuts = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, body.size()), rc::gen::arbitrary<char>()));
  for (const auto& [at, byte] : cuts) body[at] = byte;
  for (const char* path : {"/mutate", "/validate"}) {
    const Answer got = answer(path, body, world.build(), WebhookOptions{});
    RC_ASSERT(got.status == 200 || got.status == 400);
    RC_ASSERT(Json::parse(got.body).has_value());
  }
}

}  // namespace
}  // namespace muster::webhook

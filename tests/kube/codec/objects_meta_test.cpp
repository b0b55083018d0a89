#include "kube/codec/objects.hpp"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

Json parsed(std::string_view text) {
  const Result<Json> json = Json::parse(text);
  EXPECT_TRUE(json) << text << ": " << (json ? "" : json.error().message);
  return json.value_or(Json());
}

TEST(DecodeMeta, ReadsEveryFieldWeUse) {
  const Json object = parsed(R"({"metadata":{
    "name":"w","generateName":"w-","namespace":"ml","uid":"u1","resourceVersion":"812",
    "generation":3,"creationTimestamp":"2026-11-29T16:00:00Z","deletionTimestamp":null,
    "labels":{"a":"b"},"annotations":{"x/y":"z"},"finalizers":["f"],
    "ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"u2"},
                       {"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u3","controller":true}],
    "managedFields":[{"unknown":"field"}]}})");
  const ObjectMeta meta = decode_meta(object).value();
  EXPECT_EQ(meta.name, "w");
  EXPECT_EQ(meta.generate_name, "w-");
  EXPECT_EQ(meta.ns.value(), "ml");
  EXPECT_EQ(meta.uid.value(), "u1");
  EXPECT_EQ(meta.resource_version, "812");
  EXPECT_EQ(meta.generation, 3);
  EXPECT_EQ(format_rfc3339(*meta.created), "2026-11-29T16:00:00Z");
  EXPECT_FALSE(meta.deleted);
  EXPECT_EQ(*meta.find_label("a"), "b");
  EXPECT_EQ(*meta.find_annotation("x/y"), "z");
  EXPECT_EQ(meta.find_label("x/y"), nullptr);
  ASSERT_NE(meta.controller_owner(), nullptr);
  EXPECT_EQ(meta.controller_owner()->uid.value(), "u3");
  EXPECT_EQ(meta.finalizers, std::vector<std::string>{"f"});
}

TEST(DecodeMeta, TakesMissingAndNullAlike) {
  for (const char* text : {"{}", R"({"metadata":null})", R"({"metadata":{}})",
                           R"({"metadata":{"labels":null,"ownerReferences":null,"name":null}})"}) {
    const Result<ObjectMeta> meta = decode_meta(parsed(text));
    ASSERT_TRUE(meta) << text;
    EXPECT_TRUE(meta->name.empty());
    EXPECT_EQ(meta->controller_owner(), nullptr);
  }
}

TEST(DecodeMeta, NamesTheFieldThatIsWrong) {
  const struct {
    const char* object;
    const char* message;
  } cases[] = {
      {"[]", "got an array, want an object"},
      {"null", "got null, want an object"},
      {R"({"metadata":[]})", "metadata: got an array, want an object"},
      {R"({"metadata":{"name":5}})", "metadata.name: got 5, want a string"},
      {R"({"metadata":{"labels":{"a/b":true}}})",
       "metadata.labels[\"a/b\"]: got true, want a string"},
      {R"({"metadata":{"labels":["a"]}})", "metadata.labels: got an array, want an object"},
      {R"({"metadata":{"ownerReferences":[{},{"uid":7}]}})",
       "metadata.ownerReferences[1].uid: got 7, want a string"},
      {R"({"metadata":{"ownerReferences":[7]}})",
       "metadata.ownerReferences[0]: got 7, want an object"},
      {R"({"metadata":{"creationTimestamp":"yesterday"}})",
       "metadata.creationTimestamp: bad time \"yesterday\" (want RFC 3339, e.g. "
       "\"2026-11-29T16:00:00Z\")"},
      {R"({"metadata":{"generation":-1}})",
       "metadata.generation: got -1, want an integer from 0 to 9223372036854775807"},
  };
  for (const auto& each : cases) {
    const Result<ObjectMeta> meta = decode_meta(parsed(each.object));
    ASSERT_FALSE(meta) << each.object;
    EXPECT_EQ(meta.error().message, each.message);
    EXPECT_EQ(meta.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Conditions, AreFoundAndWritten) {
  const Job job = decode_job(parsed(R"({"status":{"conditions":[
      {"type":"Suspended","status":"True"},
      {"type":"Failed","status":"Unknown","reason":"R","message":"M","observedGeneration":4,
       "lastTransitionTime":"2026-11-29T16:00:00Z"}]}})"))
                      .value();
  EXPECT_TRUE(is_true(job.conditions, "Suspended"));
  EXPECT_FALSE(is_true(job.conditions, "Failed"));
  EXPECT_FALSE(is_true(job.conditions, "Complete"));
  EXPECT_EQ(encode_condition(job.conditions[1]).dump(),
            R"({"type":"Failed","status":"Unknown","observedGeneration":4,)"
            R"("lastTransitionTime":"2026-11-29T16:00:00Z","reason":"R","message":"M"})");
  EXPECT_EQ(encode_condition({"T", "True", "R", "", 0, {}}).dump(),
            R"({"type":"T","status":"True","reason":"R","message":""})");
}

TEST(DecodePriorityClass, KeepsToThirtyTwoBits) {
  const PriorityClass high =
      decode_priority_class(
          parsed(R"({"metadata":{"name":"h"},"value":2000000000,"globalDefault":true,
                     "preemptionPolicy":"Never"})"))
          .value();
  EXPECT_EQ(high.value, 2'000'000'000);
  EXPECT_TRUE(high.global_default);
  EXPECT_EQ(high.preemption_policy, "Never");
  EXPECT_EQ(decode_workload_priority_class(parsed(R"({"value":-5})"))->value, -5);
  EXPECT_EQ(decode_workload_priority_class(parsed(R"({"value":2147483648})")).error().message,
            "value: got 2147483648, want an integer from -2147483648 to 2147483647");
  EXPECT_EQ(decode_priority_class(parsed(R"({"value":1.5})")).error().message,
            "value: got 1.5, want an integer from -2147483648 to 2147483647");
}

TEST(DecodeNamespace, IsItsMetadata) {
  EXPECT_EQ(decode_namespace(parsed(R"({"metadata":{"name":"ml","labels":{"team":"a"}}})"))
                ->meta.labels.at("team"),
            "a");
}

}  // namespace
}  // namespace muster::kube

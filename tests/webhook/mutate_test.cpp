#include "webhook/mutate.hpp"

#include "tests/extender/snapshot_builder.hpp"
#include "tests/webhook/apply_patch.hpp"
#include "tests/webhook/requests.hpp"
#include "webhook/json_edit.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <string>

namespace muster::webhook {
namespace {

using engine::WorkloadPhase;
using kube::Json;
using testing::apply_patch;
using testing::create;
using testing::json;
using testing::SnapshotBuilder;
using testing::update;

/// What the patch for this request is, after checking that it applies and is not needed twice.
std::string patch_of(const AdmissionRequest& request, const engine::Snapshot& snapshot,
                     const WebhookOptions& options) {
  const auto mutation = mutate(request, snapshot, options);
  EXPECT_TRUE(mutation);
  if (!mutation) return "";
  const Json patch = make_patch(request.object, mutation->object);
  const auto patched = apply_patch(request.object, patch);
  EXPECT_TRUE(patched) << patch.dump();
  if (!patched) return "";
  EXPECT_EQ(*patched, mutation->object) << patch.dump();
  AdmissionRequest again = request;
  again.object = *patched;
  const auto second = mutate(again, snapshot, options);
  EXPECT_TRUE(second);
  if (second) {
    EXPECT_EQ(make_patch(*patched, second->object).size(), 0U) << second->object.dump();
  }
  return patch.dump();
}

struct Case {
  const char* sentence;
  const char* kind;
  std::string object;
  std::string patch;
  std::function<void(SnapshotBuilder&, WebhookOptions&)> setting = [](auto&, auto&) {};
};

std::string job(const std::string& metadata, const std::string& spec = "",
                const std::string& pod_spec = R"("containers":[])") {
  return R"({"metadata":{)" + metadata + R"(},"spec":{)" + spec + (spec.empty() ? "" : ",") +
         R"("template":{"spec":{)" + pod_spec + "}}}}";
}
constexpr const char* kQueued = R"("name":"j","labels":{"kueue.x-k8s.io/queue-name":"main"})";

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.sentence);
    SnapshotBuilder world;
    WebhookOptions options;
    c.setting(world, options);
    const std::string group = std::string(c.kind) == "Job" ? "batch" : "";
    EXPECT_EQ(patch_of(create(group, c.kind, json(c.object)), world.build(), options), c.patch);
  }
}

TEST(MutateJob, Table) {
  const auto keep = [](SnapshotBuilder&, WebhookOptions& o) { o.protect_priority = false; };
  const auto default_queue = [](SnapshotBuilder& w, WebhookOptions& o) {
    o.protect_priority = false;
    w.local_queue("team", "default", "cq", 8);
  };
  const std::string suspend = R"([{"op":"add","path":"/spec/suspend","value":true}])";
  check({
      {"a Job with a queue is suspended", "Job", job(kQueued), suspend, keep},
      {"one that says it is not suspended is, too", "Job", job(kQueued, R"("suspend":false)"),
       R"([{"op":"replace","path":"/spec/suspend","value":true}])", keep},
      {"a suspended one is left as it is", "Job", job(kQueued, R"("suspend":true)"), "[]", keep},
      {"a Job without a queue is not ours", "Job", job(R"("name":"j")"), "[]", keep},
      {"a Job in a namespace with a LocalQueue default gets its label", "Job", job(R"("name":"j")"),
       R"([{"op":"add","path":"/metadata/labels","value":{"kueue.x-k8s.io/queue-name":"default"}},)"
       R"({"op":"add","path":"/spec/suspend","value":true}])",
       default_queue},
      {"its own queue wins over default", "Job", job(kQueued), suspend, default_queue},
      {"a Job without a queue waits for one where that is configured", "Job", job(R"("name":"j")"),
       suspend,
       [](SnapshotBuilder&, WebhookOptions& o) {
         o.protect_priority = false;
         o.manage_jobs_without_queue_name = true;
       }},
      {"a namespace outside the selector is left alone, labels or not", "Job", job(kQueued), "[]",
       [](SnapshotBuilder& w, WebhookOptions& o) {
         o.managed_namespaces =
             LabelSelector{.match_labels = {{"gpu", "yes"}}, .match_expressions = {}};
         w.ns("team", {{"gpu", "no"}});
       }},
      {"a Job that names a queued object as its controller is not let through: anybody may", "Job",
       job(std::string(kQueued) +
           R"(,"ownerReferences":[{"apiVersion":"x/v1","kind":"Thing","name":"s","uid":"set",)"
           R"("controller":true}])"),
       suspend,
       [](SnapshotBuilder& w, WebhookOptions& o) {
         o.protect_priority = false;
         w.workload("set", WorkloadPhase::kAdmitted, 1);
       }},
      {"a Job that names a queued Job as its controller is not: Jobs control no Jobs", "Job",
       job(std::string(kQueued) +
           R"(,"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"s","uid":"set",)"
           R"("controller":true}])"),
       suspend,
       [](SnapshotBuilder& w, WebhookOptions& o) {
         o.protect_priority = false;
         w.workload("set", WorkloadPhase::kPending, 1);
       }},
      {"its pods get the class muster-managed, and what they had is kept", "Job",
       job(kQueued, R"("suspend":true)",
           R"("containers":[],"priorityClassName":"high","priority":7,"preemptionPolicy":"x")"),
       R"([{"op":"add","path":"/metadata/annotations","value":{"muster.dev/priority-class":"high"}},)"
       R"({"op":"replace","path":"/spec/template/spec/priorityClassName","value":"muster-managed"},)"
       R"({"op":"remove","path":"/spec/template/spec/priority"},)"
       R"({"op":"remove","path":"/spec/template/spec/preemptionPolicy"}])"},
      {"a template without a class gets it, too", "Job", job(kQueued, R"("suspend":true)"),
       R"([{"op":"add","path":"/spec/template/spec/priorityClassName","value":"muster-managed"}])"},
      {"a native pod group is left to the scheduler", "Job",
       job(kQueued, "", R"("containers":[],"schedulingGroup":{"podGroupName":"g"})"), "[]"},
  });
}

std::string pod(const std::string& metadata,
                const std::string& spec = R"("containers":[{"name":"c"}])") {
  return R"({"metadata":{)" + metadata + R"(},"spec":{)" + spec + "}}";
}

TEST(MutatePod, Table) {
  const std::string managed =
      R"({"op":"add","path":"/metadata/labels/kueue.x-k8s.io~1managed","value":"true"})";
  const std::string gate =
      R"({"op":"add","path":"/spec/schedulingGates","value":[{"name":"kueue.x-k8s.io/admission"}]})";
  const auto keep = [](SnapshotBuilder&, WebhookOptions& o) { o.protect_priority = false; };
  const auto second = [](SnapshotBuilder&, WebhookOptions& o) {
    o.second_scheduler = "muster-scheduler";
    o.managed_resources = {ResourceName("nvidia.com/gpu")};
  };
  check({
      {"a pod with a queue is gated and marked", "Pod", pod(kQueued),
       "[" + managed + "," + gate + "]", keep},
      {"gates of others stay", "Pod",
       pod(kQueued, R"("containers":[],"schedulingGates":[{"name":"x/y"}])"),
       "[" + managed +
           R"(,{"op":"add","path":"/spec/schedulingGates/-","value":{"name":"kueue.x-k8s.io/admission"}}])",
       keep},
      {"a pod without a queue is not ours", "Pod", pod(R"("name":"p")"), "[]", keep},
      {"the class goes in, what the Priority plugin filled in goes out", "Pod",
       pod(kQueued,
           R"("containers":[],"priorityClassName":"low","priority":5,"preemptionPolicy":"P")"),
       "[" + managed +
           R"(,{"op":"add","path":"/metadata/annotations","value":{"muster.dev/priority-class":"low"}},)"
           R"({"op":"replace","path":"/spec/priorityClassName","value":"muster-managed"},)"
           R"({"op":"remove","path":"/spec/priority"},{"op":"remove","path":"/spec/preemptionPolicy"},)" +
           gate + "]"},
      {"a preset node is left for validation to refuse", "Pod",
       pod(kQueued, R"("containers":[],"nodeName":"n1")"), "[]", keep},
      {"a DaemonSet's pod never queues", "Pod",
       pod(std::string(kQueued) + R"(,"ownerReferences":[{"apiVersion":"apps/v1",)"
                                  R"("kind":"DaemonSet","name":"d","uid":"d","controller":true}])"),
       "[]", keep},
      {"a member of a queued Job does not queue again", "Pod",
       pod(std::string(kQueued) + R"(,"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job",)"
                                  R"("name":"g","uid":"g","controller":true}])"),
       "[]",
       [](SnapshotBuilder& w, WebhookOptions&) { w.workload("g", WorkloadPhase::kAdmitted, 1); }},
      {"a pod that names some other controller queues like any pod: anybody may write that", "Pod",
       pod(R"("name":"p","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Thing",)"
           R"("name":"r","uid":"r","controller":true}])"),
       R"([{"op":"add","path":"/metadata/labels","value":{"kueue.x-k8s.io/queue-name":"default",)"
       R"("kueue.x-k8s.io/managed":"true"}},)" +
           gate + "]",
       [](SnapshotBuilder& w, WebhookOptions& o) {
         o.protect_priority = false;
         w.local_queue("team", "default", "cq", 8);
       }},
      {"a pod of a Job that is not queued is left to it", "Pod",
       pod(R"("name":"p","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job",)"
           R"("name":"r","uid":"r","controller":true}])"),
       "[]",
       [](SnapshotBuilder& w, WebhookOptions&) { w.local_queue("team", "default", "cq", 8); }},
      {"a second scheduler gets pods that ask for a managed resource", "Pod",
       pod(R"("name":"p")",
           R"("schedulerName":"default-scheduler","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}])"),
       R"([{"op":"replace","path":"/spec/schedulerName","value":"muster-scheduler"}])", second},
      {"and no others", "Pod",
       pod(R"("name":"p")",
           R"("schedulerName":"default-scheduler","containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}])"),
       "[]", second},
      {"nor pods that chose a scheduler themselves", "Pod",
       pod(R"("name":"p")",
           R"("schedulerName":"mine","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}])"),
       "[]", second},
  });
}

std::string member(const std::string& rank, const std::string& terms) {
  std::string labels = R"("kueue.x-k8s.io/podset":"main")";
  if (!rank.empty()) {
    labels += R"(,"batch.kubernetes.io/job-completion-index":")" + rank + "\"";
  }
  const std::string affinity =
      terms.empty()
          ? ""
          : R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
            R"({"nodeSelectorTerms":[)" +
                terms + "]}}}";
  return pod(R"("name":"p","labels":{)" + labels +
                 R"(},"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"g",)"
                 R"("uid":"g","controller":true}])",
             R"("containers":[])" + affinity);
}

std::string name_term(const std::string& node, const std::string& rest = "") {
  return "{" + rest + (rest.empty() ? "" : ",") +
         R"("matchFields":[{"key":"metadata.name","operator":"In","values":[")" + node + R"("]}]})";
}

TEST(MutatePod, MembersArePinnedToTheNodeOfTheirRank) {
  SnapshotBuilder world;
  world.node("n1").node("n2").node("n3").gang("g", {"n1", "n2"});
  world.workload("waits", WorkloadPhase::kPending, 1);
  const auto snapshot = world.build();
  const std::string rack = R"("matchExpressions":[{"key":"rack","operator":"In","values":["r1"]}])";
  struct Row {
    const char* sentence;
    std::string pod;
    std::string terms;  ///< Empty: no patch.
  };
  const std::vector<Row> rows = {
      {"the union shrinks to its node", member("1", name_term("n1") + "," + name_term("n2")),
       name_term("n2")},
      {"the user's other requirements stay",
       member("0", name_term("n1", rack) + "," + name_term("n2", rack) + "," +
                       name_term("n1", R"("matchExpressions":[])")),
       name_term("n1", rack) + "," + name_term("n1", R"("matchExpressions":[])")},
      {"a slot that moved since the template was written is followed",
       member("1", name_term("n3", rack) + "," + name_term("n1", rack)), name_term("n2", rack)},
      {"a term that names no node gets it", member("1", "{" + rack + "}"), name_term("n2", rack)},
      {"a template without affinity gets it", member("1", ""), name_term("n2")},
      {"a pod without a rank keeps the union", member("", name_term("n1") + "," + name_term("n2")),
       ""},
      {"a surplus rank keeps the union", member("2", name_term("n1") + "," + name_term("n2")), ""},
      {"terms that match nothing stay", member("1", "{}"), ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sentence);
    const auto request = create("", "Pod", json(row.pod));
    const std::string patch = patch_of(request, snapshot, WebhookOptions{});
    if (row.terms.empty()) {
      EXPECT_EQ(patch, "[]");
      continue;
    }
    const auto patched = apply_patch(request.object, json(patch));
    ASSERT_TRUE(patched);
    EXPECT_EQ(patched->get("spec", "affinity", "nodeAffinity")
                  .get("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"),
              json("[" + row.terms + "]"))
        << patch;
  }
}

TEST(MutateJob, ApplyingTheUsersManifestAgainKeepsTheProtectedClass) {
  const std::string user =
      job(kQueued, R"("suspend":true)", R"("containers":[],"priorityClassName":"high")");
  const std::string stored =
      job(kQueued, R"("suspend":true)", R"("containers":[],"priorityClassName":"muster-managed")");
  const auto request = update("batch", "Job", json(stored), json(user));
  EXPECT_NE(
      patch_of(request, engine::Snapshot{}, WebhookOptions{}).find(R"("value":"muster-managed")"),
      std::string::npos);
  // An unprotected Job stays so: its template could not be changed.
  EXPECT_EQ(patch_of(update("batch", "Job", json(user), json(user)), engine::Snapshot{},
                     WebhookOptions{}),
            "[]");
}

TEST(Mutate, MetadataThatCannotBeReadIsAnError) {
  EXPECT_FALSE(mutate(create("batch", "Job", json(R"({"metadata":7})")), engine::Snapshot{},
                      WebhookOptions{}));
}

TEST(Mutate, OtherKindsAndOperationsAreLeftAlone) {
  AdmissionRequest request = create("apps", "Deployment", json(job(kQueued)));
  EXPECT_EQ(patch_of(request, engine::Snapshot{}, WebhookOptions{}), "[]");
  request = create("batch", "Job", json(job(kQueued)));
  request.operation = Operation::kDelete;
  EXPECT_EQ(patch_of(request, engine::Snapshot{}, WebhookOptions{}), "[]");
}

/// Any JSON value up to three levels deep over few keys, so that equal keys meet.
rc::Gen<Json> any_json(int depth) {
  return rc::gen::exec([depth] {
    const int kind = *rc::gen::inRange(0, depth > 0 ? 6 : 4);
    if (kind == 0) return Json::null();
    if (kind == 1) return Json::boolean(*rc::gen::arbitrary<bool>());
    if (kind == 2) return Json::number(*rc::gen::inRange<std::int64_t>(0, 3));
    if (kind == 3) return Json::string(*rc::gen::element(std::string("x"), std::string("y/~")));
    const int size = *rc::gen::inRange(0, 4);
    if (kind == 4) {
      std::vector<Json> elements;
      for (int i = 0; i < size; ++i) elements.push_back(*any_json(depth - 1));
      return Json::array(elements);
    }
    std::vector<std::pair<std::string, Json>> members;
    for (int i = 0; i < size; ++i) {
      members.emplace_back(*rc::gen::element(std::string("a"), std::string("b/c"),
                                             std::string("d~e"), std::string("")),
                           *any_json(depth - 1));
    }
    return Json::object(members);
  });
}

RC_GTEST_PROP(MakePatch, TurnsAnyValueIntoAnyOther, ()) {
  const Json before = *any_json(3);
  const Json after = *any_json(3);
  const Json patch = make_patch(before, after);
  const auto patched = apply_patch(before, patch);
  RC_ASSERT(patched.has_value());
  RC_ASSERT(*patched == after);
  RC_ASSERT((patch.size() == 0) == (before == after));
}

RC_GTEST_PROP(Mutate, IsIdempotent, ()) {
  SnapshotBuilder world;
  world.node("n1").node("n2").gang("g", {"n1", "n2"});
  WebhookOptions options;
  options.protect_priority = *rc::gen::arbitrary<bool>();
  options.manage_jobs_without_queue_name = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) options.second_scheduler = "second";
  if (*rc::gen::arbitrary<bool>()) world.local_queue("team", "default", "cq", 8);
  const bool is_job = *rc::gen::arbitrary<bool>();
  const std::string labels = *rc::gen::element<std::string>(
      "", R"("labels":null)", R"("labels":{"kueue.x-k8s.io/queue-name":"main"})",
      R"("labels":{"kueue.x-k8s.io/queue-name":""})",
      R"("labels":{"kueue.x-k8s.io/podset":"main","batch.kubernetes.io/job-completion-index":"1"},)"
      R"("ownerReferences":[{"kind":"Job","apiVersion":"batch/v1","name":"g","uid":"g","controller":true}])");
  const std::string spec = *rc::gen::element<std::string>(
      R"("containers":[])", R"("containers":null,"priorityClassName":"x","priority":1)",
      R"("affinity":null)", R"("affinity":{"nodeAffinity":{}})", R"("schedulingGates":null)",
      R"("priorityClassName":null,"preemptionPolicy":"Never")");
  const std::string object = is_job ? job(labels, "", spec) : pod(labels, spec);
  const AdmissionRequest request =
      create(is_job ? "batch" : "", is_job ? "Job" : "Pod", json(object));
  const auto first = mutate(request, world.build(), options);
  RC_ASSERT(first.has_value());
  const auto patched = apply_patch(request.object, make_patch(request.object, first->object));
  RC_ASSERT(patched.has_value());
  AdmissionRequest again = request;
  again.object = *patched;
  const auto second = mutate(again, world.build(), options);
  RC_ASSERT(second.has_value());
  RC_ASSERT(make_patch(*patched, second->object).size() == 0U);
}

}  // namespace
}  // namespace muster::webhook

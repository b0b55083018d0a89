// Whose work a Workload stands for, and that what runs for it is what was admitted.

#include "tests/controller/cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace muster::controller::testing {
namespace {

using kube::Json;
using ::testing::IsEmpty;

/// Changes what each pod of the Job asks for.
void resize(Cluster& cluster, const std::string& name, const std::string& gpus,
            const std::string& other = "") {
  cluster.api.store(
      ResourceKind::kJob,
      kube::merge_patch(
          cluster.job(name),
          json(R"({"spec":{)" + other + R"("template":{"spec":{"containers":[{"name":"main",)" +
               R"("resources":{"requests":{"nvidia.com/gpu":")" + gpus + R"("}}}]}}}})")));
}

TEST(Ownership, AJobThatGrewWhileItWasSuspendedIsNotStartedByItsFormerAdmission) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 2, "q");
  resize(cluster, "a", "2");
  ASSERT_TRUE(cluster.settle());
  const auto admitted = [&] {
    const auto usage = cluster.workload_of("a").admission;
    return usage
               ? usage->pod_sets.at(0).resource_usage.at(ResourceName("nvidia.com/gpu")).to_string()
               : "nothing";
  };
  EXPECT_EQ(admitted(), "4");
  resize(cluster, "a", "4", R"("suspend":true,)");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(admitted(), "8");
  EXPECT_EQ(cluster.bound_pods("a"), 2);

  // Behind our back, and running at once.
  resize(cluster, "a", "8");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(admitted(), "16");
  EXPECT_EQ(cluster.bound_pods("a"), 2);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

Json owned_by(const Json& workload, const std::string& name, const Json& job) {
  return kube::merge_patch(
      workload,
      Json::object({{"metadata", Json::object({{"ownerReferences",
                                                Json::array({Json::object(
                                                    {{"apiVersion", Json::string("batch/v1")},
                                                     {"kind", Json::string("Job")},
                                                     {"name", Json::string(name)},
                                                     {"uid", job.get("metadata", "uid")},
                                                     {"controller", Json::boolean(true)}})})}})}}));
}

TEST(Ownership, AWorkloadOfAnotherNamespaceClaimsNoJob) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 16);
  cluster.add_job("a", 2, "q");
  ASSERT_TRUE(cluster.settle());
  // Its namespace comes first in every list, and a finalizer keeps it.
  const Json forged =
      owned_by(json(R"({"metadata":{"namespace":"aaa","name":"w","finalizers":["x/y"]},
    "spec":{"queueName":"q","podSets":[{"name":"main","count":2,"template":{"spec":{"containers":[
    {"name":"main","resources":{"requests":{"nvidia.com/gpu":"8"}}}]}}}]}})"),
               "its-own", cluster.job("a"));
  cluster.api.create(ResourceKind::kWorkload, forged);
  const int created = cluster.writes(WriteKind::kCreateWorkload);
  for (const bool again : {false, true}) {
    if (again) cluster.restart();
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(cluster.bound_pods("a"), 2);
    EXPECT_FALSE(cluster.suspended("a"));
    EXPECT_EQ(cluster.writes(WriteKind::kCreateWorkload), created);
    EXPECT_TRUE(cluster.is_true("a", "Admitted"));
  }
}

TEST(Ownership, AWorkloadIsNotHandedOverToAnotherJob) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("b", 1, "q");
  ASSERT_TRUE(cluster.settle());
  const std::string name = cluster.workload_of("a").meta.name;
  cluster.api.store(
      ResourceKind::kWorkload,
      owned_by(cluster.api.get(ResourceKind::kWorkload, "team", name), "b", cluster.job("b")));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("a"), 1);
  EXPECT_EQ(cluster.pods("b"), 0);
  EXPECT_FALSE(cluster.suspended("a"));

  cluster.api.erase(ResourceKind::kJob, "team", "a");
  ASSERT_TRUE(cluster.settle());
  cluster.pass_time(std::chrono::seconds(10));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("b"), 1);
}

TEST(Ownership, AWorkloadThatAFinalizerKeepsGivesItsQuotaBack) {
  Cluster cluster;
  cluster.add_nodes(2);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  cluster.add_job("b", 1, "q");
  const std::string name = cluster.workload_of("a").meta.name;
  cluster.api.store(ResourceKind::kWorkload,
                    kube::merge_patch(cluster.api.get(ResourceKind::kWorkload, "team", name),
                                      json(R"({"metadata":{"finalizers":["x/y"]}})")));
  ASSERT_TRUE(cluster.settle());
  cluster.api.erase(ResourceKind::kJob, "team", "a");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cluster.settle());
    cluster.pass_time(std::chrono::seconds(10));
  }
  EXPECT_EQ(cluster.bound_pods("b"), 1);
}

}  // namespace
}  // namespace muster::controller::testing

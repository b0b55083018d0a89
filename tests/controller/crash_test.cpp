// Crashes after every write, and answers and events in every order we could think of: what comes
// out is always whole gangs and exact quota.

#include "tests/controller/cluster.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace muster::controller::testing {
namespace {

using ::testing::IsEmpty;

/// Gangs that fit, one that waits, a reclaim of a whole gang, a plain pod, and a gang that ends.
void play(Cluster& cluster) {
  cluster.add_nodes(6);
  cluster.add_flavor();
  cluster.add_queue("regular", 0, "org");
  cluster.add_queue("prod", 48, "org", R"({"reclaimWithinCohort": "Any"})");
  cluster.add_job("borrower-a", 3, "regular");
  cluster.add_job("borrower-b", 2, "regular");
  EXPECT_TRUE(cluster.settle());
  cluster.add_job("owner", 4, "prod");
  cluster.add_gated_pod("pod", "prod");
  EXPECT_TRUE(cluster.settle());
  cluster.api.finish_pods("team", "owner");
  EXPECT_TRUE(cluster.settle());
}

void expect_good_end(Cluster& cluster, const std::string& what) {
  EXPECT_THAT(cluster.broken_promises(), IsEmpty()) << what;
  EXPECT_TRUE(cluster.is_true("owner", "Finished")) << what;
  // 6 nodes: the pod has one, and each borrower fits beside it once the owner is done.
  EXPECT_EQ(cluster.bound_pods("borrower-a"), 3) << what;
  EXPECT_EQ(cluster.bound_pods("borrower-b"), 2) << what;
}

TEST(Crash, AfterAnyWriteANewControllerFinishesWhatTheOldOneBegan) {
  Cluster whole;
  play(whole);
  expect_good_end(whole, "without a crash");
  const int writes = static_cast<int>(whole.log.size());
  ASSERT_GT(writes, 20);
  for (int n = 0; n < writes; ++n) {
    Cluster cluster;
    cluster.crash_after = n;
    play(cluster);
    expect_good_end(cluster, fmt::format("crash after write {}", n));
  }
}

TEST(Crash, TwoCrashesInARowDoNoMore) {
  Cluster whole;
  play(whole);
  const int writes = static_cast<int>(whole.log.size());
  for (int n = 0; n < writes; n += 6) {
    Cluster cluster;
    cluster.crash_after = n;
    play(cluster);
    cluster.crash_after = 1;
    // Takes a node back: all 6 are in use, so one of the borrowers goes, as a whole.
    cluster.add_job("late", 1, "prod");
    ASSERT_TRUE(cluster.settle());
    EXPECT_THAT(cluster.broken_promises(), IsEmpty()) << n;
    EXPECT_EQ(cluster.bound_pods("late"), 1) << n;
  }
}

TEST(Crash, NothingIsDecidedBeforeEveryKindIsComplete) {
  Cluster cluster;
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  cluster.add_job("a", 1, "q");
  engine::Engine engine;
  Controller controller(engine, {}, [](const BarrierQuery&) { return true; });
  for (const ResourceKind kind : kResourceKinds) {
    EXPECT_FALSE(controller.synced());
    for (const kube::Json& object : cluster.api.list(kind)) {
      controller.on_object(kind, ChangeKind::kUpsert, object, cluster.now());
    }
    controller.on_tick(cluster.now());
    EXPECT_THAT(controller.take_writes(), IsEmpty());
    EXPECT_FALSE(controller.next_wakeup());
    controller.on_synced(kind, cluster.now());
  }
  EXPECT_TRUE(controller.synced());
  controller.on_tick(cluster.now());
  EXPECT_THAT(controller.take_writes(), ::testing::SizeIs(1));
}

struct DisorderCase {
  const char* name;
  Delivery delivery;
};
void PrintTo(const DisorderCase& disorder, std::ostream* out) {
  *out << disorder.name;
}
class Disorder : public ::testing::TestWithParam<DisorderCase> {};

TEST_P(Disorder, EndsAsTheOrderlyRunDoes) {
  Cluster cluster;
  cluster.delivery = GetParam().delivery;
  play(cluster);
  expect_good_end(cluster, GetParam().name);
}

TEST_P(Disorder, ACrashInItDoesNoHarm) {
  for (int n = 3; n < 40; n += 9) {
    Cluster cluster;
    cluster.delivery = GetParam().delivery;
    cluster.crash_after = n;
    play(cluster);
    expect_good_end(cluster, fmt::format("{}, crash after write {}", GetParam().name, n));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Deliveries, Disorder,
    ::testing::Values(DisorderCase{"LateWatch", {.watch_delay = 4}},
                      DisorderCase{"LateWorkloadWatch", {.workload_watch_delay = 7}},
                      DisorderCase{"LateAnswers", {.answer_delay = 5}},
                      DisorderCase{"Duplicates", {.duplicates = true}},
                      DisorderCase{"PodsBeforeNodes", {.reversed_kinds = true}},
                      DisorderCase{"Everything",
                                   {.watch_delay = 2,
                                    .workload_watch_delay = 3,
                                    .answer_delay = 4,
                                    .duplicates = true,
                                    .reversed_kinds = true}}),
    [](const auto& instance) { return std::string(instance.param.name); });

Error error(ErrorCode code) {
  return Error{code, "injected"};
}

TEST(Faults, EveryThirdWriteTimesOutAfterItWasAppliedOrBefore) {
  for (const bool applied : {false, true}) {
    Cluster cluster;
    int count = 0;
    bool inside = false;
    cluster.api.fault = [&](const Write& write) -> std::optional<Error> {
      if (inside || ++count % 3 != 0) return std::nullopt;
      if (applied) {
        inside = true;
        (void)cluster.api.apply(write);
        inside = false;
      }
      return error(ErrorCode::kDeadline);
    };
    play(cluster);
    expect_good_end(cluster, applied ? "applied and not answered" : "not applied");
    EXPECT_GT(cluster.controller->stats().write_retries, 5U);
  }
}

TEST(Faults, AServerThatFailsForALongTimeIsTriedWithGrowingPauses) {
  Cluster cluster;
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  bool down = true;
  cluster.api.fault = [&](const Write&) -> std::optional<Error> {
    return down ? std::optional(error(ErrorCode::kUnavailable)) : std::nullopt;
  };
  cluster.add_job("a", 1, "q");
  for (int i = 0; i < 1000; ++i) cluster.step();  // 10 s
  // 0.1 + 0.2 + … + 3.2 s: six pauses and a seventh begun.
  EXPECT_LE(cluster.writes(WriteKind::kCreateWorkload), 8);
  EXPECT_GE(cluster.writes(WriteKind::kCreateWorkload), 6);
  down = false;
  cluster.pass_time(std::chrono::seconds(10));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("a"), 1);
}

TEST(Faults, AConflictIsTriedAgainOnTheNewerVersion) {
  Cluster cluster;
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  int touched = 0;
  // Somebody else changes the Job just before each of our first three tries to resume it.
  cluster.api.fault = [&](const Write& write) -> std::optional<Error> {
    if (write.kind == WriteKind::kResume && touched < 3) {
      ++touched;
      cluster.api.store(
          ResourceKind::kJob,
          kube::merge_patch(
              cluster.job("a"),
              json(fmt::format(R"({{"metadata":{{"annotations":{{"n":"{}"}}}}}})", touched))));
    }
    return std::nullopt;
  };
  cluster.add_job("a", 1, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.controller->stats().write_conflicts, 3U);
  EXPECT_EQ(cluster.bound_pods("a"), 1);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
}

TEST(Faults, AnAdmissionThatIsRefusedGivesItsQuotaBackAndIsNotDecidedAgainAtOnce) {
  Cluster cluster;
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  std::string refused_for;
  cluster.api.fault = [&](const Write& write) -> std::optional<Error> {
    if (write.kind == WriteKind::kAdmit && write.subject == refused_for) {
      return error(ErrorCode::kInvalidArgument);
    }
    return std::nullopt;
  };
  cluster.add_job("a", 1, "q");
  refused_for = "team/" + [&] {
    while (!cluster.has_workload("a")) cluster.step();
    return cluster.workload_of("a").meta.name;
  }();
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.writes(WriteKind::kAdmit), 1);
  cluster.add_job("b", 1, "q");
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("b"), 1);
  EXPECT_THAT(cluster.broken_promises(), IsEmpty());
  cluster.api.finish_pods("team", "b");
  refused_for.clear();
  cluster.pass_time(std::chrono::seconds(11));
  ASSERT_TRUE(cluster.settle());
  EXPECT_EQ(cluster.bound_pods("a"), 1);
}

TEST(Faults, AJobThatCannotBeStartedGivesItsQuotaToOthers) {
  Cluster cluster;
  cluster.add_nodes(1);
  cluster.add_flavor();
  cluster.add_queue("q", 8);
  cluster.api.fault = [&](const Write& write) -> std::optional<Error> {
    if (write.kind == WriteKind::kResume && write.path.ends_with("/bad")) {
      return error(ErrorCode::kInvalidArgument);
    }
    return std::nullopt;
  };
  cluster.add_job("bad", 1, "q");
  for (int i = 0; i < 4000; ++i) cluster.step();  // 40 s
  EXPECT_FALSE(cluster.workload_of("bad").admission);
  EXPECT_TRUE(cluster.workload_of("bad").requeue_at.has_value());
  cluster.add_job("good", 1, "q");
  for (int i = 0; i < 300; ++i) cluster.step();
  EXPECT_EQ(cluster.bound_pods("good"), 1);
}

}  // namespace
}  // namespace muster::controller::testing

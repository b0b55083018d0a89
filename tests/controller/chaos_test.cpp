// Random days in a cluster: arrivals, ends, deletions, lost nodes, preemptions by the scheduler,
// users who meddle, crashes, refused and lost writes, late and repeated events. Whatever happened,
// once it is quiet every gang is whole or not started and quota is exact. A failure names the seed
// that plays it again.

#include "tests/controller/cluster.hpp"
#include "tests/rounds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace muster::controller::testing {
namespace {

using kube::Json;
using ::testing::IsEmpty;

class Day {
 public:
  explicit Day(std::uint32_t seed) : random_(seed) {
    cluster_.add_nodes(6);
    cluster_.add_flavor();
    cluster_.add_queue("regular", 0, "org");
    cluster_.add_queue("prod", 48, "org",
                       R"({"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"})");
    cluster_.add_priority_class("high", 100);
    cluster_.api.started_templates_are_fixed = seed % 2 == 1;
    cluster_.api.fault = [this](const Write&) { return fault(); };
  }

  void play(int hours) {
    for (int i = 0; i < hours; ++i) {
      happen();
      const int steps = pick(1, 12);
      for (int step = 0; step < steps; ++step) cluster_.step();
    }
  }

  /// Everybody stops meddling; what is under way comes to its end.
  void rest() {
    faults_ = 0;
    cluster_.crash_after.reset();
    cluster_.delivery = {};
    cluster_.api.scheduler_on = true;
    for (int i = 0; i < 6; ++i) {
      EXPECT_TRUE(cluster_.settle(3000));
      cluster_.pass_time(std::chrono::seconds(11));
    }
    EXPECT_TRUE(cluster_.settle(3000));
  }

  Cluster& cluster() { return cluster_; }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  Json any(ResourceKind kind) {
    const std::vector<Json> all = cluster_.api.list(kind);
    if (all.empty()) return {};
    return all[static_cast<std::size_t>(pick(0, static_cast<int>(all.size()) - 1))];
  }
  static std::string name(const Json& object) {
    return std::string(object.get("metadata", "name").string_or(""));
  }

  std::optional<Error> fault() {
    if (faults_ <= 0 || !chance(40)) return std::nullopt;
    --faults_;
    static constexpr ErrorCode kCodes[] = {ErrorCode::kUnavailable, ErrorCode::kDeadline,
                                           ErrorCode::kTooManyRequests, ErrorCode::kConflict,
                                           ErrorCode::kInvalidArgument};
    return Error{kCodes[pick(0, 4)], "injected"};
  }

  void happen() {
    const std::string queue = chance(50) ? "regular" : "prod";
    switch (pick(0, 13)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const Json job = cluster_.add_job(fmt::format("job{}", ++jobs_), pick(1, 4), queue);
        if (chance(30)) {
          meddle(job, R"({"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"high"}}})");
        }
        return;
      }
      case 4:
      case 5:
        if (const Json job = any(ResourceKind::kJob); job.present()) {
          cluster_.api.finish_pods("team", name(job));
        }
        return;
      case 6:
        if (const Json job = any(ResourceKind::kJob); job.present()) {
          cluster_.api.erase(ResourceKind::kJob, "team", name(job));
        }
        return;
      case 7:
        if (chance(50)) {
          if (cluster_.api.list(ResourceKind::kNode).size() > 4) {
            cluster_.api.erase(ResourceKind::kNode, "", name(any(ResourceKind::kNode)));
          }
        } else {
          cluster_.add_nodes(1, fmt::format("x{}-", ++nodes_));
        }
        return;
      case 8:
        if (const Json pod = any(ResourceKind::kPod); pod.present()) {
          cluster_.api.preempt_pod("team", name(pod));
        }
        return;
      case 9:
        if (const Json job = any(ResourceKind::kJob); job.present()) {
          meddle(job,
                 chance(50) ? R"({"spec":{"suspend":true}})" : R"({"spec":{"suspend":false}})");
        }
        return;
      case 10:
        if (const Json workload = any(ResourceKind::kWorkload); workload.present() && chance(40)) {
          cluster_.api.erase(ResourceKind::kWorkload, "team", name(workload));
        }
        return;
      case 11:
        cluster_.crash_after = pick(0, 6);
        return;
      case 12:
        faults_ = pick(1, 6);
        cluster_.api.scheduler_on = chance(70);
        return;
      case 13:
        cluster_.delivery = {.watch_delay = pick(0, 3),
                             .workload_watch_delay = pick(0, 3),
                             .answer_delay = pick(0, 3),
                             .duplicates = chance(50),
                             .reversed_kinds = chance(50)};
        return;
      default:
        return;
    }
  }

  void meddle(const Json& job, const char* patch) {
    cluster_.api.store(ResourceKind::kJob, kube::merge_patch(job, json(patch)));
  }

  std::mt19937 random_;
  Cluster cluster_;
  int jobs_ = 0;
  int nodes_ = 0;
  int faults_ = 0;
};

class Chaos : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Chaos, EndsWithWholeGangsAndExactQuota) {
  Day day(GetParam());
  day.play(60);
  day.rest();
  EXPECT_THAT(day.cluster().broken_promises(), IsEmpty()) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos,
                         ::testing::Range(1U,
                                          1U + static_cast<std::uint32_t>(test::rounds(16, 64))));

}  // namespace
}  // namespace muster::controller::testing

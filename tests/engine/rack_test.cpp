// Racks of 18 nodes with 4 GPUs each, two of them down, and jobs of 16 pods that must stay in one
// rack, under quotas that do not divide by racks: whatever comes and goes, nobody starts in a rack
// that has no room, the reasons of those that wait are true, and it comes to rest.

#include "engine/explain.hpp"
#include "tests/engine/world.hpp"
#include "tests/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster::engine::test {
namespace {

constexpr int kRacks = 4;
constexpr int kNodes = 18;
constexpr std::int64_t kGpus = 4;  ///< Of a node, and what a pod asks for.
/// Together 200 of 256 GPUs; a job of 16 pods takes 64.
const std::map<std::string, std::int64_t> kQuota = {{"a", 100}, {"b", 60}, {"c", 40}};

std::string node_name(int rack, int node) {
  return fmt::format("r{}-n{:02}", rack, node);
}

class Racks {
 public:
  explicit Racks(std::uint64_t seed) : random_(static_cast<std::uint32_t>(seed)) {
    world_.send(TopologyUpserted{{TopologyName("racks"), {"rack", kHostnameLabel}}});
    world_.flavor("gb300", {{"pool", "gb300"}}, "racks");
    for (int rack = 0; rack < kRacks; ++rack) {
      for (int node = 0; node < kNodes; ++node) set_node(rack, node, node >= 2);
    }
    for (const auto& [queue, nominal] : kQuota) {
      QueueOptions options;
      options.cohort = "all";
      options.nominal = nominal;
      options.flavor = "gb300";
      options.preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
      options.preemption.reclaim_within_cohort = PreemptionPolicy::kAny;
      world_.queue(queue, options);
    }
  }

  void play(int steps) {
    for (int step = 0; step < steps; ++step) {
      world_.pass_time(60);
      const auto what = random_() % 10;
      if (what < 5) {
        submit(step);
      } else if (what < 8) {
        finish_one();
      } else {
        const int rack = static_cast<int>(random_() % kRacks);
        const int node = static_cast<int>(random_() % kNodes);
        set_node(rack, node, !ready_.contains(node_name(rack, node)));
      }
      come_to_rest();
      if (::testing::Test::HasFailure()) return;
      check_those_who_run();
      check_those_who_wait();
    }
  }

  [[nodiscard]] std::map<std::string, int> seen() const { return seen_; }

 private:
  void set_node(int rack, int node, bool ready) {
    const std::string name = node_name(rack, node);
    world_.node(name, kGpus, {{"pool", "gb300"}, {"rack", fmt::format("r{}", rack)}}, ready);
    if (ready) {
      ready_.insert(name);
    } else {
      ready_.erase(name);
    }
  }

  void submit(int step) {
    constexpr std::array<std::int64_t, 6> kSizes = {16, 16, 16, 2, 5, 19};
    JobOptions job;
    job.queue = std::string(1, "abc"[random_() % 3]);
    job.pods = kSizes[random_() % kSizes.size()];
    job.gpus = kGpus;
    job.priority = static_cast<std::int64_t>(random_() % 3);
    job.created_s = world_.now.us / 1'000'000;
    job.topology = TopologyRequest{TopologyRequest::Mode::kRequired, "rack"};
    const std::string name = fmt::format("j{}", step);
    jobs_[name] = job;
    world_.submit(name, job);
  }

  void finish_one() {
    std::vector<std::string> running;
    for (const auto& [name, job] : jobs_) {
      if (world_.admitted(name)) running.push_back(name);
    }
    if (running.empty()) return;
    const std::string name = running[random_() % running.size()];
    world_.finish(name);
    jobs_.erase(name);
  }

  /// Nobody is evicted twice for one change, and it ends.
  void come_to_rest() {
    constexpr int kMost = 8;
    const auto before = world_.evictions;
    int rounds = 0;
    while (!world_.settle().list.empty() && ++rounds < kMost) world_.let_leave();
    ASSERT_LT(rounds, kMost) << "no rest";
    for (const auto& [workload, times] : world_.evictions) {
      const auto known = before.find(workload);
      ASSERT_LE(times - (known == before.end() ? 0 : known->second), 1)
          << workload.to_string() << " was evicted twice";
    }
  }

  void check_those_who_run() {
    std::set<std::string> taken;
    used_ = 0;
    free_ = {};
    for (const std::string& node : ready_) ++free_[node.substr(0, 2)];
    for (const auto& [name, job] : jobs_) {
      if (!world_.admitted(name)) continue;
      const auto& nodes =
          world_.engine.state().find(World::key(name))->admission->pod_sets[0].nodes;
      ASSERT_EQ(std::ssize(nodes), job.pods) << name;
      for (const NodeCount& entry : nodes) {
        const std::string& node = entry.node.value();
        ASSERT_EQ(node.substr(0, 2), nodes.front().node.value().substr(0, 2))
            << name << " spans racks";
        ASSERT_TRUE(ready_.contains(node)) << name << " on " << node << ", which is down";
        ASSERT_TRUE(taken.insert(node).second) << "two pods on " << node;
        --free_[node.substr(0, 2)];
      }
      used_ += job.pods * kGpus;
    }
    ASSERT_LE(used_, 200);
  }

  void check_those_who_wait() {
    std::int64_t best = 0;
    for (const auto& [rack, free] : free_) best = std::max(best, free);
    for (const auto& [name, job] : jobs_) {
      if (world_.admitted(name)) continue;
      const auto why = world_.engine.explanation(World::key(name));
      ASSERT_TRUE(why.has_value()) << name;
      const std::string text = describe(*why);
      const bool has_quota = used_ + job.pods * kGpus <= 200;
      ++seen_[std::string(to_string(why->reason))];
      ASSERT_FALSE(has_quota && best >= job.pods) << name << " could start: " << text;
      if (why->reason == PendingReason::kTopologyPlacementFailed) {
        ASSERT_LT(best, job.pods) << name << ": " << text;
        ASSERT_NE(text.find(fmt::format("room for {} of {} pods of main inside one rack", best,
                                        job.pods)),
                  std::string::npos)
            << text;
      } else {
        ASSERT_EQ(why->reason, PendingReason::kWaitingForQuota) << name << ": " << text;
        ASSERT_FALSE(has_quota) << name << ": " << text;
      }
    }
  }

  std::mt19937 random_;
  World world_;
  std::set<std::string> ready_;
  std::map<std::string, JobOptions> jobs_;
  std::map<std::string, std::int64_t> free_;  ///< Nodes, by rack.
  std::int64_t used_ = 0;
  std::map<std::string, int> seen_;  ///< Reasons.
};

TEST(Racks, WhoMustStayInOneRackStartsThereOrIsToldWhyNot) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < muster::test::rounds(8, 200); ++seed) {
    Racks racks(seed);
    racks.play(60);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (const auto& [reason, count] : racks.seen()) seen[reason] += count;
  }
  EXPECT_GT(seen["TopologyPlacementFailed"], 0);
  EXPECT_GT(seen["WaitingForQuota"], 0);
}

}  // namespace
}  // namespace muster::engine::test

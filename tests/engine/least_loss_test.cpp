// Victims whose loss is least: the order of what counts, on quota and nodes together, against a
// brute force over all sets.

#include "tests/engine/world.hpp"

#include <algorithm>
#include <random>
#include <tuple>

namespace muster::engine::test {
namespace {

using Log = std::vector<std::string>;

PreemptionSpec lower_priority() {
  return PreemptionSpec{PreemptionPolicy::kLowerPriority, PreemptionPolicy::kNever, {}};
}

Log victims_of(const World& world) {
  Log victims;
  for (const std::string& line : world.log) {
    if (line.starts_with("evict ")) victims.push_back(line.substr(6, line.find(' ', 6) - 6));
  }
  std::sort(victims.begin(), victims.end());
  return victims;
}

struct Job {
  std::string name;
  std::int64_t gpus = 0;
  std::int64_t priority = 0;
  std::int64_t reserved_s = 0;
  std::optional<std::int64_t> checkpoint_s = std::nullopt;
};

void run(World& world, const Job& job, const std::vector<std::string>& nodes = {}) {
  world.run(job.name, {.gpus = job.gpus, .priority = job.priority, .created_s = 1, .nodes = nodes},
            job.reserved_s);
  if (!job.checkpoint_s) return;
  WorkloadSpec& spec = world.specs.at(World::key(job.name));
  spec.last_checkpoint = Instant{*job.checkpoint_s * 1'000'000};
  world.send(WorkloadUpserted{spec});
}

TEST(LeastLoss, CountsInItsOrder) {
  struct Case {
    std::string says;
    std::vector<Job> running;
    std::int64_t asked = 0;
    Log victims;
  };
  const std::vector<Case> cases = {
      {"a lower highest priority beats fewer gangs",
       {{"large", 8, 2, 900}, {"one", 4, 1, 900}, {"two", 4, 1, 900}},
       8,
       {"one", "two"}},
      {"fewer gangs beat less work lost",
       {{"large", 8, 1, 100}, {"one", 4, 1, 900}, {"two", 4, 1, 900}},
       8,
       {"large"}},
      {"less work lost beats the newest reservation",
       {{"old-but-small", 4, 1, 700}, {"new-but-large", 12, 1, 800}},
       4,
       {"old-but-small"}},
      {"work is lost since the last checkpoint only",
       {{"saved", 8, 1, 100, 990}, {"unsaved", 8, 1, 900}},
       8,
       {"saved"}},
      {"a checkpoint before the reservation counts for nothing",
       {{"earlier", 8, 1, 800, 10}, {"later", 8, 1, 900}},
       8,
       {"later"}},
      {"where no work is lost the newest reservation goes",
       {{"older", 8, 1, 100, 1000}, {"newer", 8, 1, 200, 1000}},
       8,
       {"newer"}},
      {"of all alike the lowest uid goes", {{"b", 8, 1, 900}, {"a", 8, 1, 900}}, 8, {"a"}},
  };
  for (const Case& one : cases) {
    World world;  // Its time is 1000 s.
    world.flavor("h100", {}, "", Capacity::kElastic);
    std::int64_t nominal = 0;
    for (const Job& job : one.running) nominal += job.gpus;
    world.queue("a", {.nominal = nominal, .preemption = lower_priority()});
    for (const Job& job : one.running) run(world, job);
    world.submit("new", {.gpus = one.asked, .priority = 10, .created_s = 500});
    world.settle();
    EXPECT_EQ(victims_of(world), one.victims) << one.says;
  }
}

TEST(LeastLoss, OneVictimWhoseNodesFitGoesBeforeTwoCheaperOnesWhoseDoNot) {
  World world;
  world.flavor("h100");
  world.node("e1", 8, {{"zone", "east"}});
  world.node("e2", 8, {{"zone", "east"}});
  world.node("w1", 8, {{"zone", "west"}});
  world.queue("a", {.nominal = 24, .preemption = lower_priority()});
  run(world, {"cheap-1", 8, 1, 999}, {"e1"});
  run(world, {"cheap-2", 8, 1, 999}, {"e2"});
  run(world, {"dear", 8, 1, 1}, {"w1"});
  NodeConstraints west;
  west.node_selector = {{"zone", "west"}};
  world.submit("new", {.gpus = 8, .priority = 10, .created_s = 500, .constraints = west});
  world.settle();
  EXPECT_EQ(victims_of(world), (Log{"dear"}));
}

TEST(LeastLoss, TheOwnQueuesLowPriorityGoesBeforeAHigherOneThatBorrowed) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.cohort = "org",
                    .nominal = 4,
                    .preemption = {PreemptionPolicy::kLowerPriority, PreemptionPolicy::kAny, {}}});
  world.queue("b", {.cohort = "org", .nominal = 0});
  world.run("mine", {.gpus = 2, .priority = -9}, 1);
  world.run("lent", {.queue = "b", .gpus = 2, .priority = 5}, 1);
  world.submit("new", {.gpus = 2, .priority = 0, .created_s = 500});
  world.settle();
  EXPECT_EQ(victims_of(world), (Log{"mine"}));
}

TEST(LeastLoss, WhatAQueueBorrowsIsTakenBackInAnOrderThatTheRulesAllow) {
  // Of 16 in a queue of 8 a gang of 8 and one of 4 may both go, but only the small one first.
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.cohort = "org",
                    .nominal = 8,
                    .preemption = {PreemptionPolicy::kNever, PreemptionPolicy::kAny, {}}});
  world.queue("b", {.cohort = "org", .nominal = 8});
  world.run("large", {.queue = "b", .gpus = 8, .priority = 0}, 900);
  world.run("small-1", {.queue = "b", .gpus = 4, .priority = 5}, 900);
  world.run("small-2", {.queue = "b", .gpus = 4, .priority = 5}, 900);
  world.submit("new", {.gpus = 8, .priority = 0, .created_s = 500});
  world.settle();
  EXPECT_EQ(victims_of(world), (Log{"large"}));
}

TEST(LeastLoss, ManyAlikeAreChosenWithoutEndAndNoneTooMany) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 600, .preemption = lower_priority()});
  for (int i = 0; i < 200; ++i) {
    run(world, {"j" + std::to_string(i), 3, i % 5, 100 + i});
  }
  world.submit("new", {.gpus = 100, .priority = 10, .created_s = 500});
  world.settle();
  // 34 of 3 make 102; there are 40 of the lowest priority.
  EXPECT_EQ(victims_of(world).size(), 34U);
}

/// All subsets, by the definition.
TEST(LeastLoss, EqualsABruteForceOverAllSets) {
  std::mt19937 random(7);
  const auto below = [&](int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    World world;
    world.flavor("h100", {}, "", Capacity::kElastic);
    std::vector<Job> jobs;
    std::int64_t nominal = 0;
    const int count = 1 + below(8);
    for (int i = 0; i < count; ++i) {
      jobs.push_back({"j" + std::to_string(i), 1 + below(6), below(3), 990 + below(10)});
      nominal += jobs.back().gpus;
    }
    world.queue("a", {.nominal = nominal, .preemption = lower_priority()});
    for (const Job& job : jobs) run(world, job);
    const std::int64_t asked = 1 + below(static_cast<int>(nominal));
    const std::int64_t priority = 1 + below(3);
    world.submit("new", {.gpus = asked, .priority = priority, .created_s = 500});
    world.settle();

    using Cost = std::tuple<std::int64_t, int, std::int64_t>;
    std::optional<Cost> best;
    std::optional<Cost> chosen;
    const Log victims = victims_of(world);
    for (unsigned set = 1; set < (1U << jobs.size()); ++set) {
      Cost cost{std::numeric_limits<std::int64_t>::min(), 0, 0};
      std::int64_t freed = 0;
      Log names;
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        if ((set >> i & 1U) == 0) continue;
        std::get<0>(cost) = std::max(std::get<0>(cost), jobs[i].priority);
        std::get<1>(cost) += 1;
        std::get<2>(cost) += jobs[i].gpus * (1000 - jobs[i].reserved_s);
        freed += jobs[i].gpus;
        names.push_back(jobs[i].name);
      }
      if (names == victims) chosen = cost;
      if (freed < asked || std::get<0>(cost) >= priority) continue;
      if (!best || cost < *best) best = cost;
    }
    EXPECT_EQ(chosen, best) << "round " << round;
  }
}

/// Whether there is an order in which a queue of `nominal` that uses `used` borrows before each
/// goes.
bool may_all_go(std::vector<std::int64_t> sizes, std::int64_t used, std::int64_t nominal) {
  std::sort(sizes.begin(), sizes.end());
  do {
    std::int64_t left = used;
    bool all = true;
    for (const std::int64_t size : sizes) {
      all = all && left > nominal;
      left -= size;
    }
    if (all) return true;
  } while (std::next_permutation(sizes.begin(), sizes.end()));
  return false;
}

TEST(LeastLoss, EqualsABruteForceWhereQuotaIsTakenBackFromTwoQueues) {
  std::mt19937 random(11);
  const auto below = [&](int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    World world;
    world.flavor("h100", {}, "", Capacity::kElastic);
    const std::int64_t own = 4 + below(8);
    const std::int64_t nominal[] = {below(6), below(6)};
    world.queue("a", {.cohort = "org",
                      .nominal = own,
                      .preemption = {PreemptionPolicy::kNever, PreemptionPolicy::kAny, {}}});
    world.queue("b0", {.cohort = "org", .nominal = nominal[0]});
    world.queue("b1", {.cohort = "org", .nominal = nominal[1]});
    std::vector<Job> jobs;
    std::vector<int> queue_of;
    std::int64_t used[] = {0, 0};
    const std::int64_t total = own + nominal[0] + nominal[1];
    while (jobs.size() < 8 && used[0] + used[1] < total) {
      const std::int64_t size = std::min<std::int64_t>(1 + below(4), total - used[0] - used[1]);
      queue_of.push_back(below(2));
      used[queue_of.back()] += size;
      jobs.push_back({"j" + std::to_string(jobs.size()), size, below(3), 990 + below(10)});
      world.run(jobs.back().name,
                {.queue = "b" + std::to_string(queue_of.back()),
                 .gpus = size,
                 .priority = jobs.back().priority},
                jobs.back().reserved_s);
    }
    const std::int64_t asked = 1 + below(static_cast<int>(own));
    if (total - used[0] - used[1] >= asked) continue;
    world.submit("new", {.gpus = asked, .created_s = 500});
    world.settle();

    using Cost = std::tuple<std::int64_t, int, std::int64_t>;
    std::optional<Cost> best;
    std::optional<Cost> chosen;
    const Log victims = victims_of(world);
    for (unsigned set = 1; set < (1U << jobs.size()); ++set) {
      Cost cost{std::numeric_limits<std::int64_t>::min(), 0, 0};
      std::vector<std::int64_t> sizes[2];
      std::int64_t freed = total - used[0] - used[1];
      Log names;
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        if ((set >> i & 1U) == 0) continue;
        std::get<0>(cost) = std::max(std::get<0>(cost), jobs[i].priority);
        std::get<1>(cost) += 1;
        std::get<2>(cost) += jobs[i].gpus * (1000 - jobs[i].reserved_s);
        freed += jobs[i].gpus;
        sizes[queue_of[i]].push_back(jobs[i].gpus);
        names.push_back(jobs[i].name);
      }
      const bool legal = freed >= asked && may_all_go(sizes[0], used[0], nominal[0]) &&
                         may_all_go(sizes[1], used[1], nominal[1]);
      if (names == victims) {
        chosen = cost;
        EXPECT_TRUE(legal) << "round " << round;
      }
      if (legal && (!best || cost < *best)) best = cost;
    }
    EXPECT_EQ(chosen, best) << "round " << round;
  }
}

}  // namespace
}  // namespace muster::engine::test

// What is freed for a workload is kept for it; nobody goes twice for nothing.

#include "tests/engine/world.hpp"
#include "tests/rounds.hpp"

#include <fmt/format.h>

#include <random>

namespace muster::engine::test {
namespace {

TEST(Holds, WhatIsLeftOfThoseWhoWentGoesByTheOrderAndNotToWhoWaitedMeanwhile) {
  World world;
  world.send(TopologyUpserted{TopologySpec{TopologyName("t"), {"rack", kHostnameLabel}}});
  world.flavor("h100", {}, "t");
  for (const char* rack : {"a", "b"}) world.nodes(rack, 2, 8, {{"rack", rack}});
  const PreemptionSpec reclaim{.reclaim_within_cohort = PreemptionPolicy::kAny};
  world.queue("blue", {.cohort = "org", .nominal = 16, .preemption = reclaim});
  world.queue("red", {.cohort = "org", .nominal = 16, .preemption = reclaim});
  world.run("b1", {.queue = "blue", .created_s = 1, .nodes = {"a1"}}, 1);
  world.run("b2", {.queue = "blue", .pods = 2, .created_s = 2, .nodes = {"a2", "b1"}}, 2);
  world.run("b3", {.queue = "blue", .created_s = 3, .nodes = {"b2"}}, 3);
  world.submit("b4", {.queue = "blue", .created_s = 4});
  world.settle();
  // It needs one of the racks: b1 and b2, or b2 and b3, have to go.
  const TopologyRequest rack{TopologyRequest::Mode::kRequired, "rack"};
  world.submit("r1", {.queue = "red", .pods = 2, .priority = 10, .created_s = 5, .topology = rack});
  world.settle();
  ASSERT_EQ(world.evictions.size(), 2U);
  world.let_leave();
  world.settle();
  EXPECT_TRUE(world.admitted("r1"));
  EXPECT_TRUE(world.admitted("b1"));
  EXPECT_TRUE(world.admitted("b3"));
  EXPECT_FALSE(world.admitted("b4"));
}

using std::chrono::seconds;
using Log = std::vector<std::string>;

constexpr PreemptionSpec kWithin{PreemptionPolicy::kLowerPriority, PreemptionPolicy::kNever, {}};
constexpr PreemptionSpec kReclaim{PreemptionPolicy::kNever, PreemptionPolicy::kAny, {}};

/// `lent` borrowed all 16 of `prod`, and `owner` of prod had it leave for 8.
void let_owner_wait(World& world) {
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("prod", {.cohort = "org", .nominal = 16, .preemption = kReclaim});
  world.queue("regular", {.cohort = "org", .nominal = 0, .preemption = kWithin});
  world.run("lent", {.queue = "regular", .gpus = 16}, 1);
  world.submit("owner", {.queue = "prod", .gpus = 16, .created_s = 10});
  world.settle();
  ASSERT_EQ(world.log, (Log{"evict lent InCohortReclamation for owner"}));
}

/// What another process finds: the same objects, and nothing else.
void move_to(World& from, World& to) {
  to.now = from.now;
  for (const auto& [name, spec] : from.engine.state().flavors) to.send(FlavorUpserted{spec});
  for (const auto& [name, spec] : from.engine.state().cohorts) to.send(CohortUpserted{spec});
  for (const auto& [name, spec] : from.engine.state().queues) to.send(ClusterQueueUpserted{spec});
  for (const auto& [key, spec] : from.engine.state().local_queues)
    to.send(LocalQueueUpserted{spec});
  to.specs = from.specs;
  for (auto& [key, spec] : to.specs) {
    if (from.leaving.contains(key)) spec.evicted = true;
    to.send(WorkloadUpserted{spec});
  }
  to.leaving = from.leaving;
}

TEST(Holds, WhatWasFreedIsKeptFromWhoeverComesFirstInTheOrder) {
  World world;
  let_owner_wait(world);
  world.pass_time(1);
  world.let_leave();
  world.submit("urgent", {.queue = "regular", .gpus = 8, .priority = 100, .created_s = 20});
  world.settle();
  EXPECT_TRUE(world.admitted("owner"));
  EXPECT_FALSE(world.admitted("urgent"));
}

TEST(Holds, WhoCouldPreemptThePreemptorTakesWhatIsHeldForIt) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 8, .preemption = kWithin});
  world.run("low", {.gpus = 8, .priority = 0}, 1);
  world.submit("middle", {.gpus = 8, .priority = 5, .created_s = 10});
  world.settle();
  world.pass_time(1);
  world.submit("high", {.gpus = 8, .priority = 9, .created_s = 20});
  world.settle();
  // Nobody else has to go: high waits for the room that low leaves.
  EXPECT_EQ(world.why("high"), "WaitingForPreemptedWorkloads");
  world.let_leave();
  world.settle();
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict low InClusterQueue for middle", "admit high"}));
  EXPECT_EQ(world.why("middle"), "WaitingForQuota");
}

TEST(Holds, EqualRankTakesNothing) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 8, .preemption = kWithin});
  world.run("low", {.gpus = 8, .priority = 0}, 1);
  world.submit("first", {.gpus = 8, .priority = 5, .created_s = 10});
  world.settle();
  world.pass_time(1);
  world.submit("older", {.gpus = 8, .priority = 5, .created_s = 5});
  world.let_leave();
  world.settle();
  EXPECT_TRUE(world.admitted("first"));
}

TEST(Holds, EndWithTheNeed) {
  World world;
  let_owner_wait(world);
  world.send(WorkloadDeleted{World::key("owner")});
  world.let_leave();
  world.submit("urgent", {.queue = "regular", .gpus = 8, .priority = 100, .created_s = 20});
  world.settle();
  EXPECT_TRUE(world.admitted("urgent"));
}

TEST(Holds, SurviveARestart) {
  for (const bool gone : {false, true}) {
    World world;
    let_owner_wait(world);
    world.pass_time(1);
    if (gone) world.let_leave();
    world.specs[World::key("urgent")] =
        world.job("urgent", {.queue = "regular", .gpus = 8, .priority = 100, .created_s = 20});
    World next;
    move_to(world, next);
    next.settle();
    EXPECT_FALSE(next.admitted("urgent"));
    next.let_leave();
    next.settle();
    EXPECT_TRUE(next.admitted("owner"));
    EXPECT_FALSE(next.admitted("urgent"));
  }
}

TEST(Holds, VictimsThatDoNotLeaveInTimeAreReplacedByOthers) {
  World world(Options{.hold_timeout = seconds(60)});
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 16, .preemption = kWithin});
  world.run("stuck", {.gpus = 8, .priority = 0}, 1, {.checkpoint_grace = seconds(30)});
  world.run("other", {.gpus = 8, .priority = 1}, 1);
  world.submit("new", {.gpus = 8, .priority = 9, .created_s = 10});
  world.settle();
  world.pass_time(89);
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict stuck InClusterQueue for new"}));
  ASSERT_EQ(world.engine.next_wakeup(), Instant{1090 * 1'000'000});
  world.pass_time(1);
  ASSERT_TRUE(world.engine.wants_settle(world.now));
  world.settle();
  EXPECT_EQ(world.log.back(), "evict other InClusterQueue for new");
  const auto why = world.engine.explanation(World::key("new"));
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(describe(*why), "preempted workloads did not leave in time, now waits for: team/other");
}

TEST(Holds, StrictFifoLetsNobodyPastWhoWaitsForItsVictims) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a",
              {.nominal = 16, .strategy = QueueingStrategy::kStrictFifo, .preemption = kWithin});
  world.run("low", {.gpus = 8, .priority = 0}, 1);
  world.submit("first", {.gpus = 16, .priority = 5, .created_s = 10});
  world.submit("second", {.gpus = 1, .priority = 4, .created_s = 11});
  world.settle();
  world.settle();
  EXPECT_FALSE(world.admitted("second"));
  world.let_leave();
  world.settle();
  EXPECT_TRUE(world.admitted("first"));
}

/// `own` may not borrow. `lent` leaves for it, since its cohort `left` has no more than 8.
void let_own_wait(World& world) {
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.cohort("root", "", 16);
  world.cohort("left", "root");
  world.queue("q", {.cohort = "left", .nominal = 8, .preemption = kReclaim});
  world.queue("r", {.cohort = "left", .nominal = 0});
  world.run("lent", {.queue = "r", .gpus = 8}, 1);
  WorkloadSpec own = world.job("own", {.queue = "q", .gpus = 8, .created_s = 10});
  own.protection.preemptible = false;
  world.specs[own.key] = own;
  world.send(WorkloadUpserted{own});
  world.settle();
  ASSERT_EQ(world.log, (Log{"evict lent InCohortReclamation for own"}));
  world.pass_time(1);
}

TEST(Holds, WhatIsKeptForWhoMayNotBorrowIsNotBorrowedAway) {
  for (const bool fair : {false, true}) {
    World world(fair ? Options{.fair_sharing = FairSharing{}} : Options{});
    let_own_wait(world);
    // Root has room enough for it, but it would take in `left` what is kept.
    world.submit("other", {.queue = "r", .gpus = 8, .priority = 9, .created_s = 20});
    world.settle();
    const auto why = world.engine.explanation(World::key("other"));
    ASSERT_TRUE(why.has_value());
    EXPECT_EQ(describe(*why), "quota is kept for team/own, which may not borrow");
    world.let_leave();
    while (world.engine.wants_settle(world.now)) world.settle();
    EXPECT_TRUE(world.admitted("own"));
    EXPECT_TRUE(world.admitted("other"));
    EXPECT_TRUE(world.admitted("lent"));
    EXPECT_EQ(world.evictions.at(World::key("lent")), 1);
  }
}

TEST(Loops, WhoWasPreemptedIsNotPreemptedAgainUntilSomethingNewHappens) {
  World world;
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("a", {.nominal = 8, .preemption = kWithin});
  world.run("low", {.gpus = 8, .priority = 0}, 1);
  WorkloadSpec& low = world.specs.at(World::key("low"));
  low.preempted_at = Instant{500 * 1'000'000};
  world.send(WorkloadUpserted{low});
  world.submit("old", {.gpus = 8, .priority = 9, .created_s = 400});
  world.settle();
  EXPECT_EQ(world.log, Log{});
  const auto why = world.engine.explanation(World::key("old"));
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(describe(*why).find("team/low (preempted before, and nothing changed since)"),
            std::string::npos)
      << describe(*why);

  ClusterQueueSpec queue = world.engine.state().queues.at(ClusterQueueName("a"));
  world.send(ClusterQueueUpserted{queue});  // Said again: nothing new.
  world.settle();
  EXPECT_EQ(world.log, Log{});
  queue.strategy = QueueingStrategy::kStrictFifo;
  world.send(ClusterQueueUpserted{queue});
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict low InClusterQueue for old"}));
}

// ---------------------------------------------------------------- random worlds

class RandomWorld {
 public:
  /// With `look_at_all` every pass looks at everything pending, whatever happened. Every third
  /// world has fair sharing.
  explicit RandomWorld(unsigned seed, bool look_at_all = false)
      : world(seed % 3 == 0 ? Options{.fair_sharing = FairSharing{}} : Options{}),
        look_at_all_(look_at_all),
        random_(seed) {
    elastic_ = chance(50);
    world.flavor("h100", {}, "", elastic_ ? Capacity::kElastic : Capacity::kFixed);
    if (!elastic_) world.nodes("n", 2 + below(4));
    if (chance(60)) world.cohort("left", "root", 4 * below(3));
    if (chance(30)) world.cohort("root", "", 4 * below(3));
    queues_ = 1 + below(4);
    for (int i = 0; i < queues_; ++i) add_queue(fmt::format("q{}", i));
    for (int i = 2 + below(9); i > 0; --i) arrive();
  }

  void arrive() {
    const std::string name = fmt::format("j{}", jobs_++);
    WorkloadSpec spec =
        world.job(name, {.queue = fmt::format("q{}", below(queues_)),
                         .pods = 1 + below(3),
                         .gpus = pick({1, 2, 4, 8}),
                         .priority = below(4),
                         .created_s = started_ ? world.now.us / 1'000'000 : below(900)});
    if (chance(15)) spec.protection.preemptible = false;
    if (chance(15)) spec.protection.min_runtime = seconds(1 + below(20));
    world.specs[spec.key] = spec;
    world.send(WorkloadUpserted{spec});
  }

  /// Until nothing more is decided; false: there is no end.
  bool settle() {
    started_ = true;
    for (int i = 0; i < 100; ++i) {
      world.pass_time(1);
      const std::size_t before = world.log.size();
      if (look_at_all_) world.send(NamespaceUpserted{NamespaceSpec{Namespace("team"), {}}});
      check_protection();
      world.let_leave();
      if (world.log.size() == before && !world.engine.wants_settle(world.now)) {
        const auto wake = world.engine.next_wakeup();
        if (!wake) return true;
        world.now = std::max(world.now, *wake);
      }
    }
    return false;
  }

  bool chance(int percent) { return below(100) < percent; }

  World world;

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  int pick(std::initializer_list<int> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

  void add_queue(const std::string& name) {
    PreemptionSpec preemption;
    preemption.within_cluster_queue = static_cast<PreemptionPolicy>(below(3));
    preemption.reclaim_within_cohort = static_cast<PreemptionPolicy>(below(4));
    if (preemption.reclaim_within_cohort != PreemptionPolicy::kNever && chance(50)) {
      preemption.borrow_within_cohort.policy = PreemptionPolicy::kLowerPriority;
      if (chance(50)) preemption.borrow_within_cohort.max_priority_threshold = below(4);
    }
    QueueOptions options{.cohort = chance(80) ? (chance(50) ? "left" : "root") : "",
                         .nominal = 4 * below(7),
                         .preemption = preemption};
    if (chance(25)) options.strategy = QueueingStrategy::kStrictFifo;
    if (!options.cohort.empty() && chance(25)) options.borrowing_limit = 4 * below(4);
    if (!options.cohort.empty() && chance(25)) options.lending_limit = below(5);
    world.queue(name, options);
  }

  /// One pass; nobody protected goes in it, and what may not borrow does not.
  void check_protection() {
    std::map<WorkloadKey, std::optional<Instant>> reserved;
    for (const auto& [key, record] : world.engine.state().workloads) {
      reserved[key] = record.reserved_at;
    }
    for (const Effect& effect : world.settle().list) {
      const auto* evict = std::get_if<Evict>(&effect);
      if (evict == nullptr || !evict->rule) continue;
      const Protection& protection = world.specs.at(evict->workload).protection;
      EXPECT_TRUE(protection.preemptible.value_or(true)) << evict->workload.to_string();
      if (protection.min_runtime && reserved[evict->workload]) {
        EXPECT_LE(*reserved[evict->workload] + *protection.min_runtime, world.now)
            << evict->workload.to_string();
      }
    }
    std::map<ClusterQueueName, Amount> kept;
    for (const auto& [key, record] : world.engine.state().workloads) {
      if (!record.holds_quota() || record.spec.protection.preemptible.value_or(true)) continue;
      for (const auto& [what, amount] : *record.usage) kept[record.queue] += amount;
    }
    const quota::QuotaTree& tree = world.engine.state().tree;
    for (const auto& [name, amount] : kept) {
      const auto queue = tree.find_queue(name);
      ASSERT_TRUE(queue.has_value());
      if (!tree.parent(*queue)) continue;
      EXPECT_LE(amount, tree.nominal(*queue, quota::FrId(0))) << name.value();
    }
  }

  bool look_at_all_;
  std::mt19937 random_;
  bool elastic_ = true;
  int queues_ = 0;
  int jobs_ = 0;
  bool started_ = false;
};

unsigned worlds() {
  return static_cast<unsigned>(muster::test::rounds(400, 4'000));
}

TEST(Loops, NobodyGoesTwiceBetweenTwoArrivalsInAnyWorldAndEveryWorldComesToRest) {
  unsigned with_preemption = 0;
  for (unsigned seed = 1; seed <= worlds() && !testing::Test::HasFailure(); ++seed) {
    RandomWorld random(seed);
    World& world = random.world;
    bool any = false;
    for (int epoch = 0; epoch < 5; ++epoch) {
      for (int i = epoch == 0 ? 0 : epoch % 3 + 1; i > 0; --i) random.arrive();
      world.evictions.clear();
      ASSERT_TRUE(random.settle()) << "seed " << seed << ", epoch " << epoch << ":\n"
                                   << fmt::format("{}", fmt::join(world.log, "\n"));
      for (const auto& [key, times] : world.evictions) {
        any = any || times > 0;
        const bool protected_once = world.specs.at(key).protection.min_runtime.has_value();
        EXPECT_LE(times, protected_once ? 2 : 1)
            << "seed " << seed << ", epoch " << epoch << ": " << key.to_string();
      }
      if (world.engine.state().fleet.slots() > 0) continue;
      // Another process over the same objects has nothing to add.
      World next(world.engine.state().options);
      move_to(world, next);
      next.settle();
      EXPECT_EQ(next.log, Log{}) << "seed " << seed << ", epoch " << epoch;
    }
    if (any) ++with_preemption;
  }
  EXPECT_GT(with_preemption * 10, worlds() * 3);
}

TEST(Arrivals, AreDecidedAsByALookAtEverything) {
  for (unsigned seed = 1; seed <= muster::test::rounds(400, 2'000) && !testing::Test::HasFailure();
       ++seed) {
    RandomWorld quick(seed);
    RandomWorld thorough(seed, true);
    for (int epoch = 0; epoch < 12; ++epoch) {
      for (RandomWorld* random : {&quick, &thorough}) {
        if (epoch > 0) random->arrive();
        ASSERT_TRUE(random->settle());
      }
      ASSERT_EQ(quick.world.log, thorough.world.log) << "seed " << seed << ", epoch " << epoch;
      for (const auto& [key, record] : quick.world.engine.state().workloads) {
        const auto why = quick.world.engine.explanation(key);
        const auto want = thorough.world.engine.explanation(key);
        ASSERT_EQ(why.has_value(), want.has_value()) << key.to_string();
        if (why) {
          EXPECT_EQ(why->reason, want->reason) << "seed " << seed << ": " << key.to_string();
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster::engine::test

// Admission Fair Sharing: what LocalQueues used lately, and the turns that follow from it.

#include "engine/usage_history.hpp"

#include "tests/engine/world.hpp"

#include <chrono>

namespace muster::engine::test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const ResourceName kCpu("cpu");
const LocalQueueKey kQueue{Namespace("team"), "a"};
constexpr Instant kStart{1'000'000'000'000};

AdmissionFairSharing rules(Duration half_life = minutes(10), Duration interval = minutes(5)) {
  AdmissionFairSharing result;
  result.usage_half_life = half_life;
  result.usage_sampling_interval = interval;
  return result;
}

LocalQueueSpec queue(std::optional<ConsumedResources> consumed = std::nullopt) {
  LocalQueueSpec spec;
  spec.key = kQueue;
  spec.consumed = std::move(consumed);
  return spec;
}

/// Of `cores` cores.
UsagePart part(std::int64_t cores, bool admitted, Instant since = kStart) {
  const ResourceList amounts{{kCpu, Amount(cores * 1'000)}};
  return UsagePart{kQueue, admitted, amounts, amounts, since};
}

WorkloadKey workload(const std::string& name = "w") {
  return {Namespace("team"), name};
}

/// C in billionths of a core.
std::int64_t consumed(const UsageHistory& history, Instant now) {
  const auto amounts = history.consumed(kQueue, now);
  const auto found = amounts.find(kCpu);
  return found == amounts.end() ? 0 : static_cast<std::int64_t>(found->second.nanos(kCpu));
}

/// What the queue is ordered by, in billionths of a core, as far as it can be told by comparing.
bool uses(const UsageHistory& history, Instant now, std::int64_t nanos) {
  const auto of = [](std::int64_t value) {
    quota::WeightedUse use;
    use.add(kCpu, quota::FineAmount::from_nanos(kCpu, value), {});
    return use;
  };
  const quota::WeightedUse use = history.use(kQueue, now);
  return (nanos == 0 || of(nanos - 1) < use) && use < of(nanos + 1);
}

TEST(UsageHistory, WorkedExample) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  // Reserved: a penalty of 4 * (1 - 0.5^0.5).
  history.set_part(workload(), part(4, false), kStart);
  EXPECT_EQ(consumed(history, kStart), 0);
  EXPECT_TRUE(uses(history, kStart, 1'171'572'875));
  // Admitted at once: the penalty is in C now.
  history.set_part(workload(), part(4, true), kStart);
  EXPECT_EQ(consumed(history, kStart), 1'171'572'875);
  EXPECT_TRUE(uses(history, kStart, 1'171'572'875));
  // A half of that, and a half of 4, ten minutes later.
  EXPECT_EQ(consumed(history, kStart + minutes(10)), 2'585'786'438);
}

TEST(UsageHistory, AReservationAloneDoesNotFlowIn) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  history.set_part(workload(), part(4, false), kStart);
  EXPECT_EQ(consumed(history, kStart + minutes(10)), 0);
  EXPECT_TRUE(uses(history, kStart + minutes(10), 1'171'572'875));
  history.set_part(workload(), std::nullopt, kStart + minutes(10));
  EXPECT_TRUE(uses(history, kStart + minutes(10), 0));
}

TEST(UsageHistory, NoShortWorkloadIsMissedBetweenSamples) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  UsagePart running = part(8, true);
  running.entry.clear();  // No penalty: its ClusterQueue does not order by use.
  history.set_part(workload(), running, kStart);
  history.set_part(workload(), std::nullopt, kStart + seconds(1));
  // 8 * (1 - 2^(-1/600))
  EXPECT_EQ(consumed(history, kStart + seconds(1)), 9'236'626);
  EXPECT_EQ(consumed(history, kStart + seconds(1) + minutes(10)), 4'618'313);
}

TEST(UsageHistory, AWorkloadThatWentOnIsNotChargedTwice) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  history.set_part(workload(), part(4, true), kStart);
  const std::int64_t before = consumed(history, kStart + minutes(10));
  UsagePart confirmed = part(4, true, kStart + seconds(3));
  history.set_part(workload(), confirmed, kStart + minutes(10));
  EXPECT_EQ(consumed(history, kStart + minutes(10)), before);
}

TEST(UsageHistory, ARestartFindsWhatItHad) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  history.set_part(workload("old"), part(4, false), kStart);
  history.set_part(workload("old"), part(4, true), kStart);
  const Instant sampled = kStart + minutes(7);
  ASSERT_TRUE(history.take_samples(sampled));
  const ConsumedResources* sample = history.sample(kQueue);
  ASSERT_NE(sample, nullptr);
  const Instant joined = kStart + minutes(8);
  history.set_part(workload("new"), part(2, false, joined), joined);
  history.set_part(workload("new"), part(2, true, joined), joined);

  // Another process sees the status, and the workloads with the times of their reservations, in
  // either order.
  const Instant later = kStart + minutes(30);
  for (const bool queue_first : {true, false}) {
    SCOPED_TRACE(queue_first);
    UsageHistory restarted(rules());
    if (queue_first) restarted.upsert_queue(queue(*sample), later);
    restarted.set_part(workload("old"), part(4, true), later);
    restarted.set_part(workload("new"), part(2, true, joined), later);
    if (!queue_first) restarted.upsert_queue(queue(*sample), later);
    EXPECT_NEAR(static_cast<double>(consumed(restarted, later)),
                static_cast<double>(consumed(history, later)), 2);
    EXPECT_NEAR(static_cast<double>(consumed(restarted, later + hours(1))),
                static_cast<double>(consumed(history, later + hours(1))), 2);
  }
}

TEST(UsageHistory, WithoutAStatusWhatRunsCountsFromItsReservation) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart + minutes(10));
  history.set_part(workload(), part(4, true), kStart + minutes(10));
  // 1.171572875 / 2 + 4 / 2
  EXPECT_EQ(consumed(history, kStart + minutes(10)), 2'585'786'438);
}

TEST(UsageHistory, AHalfLifeOfZeroForgetsEverything) {
  UsageHistory history(rules(Duration(0)));
  history.upsert_queue(queue(), kStart);
  history.set_part(workload(), part(4, false), kStart);
  EXPECT_TRUE(uses(history, kStart, 0));
  history.set_part(workload(), part(4, true), kStart);
  EXPECT_TRUE(uses(history, kStart + minutes(10), 0));
}

TEST(UsageHistory, TimeThatGoesBackChangesNothing) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  history.set_part(workload(), part(4, true), kStart);
  const std::int64_t before = consumed(history, kStart);
  EXPECT_EQ(consumed(history, kStart - hours(1)), before);
  history.set_part(workload(), std::nullopt, kStart - hours(1));
  EXPECT_EQ(consumed(history, kStart), before);
}

TEST(UsageHistory, SamplesOnlyWhileThereIsSomethingNew) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  EXPECT_FALSE(history.next_sample());
  EXPECT_FALSE(history.take_samples(kStart));
  history.set_part(workload(), part(4, true), kStart);
  EXPECT_EQ(history.next_sample(), kStart);
  EXPECT_TRUE(history.take_samples(kStart));
  EXPECT_EQ(history.next_sample(), kStart + minutes(5));
  EXPECT_FALSE(history.take_samples(kStart + minutes(4)));
  EXPECT_TRUE(history.take_samples(kStart + minutes(5)));
  EXPECT_EQ(history.sample(kQueue)->at, kStart + minutes(5));
  history.set_part(workload(), std::nullopt, kStart + minutes(6));
  EXPECT_TRUE(history.take_samples(kStart + minutes(10)));
  EXPECT_FALSE(history.next_sample());
}

TEST(UsageHistory, ADeletedQueueBeginsAnew) {
  UsageHistory history(rules());
  history.upsert_queue(queue(), kStart);
  history.set_part(workload(), part(4, true), kStart);
  history.delete_queue(kQueue);
  EXPECT_EQ(history.sample(kQueue), nullptr);
  history.set_part(workload(), std::nullopt, kStart + minutes(1));
  history.upsert_queue(queue(), kStart + minutes(2));
  EXPECT_EQ(consumed(history, kStart + minutes(2)), 0);
}

// ---------------------------------------------------------------- turns

/// One ClusterQueue `q` of 4 GPUs that orders LocalQueues `heavy` and `light` by their use.
class UsageWorld : public World {
 public:
  explicit UsageWorld(AdmissionFairSharing sharing = rules(hours(1)),
                      QueueOptions options = {.nominal = 4, .usage_based = true})
      : World(Options{.settle_budget = 0, .admission_fair_sharing = std::move(sharing)}) {
    flavor("h100", {}, "", Capacity::kElastic);
    World::queue("q", options);
    local("heavy");
    local("light");
  }
  void local(const std::string& name, std::int64_t weight_nanos = 1'000'000'000,
             std::optional<ConsumedResources> consumed = std::nullopt) {
    LocalQueueSpec spec;
    spec.key = {Namespace("team"), name};
    spec.cluster_queue = ClusterQueueName("q");
    spec.fair_weight = quota::FairWeight{weight_nanos};
    spec.consumed = std::move(consumed);
    send(LocalQueueUpserted{spec});
  }
  void ask(const std::string& name, const std::string& queue, std::int64_t gpus = 1,
           std::int64_t priority = 0) {
    submit(name, {.queue = queue, .gpus = gpus, .priority = priority, .created_s = ++asked_});
  }
  /// `heavy` used the whole queue for an hour.
  void past() {
    ask("past", "heavy", 4);
    settle();
    now = now + hours(1);
    finish("past");
    settle();
    log.clear();
  }

 private:
  std::int64_t asked_ = 0;
};

using Log = std::vector<std::string>;

TEST(AdmissionFairSharing, WhoUsedLessGoesFirstWhateverThePriority) {
  UsageWorld world;
  world.past();
  world.ask("h1", "heavy", 2, 100);
  world.ask("l1", "light", 2);
  world.ask("l2", "light", 2);
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit l1", "admit l2"}));
}

TEST(AdmissionFairSharing, IsOffUnlessBothAskForIt) {
  UsageWorld world(rules(hours(1)), {.nominal = 4});
  world.past();
  world.ask("h1", "heavy", 4);
  world.ask("l1", "light", 4);
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit h1"}));
}

TEST(AdmissionFairSharing, EntryPenaltiesTakeTurnsAtOnce) {
  UsageWorld world;
  for (const char* name : {"h1", "h2", "h3"}) world.ask(name, "heavy");
  for (const char* name : {"l1", "l2", "l3"}) world.ask(name, "light");
  world.settle();
  // Equal use: age decides; after each start the other has used less.
  EXPECT_EQ(world.log, (Log{"admit h1", "admit l1", "admit h2", "admit l2"}));
}

TEST(AdmissionFairSharing, WeightsOfLocalQueuesDivide) {
  UsageWorld world;
  world.local("heavy", 3'000'000'000);
  for (const char* name : {"h1", "h2", "h3", "h4"}) world.ask(name, "heavy");
  for (const char* name : {"l1", "l2", "l3", "l4"}) world.ask(name, "light");
  world.settle();
  // h: 0, then 1/3 against 0: l1; then 1/3 against 1 twice, and 3/3 against 1 would go by age.
  EXPECT_EQ(world.log, (Log{"admit h1", "admit l1", "admit h2", "admit h3"}));
}

TEST(AdmissionFairSharing, AWeightOfZeroGoesLast) {
  UsageWorld world;
  world.local("heavy", 0);
  world.ask("h1", "heavy", 4, 100);
  world.ask("l1", "light", 4);
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit l1"}));
}

TEST(AdmissionFairSharing, ResourcesCountByTheirWeights) {
  AdmissionFairSharing sharing = rules(hours(1));
  sharing.resource_weights[gpu()] = quota::FairWeight{0};
  UsageWorld world(sharing);
  world.past();
  // GPUs do not count: both used nothing, so priority decides.
  world.ask("l1", "light", 4);
  world.ask("h1", "heavy", 4, 100);
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit h1"}));
}

TEST(AdmissionFairSharing, TheStatusIsReadBack) {
  UsageWorld world;
  ConsumedResources past;
  past.amounts[gpu()] = quota::FineAmount(Amount(2));
  past.at = world.now;
  world.local("told", 1'000'000'000, past);
  world.ask("t1", "told", 4, 100);
  world.ask("l1", "light", 4);
  world.settle();
  EXPECT_EQ(world.log, (Log{"admit l1"}));
}

TEST(AdmissionFairSharing, VictimsAreThoseWhoUsedMore) {
  QueueOptions options{.nominal = 4, .usage_based = true};
  options.preemption.within_cluster_queue = PreemptionPolicy::kLowerPriority;
  UsageWorld world(rules(hours(1)), options);
  world.past();
  world.ask("l1", "light", 2);
  world.ask("h1", "heavy", 2, 5);
  world.settle();
  world.log.clear();
  // Both may go for it; by priority it would be l1.
  world.ask("urgent", "light", 2, 100);
  world.settle();
  EXPECT_EQ(world.log, (Log{"evict h1 InClusterQueue for urgent"}));
}

TEST(AdmissionFairSharing, IsShownOncePerInterval) {
  UsageWorld world(rules(hours(1), minutes(5)));
  const auto shown = [&] {
    const auto view = world.engine.publish()->queues->local_queues.at({Namespace("team"), "heavy"});
    return view.consumed ? std::optional(view.consumed->at) : std::nullopt;
  };
  EXPECT_FALSE(shown());
  world.ask("h1", "heavy");
  world.settle();
  EXPECT_TRUE(world.engine.wants_settle(world.now));
  world.settle();
  EXPECT_EQ(shown(), world.now);
  EXPECT_FALSE(world.engine.wants_settle(world.now));
  EXPECT_EQ(world.engine.next_wakeup(), world.now + minutes(5));
  world.now = world.now + minutes(5);
  EXPECT_TRUE(world.engine.wants_settle(world.now));
  world.settle();
  EXPECT_EQ(shown(), world.now);
  EXPECT_FALSE(world.engine.wants_settle(world.now));
}

}  // namespace
}  // namespace muster::engine::test

// Queueing semantics (d), classical, rule by rule: who goes, in the order of the specification
// (`profile: kueue`). Quota only: the flavor is elastic.

#include "tests/engine/world.hpp"

#include <algorithm>

namespace muster::engine::test {
namespace {

constexpr auto kNever = PreemptionPolicy::kNever;
constexpr auto kLower = PreemptionPolicy::kLowerPriority;
constexpr auto kLowerOrNewer = PreemptionPolicy::kLowerOrNewerEqualPriority;
constexpr auto kAny = PreemptionPolicy::kAny;

struct Queue {
  std::string name;
  std::string cohort;
  std::int64_t nominal = 0;
  PreemptionSpec preemption;
  std::optional<std::int64_t> borrowing_limit = std::nullopt;
};
struct Running {
  std::string name;
  std::string queue;
  std::int64_t gpus = 0;
  std::int64_t priority = 0;
  std::int64_t reserved_s = 0;
  std::int64_t created_s = 0;
};
struct Case {
  std::string says;
  std::vector<std::pair<std::string, std::string>> cohorts;  ///< Name, parent.
  std::vector<Queue> queues;
  std::vector<Running> running;
  JobOptions preemptor;
  std::vector<std::string> evicted;  ///< `name rule`, sorted.
};

PreemptionSpec policy(PreemptionPolicy within, PreemptionPolicy reclaim = kNever,
                      BorrowWithinCohort borrow = {}) {
  return PreemptionSpec{within, reclaim, borrow};
}
JobOptions asks(const std::string& queue, std::int64_t gpus, std::int64_t priority,
                std::int64_t created_s = 500) {
  return {.queue = queue, .gpus = gpus, .priority = priority, .created_s = created_s};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"within the queue the lowest priority goes first",
       {},
       {{"q", "", 4, policy(kLower)}},
       {{"a", "q", 2, 2}, {"b", "q", 2, 1}},
       asks("q", 2, 5),
       {"b InClusterQueue"}},
      {"of one priority the newest reservation goes",
       {},
       {{"q", "", 4, policy(kLower)}},
       {{"a", "q", 2, 0, 10}, {"b", "q", 2, 0, 20}},
       asks("q", 2, 5),
       {"b InClusterQueue"}},
      {"of one reservation the lowest uid goes",
       {},
       {{"q", "", 4, policy(kLower)}},
       {{"b", "q", 2, 0, 10}, {"a", "q", 2, 0, 10}},
       asks("q", 2, 5),
       {"a InClusterQueue"}},
      {"LowerPriority leaves an equal priority alone",
       {},
       {{"q", "", 4, policy(kLower)}},
       {{"a", "q", 4, 5, 0, 900}},
       asks("q", 2, 5),
       {}},
      {"LowerOrNewerEqualPriority takes an equal priority that was created later",
       {},
       {{"q", "", 4, policy(kLowerOrNewer)}},
       {{"a", "q", 2, 5, 0, 400}, {"b", "q", 2, 5, 0, 900}},
       asks("q", 2, 5),
       {"b InClusterQueue"}},
      {"LowerOrNewerEqualPriority needs a strictly earlier creation",
       {},
       {{"q", "", 4, policy(kLowerOrNewer)}},
       {{"a", "q", 4, 5, 0, 500}},
       asks("q", 2, 5),
       {}},
      {"Never takes nobody",
       {},
       {{"q", "", 4, policy(kNever)}},
       {{"a", "q", 4, 0}},
       asks("q", 2, 5),
       {}},
      {"reclaim Any takes back whatever the priority",
       {},
       {{"a", "org", 4, policy(kNever, kAny)}, {"b", "org", 0, policy(kNever)}},
       {{"high", "b", 4, 100}},
       asks("a", 4, 0),
       {"high InCohortReclamation"}},
      {"reclaim LowerPriority leaves a higher priority alone",
       {},
       {{"a", "org", 4, policy(kNever, kLower)}, {"b", "org", 0, policy(kNever)}},
       {{"high", "b", 4, 100}},
       asks("a", 4, 0),
       {}},
      {"reclaim LowerOrNewerEqualPriority takes an equal one that is younger",
       {},
       {{"a", "org", 4, policy(kNever, kLowerOrNewer)}, {"b", "org", 0, policy(kNever)}},
       {{"young", "b", 4, 0, 0, 900}},
       asks("a", 4, 0),
       {"young InCohortReclamation"}},
      {"who is within its nominal quota is left alone",
       {},
       {{"a", "org", 4, policy(kNever, kAny)},
        {"b", "org", 4, policy(kNever)},
        {"c", "org", 0, policy(kNever)}},
       {{"own", "b", 4, -5}, {"lent", "c", 4, 5}},
       asks("a", 4, 0),
       {"lent InCohortReclamation"}},
      {"others that borrow go before the own queue's",
       {},
       {{"a", "org", 4, policy(kLower, kAny)}, {"b", "org", 0, policy(kNever)}},
       {{"mine", "a", 2, -9}, {"lent", "b", 2, 5}},
       asks("a", 2, 0),
       {"lent InCohortReclamation"}},
      {"no more is taken from a queue than it borrows",
       {},
       {{"a", "org", 4, policy(kLower, kAny)}, {"b", "org", 4, policy(kNever)}},
       {{"mine", "a", 2, -9}, {"b1", "b", 2, 0}, {"b2", "b", 2, 1}, {"b3", "b", 2, 2}},
       asks("a", 4, 0),
       {"b1 InCohortReclamation", "mine InClusterQueue"}},
      {"who was taken in vain is put back",
       {},
       {{"q", "", 10, policy(kLower)}},
       {{"small", "q", 2, 1}, {"large", "q", 8, 2}},
       asks("q", 8, 5),
       {"large InClusterQueue"}},
      {"whoever made it fit stays taken",
       {},
       {{"q", "", 10, policy(kLower)}},
       {{"large", "q", 8, 1}, {"small", "q", 2, 2}},
       asks("q", 10, 5),
       {"large InClusterQueue", "small InClusterQueue"}},
      {"a borrower's request takes lower priorities up to the threshold, the threshold included",
       {},
       {{"bank", "org", 4, policy(kNever)},
        {"a", "org", 0, policy(kNever, kLower, {kLower, 50})},
        {"b", "org", 0, policy(kNever)}},
       {{"at", "b", 2, 50}, {"above", "b", 2, 51}},
       asks("a", 2, 100),
       {"at InCohortReclaimWhileBorrowing"}},
      {"without borrowWithinCohort a borrower's request takes only from its own queue",
       {},
       {{"bank", "org", 4, policy(kNever)},
        {"a", "org", 2, policy(kLower, kAny)},
        {"b", "org", 0, policy(kNever)}},
       {{"mine", "a", 2, 1}, {"lent", "b", 4, 0}},
       asks("a", 2, 100),
       {"mine InClusterQueue"}},
      {"borrowWithinCohort leaves an equal priority to requests that do not borrow",
       {},
       {{"bank", "org", 4, policy(kNever)},
        {"a", "org", 0, policy(kNever, kAny, {kLower, std::nullopt})},
        {"b", "org", 0, policy(kNever)}},
       {{"equal", "b", 4, 100}},
       asks("a", 2, 100),
       {}},
      {"a cohort whose own quota covers the request takes back what left it, whatever the mode",
       {{"left", "root"}, {"right", "root"}},
       {{"l1", "left", 4, policy(kNever, kAny)},
        {"l2", "left", 4, policy(kNever)},
        {"r", "right", 0, policy(kNever)}},
       {{"mine", "l1", 4, 9}, {"far", "r", 4, 100}},
       asks("l1", 4, 0),
       {"far InCohortReclamation"}},
      {"in a cohort that is within its own quota nobody is taken from outside",
       {{"left", "root"}, {"right", "root"}},
       {{"l", "left", 4, policy(kNever, kAny)},
        {"r1", "right", 0, policy(kNever)},
        {"r2", "right", 4, policy(kNever)},
        {"free", "root", 0, policy(kNever)}},
       {{"inside", "r1", 4, 0}, {"outside", "free", 4, 100}},
       asks("l", 4, 0),
       {"outside InCohortReclamation"}},
      {"the borrowing limit binds the preemptor too",
       {},
       {{"bank", "org", 8, policy(kNever)},
        {"a", "org", 0, policy(kNever, kLower, {kLower, std::nullopt}), 2},
        {"b", "org", 0, policy(kNever)}},
       {{"lent", "b", 8, 0}},
       asks("a", 4, 100),
       {}},
  };
  return kCases;
}

std::vector<std::string> evicted_in(const Case& one, const Options& options) {
  World world(options);
  world.flavor("h100", {}, "", Capacity::kElastic);
  for (const auto& [name, parent] : one.cohorts) world.cohort(name, parent);
  for (const Queue& queue : one.queues) {
    world.queue(queue.name, {.cohort = queue.cohort,
                             .nominal = queue.nominal,
                             .borrowing_limit = queue.borrowing_limit,
                             .preemption = queue.preemption});
  }
  for (const Running& job : one.running) {
    world.run(job.name,
              {.queue = job.queue,
               .gpus = job.gpus,
               .priority = job.priority,
               .created_s = job.created_s},
              job.reserved_s);
  }
  world.submit("new", one.preemptor);
  world.settle();
  std::vector<std::string> evicted;
  for (const std::string& line : world.log) {
    if (!line.starts_with("evict ")) continue;
    evicted.push_back(line.substr(6, line.find(" for ") - 6));
  }
  std::sort(evicted.begin(), evicted.end());
  return evicted;
}

TEST(PreemptionRules, AreThoseOfTheSpecification) {
  for (const Case& one : cases()) {
    EXPECT_EQ(evicted_in(one, {.improvements = Improvements::none()}), one.evicted) << one.says;
  }
}

TEST(PreemptionRules, LeastLossTakesNobodyWhereNobodyMayBeTaken) {
  for (const Case& one : cases()) {
    EXPECT_EQ(evicted_in(one, {}).empty(), one.evicted.empty()) << one.says;
  }
}

TEST(PreemptionRules, OnlyWhoUsesWhatIsShortIsTaken) {
  World world(Options{.improvements = Improvements::none()});
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.flavor("a100", {}, "", Capacity::kElastic);
  world.queue("q", {.nominal = 2, .preemption = policy(kLower)});
  ClusterQueueSpec spec = world.engine.state().queues.at(ClusterQueueName("q"));
  spec.quota.resource_groups[0].flavors.push_back(
      {FlavorName("a100"), {{gpu(), {Amount(1), std::nullopt, std::nullopt}}}});
  world.send(ClusterQueueUpserted{spec});
  world.run("on-a100", {.queue = "q", .gpus = 1, .priority = 0, .flavor = "a100"}, 1);
  world.run("on-h100", {.queue = "q", .gpus = 2, .priority = 1}, 1);
  world.submit("new", asks("q", 2, 5));
  world.settle();
  EXPECT_EQ(world.log, (std::vector<std::string>{"evict on-h100 InClusterQueue for new"}));
}

TEST(PreemptionRules, WhoIsLeavingAlreadyCountsAsGone) {
  World world(Options{.improvements = Improvements::none()});
  world.flavor("h100", {}, "", Capacity::kElastic);
  world.queue("q", {.nominal = 4, .preemption = policy(kLower)});
  world.run("a", {.queue = "q", .gpus = 2, .priority = 0}, 1);
  world.run("b", {.queue = "q", .gpus = 2, .priority = 0}, 2);
  world.submit("first", asks("q", 2, 5));
  world.settle();
  EXPECT_EQ(world.log, (std::vector<std::string>{"evict b InClusterQueue for first"}));
  world.settle();
  EXPECT_EQ(world.log.size(), 1U);
}

}  // namespace
}  // namespace muster::engine::test

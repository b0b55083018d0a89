// Random trees full of random workloads: what fair-sharing preemption takes is legal one by one,
// makes the request fit, and no part of it is for nothing.

#include "engine/fair_preemption.hpp"
#include "engine/state.hpp"
#include "engine/victim_order.hpp"
#include "quota/fair_share.hpp"
#include "tests/quota/tree_builders.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace muster::engine::test {
namespace {

using quota::FairShare;
using quota::NodeIndex;

constexpr auto kFinal = FairStrategy::kLessThanOrEqualToFinalShare;
constexpr auto kInitial = FairStrategy::kLessThanInitialShare;

/// 0 … limit - 1, from the first case on as wide as in the last.
int below(int limit) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, limit));
}

template <class T>
T any_of(std::initializer_list<T> values) {
  return values.begin()[below(static_cast<int>(values.size()))];
}

quota::FairWeight any_weight() {
  return quota::FairWeight{
      any_of({0LL, 500'000'000LL, 1'000'000'000LL, 1'000'000'000LL, 3'000'000'000LL})};
}

quota::testing::Line any_line(const char* flavor) {
  quota::testing::Line line;
  line.flavor = flavor;
  line.nominal = below(7);
  if (below(4) == 0) line.lending_limit = below(4);
  if (below(5) == 0) line.borrowing_limit = below(6);
  return line;
}

WorkloadSpec workload(const std::string& name) {
  WorkloadSpec spec;
  spec.key = {Namespace("team"), name};
  spec.uid = Uid("uid-" + name);
  spec.owner_uid = Uid("owner-" + name);
  spec.queue_name = "none";
  spec.priority = below(3);
  spec.created = Instant{below(4)};
  return spec;
}

/// Three levels of cohorts, up to six queues, two flavors; full of workloads.
void fill(State& state) {
  const int cohorts = 1 + below(4);
  for (int i = 0; i < cohorts; ++i) {
    const std::string name = "c" + std::to_string(i);
    quota::CohortSpec spec = quota::testing::cohort(
        name, i == 0 ? "" : "c" + std::to_string(below(i)), {any_line("x"), any_line("y")});
    spec.fair_weight = any_weight();
    state.cohorts[spec.name] = spec;
  }
  const int queues = 2 + below(5);
  for (int i = 0; i < queues; ++i) {
    ClusterQueueSpec spec;
    spec.quota =
        quota::testing::queue("q" + std::to_string(i), "c" + std::to_string(below(cohorts)),
                              {any_line("x"), any_line("y")});
    spec.quota.fair_weight = any_weight();
    spec.preemption.within_cluster_queue =
        any_of({PreemptionPolicy::kNever, PreemptionPolicy::kLowerPriority,
                PreemptionPolicy::kLowerOrNewerEqualPriority});
    spec.preemption.reclaim_within_cohort =
        any_of({PreemptionPolicy::kLowerPriority, PreemptionPolicy::kAny, PreemptionPolicy::kAny});
    state.queues[spec.name()] = spec;
  }
  state.mark_tree_dirty();
  state.ensure_tree();
  constexpr int kAttempts = 40;
  for (int i = 0; i < kAttempts; ++i) {
    Admission admission;
    admission.cluster_queue = ClusterQueueName("q" + std::to_string(below(queues)));
    PodSetAssignment pods;
    pods.flavors = {{ResourceName("cpu"), FlavorName(any_of({"x", "y"}))}};
    pods.usage = {{ResourceName("cpu"), Amount(1 + below(4))}};
    admission.pod_sets = {pods};
    const WorkloadSpec spec = workload("w" + std::to_string(i));
    const auto amounts = state.tree.to_fr_amounts(State::usage_of(spec, admission));
    if (!state.tree.fits(state.queue_node(admission.cluster_queue), amounts)) continue;
    WorkloadRecord& record = state.upsert_record(spec);
    state.hold(record, admission, Phase::kReserved, Instant{below(4)});
  }
}

/// The rules, written down from semantics (d), over usage charged in the tree.
class Judge {
 public:
  Judge(State& state, const PreemptionRequest& request)
      : state_(state), request_(request), own_(state.queue_node(request.queue)) {}

  /// It fits without `gone`.
  bool fits_without(const std::vector<Victim>& gone) {
    quota::UsageLog log;
    for (const Victim& victim : gone) remove(victim, log);
    const bool fits = state_.tree.fits(own_, request_.amounts);
    state_.tree.restore(log, 0);
    return fits;
  }

  /// Everyone may be taken, in this order.
  bool legal(const std::vector<Victim>& victims) {
    quota::UsageLog log;
    state_.tree.add_usage(own_, request_.amounts, &log);
    const bool within = state_.tree.within_nominal(own_, request_.needed);
    bool all = true;
    for (const Victim& victim : victims) {
      all = all && allowed(victim, within);
      remove(victim, log);
    }
    state_.tree.restore(log, 0);
    return all;
  }

 private:
  const WorkloadRecord& record(const Victim& victim) {
    return state_.workloads.at(victim.workload);
  }
  void remove(const Victim& victim, quota::UsageLog& log) {
    const WorkloadRecord& leaving = record(victim);
    state_.tree.remove_usage(state_.queue_node(leaving.queue),
                             state_.tree.to_fr_amounts(*leaving.usage), &log);
  }

  bool allowed(const Victim& victim, bool within) {
    const WorkloadRecord& leaving = record(victim);
    const NodeIndex queue = state_.queue_node(leaving.queue);
    const PreemptionSpec& spec = state_.queues.at(request_.queue).preemption;
    const bool own = queue == own_;
    if (victim.own_queue != own || !uses_any(leaving.charged, request_.needed)) return false;
    if (!policy_allows(own ? spec.within_cluster_queue : spec.reclaim_within_cohort,
                       *request_.preemptor, leaving.spec)) {
      return false;
    }
    if (own) return victim.rule == PreemptionRule::kInClusterQueue;
    if (!quota::dominant_share(state_.tree, queue).borrowing()) return false;
    if (within) return victim.rule == PreemptionRule::kInCohortReclamation;
    if (victim.rule != PreemptionRule::kInCohortFairSharing) return false;
    const NodeIndex meeting = *state_.tree.lowest_common_ancestor(own_, queue);
    const NodeIndex side = state_.tree.child_towards(meeting, queue);
    const FairShare mine =
        quota::dominant_share(state_.tree, state_.tree.child_towards(meeting, own_));
    const FairShare before = quota::dominant_share(state_.tree, side);
    quota::UsageLog log;
    remove(victim, log);
    const FairShare after = quota::dominant_share(state_.tree, side);
    state_.tree.restore(log, 0);
    for (const FairStrategy strategy : state_.options.fair_sharing->strategies) {
      if (strategy == kFinal ? mine <= after : mine < before) return true;
    }
    return false;
  }

  State& state_;
  const PreemptionRequest& request_;
  NodeIndex own_;
};

TEST(FairPreemptionProperty, VictimsAreLegalEnoughAndNoneIsInVain) {
  int found = 0;
  int several = 0;
  EXPECT_TRUE(rc::check("victims are legal, enough, and none is in vain", [&] {
    State state;
    state.options.fair_sharing.emplace();
    state.options.fair_sharing->strategies =
        any_of({std::vector{kFinal}, std::vector{kInitial}, std::vector{kFinal, kInitial}});
    fill(state);
    const quota::QuotaTree before = state.tree;

    const WorkloadSpec asking = workload("asking");
    PreemptionRequest request;
    request.preemptor = &asking;
    request.queue =
        std::next(state.queues.begin(), below(static_cast<int>(state.queues.size())))->first;
    const NodeIndex own = state.queue_node(request.queue);
    const bool both = below(3) == 0;
    for (const char* flavor : {"x", "y"}) {
      if (!both && !request.amounts.empty()) break;
      const quota::FrId id = quota::testing::fr(state.tree, "cpu", flavor);
      const Amount free = state.tree.available_clamped(own, id);
      const Amount amount = below(4) == 0 ? Amount(1 + below(3)) : free + Amount(1 + below(5));
      request.amounts.emplace_back(id, amount);
      if (amount > free) request.needed.push_back(id);
    }
    std::sort(request.amounts.begin(), request.amounts.end());
    std::sort(request.needed.begin(), request.needed.end());
    if (request.needed.empty()) return;

    std::size_t tried = 0;
    const auto victims = find_fair_victims(state, request, tried);
    RC_ASSERT(state.tree.same_usage(before));
    if (!victims) return;
    ++found;
    if (victims->size() > 1) ++several;
    Judge judge(state, request);
    RC_ASSERT(judge.fits_without(*victims));
    RC_ASSERT(judge.legal(*victims));
    for (std::size_t i = 0; i < victims->size(); ++i) {
      std::vector<Victim> fewer = *victims;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      RC_ASSERT(!judge.fits_without(fewer) || !judge.legal(fewer));
    }
    // The same question has the same answer.
    const auto again = find_fair_victims(state, request, tried);
    RC_ASSERT(again.has_value() && again->size() == victims->size());
  }));
  EXPECT_GT(found, 10);
  EXPECT_GT(several, 0);
}

}  // namespace
}  // namespace muster::engine::test

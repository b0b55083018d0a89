#include "engine/attempt.hpp"

#include "engine/planner.hpp"

#include <algorithm>

namespace muster::engine {
namespace {

/// Flavors judged in search of a combination that fits as a whole.
constexpr std::size_t kJointBudget = 64;

std::int64_t highest_level(const State& state, const OracleQuery& query) {
  std::int64_t highest = 0;
  for (const auto& [fr, amount] : query.amounts) {
    highest = std::max(highest, state.tree.borrow_level(query.queue, fr, amount).level);
  }
  return highest;
}

class Attempter {
 public:
  Attempter(State& state, const WorkloadSpec& workload, const ClusterQueueSpec& queue,
            FlavorAssigner& flavors, std::size_t& work, const SearchOptions& search)
      : state_(state),
        workload_(workload),
        queue_(queue),
        flavors_(flavors),
        work_(work),
        search_(search) {
    options_.oracle = [this](const OracleQuery& query) { return ask(query); };
  }

  Attempt run() {
    Attempt whole = with(flavors_);
    if (whole.works()) return whole;
    const std::int64_t steps = reduction_steps(workload_);
    // The first step that works, taking for granted that every later one does as well.
    std::optional<Attempt> best;
    std::optional<Attempt> fewest;
    std::int64_t low = 1;
    std::int64_t high = steps + 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      ++work_;
      FlavorAssigner fewer(
          state_, workload_, queue_,
          reduced_counts(workload_, middle, state_.options.improvements.whole_slices));
      Attempt tried = with(fewer);
      if (tried.works()) {
        best = std::move(tried);
        high = middle;
      } else {
        low = middle + 1;
        if (middle == steps) fewest = std::move(tried);
      }
    }
    if (best) return *std::move(best);
    // What would do is what the fewest pods it takes are short of.
    if (fewest) whole.assignment.why = std::move(fewest->assignment.why);
    return whole;
  }

 private:
  Attempt with(FlavorAssigner& flavors) {
    const auto scan = state_.scans.find(workload_.key);
    options_.start = scan == state_.scans.end() ? ScanStart() : scan->second.next;
    Attempt first = try_once(flavors);
    if (first.works() || state_.options.peer.scans_go_on) return first;
    // A scan that stopped at a flavor which then leads nowhere goes on behind it (semantics b.7).
    std::size_t rescans = 0;
    for (const quota::ResourceGroup& group : queue_.quota.resource_groups) {
      rescans += group.flavors.size();
    }
    options_.start = first.assignment.rest;
    for (; !options_.start.empty() && rescans > 0; --rescans) {
      ++work_;
      Attempt next = try_once(flavors);
      if (next.works()) return next;
      options_.start = std::move(next.assignment.rest);
    }
    if (!state_.options.joint_flavors) return first;
    std::size_t budget = kJointBudget;
    auto joint = flavors.find_joint_fit(budget);
    work_ += kJointBudget - budget;
    if (!joint) return first;
    return Attempt{*std::move(joint), std::nullopt};
  }

  Attempt try_once(FlavorAssigner& flavors) {
    Attempt result;
    answered_.reset();
    result.assignment = flavors.assign(options_);
    if (result.assignment.mode != Mode::kPreempt) return result;
    const Admission& wanted = result.assignment.admission;
    const auto nodes_fit = [&] {
      Admission tried = wanted;
      return place_all(state_, workload_, tried, nullptr);
    };
    if (answered_ && answered_->amounts == result.assignment.amounts &&
        answered_->needed == result.assignment.needed) {
      if (!answered_->victims) return result;
      if (search_.reach == Reach::kAny && holds_without(*answered_->victims, nodes_fit)) {
        result.victims = std::move(answered_->victims);
        return result;
      }
    }
    result.victims = find(result.assignment.amounts, result.assignment.needed, nodes_fit);
    return result;
  }

  std::optional<std::vector<Victim>> find(const quota::FrAmounts& amounts,
                                          const std::vector<quota::FrId>& needed,
                                          std::function<bool()> nodes_fit) {
    PreemptionRequest request;
    request.preemptor = &workload_;
    request.queue = queue_.name();
    request.amounts = amounts;
    request.needed = needed;
    request.nodes_fit = std::move(nodes_fit);
    request.search = search_;
    return find_victims(state_, request, work_);
  }

  [[nodiscard]] bool holds_without(const std::vector<Victim>& victims,
                                   const std::function<bool()>& question) const {
    Trial gone(state_);
    remove_victims(gone, victims);
    return question();
  }

  OracleAnswer ask(const OracleQuery& query) {
    const auto victims = find(query.amounts, query.needed, query.nodes_fit);
    if (!query.nodes_fit) answered_ = Answered{query.amounts, query.needed, victims};
    if (!victims) return {Oracle::kNoCandidates, highest_level(state_, query)};
    bool own = false;
    Trial gone(state_);
    for (const WorkloadRecord* const record : state_.evicting) {
      own = own || (victims->empty() && record->queue == queue_.name());
    }
    for (const Victim& victim : *victims) own = own || victim.own_queue;
    remove_victims(gone, *victims);
    return {own ? Oracle::kOwnQueue : Oracle::kOtherQueuesOnly, highest_level(state_, query)};
  }

  State& state_;
  const WorkloadSpec& workload_;
  const ClusterQueueSpec& queue_;
  FlavorAssigner& flavors_;  ///< For all its pods.
  std::size_t& work_;
  const SearchOptions& search_;
  AssignOptions options_;
  /// The last question that was not about nodes, and its answer.
  struct Answered {
    quota::FrAmounts amounts;
    std::vector<quota::FrId> needed;
    std::optional<std::vector<Victim>> victims;
  };
  std::optional<Answered> answered_;
};

std::int64_t slack(const PodSetSpec& pod_set) {
  return pod_set.min_count ? std::max<std::int64_t>(0, pod_set.count - *pod_set.min_count) : 0;
}

/// The number of pods nearest to `count`, which is between minCount and all, that makes whole
/// slices; `count` itself where none does.
std::int64_t in_whole_slices(const PodSetSpec& pod_set, std::int64_t count) {
  if (!pod_set.min_count || !pod_set.topology || pod_set.topology->slices.empty()) return count;
  const std::int64_t size = pod_set.topology->slices.front().size;
  if (size < 1) return count;
  const std::int64_t down = count - count % size;
  if (down >= std::max<std::int64_t>(1, *pod_set.min_count)) return down;
  return pod_set.count - down >= size ? down + size : count;
}

}  // namespace

void remove_victims(Trial& gone, const std::vector<Victim>& victims) {
  gone.remove_leaving();
  const State& state = gone.state();
  for (const Victim& victim : victims) {
    if (victim.hold) {
      gone.remove(state.holds.at(victim.workload));
    } else {
      gone.remove(state.workloads.at(victim.workload));
    }
  }
}

std::int64_t reduction_steps(const WorkloadSpec& workload) {
  std::int64_t steps = 0;
  for (const PodSetSpec& pod_set : workload.pod_sets) steps += slack(pod_set);
  return steps;
}

std::vector<std::int64_t> reduced_counts(const WorkloadSpec& workload, std::int64_t step,
                                         bool whole_slices) {
  const std::int64_t steps = std::max<std::int64_t>(1, reduction_steps(workload));
  std::vector<std::int64_t> counts;
  for (const PodSetSpec& pod_set : workload.pod_sets) {
    const __int128 product = static_cast<__int128>(slack(pod_set)) * step;
    const std::int64_t count = pod_set.count - static_cast<std::int64_t>(product / steps);
    counts.push_back(whole_slices ? in_whole_slices(pod_set, count) : count);
  }
  return counts;
}

Attempt attempt(State& state, const WorkloadSpec& workload, const ClusterQueueSpec& queue,
                FlavorAssigner& flavors, std::size_t& work, const SearchOptions& search) {
  return Attempter(state, workload, queue, flavors, work, search).run();
}

}  // namespace muster::engine

#include "engine/look_ahead.hpp"

#include "engine/flavor_assigner.hpp"
#include "engine/trial.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace muster::engine {
namespace {

constexpr std::size_t kMostTries = 16;

struct Runner {
  const WorkloadRecord* record = nullptr;
  std::int64_t gain = 0;  ///< Pods of the pending workload that fit in addition when it ends.
  std::int64_t hosts = 0;
};

Runner runner_of(const State& state, const WorkloadRecord& record, const Resources& per_pod) {
  std::map<topology::NodeIndex, Resources> freed;
  for (const PlannedSlots& entry : record.plan) {
    freed[entry.node] += record.per_pod[entry.pod_set].times(entry.slots);
  }
  Runner runner{&record, 0, std::ssize(freed)};
  for (const auto& [node, amount] : freed) {
    Resources room = state.fleet.free(node);
    const std::int64_t now = per_pod.copies_in(room);
    room += amount;
    runner.gain += per_pod.copies_in(room) - now;
  }
  return runner;
}

bool fits_after(State& state, const WorkloadRecord& pending, const WorkloadRecord& runner) {
  Trial gone(state);
  gone.remove(runner);
  FlavorAssigner flavors(state, pending.spec, state.queues.at(pending.queue));
  return flavors.assign({}).mode == Mode::kFit;
}

}  // namespace

void look_ahead(State& state, const WorkloadRecord& pending, Explanation& why) {
  if (why.reason != PendingReason::kTopologyPlacementFailed) return;
  NodesShortfall* shortfall = nullptr;
  for (Cause& cause : why.causes) {
    if (shortfall == nullptr) shortfall = std::get_if<NodesShortfall>(&cause);
  }
  if (shortfall == nullptr || !shortfall->unknown_level.empty() || shortfall->indivisible) return;
  const auto pod_set =
      std::find_if(pending.spec.pod_sets.begin(), pending.spec.pod_sets.end(),
                   [&](const PodSetSpec& known) { return known.name == shortfall->pod_set; });
  if (pod_set == pending.spec.pod_sets.end()) return;
  const Resources per_pod = Resources::from_request(pod_set->node_requests, state.resources);
  // At least the leader, where all its pods fit.
  const std::int64_t missing =
      std::max<std::int64_t>(1, (shortfall->asked - shortfall->fitting) * shortfall->slice_size);

  std::vector<Runner> runners;
  for (const auto& [queue, holders] : state.holders) {
    for (const WorkloadRecord* const record : holders) {
      if (record->plan.empty()) continue;
      const Runner runner = runner_of(state, *record, per_pod);
      if (runner.gain >= missing) runners.push_back(runner);
    }
  }
  std::sort(runners.begin(), runners.end(), [](const Runner& a, const Runner& b) {
    return std::tie(a.gain, a.record->spec.key) < std::tie(b.gain, b.record->spec.key);
  });
  if (runners.size() > kMostTries) runners.resize(kMostTries);
  for (const Runner& runner : runners) {
    if (!fits_after(state, pending, *runner.record)) continue;
    shortfall->after = RoomAfter{runner.record->spec.key, runner.hosts};
    return;
  }
}

}  // namespace muster::engine

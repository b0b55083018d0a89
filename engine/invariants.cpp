#include "engine/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::engine {
namespace {

struct NodeTotals {
  ResourceSum foreign;
  ResourceSum planned;
};

void check_quota(const State& state, std::vector<std::string>& violations) {
  std::map<ClusterQueueName, quota::FlavorAmounts> totals;
  for (const auto& [key, record] : state.workloads) {
    if (!record.holds_quota()) continue;
    for (const auto& [what, amount] : *record.usage) totals[record.queue][what] += amount;
  }
  for (const quota::NodeIndex queue : state.tree.queues()) {
    const quota::FlavorAmounts& expected = totals[state.tree.queue_name(queue)];
    for (std::uint32_t i = 0; i < state.tree.fr_count(); ++i) {
      const quota::FrId fr(i);
      const auto found = expected.find(state.tree.fr(fr));
      const Amount want = found == expected.end() ? Amount() : found->second;
      const Amount have = state.tree.usage(queue, fr);
      if (want == have) continue;
      violations.push_back(
          fmt::format("usage of {}/{} in ClusterQueue {} is {}, its workloads hold {}",
                      state.tree.fr(fr).flavor, state.tree.fr(fr).resource,
                      state.tree.queue_name(queue), have, want));
    }
  }
  for (std::string& line : state.tree.check_usage()) violations.push_back(std::move(line));
}

void check_standings(const State& state, std::vector<std::string>& violations) {
  for (const auto& [key, record] : state.workloads) {
    if (!record.holds_quota() || !record.standing) continue;
    if (state.standing(record).protection == state.protection_of(record.spec, record.queue)) {
      continue;
    }
    violations.push_back(fmt::format("the protection of {} is not what is remembered", key));
  }
}

/// What is charged is what would be, had the names been known from the beginning.
void check_names(const State& state, std::vector<std::string>& violations) {
  for (const auto& [uid, pod] : state.pods) {
    if (pod.requests == Resources::from_list_known(pod.use->requests, state.resources)) continue;
    violations.push_back(fmt::format("pod {} is charged otherwise than it asks", uid));
  }
  for (const auto& [key, record] : state.workloads) {
    if (!record.holds_quota()) continue;
    const std::size_t pod_sets = std::min(record.per_pod.size(), record.spec.pod_sets.size());
    for (std::size_t i = 0; i < pod_sets; ++i) {
      const ResourceList& asked = record.spec.pod_sets[i].node_requests;
      if (record.per_pod[i] == Resources::from_list_known(asked, state.resources)) continue;
      violations.push_back(fmt::format("the plan of {} is charged otherwise than it asks", key));
    }
  }
}

void check_nodes(const State& state, std::vector<std::string>& violations) {
  std::map<topology::NodeIndex, NodeTotals> totals;
  std::map<WorkloadKey, std::vector<std::int64_t>> claims;
  for (const auto& [uid, pod] : state.pods) {
    totals[pod.node].foreign.add(pod.foreign);
    if (!pod.slot) continue;
    const WorkloadRecord& owner = *state.owned_by(pod.use->owner_uid);
    auto& counts = claims[owner.spec.key];
    counts.resize(owner.plan.size());
    ++counts.at(*pod.slot);
  }
  for (const auto& [key, record] : state.workloads) {
    for (const PlannedSlots& entry : record.kept) {
      totals[entry.node].planned.add(record.per_pod[entry.pod_set], entry.slots);
    }
    for (std::size_t i = 0; i < record.plan.size(); ++i) {
      const PlannedSlots& entry = record.plan[i];
      totals[entry.node].planned.add(record.per_pod[entry.pod_set], entry.slots);
      const auto found = claims.find(key);
      const std::int64_t claimed = found == claims.end() ? 0 : found->second[i];
      if (claimed != entry.claimed || claimed > entry.slots) {
        violations.push_back(fmt::format("{} has {} of {} slots on {} claimed by {} pods", key,
                                         entry.claimed, entry.slots, state.fleet.name(entry.node),
                                         claimed));
      }
    }
  }
  for (std::uint32_t i = 0; i < state.fleet.slots(); ++i) {
    const topology::NodeIndex node(i);
    const NodeTotals& expected = totals[node];
    if (!(state.fleet.use(node, topology::UseKind::kForeign) == expected.foreign.clamped())) {
      violations.push_back(
          fmt::format("foreign use of node {} differs from its pods", state.fleet.name(node)));
    }
    if (!(state.fleet.use(node, topology::UseKind::kPlanned) == expected.planned.clamped())) {
      violations.push_back(
          fmt::format("planned use of node {} differs from its slots", state.fleet.name(node)));
    }
  }
}

}  // namespace

std::vector<std::string> check_state(const State& state) {
  std::vector<std::string> violations;
  // A dirty tree is counted anew before anyone reads it.
  if (!state.tree_dirty) check_quota(state, violations);
  if (const auto& leaving = state.known_leaving_use(); leaving && !leaving->too_large) {
    LeavingUse expected;
    for (const WorkloadRecord* const record : state.evicting) expected.add(state, *record);
    if (*leaving != expected) violations.emplace_back("what leaves is summed up wrongly");
  }
  check_standings(state, violations);
  check_names(state, violations);
  check_nodes(state, violations);
  return violations;
}

}  // namespace muster::engine

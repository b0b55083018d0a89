#include "engine/slots.hpp"

#include <algorithm>
#include <cstddef>

namespace muster::engine {

std::vector<NodeName> expand_slots(const std::vector<NodeCount>& nodes) {
  // Ten times what an Indexed Job may run at once: counts come from objects.
  constexpr std::size_t kMost = 1'000'000;
  std::vector<NodeName> slots;
  for (const NodeCount& entry : nodes) {
    const std::int64_t room = static_cast<std::int64_t>(kMost - slots.size());
    for (std::int64_t i = 0; i < std::min(entry.count, room); ++i) slots.push_back(entry.node);
  }
  return slots;
}

std::map<std::int64_t, NodeName> assign_ranks(const std::vector<NodeName>& slots,
                                              const std::map<std::int64_t, NodeName>& bound) {
  // A bound rank uses up the first slot of its node. When its node has none (the pod was bound
  // beside the plan) it uses up the last slot that is left over after all others, so that the
  // number of ranks never exceeds the number of slots.
  std::map<NodeName, std::int64_t> taken;
  for (const auto& [rank, node] : bound) ++taken[node];

  std::vector<NodeName> remaining;
  for (const NodeName& slot : slots) {
    const auto found = taken.find(slot);
    if (found != taken.end() && found->second > 0) {
      --found->second;
    } else {
      remaining.push_back(slot);
    }
  }

  std::map<std::int64_t, NodeName> nodes;
  const auto ranks = static_cast<std::int64_t>(slots.size());
  std::size_t next = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto found = bound.find(rank);
    if (found != bound.end()) {
      nodes.emplace(rank, found->second);
    } else if (next < remaining.size()) {
      nodes.emplace(rank, remaining[next++]);
    }
  }
  return nodes;
}

std::optional<NodeName> node_of_rank(const std::vector<NodeName>& slots,
                                     const std::map<std::int64_t, NodeName>& bound,
                                     std::int64_t rank) {
  const auto nodes = assign_ranks(slots, bound);
  const auto found = nodes.find(rank);
  if (found == nodes.end()) return std::nullopt;
  return found->second;
}

}  // namespace muster::engine

#include "engine/node_table.hpp"

#include "engine/snapshot.hpp"

#include <algorithm>

namespace muster::engine {

NodeTable::NodeTable(std::span<const NodeView> nodes) {
  std::size_t name_bytes = 0;
  for (const NodeView& node : nodes) {
    name_bytes += node.name.value().size();
    extent_ = std::max(
        {extent_, node.allocatable.extent(), node.foreign.extent(), node.planned.extent()});
  }
  names_.reserve(name_bytes);
  name_ends_.reserve(nodes.size());
  flags_.reserve(nodes.size());
  amounts_.reserve(nodes.size() * extent_ * 2);
  for (const NodeView& node : nodes) {
    names_ += node.name.value();
    name_ends_.push_back(static_cast<std::uint32_t>(names_.size()));
    const bool nominated = std::any_of(node.pods.begin(), node.pods.end(),
                                       [](const PodView& pod) { return pod.use->nominated; });
    flags_.push_back(static_cast<std::uint8_t>((node.usable ? kUsable : 0) |
                                               (node.planned.is_zero() ? 0 : kPlan) |
                                               (nominated ? kNominated : 0)));
    for (std::size_t i = 0; i < extent_; ++i) {
      const ResourceId id(static_cast<std::uint16_t>(i));
      amounts_.push_back(node.allocatable[id]);
      amounts_.push_back(node.foreign[id] + node.planned[id]);
    }
  }
}

}  // namespace muster::engine

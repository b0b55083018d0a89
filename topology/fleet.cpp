#include "topology/fleet.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace muster::topology {
namespace {

std::size_t slot_of(UseKind kind) {
  return kind == UseKind::kForeign ? 0 : 1;
}

/// What node filters depend on.
bool same_for_filters(const NodeFacts& a, const NodeFacts& b) {
  return a.labels == b.labels && a.taints == b.taints && a.ready == b.ready &&
         a.unschedulable == b.unschedulable;
}

}  // namespace

const Fleet::Node& Fleet::at(NodeIndex node) const {
  MUSTER_ASSERT(node.value() < nodes_.size(), "node {} of {}", node.value(), nodes_.size());
  return nodes_[node.value()];
}

Fleet::Node& Fleet::at(NodeIndex node) {
  MUSTER_ASSERT(node.value() < nodes_.size(), "node {} of {}", node.value(), nodes_.size());
  return nodes_[node.value()];
}

void Fleet::recount(Node& node) {
  node.free = node.present ? node.facts.allocatable : Resources();
  for (const ResourceSum& use : node.use) use.take_from(node.free);
}

/// The index of `name`; for a new name one that nothing depends on any more, or a new one.
NodeIndex Fleet::slot_for(const NodeName& name) {
  const auto known = index_.find(name.value());
  if (known != index_.end()) {
    std::erase(removed_, known->second);
    return known->second;
  }
  NodeIndex slot(static_cast<std::uint32_t>(nodes_.size()));
  const auto unused = std::find_if(removed_.begin(), removed_.end(), [&](NodeIndex node) {
    return at(node).use[0].is_zero() && at(node).use[1].is_zero();
  });
  if (unused == removed_.end()) {
    nodes_.emplace_back();
  } else {
    slot = *unused;
    removed_.erase(unused);
    index_.erase(at(slot).facts.name.value());
    at(slot) = Node();
  }
  at(slot).facts.name = name;
  index_.emplace(name.value(), slot);
  return slot;
}

void Fleet::list(NodeIndex node) {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), node,
      [this](NodeIndex listed, NodeIndex added) { return name(listed) < name(added); });
  by_name_.insert(place, node);
}

void Fleet::unlist(NodeIndex node) {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), node,
      [this](NodeIndex listed, NodeIndex removed) { return name(listed) < name(removed); });
  by_name_.erase(place);
}

NodeIndex Fleet::upsert(NodeFacts facts) {
  const NodeIndex slot = slot_for(facts.name);
  Node& node = at(slot);
  if (!node.present) {
    node.present = true;
    list(slot);
    ++generation_;
  } else if (!same_for_filters(node.facts, facts)) {
    ++generation_;
  }
  node.facts = std::move(facts);
  recount(node);
  return slot;
}

NodeIndex Fleet::ensure(const NodeName& name) {
  return slot_for(name);
}

void Fleet::remove(NodeIndex node) {
  Node& gone = at(node);
  if (!gone.present) return;
  unlist(node);
  gone.present = false;
  removed_.push_back(node);
  recount(gone);
  ++generation_;
}

std::optional<NodeIndex> Fleet::find(const NodeName& name) const {
  const auto found = index_.find(name.value());
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

const std::string& Fleet::hostname(NodeIndex node) const {
  const NodeFacts& facts = at(node).facts;
  const auto label = facts.labels.find(std::string(kHostnameLabel));
  return label == facts.labels.end() ? facts.name.value() : label->second;
}

Resources Fleet::use(NodeIndex node, UseKind kind) const {
  return at(node).use[slot_of(kind)].clamped();
}

void Fleet::charge(NodeIndex node, UseKind kind, const Resources& each, std::int64_t count,
                   UseLog* log) {
  Node& changed = at(node);
  ResourceSum& use = changed.use[slot_of(kind)];
  if (log != nullptr) log->push_back(UseUndo{node, kind, use});
  use.add(each, count);
  recount(changed);
}

void Fleet::release(NodeIndex node, UseKind kind, const Resources& each, std::int64_t count,
                    UseLog* log) {
  charge(node, kind, each, -count, log);
}

void Fleet::restore(UseLog& log, std::size_t mark) {
  MUSTER_ASSERT(mark <= log.size(), "mark {} of {}", mark, log.size());
  while (log.size() > mark) {
    UseUndo& undo = log.back();
    Node& node = at(undo.node);
    node.use[slot_of(undo.kind)] = std::move(undo.before);
    recount(node);
    log.pop_back();
  }
}

}  // namespace muster::topology

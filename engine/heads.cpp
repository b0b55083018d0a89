#include "engine/heads.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace muster::engine {

bool goes_before(const Head& a, const Head& b) {
  const auto order = queue_order(a.record->spec, b.record->spec);
  return order != 0 ? order < 0 : a.queue < b.queue;
}

bool Head::operator<(const Head& other) const {
  if (borrow_level != other.borrow_level) return borrow_level < other.borrow_level;
  return goes_before(*this, other);
}

Tournament::Tournament(quota::QuotaTree& tree) : tree_(tree), seats_(tree.size()) {
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    const quota::NodeIndex node(i);
    deepest_first_.push_back(node);
    if (!tree.parent(node)) roots_.push_back(node);
  }
  std::stable_sort(
      deepest_first_.begin(), deepest_first_.end(),
      [&](quota::NodeIndex a, quota::NodeIndex b) { return tree.depth(a) > tree.depth(b); });
}

void Tournament::enter(const Head& head) {
  const auto queue = tree_.find_queue(head.queue);
  MUSTER_ASSERT(queue.has_value(), "ClusterQueue {} is not in the tree", head.queue);
  const bool added = heads_.emplace(*queue, head).second;
  MUSTER_ASSERT(added, "ClusterQueue {} has a head already", head.queue);
  mark_stale(*queue);
}

std::optional<Head> Tournament::pop() {
  if (heads_.empty()) return std::nullopt;
  refresh();
  std::optional<quota::NodeIndex> best;
  for (const quota::NodeIndex root : roots_) {
    const auto winner = seat(root).winner;
    if (!winner) continue;
    if (!best || goes_before(heads_.at(*winner), heads_.at(*best))) best = winner;
  }
  mark_stale(*best);
  auto taken = heads_.extract(*best);
  return std::move(taken.mapped());
}

void Tournament::mark_stale(quota::NodeIndex queue) {
  for (std::optional<quota::NodeIndex> node = queue; node; node = tree_.parent(*node)) {
    seat(*node).stale = true;
  }
}

void Tournament::refresh() {
  for (const quota::NodeIndex node : deepest_first_) {
    Seat& here = seat(node);
    if (!here.stale && here.changes == tree_.changes(node)) continue;
    count(node);
    here.stale = false;
    here.changes = tree_.changes(node);
  }
}

void Tournament::count(quota::NodeIndex node) {
  Seat& here = seat(node);
  here.winner.reset();
  if (tree_.is_queue(node)) {
    if (heads_.contains(node)) here.winner = node;
  } else {
    std::optional<quota::NodeIndex> best;
    for (const quota::NodeIndex child : tree_.children(node)) {
      if (seat(child).winner && (!best || before(child, *best))) best = child;
    }
    if (best) here.winner = seat(*best).winner;
  }
  if (!here.winner || !tree_.parent(node)) return;
  const quota::FrAmounts& amounts = heads_.at(*here.winner).amounts;
  quota::UsageLog log;
  tree_.add_usage(*here.winner, amounts, &log);
  here.share = quota::dominant_share(tree_, node);
  here.borrowing = std::any_of(amounts.begin(), amounts.end(), [&](const auto& entry) {
    return entry.second > Amount() && tree_.borrowing(node, entry.first);
  });
  tree_.restore(log, 0);
}

bool Tournament::before(quota::NodeIndex a, quota::NodeIndex b) const {
  const Seat& left = seat(a);
  const Seat& right = seat(b);
  if (left.borrowing != right.borrowing) return right.borrowing;
  if (const auto order = left.share.compare(right.share); order != 0) return order < 0;
  return goes_before(heads_.at(*left.winner), heads_.at(*right.winner));
}

Heads::Heads(State& state) {
  if (state.options.fair_sharing) fair_.emplace(state.tree);
}

void Heads::push(Head head) {
  ++size_;
  if (fair_) {
    fair_->enter(head);
  } else {
    classical_.insert(std::move(head));
  }
}

Head Heads::pop() {
  MUSTER_ASSERT(!empty(), "no head is left");
  --size_;
  if (fair_) return *fair_->pop();
  return std::move(classical_.extract(classical_.begin()).value());
}

}  // namespace muster::engine

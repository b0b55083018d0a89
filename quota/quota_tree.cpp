#include "quota/quota_tree.hpp"

#include "base/assert.hpp"
#include "quota/sorted_names.hpp"

#include <algorithm>
#include <array>

namespace muster::quota {
namespace {

/// quota - usage. Unlimited quota is never used up.
Amount minus_usage(Amount quota, ExactUsage usage) {
  if (quota.is_unlimited()) return quota;
  return Amount::clamped(quota.value() - usage);
}

/// The part of `usage` above `quota`; what a node passes on to its parent, for quota = guaranteed.
ExactUsage above(ExactUsage usage, Amount quota) {
  if (quota.is_unlimited()) return 0;
  return std::max<ExactUsage>(0, usage - quota.value());
}

/// From a node to its root. Usual trees are shallow; a deep one only costs an allocation.
class PathToRoot {
 public:
  PathToRoot(const QuotaTree& tree, NodeIndex node) : size_(tree.depth(node) + 1U) {
    if (size_ > inline_.size()) heap_.resize(size_);
    NodeIndex* path = size_ > inline_.size() ? heap_.data() : inline_.data();
    for (std::size_t i = 0; i < size_; ++i) {
      path[i] = node;
      if (i + 1 < size_) node = *tree.parent(node);
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] NodeIndex operator[](std::size_t i) const {
    return heap_.empty() ? inline_[i] : heap_[i];
  }

 private:
  std::size_t size_;
  std::array<NodeIndex, 16> inline_;
  std::vector<NodeIndex> heap_;
};

}  // namespace

const QuotaTree::Node& QuotaTree::at(NodeIndex node) const {
  MUSTER_ASSERT(node.value() < nodes_.size(), "quota node {} of {}", node.value(), nodes_.size());
  return nodes_[node.value()];
}

std::size_t QuotaTree::cell(NodeIndex node, FrId fr) const {
  MUSTER_ASSERT(node.value() < nodes_.size() && fr.value() < frs_.size(),
                "quota node {} of {}, flavor resource {} of {}", node.value(), nodes_.size(),
                fr.value(), frs_.size());
  return std::size_t{node.value()} * frs_.size() + fr.value();
}

std::optional<FrId> QuotaTree::find_fr(const FlavorResource& flavor_resource) const {
  const auto found = fr_ids_.find(flavor_resource);
  if (found == fr_ids_.end()) return std::nullopt;
  return found->second;
}

const FlavorResource& QuotaTree::fr(FrId id) const {
  MUSTER_ASSERT(id.value() < frs_.size(), "flavor resource {} of {}", id.value(), frs_.size());
  return frs_[id.value()];
}

std::uint32_t QuotaTree::resource_index(FrId id) const {
  MUSTER_ASSERT(id.value() < frs_.size(), "flavor resource {} of {}", id.value(), frs_.size());
  return fr_resources_[id.value()];
}

FrAmounts QuotaTree::to_fr_amounts(const FlavorAmounts& amounts) const {
  FrAmounts known;
  for (const auto& [flavor_resource, amount] : amounts) {
    if (const auto id = find_fr(flavor_resource)) known.emplace_back(*id, amount);
  }
  std::sort(known.begin(), known.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return known;
}

std::optional<NodeIndex> QuotaTree::find_queue(const ClusterQueueName& name) const {
  const auto at = position(queue_names_, name);
  if (!at) return std::nullopt;
  return queues_[*at];
}

std::optional<NodeIndex> QuotaTree::find_cohort(const CohortName& name) const {
  const auto at = position(cohort_names_, name);
  if (!at) return std::nullopt;
  return NodeIndex(static_cast<std::uint32_t>(*at));
}

bool QuotaTree::is_queue(NodeIndex node) const {
  return node.value() >= cohort_names_.size();
}

const ClusterQueueName& QuotaTree::queue_name(NodeIndex queue) const {
  MUSTER_ASSERT(is_queue(queue) && queue.value() < nodes_.size(), "{} is no queue", queue.value());
  return queue_names_[queue.value() - cohort_names_.size()];
}

const CohortName& QuotaTree::cohort_name(NodeIndex cohort) const {
  MUSTER_ASSERT(!is_queue(cohort), "{} is no cohort", cohort.value());
  return cohort_names_[cohort.value()];
}

const std::string& QuotaTree::name(NodeIndex node) const {
  return is_queue(node) ? queue_name(node).value() : cohort_name(node).value();
}

std::span<const NodeIndex> QuotaTree::children(NodeIndex node) const {
  const Node& of = at(node);
  return std::span(children_).subspan(of.children_begin, of.children_end - of.children_begin);
}

std::span<const NodeIndex> QuotaTree::queues_below(NodeIndex node) const {
  const Node& of = at(node);
  return std::span(queues_by_tree_).subspan(of.queues_begin, of.queues_end - of.queues_begin);
}

std::vector<NodeIndex> QuotaTree::ancestors(NodeIndex node) const {
  std::vector<NodeIndex> above;
  above.reserve(depth(node));
  for (auto next = parent(node); next; next = parent(*next)) above.push_back(*next);
  return above;
}

bool QuotaTree::is_ancestor_or_self(NodeIndex ancestor, NodeIndex node) const {
  while (depth(node) > depth(ancestor)) node = *parent(node);
  return node == ancestor;
}

std::optional<NodeIndex> QuotaTree::lowest_common_ancestor(NodeIndex a, NodeIndex b) const {
  if (root(a) != root(b)) return std::nullopt;
  while (depth(a) > depth(b)) a = *parent(a);
  while (depth(b) > depth(a)) b = *parent(b);
  while (a != b) {
    a = *parent(a);
    b = *parent(b);
  }
  return a;
}

NodeIndex QuotaTree::child_towards(NodeIndex ancestor, NodeIndex node) const {
  MUSTER_ASSERT(depth(node) > depth(ancestor), "{} is not below {}", name(node), name(ancestor));
  while (depth(node) > depth(ancestor) + 1) node = *parent(node);
  MUSTER_ASSERT(parent(node) == ancestor, "{} is not below {}", name(node), name(ancestor));
  return node;
}

std::optional<Amount> QuotaTree::borrowing_limit(NodeIndex node, FrId fr) const {
  return quota(node, fr).borrowing_limit;
}

Amount QuotaTree::usage(NodeIndex node, FrId fr) const {
  return Amount::clamped(usage_[cell(node, fr)]);
}

Amount QuotaTree::local_available(NodeIndex node, FrId fr) const {
  return std::max(Amount(), minus_usage(guaranteed(node, fr), usage_[cell(node, fr)]));
}

/// How much the node may take from its parent in all that it does not have yet, by its own
/// borrowing limit: (T - G) - max(0, U - G) + BL.
Amount QuotaTree::borrowable(NodeIndex node, FrId fr, Amount limit) const {
  const Amount lent = subtree_quota(node, fr) - guaranteed(node, fr);
  return minus_usage(lent + limit, above(usage_[cell(node, fr)], guaranteed(node, fr)));
}

/// What of the parent's `of_parent` the node may have.
Amount QuotaTree::available_from_parent(NodeIndex node, FrId fr, Amount of_parent) const {
  const auto limit = borrowing_limit(node, fr);
  return limit ? std::min(of_parent, borrowable(node, fr, *limit)) : of_parent;
}

Amount QuotaTree::available(NodeIndex node, FrId fr) const {
  const PathToRoot path(*this, node);
  const NodeIndex top = path[path.size() - 1];
  Amount here = minus_usage(subtree_quota(top, fr), usage_[cell(top, fr)]);
  for (std::size_t i = path.size() - 1; i-- > 0;) {
    here = local_available(path[i], fr) + available_from_parent(path[i], fr, here);
  }
  return here;
}

Amount QuotaTree::available_clamped(NodeIndex queue, FrId fr) const {
  return std::max(Amount(), available(queue, fr));
}

bool QuotaTree::fits(NodeIndex queue, const FrAmounts& amounts) const {
  return std::all_of(amounts.begin(), amounts.end(), [&](const auto& entry) {
    return entry.second <= available_clamped(queue, entry.first);
  });
}

bool QuotaTree::borrowing(NodeIndex node, FrId fr, Amount amount) const {
  return above(usage_[cell(node, fr)] + amount.value(), subtree_quota(node, fr)) > 0;
}

Amount QuotaTree::borrowed(NodeIndex queue, FrId fr) const {
  if (!parent(queue)) return Amount();
  return Amount::clamped(above(usage_[cell(queue, fr)], nominal(queue, fr)));
}

bool QuotaTree::within_nominal(NodeIndex node, std::span<const FrId> frs) const {
  return std::none_of(frs.begin(), frs.end(), [&](FrId fr) { return borrowing(node, fr); });
}

BorrowLevel QuotaTree::borrow_level(NodeIndex queue, FrId fr, Amount amount) const {
  if (!parent(queue)) return BorrowLevel{0, false};
  if (!borrowing(queue, fr, amount)) return BorrowLevel{0, true};
  Amount rest = amount - local_available(queue, fr);
  for (auto cohort = parent(queue); cohort; cohort = parent(*cohort)) {
    if (!borrowing(*cohort, fr, rest)) {
      return BorrowLevel{height(*cohort), parent(*cohort).has_value()};
    }
    rest -= local_available(*cohort, fr);
  }
  return BorrowLevel{height(root(queue)), false};
}

// The lowest node whose own limit is in the way: more quota there lifts every limit above it, too,
// while more quota further up would not come down to it.
std::optional<Limit> QuotaTree::limiting_node(NodeIndex queue, FrId fr, Amount amount) const {
  if (amount <= available_clamped(queue, fr)) return std::nullopt;
  const Amount missing = amount - available(queue, fr);
  Amount asked = amount;
  for (NodeIndex node = queue;;) {
    const auto above_it = parent(node);
    if (!above_it) return Limit{node, false, asked, asked - missing, missing};
    asked -= local_available(node, fr);
    const auto limit = borrowing_limit(node, fr);
    if (limit && borrowable(node, fr, *limit) < asked) {
      return Limit{node, true, asked, asked - missing, missing};
    }
    node = *above_it;
  }
}

std::optional<Limit> QuotaTree::limiting_node_ever(NodeIndex queue, FrId fr, Amount amount) const {
  const Amount possible = std::max(Amount(), potential(queue, fr));
  if (amount <= possible) return std::nullopt;
  const Amount missing = amount - possible;
  Amount asked = amount;
  for (NodeIndex node = queue;;) {
    const auto above_it = parent(node);
    if (!above_it) return Limit{node, false, asked, asked - missing, missing};
    const auto limit = borrowing_limit(node, fr);
    if (limit && subtree_quota(node, fr) + *limit < asked) {
      return Limit{node, true, asked, asked - missing, missing};
    }
    asked -= guaranteed(node, fr);
    node = *above_it;
  }
}

std::optional<Limit> QuotaTree::own_limit(NodeIndex queue, FrId fr, Amount amount) const {
  Amount rest = amount;
  for (NodeIndex node = queue; rest > Amount() && parent(node); node = *parent(node)) {
    const Amount room = subtree_quota(node, fr) - usage(node, fr);
    if (rest > room) return Limit{node, false, rest, room, rest - room};
    rest = rest - local_available(node, fr);
  }
  return std::nullopt;
}

std::optional<Limit> QuotaTree::own_limit_ever(NodeIndex queue, FrId fr, Amount amount) const {
  Amount rest = amount;
  for (NodeIndex node = queue; rest > Amount() && parent(node); node = *parent(node)) {
    const Amount room = subtree_quota(node, fr);
    if (rest > room) return Limit{node, false, rest, room, rest - room};
    rest = rest - guaranteed(node, fr);
  }
  return std::nullopt;
}

void QuotaTree::set_usage(NodeIndex node, FrId fr, ExactUsage value, UsageLog* log) {
  ExactUsage& usage = usage_[cell(node, fr)];
  if (log != nullptr) log->push_back(UsageUndo{node, fr, usage});
  usage = value;
}

void QuotaTree::note_change(NodeIndex node) {
  for (std::optional<NodeIndex> next = node; next; next = parent(*next)) {
    ++nodes_[next->value()].changes;
  }
}

void QuotaTree::add_usage(NodeIndex node, const FrAmounts& amounts, UsageLog* log) {
  if (log == nullptr) note_change(node);
  for (const auto& [fr, amount] : amounts) {
    ExactUsage rest = amount.value();
    for (std::optional<NodeIndex> next = node; next; next = parent(*next)) {
      const ExactUsage before = usage_[cell(*next, fr)];
      const ExactUsage after = before + rest;
      set_usage(*next, fr, after, log);
      // What is above the guaranteed part now, and was not before.
      rest = above(after, guaranteed(*next, fr)) - above(before, guaranteed(*next, fr));
      if (rest <= 0) break;
    }
  }
}

void QuotaTree::remove_usage(NodeIndex node, const FrAmounts& amounts, UsageLog* log) {
  if (log == nullptr) note_change(node);
  for (const auto& [fr, amount] : amounts) {
    ExactUsage rest = amount.value();
    for (std::optional<NodeIndex> next = node; next; next = parent(*next)) {
      const ExactUsage before = usage_[cell(*next, fr)];
      set_usage(*next, fr, before - rest, log);
      rest = std::min(rest, above(before, guaranteed(*next, fr)));
      if (rest <= 0) break;
    }
  }
}

void QuotaTree::restore(UsageLog& log, std::size_t mark) {
  MUSTER_ASSERT(mark <= log.size(), "mark {} of {}", mark, log.size());
  while (log.size() > mark) {
    const UsageUndo& undo = log.back();
    usage_[cell(undo.node, undo.fr)] = undo.before;
    log.pop_back();
  }
}

std::vector<std::string> QuotaTree::check_usage() const {
  std::vector<std::string> violations;
  for (std::size_t i = 0; i < cohort_names_.size(); ++i) {
    const NodeIndex cohort(static_cast<std::uint32_t>(i));
    for (std::size_t j = 0; j < frs_.size(); ++j) {
      const FrId id(static_cast<std::uint32_t>(j));
      ExactUsage passed = 0;
      for (const NodeIndex child : children(cohort)) {
        passed += above(usage_[cell(child, id)], guaranteed(child, id));
      }
      if (passed == usage_[cell(cohort, id)]) continue;
      violations.push_back(fmt::format("cohort {} counts {} of {}/{} but its children pass up {}",
                                       cohort_names_[i], usage(cohort, id), frs_[j].flavor,
                                       frs_[j].resource, Amount::clamped(passed)));
    }
  }
  return violations;
}

}  // namespace muster::quota

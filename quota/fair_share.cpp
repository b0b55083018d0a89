#include "quota/fair_share.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <limits>

namespace muster::quota {
namespace {

using Wide = unsigned __int128;

/// a * b * c in 192 bits: three int64 factors do not fit in 128.
struct Product {
  Wide high = 0;  ///< Bits 64 and up.
  std::uint64_t low = 0;
  auto operator<=>(const Product&) const = default;
};

Product product(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const Wide ab = Wide{a} * b;
  const Wide low = Wide{static_cast<std::uint64_t>(ab)} * c;
  return Product{(ab >> 64U) * c + (low >> 64U), static_cast<std::uint64_t>(low)};
}

/// a / b against c / d, all denominators positive.
std::strong_ordering compare_fractions(std::uint64_t a, std::uint64_t b, std::uint64_t c,
                                       std::uint64_t d) {
  return Wide{a} * d <=> Wide{c} * b;
}

std::uint64_t non_negative(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
}

}  // namespace

FairShare::FairShare(Amount over, Amount lendable, FairWeight weight, bool borrowing,
                     std::optional<FrId> dominant, bool rounded)
    : weight_nanos_(non_negative(weight.nanos)), borrowing_(borrowing), rounded_(rounded) {
  MUSTER_ASSERT(!over.is_negative() && !lendable.is_negative(), "share {} of {}", over, lendable);
  if (over.is_zero() || lendable.is_zero()) return;
  over_ = non_negative(over.value());
  lendable_ = non_negative(lendable.value());
  dominant_ = dominant;
}

std::int64_t FairShare::status_value() const {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (is_zero()) return 0;
  if (is_infinite()) return kMax;
  // over * 1000 / lendable / (nanos / 10^9); the numerator is below 2^63 * 2^40.
  const Wide numerator = Wide{over_} * 1'000 * 1'000'000'000;
  const Wide denominator = Wide{lendable_} * weight_nanos_;
  const Wide rounded_up = (numerator + denominator - 1) / denominator;
  return rounded_up > Wide{non_negative(kMax)} ? kMax : static_cast<std::int64_t>(rounded_up);
}

std::strong_ordering FairShare::compare(const FairShare& other) const {
  if (is_zero() || other.is_zero()) return other.is_zero() <=> is_zero();
  if (is_infinite() != other.is_infinite()) return is_infinite() <=> other.is_infinite();
  if (is_infinite()) return compare_fractions(over_, lendable_, other.over_, other.lendable_);
  if (rounded_ && other.rounded_) {
    const double left = ratio();
    const double right = other.ratio();
    if (left < right) return std::strong_ordering::less;
    return left > right ? std::strong_ordering::greater : std::strong_ordering::equal;
  }
  return product(over_, other.lendable_, other.weight_nanos_) <=>
         product(other.over_, lendable_, weight_nanos_);
}

double FairShare::ratio() const {
  const double weight = static_cast<double>(weight_nanos_) / 1e9;
  return static_cast<double>(over_) * 1000.0 / static_cast<double>(lendable_) / weight;
}

FairShare dominant_share(const QuotaTree& tree, NodeIndex node) {
  const auto parent = tree.parent(node);
  if (!parent) return FairShare();
  const FairWeight weight = tree.fair_weight(node);
  bool borrowing = false;
  Amount best_over;
  Amount best_lendable(1);
  std::optional<FrId> best;
  const auto fr_count = static_cast<std::uint32_t>(tree.fr_count());
  for (std::uint32_t begin = 0, end = 0; begin < fr_count; begin = end) {
    const std::uint32_t resource = tree.resource_index(FrId(begin));
    Amount over;
    for (end = begin; end < fr_count && tree.resource_index(FrId(end)) == resource; ++end) {
      const FrId fr(end);
      if (!tree.covers(node, fr) || !tree.borrowing(node, fr)) continue;
      over += tree.usage(node, fr) - tree.subtree_quota(node, fr);
    }
    if (over.is_zero()) continue;
    borrowing = true;
    const Amount most = lendable(tree, *parent, FrId(begin));
    if (most <= Amount()) continue;
    if (compare_fractions(non_negative(over.value()), non_negative(most.value()),
                          non_negative(best_over.value()),
                          non_negative(best_lendable.value())) > 0) {
      best_over = over;
      best_lendable = most;
      best = FrId(begin);
    }
  }
  return FairShare(best_over, best_lendable, weight, borrowing, best, tree.rounded_shares());
}

Amount lendable(const QuotaTree& tree, NodeIndex node, FrId fr) {
  const std::uint32_t resource = tree.resource_index(fr);
  std::uint32_t at = fr.value();
  while (at > 0 && tree.resource_index(FrId(at - 1)) == resource) --at;
  Amount sum;
  for (; at < tree.fr_count() && tree.resource_index(FrId(at)) == resource; ++at) {
    sum += tree.potential(node, FrId(at));
  }
  return sum;
}

const FairShare& ShareCache::of(const QuotaTree& tree, NodeIndex node) {
  if (entries_.empty()) entries_.resize(tree.size());
  std::optional<Entry>& entry = entries_[node.value()];
  if (!entry || entry->changes != tree.changes(node)) {
    entry = Entry{tree.changes(node), dominant_share(tree, node)};
  }
  return entry->share;
}

}  // namespace muster::quota

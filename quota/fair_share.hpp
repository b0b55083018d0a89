#pragma once
// Dominant resource share of queueing semantics (e): how much of what could be lent a node borrows,
// over its weight. Exact fractions; no floating point reaches a comparison, unless asked for.

#include "quota/quota_tree.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

namespace muster::quota {

/// The fraction over * 1000 / lendable / weight of the resource where over / lendable is largest.
class FairShare {
 public:
  /// Share 0, not borrowing.
  FairShare() = default;
  /// `over` and `lendable` must not be negative; `over` counts only where `lendable` is positive.
  /// `rounded`: QuotaTree::rounded_shares.
  FairShare(Amount over, Amount lendable, FairWeight weight, bool borrowing,
            std::optional<FrId> dominant, bool rounded = false);

  /// The node uses more than its subtree quota of something, be it of nothing lendable.
  [[nodiscard]] bool borrowing() const { return borrowing_; }
  [[nodiscard]] bool is_zero() const { return over_ == 0; }
  /// Weight 0 and something borrowed.
  [[nodiscard]] bool is_infinite() const { return over_ > 0 && weight_nanos_ == 0; }
  /// The share rounded up; INT64_MAX when infinite (or beyond).
  [[nodiscard]] std::int64_t status_value() const;
  /// A flavor resource of the dominant resource (the alphabetically first on ties); nothing when
  /// the share is zero.
  [[nodiscard]] std::optional<FrId> dominant() const { return dominant_; }

  /// By value. Infinite is above all finite; two infinite shares compare by over / lendable. Exact,
  /// unless rounded.
  [[nodiscard]] std::strong_ordering compare(const FairShare& other) const;
  friend bool operator<(const FairShare& a, const FairShare& b) { return a.compare(b) < 0; }
  friend bool operator>(const FairShare& a, const FairShare& b) { return a.compare(b) > 0; }
  friend bool operator<=(const FairShare& a, const FairShare& b) { return a.compare(b) <= 0; }
  friend bool operator>=(const FairShare& a, const FairShare& b) { return a.compare(b) >= 0; }
  friend bool operator==(const FairShare& a, const FairShare& b) { return a.compare(b) == 0; }

 private:
  [[nodiscard]] double ratio() const;

  std::uint64_t over_ = 0;
  std::uint64_t lendable_ = 1;
  std::uint64_t weight_nanos_ = 1'000'000'000;
  bool borrowing_ = false;
  bool rounded_ = false;
  std::optional<FrId> dominant_;
};

/// The node's share at the tree's current usage. Zero for a root. Usage of flavor resources that
/// the node's subtree has no quota for is not seen.
[[nodiscard]] FairShare dominant_share(const QuotaTree& tree, NodeIndex node);

/// What could at most be lent at `node` of the resource of `fr`: the sum of `potential` over all
/// flavors.
[[nodiscard]] Amount lendable(const QuotaTree& tree, NodeIndex node, FrId fr);

/// Shares at the usage that holds and is not only tried, each counted when first asked for.
class ShareCache {
 public:
  /// Precondition: nothing that is only tried changes the usage of the node now. Valid until the
  /// next question or change.
  [[nodiscard]] const FairShare& of(const QuotaTree& tree, NodeIndex node);
  /// The tree was built anew.
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::uint64_t changes = 0;  ///< QuotaTree::changes of that time.
    FairShare share;
  };
  std::vector<std::optional<Entry>> entries_;  ///< By node.
};

}  // namespace muster::quota

#pragma once
// Use that fades: fixed-point amounts and exponential decay in integers, for semantics (e), AFS.
// The same on every machine, and fine enough that no increment vanishes.

#include "base/amount.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "quota/quota_spec.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <map>

namespace muster::quota {

/// A non-negative amount in parts of 2^-64 of the unit of Amount. Saturates.
class FineAmount {
 public:
  FineAmount() = default;
  /// Negative counts as zero.
  explicit FineAmount(Amount amount)
      : parts_(amount.is_negative() ? 0 : static_cast<Parts>(amount.value()) << 64U) {}

  /// `billionths` of an API unit of the resource (a core, a byte, a count); negative counts as
  /// zero.
  [[nodiscard]] static FineAmount from_nanos(const ResourceName& resource, __int128 billionths);
  /// Rounded to the nearest; back through from_nanos it is the same billionths.
  [[nodiscard]] __int128 nanos(const ResourceName& resource) const;

  [[nodiscard]] bool is_zero() const { return parts_ == 0; }
  FineAmount& operator+=(FineAmount other);
  auto operator<=>(const FineAmount&) const = default;
  bool operator==(const FineAmount&) const = default;

 private:
  friend class Decay;
  friend class WeightedUse;
  using Parts = unsigned __int128;
  Parts parts_ = 0;
};

/// By resource; an absent one is zero.
using FineAmounts = std::map<ResourceName, FineAmount>;

/// What is left of the past after some time: the factor 2^-(elapsed / half life), to an error below
/// 2^-56.
class Decay {
 public:
  /// A half life of zero, or less, leaves nothing. Negative time counts as none.
  Decay(Duration elapsed, Duration half_life);

  /// amount * factor, and amount * (1 - factor), rounded down.
  [[nodiscard]] FineAmount kept(FineAmount amount) const;
  [[nodiscard]] FineAmount gained(Amount amount) const;

  /// factor * 2^64.
  [[nodiscard]] unsigned __int128 factor() const { return factor_; }

 private:
  unsigned __int128 factor_ = 0;
};

/// What LocalQueues are ordered by: the sum over resources of use times the resource's weight, in
/// API units (so memory counts by the byte), over the queue's weight. Exact.
class WeightedUse {
 public:
  /// Adds `amount` times `resource_weight`; a negative weight counts as zero.
  void add(const ResourceName& resource, FineAmount amount, FairWeight resource_weight);
  /// Weight zero, or less: above everything, whatever the use.
  void divide_by(FairWeight queue_weight);

  [[nodiscard]] std::strong_ordering compare(const WeightedUse& other) const;
  friend bool operator<(const WeightedUse& a, const WeightedUse& b) { return a.compare(b) < 0; }
  friend bool operator>(const WeightedUse& a, const WeightedUse& b) { return a.compare(b) > 0; }

 private:
  /// Little endian, 384 bits: room for 2^128 parts, times two weights below 2^63, times 1000,
  /// summed over 2^64 resources and more.
  using Wide = std::array<std::uint64_t, 6>;
  [[nodiscard]] static Wide times(const Wide& wide, std::uint64_t factor);

  Wide sum_{};  ///< In thousandths of parts, times billionths of weight.
  std::uint64_t queue_weight_ = 1'000'000'000;
};

}  // namespace muster::quota

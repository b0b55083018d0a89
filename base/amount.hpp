#pragma once
// How much of a resource: the only number type that quota and placement compute with.

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <limits>

namespace muster {

/// A signed count in the resource's canonical unit: milli-CPU for `cpu`, bytes for memory-like
/// resources, whole units for all others. Arithmetic saturates; it never wraps.
///
/// INT64_MAX is *unlimited* (queueing semantics, section 0): unlimited + x = unlimited,
/// unlimited - bounded = unlimited, bounded - unlimited = INT64_MIN, unlimited - unlimited = 0.
/// An *absent* limit is an empty optional, which every path treats like unlimited.
class Amount {
 public:
  constexpr Amount() = default;
  constexpr explicit Amount(std::int64_t value) : value_(value) {}

  [[nodiscard]] static constexpr Amount unlimited() { return Amount(kMax); }
  /// An exact sum, clamped to the int64 range.
  [[nodiscard]] static constexpr Amount clamped(__int128 sum) {
    if (sum > kMax) return Amount(kMax);
    return Amount(sum < kMin ? kMin : static_cast<std::int64_t>(sum));
  }
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  [[nodiscard]] constexpr bool is_unlimited() const { return value_ == kMax; }
  [[nodiscard]] constexpr bool is_zero() const { return value_ == 0; }
  [[nodiscard]] constexpr bool is_negative() const { return value_ < 0; }

  constexpr auto operator<=>(const Amount&) const = default;
  constexpr bool operator==(const Amount&) const = default;

  [[nodiscard]] friend constexpr Amount operator+(Amount a, Amount b) {
    if (a.is_unlimited() || b.is_unlimited()) return unlimited();
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a.value_, b.value_, &sum)) return Amount(sum);
    return Amount(a.value_ < 0 ? kMin : kMax);
  }
  [[nodiscard]] friend constexpr Amount operator-(Amount a, Amount b) {
    if (a.is_unlimited()) return b.is_unlimited() ? Amount() : unlimited();
    if (b.is_unlimited()) return Amount(kMin);
    std::int64_t difference = 0;
    if (!__builtin_sub_overflow(a.value_, b.value_, &difference)) return Amount(difference);
    return Amount(a.value_ < 0 ? kMin : kMax);
  }
  [[nodiscard]] friend constexpr Amount operator*(Amount a, std::int64_t count) {
    std::int64_t product = 0;
    if (!__builtin_mul_overflow(a.value_, count, &product)) return Amount(product);
    return Amount((a.value_ < 0) == (count < 0) ? kMax : kMin);
  }
  constexpr Amount& operator+=(Amount other) { return *this = *this + other; }
  constexpr Amount& operator-=(Amount other) { return *this = *this - other; }

 private:
  static constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  std::int64_t value_ = 0;
};

}  // namespace muster

template <>
struct fmt::formatter<muster::Amount> : fmt::formatter<std::int64_t> {
  template <class Context>
  auto format(muster::Amount amount, Context& context) const {
    return fmt::formatter<std::int64_t>::format(amount.value(), context);
  }
};

#pragma once
// Kubernetes quantities: exact, and rounded as the API server and the quota rules do.

#include "base/amount.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace muster {

/// A parsed quantity, exact: a decimal number with up to 9 fractional digits (as apimachinery keeps
/// it; finer input is rounded up away from zero), with the suffix family it was written in.
class Quantity {
 public:
  enum class Format { kDecimalSI, kBinarySI, kDecimalExponent };

  /// Accepts what `resource.ParseQuantity` accepts: `500m`, `1.5Gi`, `1e3`, `+2`, `.5`, `10n`.
  /// As there, what is finer than a billionth is rounded away from zero and binary-suffixed text is
  /// capped at ±(2^63-1) units; decimal text is kept up to ±10^29 units and capped there.
  [[nodiscard]] static Result<Quantity> parse(std::string_view text);

  [[nodiscard]] static Quantity from_units(std::int64_t units, Format format = Format::kDecimalSI);
  [[nodiscard]] static Quantity from_millis(std::int64_t millis);

  /// Whole units, rounded up (ceiling); saturates at ±INT64_MAX.
  [[nodiscard]] std::int64_t units_ceil() const;
  /// Thousandths, rounded up (ceiling); saturates at ±INT64_MAX.
  [[nodiscard]] std::int64_t millis_ceil() const;
  /// Billionths, exact but for saturation at ±INT64_MAX (weights are counted in them).
  [[nodiscard]] std::int64_t nanos_saturated() const {
    constexpr __int128 kMax = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(nanos_ > kMax ? kMax : nanos_ < -kMax ? -kMax : nanos_);
  }

  [[nodiscard]] bool is_zero() const { return nanos_ == 0; }
  [[nodiscard]] bool is_negative() const { return nanos_ < 0; }
  [[nodiscard]] Format format() const { return format_; }

  /// Canonical text, as apimachinery's `Quantity.String()`: no fraction, largest possible suffix.
  [[nodiscard]] std::string to_string() const;

  friend Quantity operator+(Quantity a, Quantity b);
  [[nodiscard]] std::strong_ordering compare(Quantity other) const {
    return nanos_ <=> other.nanos_;
  }
  bool operator==(const Quantity& other) const { return nanos_ == other.nanos_; }

 private:
  // Billionths, within ±10^38: arithmetic on quantities is exact.
  __int128 nanos_ = 0;
  Format format_ = Format::kDecimalSI;
};

/// Request side of semantics section 0: `cpu` in milli, all else in units, rounded up, clamped.
[[nodiscard]] Amount request_amount(const ResourceName& resource, Quantity quantity);

/// Quota side: like request_amount, but values at or above the representable range are unlimited.
[[nodiscard]] Amount quota_amount(const ResourceName& resource, Quantity quantity);

/// An amount in the API's spelling: `cpu` 1500 -> `1500m`, memory 1073741824 -> `1Gi`, gpu 8 ->
/// `8`.
[[nodiscard]] std::string format_amount(const ResourceName& resource, Amount amount);

}  // namespace muster

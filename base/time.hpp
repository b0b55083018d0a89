#pragma once
// Time as a value. Pure folders get an Instant as an argument; only the shell reads a clock.

#include "base/result.hpp"

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

using Duration = std::chrono::microseconds;

/// A point in time: microseconds since 1970-01-01T00:00:00Z (Kubernetes Time has whole seconds,
/// MicroTime has microseconds).
struct Instant {
  std::int64_t us = 0;

  auto operator<=>(const Instant&) const = default;
  bool operator==(const Instant&) const = default;
  friend Instant operator+(Instant at, Duration by) { return Instant{at.us + by.count()}; }
  friend Instant operator-(Instant at, Duration by) { return Instant{at.us - by.count()}; }
  friend Duration operator-(Instant a, Instant b) { return Duration(a.us - b.us); }
};

/// An Instant or nothing, in the room of an Instant. Used like std::optional, and turns into one;
/// for objects of which there are very many.
class MaybeInstant {
 public:
  MaybeInstant() = default;
  // NOLINTBEGIN(google-explicit-constructor): as std::optional.
  MaybeInstant(std::nullopt_t) {}
  MaybeInstant(Instant at) : at_(at) {}
  MaybeInstant(const std::optional<Instant>& at) : at_(at.value_or(kNone)) {}
  operator std::optional<Instant>() const {
    return has_value() ? std::optional(at_) : std::nullopt;
  }
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return at_ != kNone; }
  explicit operator bool() const { return has_value(); }
  /// Precondition of the next two: has_value().
  [[nodiscard]] const Instant& operator*() const { return at_; }
  [[nodiscard]] const Instant* operator->() const { return &at_; }
  [[nodiscard]] Instant value_or(Instant other) const { return has_value() ? at_ : other; }
  void reset() { at_ = kNone; }

  bool operator==(const MaybeInstant&) const = default;
  bool operator==(Instant at) const { return at_ == at; }
  bool operator==(const std::optional<Instant>& at) const { return *this == MaybeInstant(at); }

 private:
  /// 292,000 years before 1970: no clock and no manifest says so.
  static constexpr Instant kNone{std::numeric_limits<std::int64_t>::min()};
  Instant at_ = kNone;
};

/// RFC 3339 as the API server writes it: `2026-11-29T16:00:00Z`, fractions and offsets accepted.
[[nodiscard]] Result<Instant> parse_rfc3339(std::string_view text);

/// metav1.Time: whole seconds, `2026-11-29T16:00:00Z`.
[[nodiscard]] std::string format_rfc3339(Instant at);

/// metav1.MicroTime: `2026-11-29T16:00:00.000000Z`.
[[nodiscard]] std::string format_rfc3339_micro(Instant at);

/// A Go duration as Kubernetes manifests write it: `1h30m`, `500ms`, `0s`, `1.5h`.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

}  // namespace muster

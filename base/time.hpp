#pragma once
// Time as a value. Pure folders get an Instant as an argument; only the shell reads a clock.

#include "base/result.hpp"

#include <chrono>
#include <compare>
#include <cstdint>
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

/// RFC 3339 as the API server writes it: `2026-11-29T16:00:00Z`, fractions and offsets accepted.
[[nodiscard]] Result<Instant> parse_rfc3339(std::string_view text);

/// metav1.Time: whole seconds, `2026-11-29T16:00:00Z`.
[[nodiscard]] std::string format_rfc3339(Instant at);

/// metav1.MicroTime: `2026-11-29T16:00:00.000000Z`.
[[nodiscard]] std::string format_rfc3339_micro(Instant at);

/// A Go duration as Kubernetes manifests write it: `1h30m`, `500ms`, `0s`, `1.5h`.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

}  // namespace muster

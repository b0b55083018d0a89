#pragma once
// How often something may be done: a burst at once, then once each interval (the generic cell rate
// algorithm, a leaky bucket without a timer).

#include "base/time.hpp"

#include <algorithm>
#include <optional>

namespace muster::controller {

class Pace {
 public:
  /// `burst` (1 or more) at once after a silence of `burst * interval`.
  Pace(Duration interval, int burst) : interval_(interval), burst_(burst) {}

  [[nodiscard]] bool free(Instant now) const { return !free_at_ || *free_at_ <= now; }
  /// It was done `times` over.
  void spend(Instant now, int times = 1) {
    const Instant full = now - (burst_ - 1) * interval_;
    free_at_ = std::max(free_at_.value_or(full), full) + times * interval_;
  }
  /// The first instant at which it is free; may lie in the past.
  [[nodiscard]] Instant free_at() const { return free_at_.value_or(Instant{}); }

 private:
  Duration interval_;
  int burst_;
  std::optional<Instant> free_at_;  ///< Absent: nothing was done yet.
};

}  // namespace muster::controller

#pragma once
// The only clock of the server: everything below gets its time as an argument.

#include "base/time.hpp"

#include <chrono>

namespace muster::server {

[[nodiscard]] inline Instant wall_clock_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Instant{std::chrono::duration_cast<std::chrono::microseconds>(since).count()};
}

}  // namespace muster::server

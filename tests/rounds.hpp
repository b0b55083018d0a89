#pragma once
// How many rounds a randomised test plays.

#include <cstdint>
#include <cstdlib>

namespace muster::test {

/// Under `./test --full`, which sets MUSTER_FULL.
inline bool is_full_run() {
  const char* full = std::getenv("MUSTER_FULL");
  return full != nullptr && *full != '\0';
}

/// `usual`, or `full` in a full run; MUSTER_ROUNDS=<number> asks for that many by hand.
inline std::uint64_t rounds(std::uint64_t usual, std::uint64_t full) {
  if (const char* wanted = std::getenv("MUSTER_ROUNDS")) {
    return std::strtoull(wanted, nullptr, 10);
  }
  return is_full_run() ? full : usual;
}

}  // namespace muster::test

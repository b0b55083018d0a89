#pragma once
// How many rounds a randomised test plays.

#include <cstdint>
#include <cstdlib>

namespace muster::test {

/// `usual`, or `full` under `./test --full` (MUSTER_FULL is set); MUSTER_ROUNDS=<number> asks for
/// that many by hand.
inline std::uint64_t rounds(std::uint64_t usual, std::uint64_t full) {
  if (const char* wanted = std::getenv("MUSTER_ROUNDS")) {
    return std::strtoull(wanted, nullptr, 10);
  }
  const char* all = std::getenv("MUSTER_FULL");
  return all != nullptr && *all != '\0' ? full : usual;
}

}  // namespace muster::test

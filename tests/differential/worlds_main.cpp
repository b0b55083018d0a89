// Prints worlds for the peer program: `differential_worlds FIRST COUNT`, one line each.

#include "tests/differential/worlds.hpp"

#include <cstdint>
#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: differential_worlds FIRST_SEED COUNT\n";
    return 2;
  }
  const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::cout << muster::differential::peer_line(muster::differential::world_of(seed)) << '\n';
  }
  return std::cout.good() ? 0 : 1;
}

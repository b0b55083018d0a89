// Prints worlds for the peer program, one line each: `differential_worlds [topology] FIRST COUNT`.

#include "tests/differential/topology_worlds.hpp"
#include "tests/differential/worlds.hpp"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

int main(int argc, char** argv) {
  namespace differential = muster::differential;
  const bool topology = argc == 4 && std::string_view(argv[1]) == "topology";
  if (argc != 3 && !topology) {
    std::cerr << "usage: differential_worlds [topology] FIRST_SEED COUNT\n";
    return 2;
  }
  const std::uint64_t first = std::strtoull(argv[argc - 2], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[argc - 1], nullptr, 10);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const auto world =
        topology ? differential::topology_world_of(seed) : differential::world_of(seed);
    std::cout << differential::peer_line(world) << '\n';
  }
  return std::cout.good() ? 0 : 1;
}

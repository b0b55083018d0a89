// A fabric of 15 leaf groups of 1 to 11 hosts: small jobs keep out of the two large groups as long
// as there is room elsewhere, so that gangs which need a whole one still find it.

#include "tests/rounds.hpp"
#include "tests/topology/fleet_builders.hpp"
#include "topology/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace muster::topology::testing {
namespace {

constexpr const char* kGroup = "example.com/leaf-group";
constexpr const char* kHost = "kubernetes.io/hostname";
constexpr std::array<int, 15> kGroups{1, 1, 2, 2, 2, 3, 3, 3, 5, 5, 6, 6, 6, 8, 11};
constexpr std::int64_t kBusy = 44;  ///< Of 64 hosts.

/// The groups in an order that has nothing to do with their size.
std::string group_name(std::size_t group) {
  return "g" + std::to_string(10 + (group * 7) % kGroups.size());
}

bool is_large(int size) {
  return size >= 8;
}

class Fabric {
 public:
  explicit Fabric(bool pack) : pack_(pack) {
    for (std::size_t group = 0; group < kGroups.size(); ++group) {
      for (int i = 0; i < kGroups[group]; ++i) {
        const std::string name = group_name(group) + "-h" + std::to_string(i);
        const NodeIndex host =
            fleet_.upsert(node(name, 1, {{kGroup, group_name(group)}, {kHost, name}}));
        group_of_[host] = group;
      }
    }
    candidates_ = find_candidates(asked(1, true).nodes, fleet_);
  }

  [[nodiscard]] PlaceRequest asked(std::int64_t hosts, bool bound) const {
    PlaceRequest result = request(hosts);
    result.nodes.levels = {kGroup, kHost};
    result.mode = bound ? Mode::kRequired : Mode::kUnconstrained;
    result.level = bound ? kGroup : "";
    result.pack = pack_;
    return result;
  }

  [[nodiscard]] bool fits(std::int64_t hosts) const {
    return place(asked(hosts, true), candidates_, fleet_).has_value();
  }
  /// Both at once.
  [[nodiscard]] bool fits_both_large() {
    const Placement eight = place(asked(8, true), candidates_, fleet_).value_or(Placement());
    if (eight.empty()) return false;
    take(eight);
    const bool both = fits(11);
    release(eight);
    return both;
  }

  [[nodiscard]] std::map<std::size_t, std::int64_t> free_by_group() const {
    std::map<std::size_t, std::int64_t> free;
    for (const auto& [host, group] : group_of_) {
      if (fleet_.free(host)[kGpu] > Amount()) ++free[group];
    }
    return free;
  }

  Placement start(std::int64_t hosts, bool bound) {
    const Placement placed = place(asked(hosts, bound), candidates_, fleet_).value_or(Placement());
    take(placed);
    return placed;
  }
  void take(const Placement& placed) {
    for (const NodeShare& share : placed) fleet_.charge(share.node, UseKind::kPlanned, gpus(1, 1));
    busy_ += std::ssize(placed);
  }
  void release(const Placement& placed) {
    for (const NodeShare& share : placed) fleet_.release(share.node, UseKind::kPlanned, gpus(1, 1));
    busy_ -= std::ssize(placed);
  }

  [[nodiscard]] std::int64_t busy() const { return busy_; }
  [[nodiscard]] std::size_t group_of(NodeIndex host) const { return group_of_.at(host); }

 private:
  bool pack_;
  Fleet fleet_;
  Candidates candidates_;  ///< The hosts stay the same.
  std::map<NodeIndex, std::size_t> group_of_;
  std::int64_t busy_ = 0;
};

/// The hosts of large groups that a small job had to take: what others had no room for.
std::int64_t must_take_of_large(const std::map<std::size_t, std::int64_t>& free, std::int64_t hosts,
                                bool bound) {
  std::int64_t elsewhere = 0;
  for (const auto& [group, count] : free) {
    if (is_large(kGroups[group])) continue;
    if (bound && count >= hosts) return 0;
    elsewhere += count;
  }
  return bound ? hosts : std::max<std::int64_t>(0, hosts - elsewhere);
}

TEST(Fabric, SmallJobsKeepOutOfLargeGroups) {
  const std::uint64_t sequences = test::rounds(300, 10'000);
  for (const bool bound : {false, true}) {
    for (std::uint64_t sequence = 0; sequence < sequences; ++sequence) {
      std::mt19937 random(static_cast<std::uint32_t>(sequence));
      Fabric fabric(true);
      while (true) {
        const std::int64_t hosts = static_cast<std::int64_t>(1 + random() % 2);
        const auto free = fabric.free_by_group();
        const Placement placed = fabric.start(hosts, bound);
        if (placed.empty()) break;
        std::int64_t in_large = 0;
        for (const NodeShare& share : placed) {
          if (is_large(kGroups[fabric.group_of(share.node)])) ++in_large;
        }
        ASSERT_EQ(in_large, must_take_of_large(free, hosts, bound))
            << "sequence " << sequence << (bound ? ", bound" : ", spanning") << ", "
            << fabric.busy() << " hosts busy";
        if (!bound && fabric.busy() <= kBusy) {
          ASSERT_TRUE(fabric.fits_both_large()) << "sequence " << sequence;
        }
      }
    }
  }
}

/// How often both large gangs fit when 44 hosts are busy, with arrivals and departures.
std::uint64_t times_both_fit(std::uint64_t sequences, bool pack) {
  std::uint64_t times = 0;
  for (std::uint64_t sequence = 0; sequence < sequences; ++sequence) {
    std::mt19937 random(static_cast<std::uint32_t>(sequence));
    Fabric fabric(pack);
    std::vector<Placement> running;
    for (int step = 0; step < 200 || fabric.busy() != kBusy; ++step) {
      const std::int64_t hosts =
          std::min(static_cast<std::int64_t>(1 + random() % 2), kBusy - fabric.busy());
      const bool leave = hosts == 0 || random() % 3 == 0;
      if (leave && !running.empty()) {
        const std::size_t gone = random() % running.size();
        fabric.release(running[gone]);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(gone));
      } else if (!leave) {
        const Placement placed = fabric.start(hosts, true);
        if (!placed.empty()) running.push_back(placed);
      }
    }
    if (fabric.fits_both_large()) ++times;
  }
  return times;
}

TEST(Fabric, WithDeparturesItIsNoWorseThanPlainBestFit) {
  const std::uint64_t sequences = test::rounds(300, 10'000);
  const std::uint64_t packed = times_both_fit(sequences, true);
  const std::uint64_t plain = times_both_fit(sequences, false);
  std::printf(
      "with departures, 44 of 64 hosts busy: both large gangs fit in %llu of %llu "
      "sequences, with plain best fit in %llu\n",
      static_cast<unsigned long long>(packed), static_cast<unsigned long long>(sequences),
      static_cast<unsigned long long>(plain));
  EXPECT_GE(packed, plain);
}

}  // namespace
}  // namespace muster::topology::testing

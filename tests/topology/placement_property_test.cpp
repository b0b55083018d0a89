// Placement on random small fleets: against all subsets of nodes (flat), against the phases of
// semantics (f) written down literally by path (topology), and general promises.

#include "tests/topology/fleet_builders.hpp"
#include "topology/placement.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::topology::testing {
namespace {

constexpr const char* kBlock = "block";
constexpr const char* kRack = "rack";
constexpr const char* kHost = "kubernetes.io/hostname";

using Path = std::vector<std::string>;

/// Up to ten hosts in up to 2 blocks of up to 3 racks, with 0 to 6 GPUs each.
std::vector<NodeFacts> any_nodes() {
  std::vector<NodeFacts> nodes;
  const int size = *rc::gen::inRange(1, 11);
  for (int i = 0; i < size; ++i) {
    const std::string name = "n" + std::to_string(i);
    nodes.push_back(node(name, *rc::gen::inRange(0, 7),
                         {{kBlock, "b" + std::to_string(*rc::gen::inRange(0, 2))},
                          {kRack, "r" + std::to_string(*rc::gen::inRange(0, 3))},
                          {kHost, name}}));
  }
  return nodes;
}

Fleet fleet_of(const std::vector<NodeFacts>& nodes) {
  Fleet fleet;
  for (const NodeFacts& facts : nodes) fleet.upsert(facts);
  return fleet;
}

PlaceRequest any_request() {
  PlaceRequest asked = request(*rc::gen::inRange(1, 25));
  asked.per_pod = gpus(*rc::gen::inRange(1, 4), 1);
  asked.mode = *rc::gen::element(Mode::kRequired, Mode::kPreferred, Mode::kUnconstrained);
  const std::vector<std::string> levels = {kBlock, kRack, kHost};
  const int depth = *rc::gen::inRange(0, 4);
  asked.nodes.levels.assign(levels.begin(), levels.begin() + depth);
  if (depth > 0) {
    asked.level = levels[*rc::gen::inRange<std::size_t>(0, static_cast<std::size_t>(depth))];
  }
  return asked;
}

std::int64_t room(const PlaceRequest& asked, const NodeFacts& facts) {
  return asked.per_pod.copies_in(facts.allocatable);
}

std::int64_t sum(const Counts& counts) {
  return std::accumulate(
      counts.begin(), counts.end(), std::int64_t{0},
      [](std::int64_t total, const auto& entry) { return total + entry.second; });
}

TEST(PlacementProperty, FlatUsesAsFewNodesAsAnySubsetCould) {
  RC_ASSERT(rc::check([] {
    const auto nodes = any_nodes();
    PlaceRequest asked = any_request();
    asked.nodes.levels.clear();
    const Counts got = placed(asked, fleet_of(nodes));
    std::size_t fewest = nodes.size() + 1;
    std::int64_t tightest = 0;  // room of the smallest node that could take all
    for (std::uint32_t subset = 1; subset < (1U << nodes.size()); ++subset) {
      std::int64_t total = 0;
      std::size_t used = 0;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if ((subset >> i & 1U) == 0) continue;
        total += room(asked, nodes[i]);
        ++used;
      }
      if (total < asked.count) continue;
      fewest = std::min(fewest, used);
      if (used == 1 && (tightest == 0 || total < tightest)) tightest = total;
    }
    RC_ASSERT(got.empty() == (fewest > nodes.size()));
    if (got.empty()) return;
    RC_ASSERT(got.size() == fewest);
    // At most one of the used nodes keeps room for another pod.
    std::map<std::string, std::int64_t> rooms;
    for (const NodeFacts& facts : nodes) rooms[facts.name.value()] = room(asked, facts);
    const auto part_filled = std::count_if(got.begin(), got.end(), [&](const auto& entry) {
      return entry.second < rooms[entry.first];
    });
    RC_ASSERT(part_filled <= 1);
    if (tightest > 0) RC_ASSERT(rooms[got.front().first] == tightest);
  }));
}

TEST(PlacementProperty, NoNodeGetsMoreThanItHasAndTheGangIsWhole) {
  RC_ASSERT(rc::check([] {
    Fleet fleet = fleet_of(any_nodes());
    PlaceRequest asked = any_request();
    for (const NodeIndex index : fleet.by_name()) {
      if (*rc::gen::arbitrary<bool>()) {
        fleet.charge(index, UseKind::kForeign, gpus(*rc::gen::inRange(0, 4), 1));
      }
      if (*rc::gen::inRange(0, 3) == 0) asked.assumed.push_back({index, gpus(1, 1)});
      if (*rc::gen::inRange(0, 3) == 0) asked.avoid.push_back(index);
    }
    const auto placement = place(asked, fleet);
    const std::int64_t most = max_gang(asked, fleet);
    RC_ASSERT(placement.has_value() == (asked.count <= most));
    if (!placement) {
      RC_ASSERT(placement.error().fitting == most);
      return;
    }
    RC_ASSERT(sum(counts(fleet, *placement)) == asked.count);
    std::set<NodeIndex> seen;
    for (const NodeShare& share : *placement) {
      RC_ASSERT(share.count > 0);
      RC_ASSERT(seen.insert(share.node).second);
      Resources left = fleet.free(share.node);
      for (const NodeUse& use : asked.assumed) {
        if (use.node == share.node) left -= use.amount;
      }
      RC_ASSERT(asked.per_pod.times(share.count).fits_in(left));
    }
    // Charged as it is planned, nothing is over-allocated, and undone it fits again the same way.
    UseLog log;
    for (const NodeShare& share : *placement) {
      fleet.charge(share.node, UseKind::kPlanned, asked.per_pod, share.count, &log);
      RC_ASSERT(fleet.free(share.node)[kGpu] >= Amount());
    }
    fleet.restore(log, 0);
    RC_ASSERT(counts(fleet, place(asked, fleet).value()) == counts(fleet, *placement));
  }));
}

TEST(PlacementProperty, AvoidedNodesAreUsedOnlyWhenTheRestDoesNotDo) {
  RC_ASSERT(rc::check([] {
    const auto nodes = any_nodes();
    const Fleet fleet = fleet_of(nodes);
    PlaceRequest asked = any_request();
    std::vector<NodeFacts> rest;
    for (const NodeFacts& facts : nodes) {
      if (*rc::gen::arbitrary<bool>()) {
        asked.avoid.push_back(*fleet.find(facts.name));
      } else {
        rest.push_back(facts);
      }
    }
    PlaceRequest plain = asked;
    plain.avoid.clear();
    const Counts without = placed(plain, fleet_of(rest));
    RC_ASSERT(placed(asked, fleet) == (without.empty() ? placed(plain, fleet) : without));
  }));
}

TEST(PlacementProperty, TheOrderInWhichNodesCameDoesNotMatter) {
  RC_ASSERT(rc::check([] {
    const auto nodes = any_nodes();
    const PlaceRequest asked = any_request();
    std::vector<NodeFacts> turned = nodes;
    std::rotate(turned.begin(),
                turned.begin() + *rc::gen::inRange(0, static_cast<int>(nodes.size())),
                turned.end());
    Fleet other = fleet_of(turned);
    const NodeIndex gone = other.upsert(node("gone", 50));
    other.remove(gone);
    RC_ASSERT(placed(asked, fleet_of(nodes)) == placed(asked, other));
  }));
}

/// The phases by path, one vector at a time.
class Literal {
 public:
  Literal(const PlaceRequest& asked, const std::vector<NodeFacts>& nodes) : asked_(asked) {
    for (const NodeFacts& facts : nodes) {
      Path path;
      for (const std::string& level : asked.nodes.levels) path.push_back(facts.labels.at(level));
      path.push_back(facts.name.value());
      for (std::size_t depth = 1; depth <= path.size(); ++depth) {
        rooms_[depth][Path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth))] +=
            room(asked, facts);
      }
    }
  }

  Counts run() const {
    const std::size_t levels = asked_.nodes.levels.size();
    const bool ascending = levels > 0 && asked_.mode == Mode::kUnconstrained;
    if (levels == 0) return named(greedy(rooms_.at(1), asked_.count, false));
    std::size_t depth = levels;
    if (asked_.mode != Mode::kUnconstrained) {
      depth = 1 + static_cast<std::size_t>(std::find(asked_.nodes.levels.begin(),
                                                     asked_.nodes.levels.end(), asked_.level) -
                                           asked_.nodes.levels.begin());
    }
    Taken taken;
    for (;; --depth) {
      const auto& rooms = rooms_.at(depth);
      const bool one = std::any_of(rooms.begin(), rooms.end(),
                                   [&](const auto& entry) { return entry.second >= asked_.count; });
      if (!one && asked_.mode == Mode::kRequired) return {};
      if (!one && asked_.mode == Mode::kPreferred && depth > 1) continue;
      taken = greedy(rooms, asked_.count, ascending);
      break;
    }
    for (; depth < levels && !taken.empty(); ++depth) {
      Taken children;
      for (const auto& [path, unused] : taken) {
        for (const auto& child : below(path)) children.insert(child);
      }
      taken = greedy(children, asked_.count, ascending);
    }
    Taken nodes;
    for (const auto& [path, pods] : taken) {
      for (const auto& share : greedy(below(path), pods, false)) nodes.insert(share);
    }
    return named(nodes);
  }

 private:
  using Taken = std::map<Path, std::int64_t>;

  std::map<Path, std::int64_t> below(const Path& parent) const {
    std::map<Path, std::int64_t> children;
    for (const auto& [path, pods] : rooms_.at(parent.size() + 1)) {
      if (std::equal(parent.begin(), parent.end(), path.begin())) children.emplace(path, pods);
    }
    return children;
  }

  /// Empty when there is not enough. One by one: a domain that can finish is the last, the smallest
  /// such; else the largest (or smallest) left.
  static Taken greedy(std::map<Path, std::int64_t> left, std::int64_t need, bool ascending) {
    Taken taken;
    while (need > 0) {
      auto finisher = left.end();
      auto largest = left.end();
      auto smallest = left.end();
      for (auto at = left.begin(); at != left.end(); ++at) {
        if (at->second <= 0) continue;
        if (at->second >= need && (finisher == left.end() || at->second < finisher->second)) {
          finisher = at;
        }
        if (largest == left.end() || at->second > largest->second) largest = at;
        if (smallest == left.end() || at->second < smallest->second) smallest = at;
      }
      if (largest == left.end()) return {};
      // Ascending, one domain for all is sought only at the start.
      const bool may_finish = !ascending || taken.empty();
      const auto next = may_finish && finisher != left.end() ? finisher
                        : ascending                          ? smallest
                                                             : largest;
      const std::int64_t pods = std::min(need, next->second);
      taken.emplace(next->first, pods);
      need -= pods;
      left.erase(next);
    }
    return taken;
  }

  static Counts named(const Taken& taken) {
    Counts result;
    for (const auto& [path, pods] : taken) result.emplace_back(path.back(), pods);
    return result;
  }

  const PlaceRequest& asked_;
  std::map<std::size_t, std::map<Path, std::int64_t>> rooms_;  ///< By depth, then path.
};

TEST(PlacementProperty, FollowsThePhasesWrittenDownLiterally) {
  RC_ASSERT(rc::check([] {
    const auto nodes = any_nodes();
    const Fleet fleet = fleet_of(nodes);
    for (int i = 0; i < 20; ++i) {
      const PlaceRequest asked = any_request();
      RC_ASSERT(placed(asked, fleet) == Literal(asked, nodes).run());
    }
  }));
}

/// What one domain could take at most, counted from its nodes upwards.
class Capacity {
 public:
  Capacity(const PlaceRequest& asked, const std::vector<NodeFacts>& nodes)
      : asked_(asked), nodes_(nodes) {}

  /// Of the domain with these first values: whole slices (pods without slices). The leader, if
  /// there is one, stands on `leader` (an index; absent: not in this domain).
  std::int64_t in(const Path& domain, std::optional<std::size_t> leader) const {
    if (asked_.slices.empty() || domain.size() > depth_of(asked_.slices.front().level)) {
      return pods(domain, leader);
    }
    if (domain.size() == depth_of(asked_.slices.front().level)) {
      return pods(domain, leader) / asked_.slices.front().size;
    }
    std::int64_t slices = 0;
    for (const Path& child : children(domain)) slices += in(child, leader);
    return slices;
  }

  /// Every domain of a depth.
  std::set<Path> domains(std::size_t depth) const {
    std::set<Path> found;
    for (const NodeFacts& facts : nodes_) found.insert(path(facts, depth));
    return found;
  }

  std::size_t depth_of(const std::string& level) const {
    const auto& levels = asked_.nodes.levels;
    return 1 + static_cast<std::size_t>(std::find(levels.begin(), levels.end(), level) -
                                        levels.begin());
  }

  Path path(const NodeFacts& facts, std::size_t depth) const {
    Path result;
    for (std::size_t i = 0; i < depth; ++i) {
      result.push_back(facts.labels.at(asked_.nodes.levels[i]));
    }
    return result;
  }

 private:
  std::set<Path> children(const Path& domain) const {
    std::set<Path> found;
    for (const Path& child : domains(domain.size() + 1)) {
      if (std::equal(domain.begin(), domain.end(), child.begin())) found.insert(child);
    }
    return found;
  }

  /// Below the level of slices: as inner layers cut them.
  std::int64_t pods(const Path& domain, std::optional<std::size_t> leader) const {
    std::int64_t sum = 0;
    if (domain.size() == asked_.nodes.levels.size()) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (path(nodes_[i], domain.size()) != domain) continue;
        Resources free = nodes_[i].allocatable;
        if (leader == i) free -= *asked_.leader;
        sum += asked_.per_pod.copies_in(free);
      }
      return sum;
    }
    for (const Path& child : children(domain)) {
      std::int64_t unit = 1;
      for (std::size_t i = 1; i < asked_.slices.size(); ++i) {
        if (depth_of(asked_.slices[i].level) == child.size()) unit = asked_.slices[i].size;
      }
      sum += pods(child, leader) / unit * unit;
    }
    return sum;
  }

  const PlaceRequest& asked_;
  const std::vector<NodeFacts>& nodes_;
};

PlaceRequest any_sliced_request() {
  PlaceRequest asked = any_request();
  asked.nodes.levels = {kBlock, kRack, kHost};
  const auto depth = *rc::gen::inRange<std::size_t>(0, 3);
  asked.level = asked.nodes.levels[depth];
  const std::size_t first = asked.mode == Mode::kUnconstrained ? 0 : depth;
  std::int64_t size = *rc::gen::element<std::int64_t>(1, 2, 4);
  for (std::size_t level = first; level < 3; ++level) {
    if (*rc::gen::arbitrary<bool>()) continue;
    asked.slices.push_back({asked.nodes.levels[level], size});
    if (size % 2 == 0 && *rc::gen::arbitrary<bool>()) size /= 2;
  }
  if (!asked.slices.empty()) {
    asked.count = asked.slices.front().size * *rc::gen::inRange<std::int64_t>(1, 7);
  }
  if (*rc::gen::inRange(0, 2) == 0) asked.leader = gpus(*rc::gen::inRange(0, 3), 1);
  return asked;
}

TEST(PlacementProperty, SlicesStandTogetherAndWhatFitsIsPlaced) {
  RC_ASSERT(rc::check([] {
    const auto nodes = any_nodes();
    const Fleet fleet = fleet_of(nodes);
    for (int i = 0; i < 10; ++i) {
      const PlaceRequest asked = any_sliced_request();
      const Capacity capacity(asked, nodes);
      const std::int64_t slice = asked.slices.empty() ? 1 : asked.slices.front().size;
      const std::int64_t need = asked.count / slice;

      // It fits when one domain (without a required one: all together) holds it with the leader on
      // some node.
      bool fits = false;
      const std::size_t leaders = asked.leader ? nodes.size() : 1;
      for (std::size_t node = 0; node < leaders; ++node) {
        std::optional<std::size_t> leader;
        if (asked.leader) {
          leader = node;
          if (asked.leader->copies_in(nodes[node].allocatable) < 1) continue;
        }
        const std::size_t depth =
            asked.mode == Mode::kRequired ? capacity.depth_of(asked.level) : std::size_t{1};
        std::int64_t sum = 0;
        for (const Path& domain : capacity.domains(depth)) {
          const std::int64_t here = capacity.in(domain, leader);
          sum += here;
          const bool leads = !leader || capacity.path(nodes[*leader], depth) == domain;
          fits = fits || (leads && here >= need);
        }
        fits = fits || (asked.mode != Mode::kRequired && sum >= need);
      }
      const auto placement = place(asked, fleet);
      RC_ASSERT(placement.has_value() == fits);
      if (!placement) continue;

      std::vector<const NodeFacts*> slots;
      const NodeFacts* leader = nullptr;
      for (const NodeShare& share : *placement) {
        const NodeFacts& facts = fleet.facts(share.node);
        Resources used = asked.per_pod.times(share.count);
        if (share.leader) {
          RC_ASSERT(leader == nullptr && asked.leader);
          leader = &facts;
          used += *asked.leader;
        }
        RC_ASSERT(used.fits_in(facts.allocatable));
        for (std::int64_t pod = 0; pod < share.count; ++pod) slots.push_back(&facts);
      }
      RC_ASSERT(std::ssize(slots) == asked.count);
      RC_ASSERT((leader != nullptr) == asked.leader.has_value());
      for (const SliceLayer& layer : asked.slices) {
        const std::size_t depth = capacity.depth_of(layer.level);
        const auto size = static_cast<std::size_t>(layer.size);
        for (std::size_t slot = 0; slot < slots.size(); ++slot) {
          RC_ASSERT(capacity.path(*slots[slot], depth) ==
                    capacity.path(*slots[slot / size * size], depth));
        }
      }
      if (asked.mode != Mode::kRequired) continue;
      const std::size_t depth = capacity.depth_of(asked.level);
      for (const NodeFacts* facts : slots) {
        RC_ASSERT(capacity.path(*facts, depth) == capacity.path(*slots.front(), depth));
        if (leader != nullptr) {
          RC_ASSERT(capacity.path(*facts, depth) == capacity.path(*leader, depth));
        }
      }
    }
  }));
}

}  // namespace
}  // namespace muster::topology::testing

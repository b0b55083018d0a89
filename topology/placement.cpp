#include "topology/placement.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace muster::topology {
namespace {

/// Keeps sums over millions of nodes within int64.
constexpr std::int64_t kNodeCountMax = std::int64_t{1} << 40;

/// Something with room for pods: a node (by its place among the candidates) or a domain (by its
/// place in its level). In results: how many pods it takes.
struct Share {
  std::uint32_t at = 0;
  std::int64_t pods = 0;
};
using Shares = std::vector<Share>;

enum class Fit {
  kBest,       ///< Largest first, the last one as tight as possible.
  kLeastFree,  ///< Smallest first.
};

/// The smallest of `rooms` that holds `need`, the first place on ties. nullptr: none does.
const Share* tightest(const Shares& rooms, std::int64_t need) {
  const Share* best = nullptr;
  for (const Share& room : rooms) {
    if (room.pods < need) continue;
    if (best == nullptr || room.pods < best->pods ||
        (room.pods == best->pods && room.at < best->at)) {
      best = &room;
    }
  }
  return best;
}

/// Spreads `need` pods over as few (kBest) of `rooms` as possible. The place settles ties. The
/// rooms are large enough together. The result is in order of place.
Shares take(Shares rooms, std::int64_t need, Fit fit) {
  if (need <= 0) return {};
  if (const Share* one = tightest(rooms, need)) return {Share{one->at, need}};
  // A heap, because a gang usually needs a few of many rooms. Its front is the next to fill.
  const auto later = [fit](const Share& a, const Share& b) {
    if (a.pods != b.pods) return fit == Fit::kBest ? a.pods < b.pods : a.pods > b.pods;
    return a.at > b.at;
  };
  std::erase_if(rooms, [](const Share& room) { return room.pods <= 0; });
  std::make_heap(rooms.begin(), rooms.end(), later);
  Shares taken;
  while (need > 0) {
    MUSTER_ASSERT(!rooms.empty(), "{} pods more than there is room for", need);
    Share next = rooms.front();
    if (next.pods >= need) {
      next = Share{tightest(rooms, need)->at, need};
    } else {
      std::pop_heap(rooms.begin(), rooms.end(), later);
      rooms.pop_back();
    }
    taken.push_back(next);
    need -= next.pods;
  }
  std::sort(taken.begin(), taken.end(), [](const Share& a, const Share& b) { return a.at < b.at; });
  return taken;
}

/// The candidates with the number of pods that each node, and so each domain, can take now.
class Room {
 public:
  Room(const PlaceRequest& request, const Candidates& candidates, const Fleet& fleet)
      : request_(request), candidates_(candidates), fleet_(fleet) {
    MUSTER_ASSERT(candidates.generation == fleet.generation(),
                  "candidates of generation {}, fleet at {}", candidates.generation,
                  fleet.generation());
    MUSTER_ASSERT(candidates.levels == request.nodes.levels, "candidates of another topology");
    sum_assumed();
    pods_.reserve(candidates.nodes.size());
    for (const NodeIndex node : candidates.nodes) pods_.push_back(count_on(node));
    sum_up();
  }

  /// The same without room on the nodes to avoid.
  [[nodiscard]] Room without_avoided() const {
    std::vector<bool> avoided(fleet_.slots());
    for (const NodeIndex node : request_.avoid) {
      if (node.value() < avoided.size()) avoided[node.value()] = true;
    }
    Room rest = *this;
    for (std::size_t i = 0; i < rest.pods_.size(); ++i) {
      if (avoided[candidates_.nodes[i].value()]) rest.pods_[i] = 0;
    }
    rest.sum_up();
    return rest;
  }

  [[nodiscard]] std::int64_t total() const { return sums_.back(); }
  [[nodiscard]] std::int64_t in(const Domain& domain) const {
    return sums_[domain.nodes_end] - sums_[domain.nodes_begin];
  }
  [[nodiscard]] Shares nodes(std::uint32_t begin, std::uint32_t end) const {
    Shares rooms;
    rooms.reserve(end - begin);
    for (std::uint32_t i = begin; i < end; ++i) rooms.push_back(Share{i, pods_[i]});
    return rooms;
  }
  [[nodiscard]] Shares all_nodes() const {
    return nodes(0, static_cast<std::uint32_t>(pods_.size()));
  }
  [[nodiscard]] Shares domains(std::size_t level, std::uint32_t begin, std::uint32_t end) const {
    Shares rooms;
    rooms.reserve(end - begin);
    for (std::uint32_t i = begin; i < end; ++i) {
      rooms.push_back(Share{i, in(candidates_.domains[level][i])});
    }
    return rooms;
  }
  [[nodiscard]] Shares all_domains(std::size_t level) const {
    return domains(level, 0, static_cast<std::uint32_t>(candidates_.domains[level].size()));
  }

  /// Says of every eligible node without room for one pod which resource it is short of.
  void count_full(Unplaceable& why) const {
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      if (pods_[i] > 0) continue;
      const NodeIndex node = candidates_.nodes[i];
      if (const auto lacking = first_beyond(fleet_.facts(node).allocatable)) {
        ++why.too_small[*lacking];
      } else if (const auto used = first_beyond(free_on(node))) {
        ++why.short_of[*used];
      }
    }
  }

 private:
  /// The first resource of which one pod asks for more than there is.
  [[nodiscard]] std::optional<ResourceId> first_beyond(const Resources& available) const {
    for (std::size_t r = 0; r < request_.per_pod.extent(); ++r) {
      const ResourceId id(static_cast<std::uint16_t>(r));
      if (request_.per_pod[id] > Amount() && request_.per_pod[id] > available[id]) return id;
    }
    return std::nullopt;
  }

  void sum_assumed() {
    if (request_.assumed.empty()) return;
    assumed_.resize(fleet_.slots());
    for (const NodeUse& use : request_.assumed) {
      if (use.node.value() < assumed_.size()) assumed_[use.node.value()] += use.amount;
    }
  }
  [[nodiscard]] Resources free_on(NodeIndex node) const {
    Resources free = fleet_.free(node);
    if (!assumed_.empty()) free -= assumed_[node.value()];
    return free;
  }
  [[nodiscard]] std::int64_t count_on(NodeIndex node) const {
    const bool as_charged = assumed_.empty() || assumed_[node.value()].extent() == 0;
    const std::int64_t copies = as_charged ? request_.per_pod.copies_in(fleet_.free(node))
                                           : request_.per_pod.copies_in(free_on(node));
    return std::min(copies, kNodeCountMax);
  }
  void sum_up() {
    sums_.assign(1, 0);
    sums_.reserve(pods_.size() + 1);
    for (const std::int64_t pods : pods_) sums_.push_back(sums_.back() + pods);
  }

  const PlaceRequest& request_;
  const Candidates& candidates_;
  const Fleet& fleet_;
  std::vector<Resources> assumed_;  ///< By fleet index; empty when nothing is assumed.
  std::vector<std::int64_t> pods_;  ///< By place among the candidates.
  std::vector<std::int64_t> sums_;  ///< Of all places before; a domain is a run of places.
};

/// The level to begin at. Nothing: the topology has no such level.
std::optional<std::size_t> first_level(const PlaceRequest& request, const Candidates& candidates) {
  if (request.mode == Mode::kUnconstrained) return candidates.levels.size() - 1;
  const auto found = std::find(candidates.levels.begin(), candidates.levels.end(), request.level);
  if (found == candidates.levels.end()) return std::nullopt;
  return static_cast<std::size_t>(found - candidates.levels.begin());
}

std::int64_t largest(const Shares& rooms) {
  std::int64_t most = 0;
  for (const Share& room : rooms) most = std::max(most, room.pods);
  return most;
}

/// Domains of one level, and how many pods each gets.
struct Chosen {
  std::size_t level = 0;
  Shares domains;
};

/// Phase 2a: one domain that takes all, at the wished level or (preferred) as little above it as
/// possible; else several. Nothing: not enough room.
std::optional<Chosen> choose_domains(const PlaceRequest& request, const Room& room,
                                     std::size_t level, Fit fit) {
  for (;; --level) {
    Shares rooms = room.all_domains(level);
    if (largest(rooms) >= request.count) {
      return Chosen{level, take(std::move(rooms), request.count, fit)};
    }
    if (request.mode == Mode::kRequired) return std::nullopt;
    if (request.mode == Mode::kPreferred && level > 0) continue;
    if (room.total() < request.count) return std::nullopt;
    return Chosen{level, take(std::move(rooms), request.count, fit)};
  }
}

/// Phase 2b: down to the lowest level; at each, the children of all chosen domains compete for all
/// the pods, whatever their parents were given.
Shares descend(const PlaceRequest& request, const Candidates& candidates, const Room& room,
               Chosen chosen, Fit fit) {
  for (; chosen.level + 1 < candidates.levels.size(); ++chosen.level) {
    Shares rooms;
    for (const Share& share : chosen.domains) {
      const Domain& domain = candidates.domains[chosen.level][share.at];
      const Shares children =
          room.domains(chosen.level + 1, domain.children_begin, domain.children_end);
      rooms.insert(rooms.end(), children.begin(), children.end());
    }
    chosen.domains = take(std::move(rooms), request.count, fit);
  }
  return std::move(chosen.domains);
}

/// Pods by node, as places among the candidates. Nothing: they do not fit.
std::optional<Shares> try_place(const PlaceRequest& request, const Candidates& candidates,
                                const Room& room) {
  if (candidates.levels.empty()) {
    if (room.total() < request.count) return std::nullopt;
    return take(room.all_nodes(), request.count, Fit::kBest);
  }
  const auto level = first_level(request, candidates);
  if (!level) return std::nullopt;
  const Fit fit = request.mode == Mode::kUnconstrained ? Fit::kLeastFree : Fit::kBest;
  auto chosen = choose_domains(request, room, *level, fit);
  if (!chosen) return std::nullopt;
  Shares placed;
  for (const Share& share : descend(request, candidates, room, std::move(*chosen), fit)) {
    const Domain& domain = candidates.domains.back()[share.at];
    const Shares inside =
        take(room.nodes(domain.nodes_begin, domain.nodes_end), share.pods, Fit::kBest);
    placed.insert(placed.end(), inside.begin(), inside.end());
  }
  return placed;
}

/// Pods that fit at once: in the best domain when one is required, else altogether.
std::int64_t fitting(const PlaceRequest& request, const Candidates& candidates, const Room& room) {
  if (candidates.levels.empty()) return room.total();
  const auto level = first_level(request, candidates);
  if (!level) return 0;
  if (request.mode != Mode::kRequired) return room.total();
  return largest(room.all_domains(*level));
}

Unplaceable explain(const PlaceRequest& request, const Candidates& candidates, const Room& room) {
  Unplaceable why;
  why.asked = request.count;
  why.nodes = candidates.flavor_nodes;
  const bool topology = !candidates.levels.empty();
  if (topology && request.mode == Mode::kRequired) why.level = request.level;
  why.unknown_level = topology && !first_level(request, candidates);
  if (why.unknown_level) return why;
  why.fitting = fitting(request, candidates, room);
  for (std::size_t i = 0; i < kExclusionCount; ++i) {
    const auto exclusion = static_cast<Exclusion>(i);
    if (exclusion == Exclusion::kFlavorLabels || candidates.excluded[i] == 0) continue;
    why.excluded.emplace(exclusion, candidates.excluded[i]);
  }
  room.count_full(why);
  return why;
}

}  // namespace

tl::expected<Placement, Unplaceable> place(const PlaceRequest& request,
                                           const Candidates& candidates, const Fleet& fleet) {
  if (request.count <= 0) return Placement();
  const Room room(request, candidates, fleet);
  std::optional<Shares> shares;
  if (!request.avoid.empty()) shares = try_place(request, candidates, room.without_avoided());
  if (!shares) shares = try_place(request, candidates, room);
  if (!shares) return tl::unexpected(explain(request, candidates, room));
  Placement placement;
  placement.reserve(shares->size());
  for (const Share& share : *shares) {
    placement.push_back(NodeShare{candidates.nodes[share.at], share.pods});
  }
  return placement;
}

tl::expected<Placement, Unplaceable> place(const PlaceRequest& request, const Fleet& fleet) {
  return place(request, find_candidates(request.nodes, fleet), fleet);
}

std::int64_t max_gang(const PlaceRequest& request, const Candidates& candidates,
                      const Fleet& fleet) {
  return fitting(request, candidates, Room(request, candidates, fleet));
}

std::int64_t max_gang(const PlaceRequest& request, const Fleet& fleet) {
  return max_gang(request, find_candidates(request.nodes, fleet), fleet);
}

}  // namespace muster::topology

#include "topology/placement.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace muster::topology {
namespace {

/// Keeps sums over millions of nodes within int64.
constexpr std::int64_t kNodeCountMax = std::int64_t{1} << 40;

/// Something with room: a node (by its place among the candidates) or a domain (by its place in its
/// level). In results: what it takes.
struct Share {
  std::uint32_t at = 0;
  std::int64_t units = 0;  ///< What is distributed: slices, pods in groups of an inner layer, pods.
  std::int64_t pods = 0;   ///< Settles ties between rooms: fewer first.
  std::uint64_t rank = 0;  ///< Then this: see PlaceRequest::pack.
};
using Shares = std::vector<Share>;

/// In which order rooms are filled.
enum class Fill {
  kLargestFirst,   ///< And the last one as tight as possible: best fit.
  kSmallestFirst,  ///< Least free first.
};

/// Whether `a` is filled before `b`.
bool goes_first(const Share& a, const Share& b, Fill fill) {
  if (a.units != b.units)
    return fill == Fill::kLargestFirst ? a.units > b.units : a.units < b.units;
  if (a.pods != b.pods) return a.pods < b.pods;
  if (a.rank != b.rank) return a.rank < b.rank;
  return a.at < b.at;
}

/// The smallest of `rooms` that holds `need`. nullptr: none does.
const Share* tightest(const Shares& rooms, std::int64_t need) {
  const Share* best = nullptr;
  for (const Share& room : rooms) {
    if (room.units < need) continue;
    if (best == nullptr || goes_first(room, *best, Fill::kSmallestFirst)) best = &room;
  }
  return best;
}

void sort_by_place(Shares& shares) {
  std::sort(shares.begin(), shares.end(),
            [](const Share& a, const Share& b) { return a.at < b.at; });
}

/// Fills `rooms` one after the other with `need` units. They are large enough together. The result
/// is in order of place.
Shares fill(Shares rooms, std::int64_t need, Fill order) {
  // A heap, because a gang usually needs a few of many rooms. Its front is the next to fill.
  const auto later = [order](const Share& a, const Share& b) { return goes_first(b, a, order); };
  std::erase_if(rooms, [](const Share& room) { return room.units <= 0; });
  std::make_heap(rooms.begin(), rooms.end(), later);
  Shares taken;
  while (need > 0) {
    MUSTER_ASSERT(!rooms.empty(), "{} units more than there is room for", need);
    Share next = rooms.front();
    if (next.units >= need) {
      next = Share{tightest(rooms, need)->at, need};
    } else {
      std::pop_heap(rooms.begin(), rooms.end(), later);
      rooms.pop_back();
    }
    taken.push_back(next);
    need -= next.units;
  }
  sort_by_place(taken);
  return taken;
}

/// Room that is there beside the leader.
struct BesideLeader {
  bool can = false;  ///< The leader fits.
  std::int64_t units =
      0;  ///< As Share::units, with the leader in it; as without it where it cannot.
  std::int64_t pods = 0;
};

/// What pods and leader take of some rooms.
struct Taken {
  Shares shares;  ///< In order of place; with 0 units where only the leader stands.
  std::optional<std::uint32_t> leader;  ///< Where it stands; absent: there is none.
};

/// How the levels of a request lie in the topology.
struct Layout {
  std::size_t first = 0;        ///< Where the search begins.
  std::size_t slice_level = 0;  ///< Where a slice stands together; the lowest without slices.
  std::int64_t slice_size = 1;
  /// By level: pods that stand together there as an inner layer of slices says; else 1.
  std::vector<std::int64_t> units;
};

/// What is wrong instead: Unplaceable::unknown_level. A flat fleet has no levels to get wrong.
tl::expected<Layout, std::string> lay_out(const PlaceRequest& request,
                                          const std::vector<std::string>& levels) {
  Layout layout;
  if (levels.empty()) return layout;
  const auto index_of = [&](const std::string& level) {
    return static_cast<std::size_t>(std::find(levels.begin(), levels.end(), level) -
                                    levels.begin());
  };
  const bool anywhere = request.mode == Mode::kUnconstrained;
  layout.units.assign(levels.size(), 1);
  layout.slice_level = levels.size() - 1;
  // Slices alone say nothing of where the gang begins (semantics, surprise 17).
  layout.first = !anywhere                ? index_of(request.level)
                 : request.slices.empty() ? levels.size() - 1
                                          : 0;
  if (layout.first == levels.size()) return tl::unexpected(request.level);
  std::size_t above = layout.first;
  for (std::size_t i = 0; i < request.slices.size(); ++i) {
    const std::size_t level = index_of(request.slices[i].level);
    if (level == levels.size() || level < above) return tl::unexpected(request.slices[i].level);
    above = level + 1;
    if (i == 0) {
      layout.slice_level = level;
      layout.slice_size = request.slices[i].size;
    } else {
      layout.units[level] = request.slices[i].size;
    }
  }
  return layout;
}

/// The candidates with what each node, and so each domain, can take now.
class Room {
 public:
  Room(const PlaceRequest& request, const Layout& layout, const Candidates& candidates,
       const Fleet& fleet)
      : request_(request),
        layout_(layout),
        candidates_(candidates),
        fleet_(fleet),
        plain_(!request.leader && layout.slice_size == 1) {
    MUSTER_ASSERT(candidates.generation == fleet.generation(),
                  "candidates of generation {}, fleet at {}", candidates.generation,
                  fleet.generation());
    MUSTER_ASSERT(candidates.levels == request.nodes.levels, "candidates of another topology");
    sum_assumed();
    pods_.reserve(candidates.nodes.size());
    for (const NodeIndex node : candidates.nodes) pods_.push_back(count_on(node, request.per_pod));
    if (request.leader) count_beside_leader();
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
      if (!avoided[candidates_.nodes[i].value()]) continue;
      rest.pods_[i] = 0;
      if (request_.leader) rest.beside_[i] = BesideLeader();
    }
    rest.sum_up();
    return rest;
  }

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] std::size_t levels() const { return candidates_.levels.size(); }
  [[nodiscard]] bool has_leader() const { return request_.leader.has_value(); }

  // Rooms: nodes in pods; domains in slices down to the level at which these stand together, below
  // it in units of the level.
  [[nodiscard]] Shares nodes(std::uint32_t begin, std::uint32_t end) const {
    Shares rooms;
    rooms.reserve(end - begin);
    for (std::uint32_t i = begin; i < end; ++i) rooms.push_back(Share{i, pods_[i], pods_[i]});
    return rooms;
  }
  [[nodiscard]] Shares all_nodes() const {
    return nodes(0, static_cast<std::uint32_t>(pods_.size()));
  }
  [[nodiscard]] Shares domains(std::size_t level, std::uint32_t begin, std::uint32_t end) const {
    Shares rooms;
    rooms.reserve(end - begin);
    for (std::uint32_t i = begin; i < end; ++i) {
      const Cell cell = at(level, i);
      rooms.push_back(
          Share{i, units_of(cell.pods, cell.slices, level), cell.pods, rank_of(level, i)});
    }
    return rooms;
  }
  [[nodiscard]] Shares all_domains(std::size_t level) const {
    return domains(level, 0, static_cast<std::uint32_t>(candidates_.domains[level].size()));
  }
  /// In units of the same rooms. Only with a leader.
  [[nodiscard]] BesideLeader node_beside_leader(std::uint32_t place) const {
    return beside_[place];
  }
  [[nodiscard]] BesideLeader beside_leader(std::size_t level, std::uint32_t place) const {
    const Cell& cell = cells_[level][place];
    return {cell.leads, units_of(cell.pods_beside, cell.slices_beside, level), cell.pods_beside};
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
  /// Of a domain, phase 1 of semantics (f). `…_beside`: beside the leader.
  struct Cell {
    std::int64_t pods = 0;
    std::int64_t slices = 0;  ///< 0 below the level at which they stand together.
    bool leads = false;       ///< There is room for the leader.
    std::int64_t pods_beside = 0;
    std::int64_t slices_beside = 0;
  };

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
  [[nodiscard]] std::int64_t count_on(NodeIndex node, const Resources& per_pod) const {
    const bool as_charged = assumed_.empty() || assumed_[node.value()].extent() == 0;
    const std::int64_t copies =
        as_charged ? per_pod.copies_in(fleet_.free(node)) : per_pod.copies_in(free_on(node));
    return std::min(copies, kNodeCountMax);
  }
  void count_beside_leader() {
    beside_.reserve(pods_.size());
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      const NodeIndex node = candidates_.nodes[i];
      const bool can = count_on(node, *request_.leader) > 0 &&
                       !judge(request_.leader_nodes, fleet_.facts(node)).has_value();
      BesideLeader beside{can, pods_[i], pods_[i]};
      if (beside.can) {
        Resources rest = free_on(node);
        rest -= *request_.leader;
        beside.units = beside.pods = std::min(request_.per_pod.copies_in(rest), kNodeCountMax);
      }
      beside_.push_back(beside);
    }
  }

  /// Of domains with the same room, those of the fullest parent first, and of these the smallest.
  void rank_domains() {
    ranks_.resize(levels());
    for (std::size_t level = 0; level < levels(); ++level) {
      const std::vector<Domain>& domains = candidates_.domains[level];
      ranks_[level].reserve(domains.size());
      for (const Domain& domain : domains) {
        ranks_[level].push_back(domain.nodes_end - domain.nodes_begin);
      }
      if (level == 0) continue;
      const std::vector<Domain>& parents = candidates_.domains[level - 1];
      std::vector<std::uint32_t> fullest_first(parents.size());
      std::iota(fullest_first.begin(), fullest_first.end(), 0U);
      std::sort(fullest_first.begin(), fullest_first.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tuple(pods_in(parents[a]), ranks_[level - 1][a], a) <
               std::tuple(pods_in(parents[b]), ranks_[level - 1][b], b);
      });
      for (std::uint64_t rank = 0; rank < fullest_first.size(); ++rank) {
        const Domain& parent = parents[fullest_first[rank]];
        for (std::uint32_t i = parent.children_begin; i < parent.children_end; ++i) {
          ranks_[level][i] |= rank << 32U;
        }
      }
    }
  }
  [[nodiscard]] std::uint64_t rank_of(std::size_t level, std::uint32_t place) const {
    return ranks_.empty() ? 0 : ranks_[level][place];
  }
  [[nodiscard]] std::int64_t pods_in(const Domain& domain) const {
    return sums_[domain.nodes_end] - sums_[domain.nodes_begin];
  }

  [[nodiscard]] std::int64_t units_of(std::int64_t pods, std::int64_t slices,
                                      std::size_t level) const {
    return level > layout_.slice_level ? pods / layout_.units[level] : slices;
  }

  void sum_up() {
    sums_.assign(1, 0);
    sums_.reserve(pods_.size() + 1);
    for (const std::int64_t pods : pods_) sums_.push_back(sums_.back() + pods);
    if (request_.pack) rank_domains();
    if (plain_) return;
    cells_.resize(levels());
    for (std::size_t level = levels(); level-- > 0;) {
      cells_[level].clear();
      for (const Domain& domain : candidates_.domains[level]) {
        cells_[level].push_back(level + 1 == levels() ? leaf(domain) : parent(domain, level));
      }
    }
  }

  [[nodiscard]] Cell at(std::size_t level, std::uint32_t place) const {
    if (!plain_) return cells_[level][place];
    const std::int64_t pods = pods_in(candidates_.domains[level][place]);
    return {.pods = pods, .slices = pods, .leads = false, .pods_beside = 0, .slices_beside = 0};
  }

  [[nodiscard]] Cell leaf(const Domain& domain) const {
    Cell cell;
    cell.pods = pods_in(domain);
    Cheapest lost;
    for (std::uint32_t i = domain.nodes_begin; has_leader() && i < domain.nodes_end; ++i) {
      if (beside_[i].can) lost.take(pods_[i] - beside_[i].pods);
    }
    finish(cell, levels() - 1, lost, {});
    return cell;
  }

  [[nodiscard]] Cell parent(const Domain& domain, std::size_t level) const {
    const std::int64_t unit = level >= layout_.slice_level ? layout_.units[level + 1] : 1;
    Cell cell;
    Cheapest pods_lost;
    Cheapest slices_lost;
    for (std::uint32_t i = domain.children_begin; i < domain.children_end; ++i) {
      const Cell& child = cells_[level + 1][i];
      const std::int64_t pods = child.pods / unit * unit;
      cell.pods += pods;
      cell.slices += child.slices;
      if (!child.leads) continue;
      pods_lost.take(pods - child.pods_beside / unit * unit);
      slices_lost.take(child.slices - child.slices_beside);
    }
    finish(cell, level, pods_lost, slices_lost);
    return cell;
  }

  /// What the leader displaces at least.
  struct Cheapest {
    std::optional<std::int64_t> least;
    void take(std::int64_t lost) { least = std::min(lost, least.value_or(lost)); }
  };

  void finish(Cell& cell, std::size_t level, const Cheapest& pods_lost,
              const Cheapest& slices_lost) const {
    cell.leads = pods_lost.least.has_value();
    cell.pods_beside = cell.pods - pods_lost.least.value_or(0);
    if (level >= layout_.slice_level) {
      const bool here = level == layout_.slice_level;
      cell.slices = here ? cell.pods / layout_.slice_size : 0;
      cell.slices_beside = here ? cell.pods_beside / layout_.slice_size : 0;
    } else {
      cell.slices_beside = cell.slices - slices_lost.least.value_or(0);
    }
  }

  const PlaceRequest& request_;
  const Layout& layout_;
  const Candidates& candidates_;
  const Fleet& fleet_;
  bool plain_;                        ///< Sums are all that is asked for: `cells_` stays empty.
  std::vector<Resources> assumed_;    ///< By fleet index; empty when nothing is assumed.
  std::vector<std::int64_t> pods_;    ///< By place among the candidates.
  std::vector<BesideLeader> beside_;  ///< The same; empty without a leader.
  std::vector<std::int64_t> sums_;    ///< Of all places before; a domain is a run of places.
  std::vector<std::vector<std::uint64_t>> ranks_;  ///< By level and place; empty without `pack`.
  std::vector<std::vector<Cell>> cells_;           ///< By level and place in it.
};

std::int64_t units_in(const Shares& rooms) {
  std::int64_t sum = 0;
  for (const Share& room : rooms) sum += room.units;
  return sum;
}

std::int64_t largest(const Shares& rooms) {
  std::int64_t most = 0;
  for (const Share& room : rooms) most = std::max(most, room.units);
  return most;
}

/// Fills `rooms` with `need` units and, if `leader` is said, with the leader: it goes to the first
/// in order that has room for it and leaves enough in all of them together (semantics f, leader
/// rule). `beside(at)` is the BesideLeader of a room, `first(a, b)` the order in which rooms are
/// asked for the leader. Nothing: there is not enough room.
template <class Beside, class First>
std::optional<Taken> fill_with_leader(Shares rooms, std::int64_t need, Fill order, bool leader,
                                      const Beside& beside, const First& first) {
  const std::int64_t total = units_in(rooms);
  if (total < need) return std::nullopt;
  if (!leader) return Taken{fill(std::move(rooms), need, order), std::nullopt};
  std::sort(rooms.begin(), rooms.end(), first);
  const auto enough = [&](const Share& room) {
    const BesideLeader left = beside(room.at);
    return left.can && total - room.units + left.units >= need;
  };
  auto chosen = std::find_if(rooms.begin(), rooms.end(), enough);
  if (chosen == rooms.end()) return std::nullopt;
  if (order == Fill::kLargestFirst && beside(chosen->at).units >= need) {
    // It is the last one, too: as tight as possible.
    for (auto other = chosen; other != rooms.end(); ++other) {
      const BesideLeader left = beside(other->at);
      if (left.can && left.units >= need && left.units < beside(chosen->at).units) chosen = other;
    }
  }
  const Share lead{chosen->at, std::min(need, beside(chosen->at).units)};
  rooms.erase(chosen);
  Taken taken{fill(std::move(rooms), need - lead.units, order), lead.at};
  taken.shares.push_back(lead);
  sort_by_place(taken.shares);
  return taken;
}

/// Domains of one level, and how many slices (below the level at which they stand together: pods)
/// each gets.
struct Chosen {
  std::size_t level = 0;
  Taken taken;
};

Fill order_of(const PlaceRequest& request) {
  return request.mode == Mode::kUnconstrained ? Fill::kSmallestFirst : Fill::kLargestFirst;
}

/// In phase 2a rooms that the leader fits come first, then the order is by what is left beside it.
auto leaders_first(const Room& room, std::size_t level, Fill order) {
  return [&room, level, order](const Share& a, const Share& b) {
    const BesideLeader left = room.beside_leader(level, a.at);
    const BesideLeader right = room.beside_leader(level, b.at);
    if (left.can != right.can) return left.can;
    return goes_first({a.at, left.units, left.pods, a.rank},
                      {b.at, right.units, right.pods, b.rank}, order);
  };
}

/// One domain for everybody: the one that fits best. Nothing: none does.
std::optional<Taken> one_domain(const Room& room, const Shares& rooms, std::size_t level,
                                std::int64_t need) {
  if (!room.has_leader()) {
    const Share* const one = tightest(rooms, need);
    if (one == nullptr) return std::nullopt;
    return Taken{{Share{one->at, need}}, std::nullopt};
  }
  Shares with_leader;
  for (const Share& share : rooms) {
    const BesideLeader beside = room.beside_leader(level, share.at);
    if (beside.can) with_leader.push_back({share.at, beside.units, beside.pods, share.rank});
  }
  const Share* const one = tightest(with_leader, need);
  if (one == nullptr) return std::nullopt;
  return Taken{{Share{one->at, need}}, one->at};
}

/// Phase 2a: one domain that takes all, at the wished level or (preferred) as little above it as
/// possible; else several. Nothing: not enough room.
std::optional<Chosen> choose_domains(const PlaceRequest& request, const Room& room,
                                     std::int64_t slices) {
  const Fill order = order_of(request);
  for (std::size_t level = room.layout().first;; --level) {
    Shares rooms = room.all_domains(level);
    if (auto one = one_domain(room, rooms, level, slices)) return Chosen{level, *std::move(one)};
    if (request.mode == Mode::kRequired) return std::nullopt;
    if (request.mode == Mode::kPreferred && level > 0) continue;
    auto several = fill_with_leader(
        std::move(rooms), slices, order, room.has_leader(),
        [&](std::uint32_t at) { return room.beside_leader(level, at); },
        leaders_first(room, level, order));
    if (!several) return std::nullopt;
    return Chosen{level, *std::move(several)};
  }
}

/// Fills domains of one level (all of them rooms for what is asked, so that this cannot fail).
Taken fill_domains(const Room& room, Shares rooms, std::size_t level, std::int64_t need, Fill order,
                   bool leader) {
  auto taken = fill_with_leader(
      std::move(rooms), need, order, leader,
      [&](std::uint32_t at) { return room.beside_leader(level, at); },
      [&](const Share& a, const Share& b) { return goes_first(a, b, order); });
  MUSTER_ASSERT(taken.has_value(), "domains of level {} have no room for {} any more", level, need);
  return *std::move(taken);
}

/// Phase 2b: down to the lowest level, in pods. Above the level of slices the children of all
/// chosen domains compete for all slices, whatever their parents were given; below it each domain
/// hands on exactly what it got, the smallest child first.
Taken descend(const PlaceRequest& request, const Candidates& candidates, const Room& room,
              Chosen chosen, std::int64_t slices) {
  const Layout& layout = room.layout();
  const auto children_of = [&](std::uint32_t at) {
    const Domain& domain = candidates.domains[chosen.level][at];
    return room.domains(chosen.level + 1, domain.children_begin, domain.children_end);
  };
  const auto into_pods = [&] {
    for (Share& share : chosen.taken.shares) share.units *= layout.slice_size;
  };
  for (; chosen.level < layout.slice_level; ++chosen.level) {
    Shares rooms;
    for (const Share& share : chosen.taken.shares) {
      const Shares children = children_of(share.at);
      rooms.insert(rooms.end(), children.begin(), children.end());
    }
    chosen.taken = fill_domains(room, std::move(rooms), chosen.level + 1, slices, order_of(request),
                                room.has_leader());
  }
  into_pods();
  for (; chosen.level + 1 < candidates.levels.size(); ++chosen.level) {
    const std::int64_t unit = layout.units[chosen.level + 1];
    Taken below;
    for (const Share& share : chosen.taken.shares) {
      const bool leads = chosen.taken.leader == share.at;
      Taken part = fill_domains(room, children_of(share.at), chosen.level + 1, share.units / unit,
                                Fill::kSmallestFirst, leads);
      for (Share& child : part.shares) {
        child.units *= unit;
        below.shares.push_back(child);
      }
      if (leads) below.leader = part.leader;
    }
    chosen.taken = std::move(below);
  }
  return std::move(chosen.taken);
}

/// Nodes of a lowest domain, or of a flat fleet. Nothing: not enough room.
std::optional<Taken> fill_nodes(const Room& room, Shares rooms, std::int64_t pods, bool leader) {
  return fill_with_leader(
      std::move(rooms), pods, Fill::kLargestFirst, leader,
      [&](std::uint32_t at) { return room.node_beside_leader(at); },
      [](const Share& a, const Share& b) { return goes_first(a, b, Fill::kLargestFirst); });
}

/// Pods by node, as places among the candidates. Nothing: they do not fit.
std::optional<Taken> try_place(const PlaceRequest& request, const Candidates& candidates,
                               const Room& room) {
  if (candidates.levels.empty()) {
    return fill_nodes(room, room.all_nodes(), request.count, room.has_leader());
  }
  const std::int64_t slices = request.count / room.layout().slice_size;
  auto chosen = choose_domains(request, room, slices);
  if (!chosen) return std::nullopt;
  Taken placed;
  const Taken domains = descend(request, candidates, room, *std::move(chosen), slices);
  for (const Share& share : domains.shares) {
    const Domain& domain = candidates.domains.back()[share.at];
    const bool leads = domains.leader == share.at;
    const auto inside =
        fill_nodes(room, room.nodes(domain.nodes_begin, domain.nodes_end), share.units, leads);
    MUSTER_ASSERT(inside.has_value(), "a domain has no room for {} pods any more", share.units);
    placed.shares.insert(placed.shares.end(), inside->shares.begin(), inside->shares.end());
    if (leads) placed.leader = inside->leader;
  }
  return placed;
}

/// Slices (pods where there are none) that fit at once: in the best domain when one is required,
/// else altogether.
std::int64_t fitting(const PlaceRequest& request, const Candidates& candidates, const Room& room) {
  if (candidates.levels.empty()) return units_in(room.all_nodes());
  const Shares rooms =
      room.all_domains(request.mode == Mode::kRequired ? room.layout().first : std::size_t{0});
  return request.mode == Mode::kRequired ? largest(rooms) : units_in(rooms);
}

/// The first slices that the pods, or the slices of the layer before, cannot be cut into.
std::optional<BadSlices> indivisible(const PlaceRequest& request) {
  std::int64_t outer = 0;
  for (const SliceLayer& layer : request.slices) {
    const std::int64_t whole = outer == 0 ? request.count : outer;
    if (layer.size < 1 || whole % layer.size != 0) return BadSlices{layer.size, outer};
    outer = layer.size;
  }
  return std::nullopt;
}

/// What can be said without a look at the nodes.
Unplaceable refusal(const PlaceRequest& request, const Candidates& candidates) {
  Unplaceable why;
  why.asked = request.count;
  why.nodes = candidates.flavor_nodes;
  if (candidates.levels.empty()) return why;
  if (request.mode == Mode::kRequired) why.level = request.level;
  if (!request.slices.empty()) {
    why.indivisible = indivisible(request);
    why.slice_size = std::max<std::int64_t>(1, request.slices.front().size);
    why.slice_level = request.slices.front().level;
    why.asked = request.count / why.slice_size;
  }
  return why;
}

/// The values of the levels down to the one of the domain, which has nodes.
std::vector<std::string> path_of(const Domain& domain, std::size_t level,
                                 const Candidates& candidates, const Fleet& fleet) {
  const LabelMap& labels = fleet.facts(candidates.nodes[domain.nodes_begin]).labels;
  std::vector<std::string> path;
  for (std::size_t i = 0; i <= level; ++i) path.push_back(labels.at(candidates.levels[i]));
  return path;
}

Unplaceable explain(const PlaceRequest& request, const Candidates& candidates, const Room& room,
                    const Fleet& fleet) {
  Unplaceable why = refusal(request, candidates);
  why.fitting = std::min(why.asked, fitting(request, candidates, room));
  if (!why.level.empty() && why.fitting > 0) {
    const std::size_t level = room.layout().first;
    const Shares rooms = room.all_domains(level);
    const auto best = std::find_if(rooms.begin(), rooms.end(),
                                   [&](const Share& share) { return share.units >= why.fitting; });
    why.best_domain = path_of(candidates.domains[level][best->at], level, candidates, fleet);
  }
  for (std::size_t i = 0; i < kExclusionCount; ++i) {
    const auto exclusion = static_cast<Exclusion>(i);
    if (exclusion == Exclusion::kFlavorLabels || candidates.excluded[i] == 0) continue;
    why.excluded.emplace(exclusion, candidates.excluded[i]);
  }
  room.count_full(why);
  return why;
}

}  // namespace

std::string level_in_words(const std::string& level) {
  return level.empty() ? "\"\"" : level;
}

tl::expected<Placement, Unplaceable> place(const PlaceRequest& request,
                                           const Candidates& candidates, const Fleet& fleet) {
  if (request.count <= 0 && !request.leader) return Placement();
  const auto layout = lay_out(request, candidates.levels);
  Unplaceable why = refusal(request, candidates);
  if (!layout) why.unknown_level = level_in_words(layout.error());
  if (!layout || why.indivisible) return tl::unexpected(std::move(why));
  const Room room(request, *layout, candidates, fleet);
  std::optional<Taken> taken;
  if (!request.avoid.empty()) taken = try_place(request, candidates, room.without_avoided());
  if (!taken) taken = try_place(request, candidates, room);
  if (!taken) return tl::unexpected(explain(request, candidates, room, fleet));
  Placement placement;
  placement.reserve(taken->shares.size());
  for (const Share& share : taken->shares) {
    placement.push_back(
        NodeShare{candidates.nodes[share.at], share.units, taken->leader == share.at});
  }
  return placement;
}

tl::expected<Placement, Unplaceable> place(const PlaceRequest& request, const Fleet& fleet) {
  return place(request, find_candidates(request.nodes, fleet), fleet);
}

std::int64_t max_gang(const PlaceRequest& request, const Candidates& candidates,
                      const Fleet& fleet) {
  const auto layout = lay_out(request, candidates.levels);
  if (!layout || indivisible(request)) return 0;
  return layout->slice_size *
         fitting(request, candidates, Room(request, *layout, candidates, fleet));
}

std::int64_t max_gang(const PlaceRequest& request, const Fleet& fleet) {
  return max_gang(request, find_candidates(request.nodes, fleet), fleet);
}

}  // namespace muster::topology

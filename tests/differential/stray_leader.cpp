#include "tests/differential/stray_leader.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace muster::differential {
namespace {

using namespace topology;  // NOLINT(google-build-using-namespace)

struct Spot {
  std::uint32_t at = 0;
  std::int64_t room = 0;    ///< Pods.
  std::int64_t beside = 0;  ///< Pods beside the leader; as `room` where it does not fit.
  bool leads = false;       ///< The leader fits; later: it stands here.
  std::int64_t taken = 0;
};
using Spots = std::vector<Spot*>;

class Search {
 public:
  Search(const PlaceRequest& request, const Fleet& fleet)
      : request_(request),
        candidates_(find_candidates(all_nodes(request.nodes), fleet)),
        best_fit_(request.mode != Mode::kUnconstrained) {
    const std::size_t levels = candidates_.levels.size();
    spots_.resize(levels);
    for (std::size_t level = levels; level-- > 0;) {
      for (const Domain& domain : candidates_.domains[level]) {
        Spot spot = level + 1 == levels ? host(domain, fleet) : parent(domain, level);
        spot.at = static_cast<std::uint32_t>(spots_[level].size());
        spots_[level].push_back(spot);
      }
    }
  }

  std::optional<Placement> run() {
    std::size_t level = request_.mode == Mode::kUnconstrained ? spots_.size() - 1 : wished_level();
    auto found = find(level);
    if (!found) return std::nullopt;
    Spots chosen = reduce(*found);
    for (; level + 1 < spots_.size(); ++level) {
      Spots children;
      for (const Spot* const spot : chosen) {
        const Domain& domain = candidates_.domains[level][spot->at];
        for (std::uint32_t i = domain.children_begin; i < domain.children_end; ++i) {
          children.push_back(&spots_[level + 1][i]);
        }
      }
      sort(children);
      chosen = reduce(children);
    }
    std::sort(chosen.begin(), chosen.end(),
              [](const Spot* a, const Spot* b) { return a->at < b->at; });
    Placement placement;
    for (const Spot* const spot : chosen) {
      if (spot->taken == 0 && !spot->leads) continue;
      const Domain& domain = candidates_.domains.back()[spot->at];
      placement.push_back({candidates_.nodes[domain.nodes_begin], spot->taken, spot->leads});
    }
    return placement;
  }

 private:
  /// Those that its pods may not use are domains as well, without room.
  static NodeQuery all_nodes(const NodeQuery& query) {
    NodeQuery all = query;
    all.constraints = {};
    Toleration anything;
    anything.op = Toleration::Operator::kExists;
    all.constraints.tolerations = {anything};
    return all;
  }

  [[nodiscard]] std::size_t wished_level() const {
    const auto& levels = candidates_.levels;
    return static_cast<std::size_t>(std::find(levels.begin(), levels.end(), request_.level) -
                                    levels.begin());
  }

  [[nodiscard]] Spot host(const Domain& domain, const Fleet& fleet) const {
    const NodeIndex node = candidates_.nodes[domain.nodes_begin];
    if (judge(request_.nodes, fleet.facts(node))) return {};
    Resources free = fleet.free(node);
    for (const NodeUse& use : request_.assumed) {
      if (use.node == node) free -= use.amount;
    }
    Spot spot;
    spot.room = request_.per_pod.copies_in(free);
    spot.leads = request_.leader->copies_in(free) > 0;
    if (spot.leads) free -= *request_.leader;
    spot.beside = request_.per_pod.copies_in(free);
    return spot;
  }

  [[nodiscard]] Spot parent(const Domain& domain, std::size_t level) const {
    Spot spot;
    std::int64_t lost = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t i = domain.children_begin; i < domain.children_end; ++i) {
      const Spot& child = spots_[level + 1][i];
      spot.room += child.room;
      spot.leads = spot.leads || child.leads;
      lost = std::min(lost, child.room - child.beside);
    }
    spot.beside = spot.room - lost;
    return spot;
  }

  void sort(Spots& spots) const {
    std::sort(spots.begin(), spots.end(), [this](const Spot* a, const Spot* b) {
      if (a->room != b->room) return best_fit_ ? a->room > b->room : a->room < b->room;
      return a->at < b->at;
    });
  }
  void sort_leaders_first(Spots& spots) const {
    std::sort(spots.begin(), spots.end(), [this](const Spot* a, const Spot* b) {
      if (a->leads != b->leads) return a->leads;
      if (a->beside != b->beside) return best_fit_ ? a->beside > b->beside : a->beside < b->beside;
      return a->at < b->at;
    });
  }

  /// The first of those with the least room that suffices; the first of all where none does.
  static Spot* tightest(std::span<Spot* const> spots, std::int64_t need, bool leader) {
    const auto room = [leader](const Spot* spot) { return leader ? spot->beside : spot->room; };
    Spot* best = spots.front();
    for (Spot* const spot : spots) {
      if (room(spot) >= need && room(spot) < room(best)) best = spot;
    }
    return best;
  }

  /// Phase 2a. `level` becomes the one of the domains found.
  std::optional<Spots> find(std::size_t& level) {
    for (;; --level) {
      Spots spots;
      for (Spot& spot : spots_[level]) spots.push_back(&spot);
      if (spots.empty()) return std::nullopt;
      sort_leaders_first(spots);
      Spot* top = spots.front();
      if (best_fit_ && top->leads && top->beside >= request_.count) {
        top = tightest(spots, request_.count, true);
      }
      if (!best_fit_) {
        for (Spot* const spot : spots) {
          if (spot->room >= request_.count) return Spots{spot};
        }
      }
      if (top->leads && top->beside >= request_.count) return Spots{top};
      if (request_.mode == Mode::kRequired) return std::nullopt;
      if (best_fit_ && level > 0) continue;
      return spread(spots);
    }
  }

  [[nodiscard]] std::optional<Spots> spread(const Spots& spots) const {
    Spots chosen;
    std::int64_t rest = request_.count;
    bool leader = true;
    std::size_t next = 0;
    for (; leader && next < spots.size() && spots[next]->leads; ++next) {
      Spot* spot = spots[next];
      if (best_fit_ && spot->beside >= rest) {
        spot = tightest(std::span(spots).subspan(next), rest, true);
      }
      chosen.push_back(spot);
      leader = !spot->leads;
      rest -= spot->beside;
    }
    if (leader) return std::nullopt;
    Spots others(spots.begin() + static_cast<std::ptrdiff_t>(next), spots.end());
    sort(others);
    for (std::size_t i = 0; rest > 0 && i < others.size(); ++i) {
      Spot* spot = others[i];
      if (best_fit_ && spot->room >= rest) {
        spot = tightest(std::span(others).subspan(i), rest, false);
      }
      chosen.push_back(spot);
      rest -= spot->room;
    }
    if (rest > 0) return std::nullopt;
    return chosen;
  }

  /// Phase 2b, one level. Empty: they do not suffice after all.
  [[nodiscard]] Spots reduce(const Spots& spots) const {
    Spots chosen;
    std::int64_t rest = request_.count;
    bool leader = true;
    for (std::size_t i = 0; i < spots.size(); ++i) {
      const auto later = std::span(spots).subspan(i);
      Spot* spot = spots[i];
      if (leader && best_fit_ && spot->leads && spot->beside >= rest) {
        spot = tightest(later, rest, true);
      } else if (!leader && best_fit_ && spot->room >= rest) {
        spot = tightest(later, rest, false);
      }
      chosen.push_back(spot);
      if (!leader) spot->leads = false;
      const std::int64_t room = leader ? spot->beside : spot->room;
      if (room >= rest && spot->leads == leader) {
        spot->taken = spot->room = rest;
        return chosen;
      }
      spot->taken = std::min(room, rest);
      if (leader) {
        spot->beside = spot->taken;
        leader = !spot->leads;
      }
      rest -= spot->taken;
    }
    return {};
  }

  const PlaceRequest& request_;
  Candidates candidates_;
  bool best_fit_;
  std::vector<std::vector<Spot>> spots_;  ///< By level.
};

}  // namespace

std::optional<Placement> place_with_stray_leader(const PlaceRequest& request, const Fleet& fleet) {
  return Search(request, fleet).run();
}

}  // namespace muster::differential

#include "engine/least_loss.hpp"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace muster::engine {
namespace {

using Loss = __int128;
using Indices = std::vector<std::size_t>;
/// One for each flavor resource that is short: most often one or two.
using Sizes = boost::container::small_vector<Amount, 2>;

constexpr std::size_t kMaxSteps = 1000;        ///< Workloads taken away in the exact search.
constexpr std::size_t kMaxPlacements = 32;     ///< Questions about nodes in it.
constexpr std::size_t kMaxPriorityLevels = 8;  ///< Tried one by one, then all at once.

/// Accelerators times microseconds.
Loss loss_of(const State& state, const WorkloadRecord& record) {
  const Instant now = state.last_pass;
  const Instant begin = std::max(
      record.reserved_at.value_or(now),
      record.spec.last_checkpoint.value_or(Instant{std::numeric_limits<std::int64_t>::min()}));
  if (begin >= now) return 0;
  return static_cast<Loss>(state.standing(record).accelerators.value()) *
         (static_cast<Loss>(now.us) - begin.us);
}

struct Option {
  Candidate candidate;
  std::int64_t priority = 0;
  Loss loss = 0;
  std::int64_t reserved_us = 0;
  Sizes sizes;  ///< Usage of each needed flavor resource.
};

class Chooser {
 public:
  Chooser(PreemptionTrial& trial, const Candidates& candidates, bool borrow)
      : trial_(trial), borrow_(borrow), start_(trial.checkpoint()) {
    all_.reserve(candidates.hierarchy.size() + candidates.priority.size() + candidates.own.size());
    for (const auto* list : {&candidates.hierarchy, &candidates.priority, &candidates.own}) {
      for (const Candidate& candidate : *list) {
        if (borrow && candidate.variant == Variant::kReclaimWithoutBorrowing) continue;
        add(candidate);
      }
    }
    sort_by_loss();
    for (const Option& option : all_) levels_.push_back(option.priority);
    std::sort(levels_.begin(), levels_.end());
    levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  }

  std::optional<std::vector<Candidate>> run() {
    std::size_t tries = 0;
    for (std::size_t level = first_possible_level(); level < levels_.size(); ++level) {
      if (++tries > kMaxPriorityLevels) level = levels_.size() - 1;
      use_up_to(levels_[level]);
      if (exact() || greedy()) return result();
    }
    return std::nullopt;
  }

 private:
  void sort_by_loss() {
    const auto goes_before = [](const Option& a, const Option& b) {
      if (a.loss != b.loss) return a.loss < b.loss;
      if (a.reserved_us != b.reserved_us) return a.reserved_us > b.reserved_us;
      const WorkloadSpec& one = a.candidate.record->spec;
      const WorkloadSpec& other = b.candidate.record->spec;
      return std::tie(one.uid, one.key) < std::tie(other.uid, other.key);
    };
    // Options are large: places are sorted, and each option is moved once.
    std::vector<std::uint32_t> order(all_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return goes_before(all_[a], all_[b]); });
    std::vector<Option> sorted;
    sorted.reserve(all_.size());
    for (const std::uint32_t place : order) sorted.push_back(std::move(all_[place]));
    all_ = std::move(sorted);
  }

  void add(const Candidate& candidate) {
    const WorkloadRecord& record = *candidate.record;
    Option option;
    option.candidate = candidate;
    option.priority = record.spec.priority;
    option.loss = loss_of(trial_.state(), record);
    option.reserved_us =
        record.reserved_at.value_or(Instant{std::numeric_limits<std::int64_t>::max()}).us;
    for (const quota::FrId fr : trial_.request().needed) {
      const auto found = std::find_if(record.charged.begin(), record.charged.end(),
                                      [&](const auto& entry) { return entry.first == fr; });
      option.sizes.push_back(found == record.charged.end() ? Amount() : found->second);
    }
    all_.push_back(std::move(option));
  }

  /// The lowest priority up to which taking everybody would do; rules that only forbid are left
  /// out of it, so what is below it cannot do.
  [[nodiscard]] std::size_t first_possible_level() {
    Indices by_priority(all_.size());
    std::iota(by_priority.begin(), by_priority.end(), std::size_t{0});
    if (levels_.size() > 1) {
      std::stable_sort(by_priority.begin(), by_priority.end(), [&](std::size_t a, std::size_t b) {
        return all_[a].priority < all_[b].priority;
      });
    }
    std::size_t low = 0;
    auto next = by_priority.begin();
    const auto take_level = [&](std::size_t level) {
      for (; next != by_priority.end() && all_[*next].priority <= levels_[level]; ++next) {
        trial_.take(all_[*next].candidate);
      }
    };
    // Quota alone is asked level by level: most often few have to be taken to know.
    for (; low < levels_.size(); ++low) {
      take_level(low);
      if (trial_.quota_fits(borrow_)) break;
    }
    const bool fits = low < levels_.size() && trial_.nodes_fit();
    trial_.rollback_to(start_);
    if (fits || low == levels_.size()) return low;

    const auto enough = [&](std::size_t level) {
      next = by_priority.begin();
      take_level(level);
      const bool nodes_fit = trial_.nodes_fit();
      trial_.rollback_to(start_);
      return nodes_fit;
    };
    std::size_t high = levels_.size();
    ++low;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (enough(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  void use_up_to(std::int64_t priority) {
    used_.clear();
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].priority <= priority) used_.push_back(i);
    }
    const std::size_t kinds = trial_.request().needed.size();
    largest_.assign(used_.size() + 1, Sizes(kinds));
    for (std::size_t i = used_.size(); i-- > 0;) {
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        largest_[i][kind] = std::max(largest_[i + 1][kind], all_[used_[i]].sizes[kind]);
      }
    }
  }

  // ---------------------------------------------------------------- exact

  [[nodiscard]] bool spent() const { return steps_ > kMaxSteps || placements_ > kMaxPlacements; }

  /// One gang, two, three, …: the first size that does, and of it the least loss.
  bool exact() {
    for (std::size_t size = 1; size <= used_.size() && !spent(); ++size) {
      best_.clear();
      picked_.clear();
      descend(0, size, 0);
      trial_.rollback_to(start_);
      if (!best_.empty()) return true;
    }
    return false;
  }

  /// Adds `rest` of used_[from...] to picked_.
  void descend(std::size_t from, std::size_t rest, Loss loss) {
    const std::vector<Amount> missing = trial_.missing();
    for (std::size_t i = from; i + rest <= used_.size() && !spent(); ++i) {
      if (!best_.empty() && loss + cheapest(i, rest) >= best_loss_) break;
      if (!can_cover(missing, largest_[i], rest)) break;
      const Option& option = all_[used_[i]];
      if (rest == 1 && !can_cover(missing, option.sizes, 1)) continue;
      const Trial::Checkpoint before = trial_.checkpoint();
      ++steps_;
      trial_.take(option.candidate);
      picked_.push_back(used_[i]);
      if (rest > 1) {
        descend(i + 1, rest - 1, loss + option.loss);
      } else {
        judge(loss + option.loss);
      }
      picked_.pop_back();
      trial_.rollback_to(before);
    }
  }

  /// The least that `rest` from used_[from...] can lose: they are in order of loss.
  [[nodiscard]] Loss cheapest(std::size_t from, std::size_t rest) const {
    Loss sum = 0;
    for (std::size_t i = from; i < from + rest; ++i) sum += all_[used_[i]].loss;
    return sum;
  }

  [[nodiscard]] static bool can_cover(const std::vector<Amount>& missing, const Sizes& sizes,
                                      std::size_t times) {
    for (std::size_t kind = 0; kind < missing.size(); ++kind) {
      if (missing[kind] > sizes[kind] * static_cast<std::int64_t>(times)) return false;
    }
    return true;
  }

  void judge(Loss loss) {
    if (!trial_.quota_fits(borrow_) || !is_legal(picked_)) return;
    ++placements_;
    if (!trial_.nodes_fit()) return;
    best_ = picked_;
    best_loss_ = loss;
  }

  /// There is an order in which each may be taken. The small ones first: what a queue borrows then
  /// lasts for the most of them.
  [[nodiscard]] bool is_legal(const Indices& picked) {
    const bool all_own = std::all_of(picked.begin(), picked.end(), [&](std::size_t i) {
      return all_[i].candidate.variant == Variant::kWithinQueue;
    });
    if (all_own) return true;
    // On a state of its own, above what is taken: first everybody is put back.
    const Trial::Checkpoint before = trial_.checkpoint();
    for (const std::size_t i : picked) trial_.put_back(all_[i].candidate);
    Indices order = picked;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(all_[a].sizes, a) < std::tie(all_[b].sizes, b);
    });
    bool legal = true;
    for (const std::size_t i : order) {
      if (!trial_.may_take(all_[i].candidate, borrow_)) {
        legal = false;
        break;
      }
      trial_.take(all_[i].candidate);
    }
    trial_.rollback_to(before);
    return legal;
  }

  // ---------------------------------------------------------------- greedy

  /// What covers the shortage alone, else the largest, until it fits; then back with the dearest
  /// that are not needed.
  bool greedy() {
    best_.clear();
    Indices left = used_;
    std::vector<Candidate> taken;
    while (taken.empty() || !trial_.fits(borrow_)) {
      const auto next = next_greedy(left);
      if (next == left.end()) {
        trial_.rollback_to(start_);
        return false;
      }
      trial_.take(all_[*next].candidate);
      taken.push_back(all_[*next].candidate);
      best_.push_back(*next);
      left.erase(next);
    }
    Indices order = best_;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(all_[a].priority, a) > std::tuple(all_[b].priority, b);
    });
    std::vector<Candidate> dearest_first;
    for (const std::size_t i : order) dearest_first.push_back(all_[i].candidate);
    trial_.put_back_unneeded(taken, dearest_first, borrow_);
    trial_.rollback_to(start_);
    std::erase_if(best_, [&](std::size_t i) {
      return std::none_of(taken.begin(), taken.end(), [&](const Candidate& candidate) {
        return candidate.record == all_[i].candidate.record;
      });
    });
    return true;
  }

  [[nodiscard]] Indices::iterator next_greedy(Indices& left) {
    const std::vector<Amount> missing = trial_.missing();
    auto best = left.end();
    for (auto i = left.begin(); i != left.end(); ++i) {
      const Option& option = all_[*i];
      if (!trial_.may_take(option.candidate, borrow_)) continue;
      const bool quota_short = std::any_of(missing.begin(), missing.end(),
                                           [](Amount amount) { return amount > Amount(); });
      if (quota_short && can_cover(missing, option.sizes, 1)) return i;
      if (best == left.end() || all_[*best].sizes < option.sizes) best = i;
    }
    return best;
  }

  std::vector<Candidate> result() {
    std::sort(best_.begin(), best_.end());
    std::vector<Candidate> victims;
    for (const std::size_t i : best_) {
      victims.push_back(all_[i].candidate);
      trial_.take(all_[i].candidate);
    }
    return victims;
  }

  PreemptionTrial& trial_;
  bool borrow_;
  Trial::Checkpoint start_;
  std::vector<Option> all_;           ///< In order of loss, newest reservation, uid.
  std::vector<std::int64_t> levels_;  ///< Their priorities, ascending.
  Indices used_;                      ///< Those up to the priority that is tried.
  std::vector<Sizes> largest_;        ///< By position in used_: in it and behind it.

  std::size_t steps_ = 0;
  std::size_t placements_ = 0;
  Indices picked_;
  Indices best_;
  Loss best_loss_ = 0;
};

}  // namespace

std::optional<std::vector<Candidate>> take_least_loss(PreemptionTrial& trial,
                                                      const Candidates& candidates, bool borrow) {
  return Chooser(trial, candidates, borrow).run();
}

bool loses_less(const State& state, const std::vector<Candidate>& a,
                const std::vector<Candidate>& b) {
  const auto key = [&](const std::vector<Candidate>& set) {
    std::int64_t priority = std::numeric_limits<std::int64_t>::min();
    std::size_t gangs = 0;
    Loss loss = 0;
    for (const Candidate& candidate : set) {
      if (candidate.hold != nullptr) continue;
      priority = std::max(priority, candidate.record->spec.priority);
      ++gangs;
      loss += loss_of(state, *candidate.record);
    }
    return std::tuple(priority, gangs, loss);
  };
  return key(a) < key(b);
}

}  // namespace muster::engine

#include "engine/held_use.hpp"

#include <algorithm>

namespace muster::engine {

void HeldUse::add(std::int64_t priority, const quota::FrAmounts& amounts) {
  for (const auto& [fr, amount] : amounts) steps_[fr].push_back(Step{priority, amount});
}

void HeldUse::sum_up() {
  for (auto& [fr, steps] : steps_) {
    std::sort(steps.begin(), steps.end(),
              [](const Step& a, const Step& b) { return a.priority < b.priority; });
    std::vector<Step> sums;
    for (const Step& step : steps) {
      if (sums.empty() || sums.back().priority != step.priority) {
        sums.push_back(Step{step.priority, sums.empty() ? Amount() : sums.back().amount});
      }
      sums.back().amount += step.amount;
    }
    steps = std::move(sums);
  }
}

Amount HeldUse::up_to(quota::FrId fr, std::optional<std::int64_t> priority) const {
  const auto found = steps_.find(fr);
  if (found == steps_.end()) return Amount();
  const std::vector<Step>& steps = found->second;
  if (!priority) return steps.back().amount;
  const auto above =
      std::upper_bound(steps.begin(), steps.end(), *priority,
                       [](std::int64_t value, const Step& step) { return value < step.priority; });
  return above == steps.begin() ? Amount() : std::prev(above)->amount;
}

}  // namespace muster::engine

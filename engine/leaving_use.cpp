#include "engine/leaving_use.hpp"

#include "engine/state.hpp"
#include "engine/trial.hpp"

#include <algorithm>

namespace muster::engine {
namespace {

void add_to(quota::FrAmounts& sum, const quota::FrAmounts& part) {
  for (const auto& [fr, amount] : part) {
    const auto place =
        std::lower_bound(sum.begin(), sum.end(), fr,
                         [](const auto& entry, quota::FrId id) { return entry.first < id; });
    if (place != sum.end() && place->first == fr) {
      place->second += amount;
    } else {
      sum.insert(place, {fr, amount});
    }
  }
}

bool any_unlimited(const Resources& sum) {
  for (std::size_t i = 0; i < sum.extent(); ++i) {
    if (sum[ResourceId(static_cast<std::uint16_t>(i))].is_unlimited()) return true;
  }
  return false;
}

}  // namespace

void LeavingUse::add(const State& state, const WorkloadRecord& record) {
  if (record.charged_to) {
    quota::FrAmounts& sum = quota[*record.charged_to];
    add_to(sum, record.charged);
    too_large = too_large || std::any_of(sum.begin(), sum.end(), [](const auto& entry) {
                  return entry.second.is_unlimited();
                });
  }
  each_use(state, record,
           [&](topology::NodeIndex node, topology::UseKind kind, const Resources& amount) {
             Resources& sum = nodes[{node, kind}];
             sum += amount;
             too_large = too_large || any_unlimited(sum);
           });
}

}  // namespace muster::engine

#pragma once
// What the workloads of a queue hold, summed by priority.

#include "base/amount.hpp"
#include "quota/quota_tree.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace muster::engine {

/// Answers "how much would be free if all below this priority left?" without a look at each.
class HeldUse {
 public:
  void add(std::int64_t priority, const quota::FrAmounts& amounts);
  /// Call once, after the last add().
  void sum_up();

  /// Held with at most this priority; absent: with any. Unlimited when the sum is too large.
  [[nodiscard]] Amount up_to(quota::FrId fr, std::optional<std::int64_t> priority) const;

 private:
  struct Step {
    std::int64_t priority = 0;
    Amount amount;  ///< After sum_up(): with this priority or a lower one.
  };
  std::map<quota::FrId, std::vector<Step>> steps_;
};

}  // namespace muster::engine

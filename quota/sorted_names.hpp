#pragma once
// Look-up in a sorted list of unique names.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace muster::quota {

/// The place of `name` in `sorted`, or nothing.
template <class Name>
[[nodiscard]] std::optional<std::size_t> position(const std::vector<Name>& sorted,
                                                  const Name& name) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), name);
  if (found == sorted.end() || *found != name) return std::nullopt;
  return static_cast<std::size_t>(found - sorted.begin());
}

}  // namespace muster::quota

#pragma once
// The few facts about nodes that every scheduler call asks for, packed.

#include "base/amount.hpp"
#include "base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::engine {

struct NodeView;

/// Rows in the order of the nodes it was made from. A call asks about a thousand nodes, and what
/// it costs is the memory it touches: here it is some 100 bytes a node, in a NodeView more than ten
/// times that, all over the heap.
class NodeTable {
 public:
  NodeTable() = default;
  explicit NodeTable(std::span<const NodeView> nodes);

  [[nodiscard]] std::size_t rows() const { return flags_.size(); }
  // Precondition: row < rows().
  [[nodiscard]] std::string_view name(std::size_t row) const {
    const std::size_t begin = row == 0 ? 0 : name_ends_[row - 1];
    return std::string_view(names_).substr(begin, name_ends_[row] - begin);
  }
  [[nodiscard]] bool usable(std::size_t row) const { return (flags_[row] & kUsable) != 0; }
  /// Some plan has a slot on the node.
  [[nodiscard]] bool has_plan(std::size_t row) const { return (flags_[row] & kPlan) != 0; }
  /// Some pod counts there that is not bound.
  [[nodiscard]] bool has_nominated(std::size_t row) const {
    return (flags_[row] & kNominated) != 0;
  }
  [[nodiscard]] Amount allocatable(std::size_t row, ResourceId id) const {
    return amount(row, id, 0);
  }
  /// Foreign and planned.
  [[nodiscard]] Amount used(std::size_t row, ResourceId id) const { return amount(row, id, 1); }

 private:
  static constexpr std::uint8_t kUsable = 1;
  static constexpr std::uint8_t kPlan = 2;
  static constexpr std::uint8_t kNominated = 4;

  [[nodiscard]] Amount amount(std::size_t row, ResourceId id, std::size_t which) const {
    if (id.value() >= extent_) return Amount();
    return amounts_[(((row * extent_) + id.value()) * 2) + which];
  }

  std::string names_;
  std::vector<std::uint32_t> name_ends_;
  std::vector<std::uint8_t> flags_;
  std::size_t extent_ = 0;       ///< Resources a row.
  std::vector<Amount> amounts_;  ///< By row and resource: allocatable, used.
};

}  // namespace muster::engine

#pragma once
// Where a node stands in a snapshot, by its name.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::engine {

/// What it answers never changes, and any thread may ask. A scheduler call asks it for every node,
/// so an answer costs no allocation and touches two short runs of memory: a slot, and the name
/// beside its neighbours.
class NodeLookup {
 public:
  NodeLookup() = default;
  explicit NodeLookup(const std::unordered_map<std::string, std::size_t>& positions);

  /// Nothing: no such node.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

  /// Which node was last asked for after this one, a guess for the next time: kube-scheduler names
  /// nodes in an order of its own, and the same again in the next call. At first the next position.
  [[nodiscard]] std::size_t follower(std::size_t position) const {
    return position < size_ ? followers_[position].load(std::memory_order_relaxed) : 0;
  }
  void set_follower(std::size_t position, std::size_t follower) const {
    if (position >= size_) return;
    followers_[position].store(static_cast<std::uint32_t>(follower), std::memory_order_relaxed);
  }

  /// Calls visit(name, position) for every node, in an order that means nothing.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.position != kFree) visit(name_of(slot), std::size_t{slot.position});
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFFU;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t position = kFree;
    std::uint32_t begin = 0;  ///< Of the name, in names_.
    std::uint32_t length = 0;
  };
  [[nodiscard]] std::string_view name_of(const Slot& slot) const {
    return std::string_view(names_).substr(slot.begin, slot.length);
  }

  std::vector<Slot> slots_;  ///< A power of two, at most half of them taken; empty: no nodes.
  std::string names_;
  std::size_t size_ = 0;                                     ///< Positions are below it.
  std::unique_ptr<std::atomic<std::uint32_t>[]> followers_;  ///< By position.
};

}  // namespace muster::engine

#include "engine/node_lookup.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace muster::engine {
namespace {

std::uint32_t hash_of(std::string_view name) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
}

}  // namespace

NodeLookup::NodeLookup(const std::unordered_map<std::string, std::size_t>& positions) {
  if (positions.empty()) return;
  slots_.resize(std::bit_ceil(positions.size() * 2));
  const std::size_t mask = slots_.size() - 1;
  for (const auto& [name, position] : positions) {
    Slot slot;
    slot.hash = hash_of(name);
    slot.position = static_cast<std::uint32_t>(position);
    slot.begin = static_cast<std::uint32_t>(names_.size());
    slot.length = static_cast<std::uint32_t>(name.size());
    names_ += name;
    std::size_t at = slot.hash & mask;
    while (slots_[at].position != kFree) at = (at + 1) & mask;
    slots_[at] = slot;
    size_ = std::max(size_, position + 1);
  }
  followers_ = std::make_unique<std::atomic<std::uint32_t>[]>(size_);
  for (std::size_t position = 0; position < size_; ++position) {
    set_follower(position, position + 1);
  }
}

std::optional<std::size_t> NodeLookup::find(std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const std::size_t mask = slots_.size() - 1;
  const std::uint32_t hash = hash_of(name);
  for (std::size_t at = hash & mask; slots_[at].position != kFree; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && name_of(slots_[at]) == name) return slots_[at].position;
  }
  return std::nullopt;
}

}  // namespace muster::engine

#include "base/resources.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <limits>

namespace muster {

ResourceTable::ResourceTable() {
  intern(ResourceName("cpu"));
  intern(ResourceName("memory"));
  intern(ResourceName("pods"));
  // Has no entry in ids_: a node that offers something of this name gets another id for it.
  names_.emplace_back("unoffered");
}

std::optional<ResourceId> ResourceTable::intern(const ResourceName& name) {
  const auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  if (full()) return std::nullopt;
  const ResourceId id(static_cast<std::uint16_t>(names_.size()));
  names_.push_back(name);
  ids_.emplace(name, id);
  return id;
}

std::optional<ResourceId> ResourceTable::find(const ResourceName& name) const {
  const auto found = ids_.find(name);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const ResourceName* ResourceTable::first_unknown(const ResourceList& list) const {
  for (const auto& [name, amount] : list) {
    if (!amount.is_zero() && !ids_.contains(name)) return &name;
  }
  return nullptr;
}

const ResourceName& ResourceTable::name(ResourceId id) const {
  MUSTER_ASSERT(id.value() < names_.size(), "resource id {} of {}", id.value(), names_.size());
  return names_[id.value()];
}

void Resources::set(ResourceId id, Amount amount) {
  if (id.value() >= amounts_.size()) {
    if (amount.is_zero()) return;
    amounts_.resize(id.value() + 1U);
  }
  amounts_[id.value()] = amount;
}

void Resources::add(ResourceId id, Amount amount) {
  set(id, (*this)[id] + amount);
}

Resources& Resources::operator+=(const Resources& other) {
  if (other.amounts_.size() > amounts_.size()) amounts_.resize(other.amounts_.size());
  for (std::size_t i = 0; i < other.amounts_.size(); ++i) amounts_[i] += other.amounts_[i];
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  if (other.amounts_.size() > amounts_.size()) amounts_.resize(other.amounts_.size());
  for (std::size_t i = 0; i < other.amounts_.size(); ++i) amounts_[i] -= other.amounts_[i];
  return *this;
}

Resources Resources::times(std::int64_t count) const {
  Resources product = *this;
  for (Amount& amount : product.amounts_) amount = amount * count;
  return product;
}

bool Resources::fits_in(const Resources& capacity) const {
  for (std::size_t i = 0; i < amounts_.size(); ++i) {
    if (amounts_[i] > Amount() &&
        amounts_[i] > capacity[ResourceId(static_cast<std::uint16_t>(i))]) {
      return false;
    }
  }
  return true;
}

std::int64_t Resources::copies_in(const Resources& capacity) const {
  std::int64_t copies = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < amounts_.size(); ++i) {
    if (amounts_[i] <= Amount()) continue;
    const Amount have = capacity[ResourceId(static_cast<std::uint16_t>(i))];
    if (have <= Amount()) return 0;
    copies = std::min(copies, have.value() / amounts_[i].value());
  }
  return copies;
}

bool Resources::is_zero() const {
  return std::all_of(amounts_.begin(), amounts_.end(), [](Amount a) { return a.is_zero(); });
}

bool Resources::any_negative() const {
  return std::any_of(amounts_.begin(), amounts_.end(), [](Amount a) { return a.is_negative(); });
}

bool Resources::operator==(const Resources& other) const {
  const std::size_t extent = std::max(amounts_.size(), other.amounts_.size());
  for (std::size_t i = 0; i < extent; ++i) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    if ((*this)[id] != other[id]) return false;
  }
  return true;
}

Resources Resources::from_list(const ResourceList& list, ResourceTable& table) {
  Resources resources;
  for (const auto& [name, amount] : list) {
    if (const auto id = table.intern(name)) resources.set(*id, amount);
  }
  return resources;
}

Resources Resources::from_list_known(const ResourceList& list, const ResourceTable& table) {
  Resources resources;
  for (const auto& [name, amount] : list) {
    if (const auto id = table.find(name)) resources.set(*id, amount);
  }
  return resources;
}

Resources Resources::from_request(const ResourceList& list, const ResourceTable& table) {
  Resources resources;
  for (const auto& [name, amount] : list) {
    if (const auto id = table.find(name)) {
      resources.set(*id, amount);
    } else if (amount > Amount()) {
      // How much of how many names does not matter: there is none.
      resources.set(ResourceTable::kUnoffered, Amount(1));
    }
  }
  return resources;
}

ResourceList Resources::to_list(const ResourceTable& table) const {
  ResourceList list;
  for (std::size_t i = 0; i < amounts_.size() && i < table.size(); ++i) {
    if (amounts_[i].is_zero()) continue;
    list.emplace(table.name(ResourceId(static_cast<std::uint16_t>(i))), amounts_[i]);
  }
  return list;
}

void ResourceSum::add(const Resources& each, std::int64_t count) {
  if (each.extent() > sums_.size()) sums_.resize(each.extent());
  for (std::size_t i = 0; i < each.extent(); ++i) {
    const Amount amount = each[ResourceId(static_cast<std::uint16_t>(i))];
    sums_[i] += static_cast<__int128>(amount.value()) * count;
  }
}

void ResourceSum::subtract(const Resources& each, std::int64_t count) {
  add(each, -count);
}

Resources ResourceSum::clamped() const {
  Resources result;
  for (std::size_t i = sums_.size(); i-- > 0;) {
    result.set(ResourceId(static_cast<std::uint16_t>(i)), Amount::clamped(sums_[i]));
  }
  return result;
}

void ResourceSum::take_from(Resources& from) const {
  for (std::size_t i = sums_.size(); i-- > 0;) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    from.set(id, from[id] - Amount::clamped(sums_[i]));
  }
}

bool ResourceSum::is_zero() const {
  return std::all_of(sums_.begin(), sums_.end(), [](__int128 sum) { return sum == 0; });
}

}  // namespace muster

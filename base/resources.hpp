#pragma once
// Resource vectors: by name at the edge, dense by ResourceId inside the engine.

#include "base/amount.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace muster {

/// Amounts by name; an absent name is zero. Sorted, so every walk is deterministic.
using ResourceList = std::map<ResourceName, Amount>;

/// Interns resource names. Append-only; an id never changes its meaning. One per engine, shared
/// read-only with snapshots (a snapshot sees the names that existed when it was published).
class ResourceTable {
 public:
  /// Reserved first, so that hot paths may name them without a look-up.
  static constexpr ResourceId kCpu{0};
  static constexpr ResourceId kMemory{1};
  static constexpr ResourceId kPods{2};

  ResourceTable();

  /// The id of `name`, made if new. From the 1,024th name on they share one: `muster.dev/others`.
  ResourceId intern(const ResourceName& name);
  /// The id of `name`, or nothing when no one has interned it.
  [[nodiscard]] std::optional<ResourceId> find(const ResourceName& name) const;
  [[nodiscard]] const ResourceName& name(ResourceId id) const;
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  std::vector<ResourceName> names_;
  std::map<ResourceName, ResourceId> ids_;
};

/// Dense amounts indexed by ResourceId; anything beyond the stored length is zero.
class Resources {
 public:
  Resources() = default;

  [[nodiscard]] Amount operator[](ResourceId id) const {
    return id.value() < amounts_.size() ? amounts_[id.value()] : Amount();
  }
  void set(ResourceId id, Amount amount);
  void add(ResourceId id, Amount amount);
  Resources& operator+=(const Resources& other);
  Resources& operator-=(const Resources& other);
  /// Every amount times `count`, saturating.
  [[nodiscard]] Resources times(std::int64_t count) const;

  /// True when every *positive* amount here is at most that of `capacity` (zero always fits).
  [[nodiscard]] bool fits_in(const Resources& capacity) const;
  /// How many copies of `*this` fit in `capacity`: the minimum over positive amounts of
  /// floor(capacity / amount), at least 0. INT64_MAX when nothing is asked.
  [[nodiscard]] std::int64_t copies_in(const Resources& capacity) const;

  [[nodiscard]] bool is_zero() const;
  [[nodiscard]] std::size_t extent() const { return amounts_.size(); }
  /// Equal as vectors: trailing zeros do not matter.
  bool operator==(const Resources& other) const;

  [[nodiscard]] static Resources from_list(const ResourceList& list, ResourceTable& table);
  /// Names that the table does not know are dropped: no node offers them, no plan uses them.
  [[nodiscard]] static Resources from_list_known(const ResourceList& list,
                                                 const ResourceTable& table);
  [[nodiscard]] ResourceList to_list(const ResourceTable& table) const;

 private:
  std::vector<Amount> amounts_;
};

}  // namespace muster

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
///
/// Only what nodes offer brings names. What anybody may create, pods and workloads, looks them up:
/// invented names would take the places of those that a node brings later.
class ResourceTable {
 public:
  /// Vectors are dense, so their length has a bound. A fleet has a few dozen names.
  static constexpr std::size_t kMost = 1024;
  /// Reserved first, so that hot paths may name them without a look-up.
  static constexpr ResourceId kCpu{0};
  static constexpr ResourceId kMemory{1};
  static constexpr ResourceId kPods{2};
  /// Of no name, never offered and never charged: what asks for some of it fits nowhere. Stands in
  /// requests for all names that have no id.
  static constexpr ResourceId kUnoffered{3};

  ResourceTable();

  /// The id of `name`, made if new. Nothing when it is new and the table is full: two names must
  /// not share an id, or the room of one is given away as room of the other.
  std::optional<ResourceId> intern(const ResourceName& name);
  /// The id of `name`, or nothing when no one has interned it.
  [[nodiscard]] std::optional<ResourceId> find(const ResourceName& name) const;
  /// The first name of the list that has an amount and no id; nullptr: there is none.
  [[nodiscard]] const ResourceName* first_unknown(const ResourceList& list) const;
  [[nodiscard]] bool full() const { return names_.size() == kMost; }
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
  [[nodiscard]] bool any_negative() const;
  [[nodiscard]] std::size_t extent() const { return amounts_.size(); }
  /// Equal as vectors: trailing zeros do not matter.
  bool operator==(const Resources& other) const;

  /// Of a node's list: new names are interned. One that finds the table full is left out, as if the
  /// node did not offer it.
  [[nodiscard]] static Resources from_list(const ResourceList& list, ResourceTable& table);
  /// What is used, of names that the table knows: nobody plans with the others.
  [[nodiscard]] static Resources from_list_known(const ResourceList& list,
                                                 const ResourceTable& table);
  /// What one pod asks for. With a name that the table does not know it fits on no node.
  [[nodiscard]] static Resources from_request(const ResourceList& list, const ResourceTable& table);
  [[nodiscard]] ResourceList to_list(const ResourceTable& table) const;

 private:
  std::vector<Amount> amounts_;
};

/// A sum of vectors, kept exactly: taking out what was put in gives back what was there before,
/// however large the amounts are.
class ResourceSum {
 public:
  /// `count` times `each`.
  void add(const Resources& each, std::int64_t count = 1);
  void subtract(const Resources& each, std::int64_t count = 1);
  /// As amounts, each of them clamped to the range of int64.
  [[nodiscard]] Resources clamped() const;
  /// As `from -= clamped()`.
  void take_from(Resources& from) const;
  [[nodiscard]] bool is_zero() const;

 private:
  std::vector<__int128> sums_;  ///< By ResourceId.
};

}  // namespace muster

#pragma once
// Checked reading of API objects: every value is reached by a path, and the first wrong one is
// remembered with its path, what it is and what was wanted.

#include "base/constraints.hpp"
#include "base/quantity.hpp"
#include "base/resources.hpp"
#include "base/time.hpp"
#include "kube/codec/json.hpp"
#include "kube/codec/objects.hpp"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::kube {

/// Where Readers of one object leave the first error.
class FirstError {
 public:
  void set(Error error) {
    if (!error_) error_ = std::move(error);
  }
  [[nodiscard]] bool any() const { return error_.has_value(); }
  /// `value`, or the error if there was one.
  template <class T>
  [[nodiscard]] Result<T> or_value(T value) const {
    if (error_) return fail(*error_);
    return value;
  }

 private:
  std::optional<Error> error_;
};

/// A value and the way to it. Getters give a fallback for a missing value (absent or null), and
/// also, after noting the error, for one of the wrong type. A child keeps a pointer to its parent,
/// so a parent must be a named variable that outlives it.
class Reader {
 public:
  static constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
  static constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

  Reader(Json value, FirstError& errors) : value_(std::move(value)), errors_(&errors) {}

  [[nodiscard]] const Json& json() const { return value_; }
  [[nodiscard]] bool missing() const { return value_.missing(); }

  /// A member; notes an error when this is there but no object.
  [[nodiscard]] Reader get(std::string_view key) const&;
  Reader get(std::string_view key) const&& = delete;

  /// Calls `visit(const Reader& element)` for every element of an array.
  template <class Visit>
  void each(Visit visit) const& {
    if (!expect(Json::Kind::kArray, "an array")) return;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      const Reader element(value_.at(i), this, {}, i);
      visit(element);
    }
  }
  /// Calls `visit(std::string_view key, const Reader& member)` for every member of an object.
  template <class Visit>
  void each_member(Visit visit) const& {
    if (!expect(Json::Kind::kObject, "an object")) return;
    for (const auto& [key, value] : value_.members()) {
      const Reader member(value, this, key, kNoIndex);
      visit(key, member);
    }
  }

  /// Notes an error when this is not an object, or missing.
  void require_object() const;

  [[nodiscard]] std::string string() const;
  [[nodiscard]] std::optional<std::string> optional_string() const;
  /// One of the words, or empty; anything else is an error.
  [[nodiscard]] std::string word(std::initializer_list<std::string_view> allowed) const;
  [[nodiscard]] std::vector<std::string> strings() const;
  [[nodiscard]] std::map<std::string, std::string> string_map() const;
  [[nodiscard]] bool boolean(bool fallback) const;
  /// Within [low, high], else an error.
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high,
                                     std::int64_t fallback) const;
  [[nodiscard]] std::optional<std::int64_t> optional_integer(std::int64_t low,
                                                             std::int64_t high) const;
  /// A count of things: 0 to 2^31-1.
  [[nodiscard]] std::int64_t count(std::int64_t fallback) const {
    return integer(0, kInt32Max, fallback);
  }
  /// A priority: any 32-bit integer.
  [[nodiscard]] std::optional<std::int64_t> priority() const {
    return optional_integer(-kInt32Max - 1, kInt32Max);
  }
  [[nodiscard]] std::optional<Quantity> quantity() const;
  [[nodiscard]] QuantityMap quantities() const;
  [[nodiscard]] std::optional<Instant> time() const;

  /// Notes an error about this value.
  void fail(std::string message, ErrorCode code = ErrorCode::kInvalidArgument) const;
  /// `got <this value>, want <wanted>`.
  void fail_unwanted(std::string_view wanted) const;

 private:
  static constexpr std::size_t kNoIndex = std::numeric_limits<std::size_t>::max();

  Reader(Json value, const Reader* parent, std::string_view key, std::size_t index)
      : value_(std::move(value)),
        errors_(parent->errors_),
        parent_(parent),
        key_(key),
        index_(index) {}

  /// False for a missing value, and, after noting the error, for one of another kind.
  [[nodiscard]] bool expect(Json::Kind kind, std::string_view wanted) const;
  [[nodiscard]] std::string path() const;

  Json value_;
  FirstError* errors_;
  const Reader* parent_ = nullptr;  ///< Null at the root.
  std::string_view key_;
  std::size_t index_ = kNoIndex;
};

}  // namespace muster::kube

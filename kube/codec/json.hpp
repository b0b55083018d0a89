#pragma once
// JSON without showing the library behind it: checked reading, building, and exact round trips.

#include "base/result.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::kube {

/// An immutable JSON value; copies are cheap (shared). A default-constructed one is *absent*: what
/// a missing member reads as. Every getter is total: no wrong type, index or key can do harm.
class Json {
 public:
  enum class Kind { kAbsent, kNull, kBool, kNumber, kString, kArray, kObject };

  struct Limits {
    std::size_t bytes = 16U << 20U;  ///< Larger input is ErrorCode::kTooLarge.
    std::size_t depth = 64;          ///< Deeper nesting is ErrorCode::kTooLarge.
    /// For what an API server sends: it keeps and shows whatever a tenant wrote, and one tenant's
    /// object must not make a list or a watch unreadable. Only bad syntax and size are errors then:
    /// - `managedFields` in the value of any member `metadata` is left out, however deep it is;
    /// - what is nested deeper than `depth` is null, and so is a number out of range;
    /// - bytes that are not UTF-8 and halves of surrogate pairs are '?'.
    bool lenient = false;
  };

  Json() = default;

  /// Parses one document; trailing bytes other than white space are an error. Iterative, so depth
  /// costs no stack. Duplicate keys: the last one wins, as in Go.
  [[nodiscard]] static Result<Json> parse(std::string_view text, Limits limits);
  [[nodiscard]] static Result<Json> parse(std::string_view text) { return parse(text, Limits{}); }

  // Building. Members keep the given order.
  [[nodiscard]] static Json null();
  [[nodiscard]] static Json boolean(bool value);
  [[nodiscard]] static Json number(std::int64_t value);
  [[nodiscard]] static Json number(double value);
  [[nodiscard]] static Json string(std::string_view value);
  [[nodiscard]] static Json array(const std::vector<Json>& elements);
  /// Absent members are left out.
  [[nodiscard]] static Json object(const std::vector<std::pair<std::string, Json>>& members);

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool present() const { return node_ != nullptr; }
  /// Absent or null: the API treats both alike.
  [[nodiscard]] bool missing() const;
  [[nodiscard]] bool is_object() const { return kind() == Kind::kObject; }
  [[nodiscard]] bool is_array() const { return kind() == Kind::kArray; }
  [[nodiscard]] bool is_string() const { return kind() == Kind::kString; }

  /// A member; absent when this is no object or has no such key.
  [[nodiscard]] Json get(std::string_view key) const;
  /// Members along a path; absent as soon as one is.
  template <class... Keys>
  [[nodiscard]] Json get(std::string_view key, std::string_view next, Keys... rest) const {
    return get(key).get(next, rest...);
  }
  /// Number of elements or members; 0 for anything else.
  [[nodiscard]] std::size_t size() const;
  /// An element; absent when out of range or this is no array.
  [[nodiscard]] Json at(std::size_t index) const;
  /// Members in document order; empty for anything but an object.
  [[nodiscard]] std::vector<std::pair<std::string_view, Json>> members() const;

  // Checked getters: an error says what was found and what was wanted.
  [[nodiscard]] Result<std::string_view> as_string() const;
  [[nodiscard]] Result<std::int64_t> as_int() const;
  [[nodiscard]] Result<bool> as_bool() const;
  /// The elements of an array of strings; they point into this document.
  [[nodiscard]] Result<std::vector<std::string_view>> as_strings() const;

  // Lenient getters: the fallback for a value that is missing or of another kind.
  [[nodiscard]] std::string_view string_or(std::string_view fallback) const;
  [[nodiscard]] std::int64_t int_or(std::int64_t fallback) const;
  [[nodiscard]] bool bool_or(bool fallback) const;

  /// A copy by itself: a value keeps the whole document alive that it was read from.
  [[nodiscard]] Json detached() const;

  /// Compact text.
  [[nodiscard]] std::string dump() const;
  /// Indented text (two spaces), members in order.
  [[nodiscard]] std::string pretty() const;

  /// This object with one member set (replaced in place or appended) or, with an absent value,
  /// removed. Anything but an object becomes an object.
  [[nodiscard]] Json with(std::string_view key, const Json& value) const;

  /// Deep equality; object members in any order.
  friend bool operator==(const Json& a, const Json& b);

  struct Access;  ///< For the codec's own sources.

 private:
  std::shared_ptr<const void> document_;  ///< Owns the memory node_ points into.
  const void* node_ = nullptr;
};

/// What a value is, for messages: `string "a"`, `3`, `an array`, `nothing`.
[[nodiscard]] std::string describe(const Json& value);

/// RFC 7386: `patch` applied to `target`.
[[nodiscard]] Json merge_patch(const Json& target, const Json& patch);

}  // namespace muster::kube

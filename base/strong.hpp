#pragma once
// Strong types: a name of one kind never passes for a name of another.

#include <fmt/format.h>

#include <compare>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

/// An explicitly constructed value of type Rep. No conversion out: use value().
template <class Tag, class Rep>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(std::move(value)) {}
  /// For string representations: from any text.
  constexpr explicit Strong(std::string_view text)
    requires std::same_as<Rep, std::string>
      : value_(text) {}
  constexpr explicit Strong(const char* text)
    requires std::same_as<Rep, std::string>
      : value_(text) {}

  [[nodiscard]] constexpr const Rep& value() const { return value_; }
  [[nodiscard]] constexpr bool empty() const
    requires std::same_as<Rep, std::string>
  {
    return value_.empty();
  }
  auto operator<=>(const Strong&) const = default;
  bool operator==(const Strong&) const = default;

 private:
  Rep value_{};
};

/// A strong text of which many copies are kept: they share it. As Strong<Tag, std::string> in all
/// else. Safe to copy from any thread.
template <class Tag>
class SharedStrong {
 public:
  using rep = std::string;
  SharedStrong() = default;
  explicit SharedStrong(std::string text)
      : text_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}
  explicit SharedStrong(std::string_view text) : SharedStrong(std::string(text)) {}
  explicit SharedStrong(const char* text) : SharedStrong(std::string(text)) {}

  [[nodiscard]] const std::string& value() const {
    static const std::string kEmpty;
    return text_ ? *text_ : kEmpty;
  }
  [[nodiscard]] bool empty() const { return text_ == nullptr; }
  friend std::strong_ordering operator<=>(const SharedStrong& a, const SharedStrong& b) {
    return a.text_ == b.text_ ? std::strong_ordering::equal : a.value() <=> b.value();
  }
  friend bool operator==(const SharedStrong& a, const SharedStrong& b) {
    return a.text_ == b.text_ || a.value() == b.value();
  }

 private:
  std::shared_ptr<const std::string> text_;  ///< nullptr: empty.
};

}  // namespace muster

template <class Tag, class Rep>
struct std::hash<muster::Strong<Tag, Rep>> {
  std::size_t operator()(const muster::Strong<Tag, Rep>& strong) const noexcept {
    return std::hash<Rep>{}(strong.value());
  }
};

template <class Tag, class Rep>
struct fmt::formatter<muster::Strong<Tag, Rep>> : fmt::formatter<Rep> {
  template <class Context>
  auto format(const muster::Strong<Tag, Rep>& strong, Context& context) const {
    return fmt::formatter<Rep>::format(strong.value(), context);
  }
};

template <class Tag>
struct std::hash<muster::SharedStrong<Tag>> {
  std::size_t operator()(const muster::SharedStrong<Tag>& strong) const noexcept {
    return std::hash<std::string>{}(strong.value());
  }
};

template <class Tag>
struct fmt::formatter<muster::SharedStrong<Tag>> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const muster::SharedStrong<Tag>& strong, Context& context) const {
    return fmt::formatter<std::string>::format(strong.value(), context);
  }
};

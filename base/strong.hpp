#pragma once
// Strong types: a name of one kind never passes for a name of another.

#include <fmt/format.h>

#include <compare>
#include <functional>
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

#pragma once
// Integers written out in annotations and labels.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace muster {

/// Nothing when the text is anything but one decimal number (`-` allowed, no `+`, no blanks) that
/// 64 bits hold.
[[nodiscard]] inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace muster

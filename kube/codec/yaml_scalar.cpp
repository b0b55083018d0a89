#include "kube/codec/yaml_scalar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace muster::kube {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 11> kTrue{"true", "True", "TRUE", "yes", "Yes", "YES",
                                                 "on",   "On",   "ON",   "y",   "Y"};
constexpr std::array<std::string_view, 11> kFalse{"false", "False", "FALSE", "no", "No", "NO",
                                                  "off",   "Off",   "OFF",   "n",  "N"};

template <class Integer>
std::optional<Integer> read_all(std::string_view digits, int base) {
  Integer value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// A whole number with an optional base prefix, as decimal text.
std::optional<std::string> resolve_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = text[1];
    if (mark == 'x' || mark == 'X') base = 16;
    if (mark == 'o' || mark == 'O') base = 8;
    if (mark == 'b' || mark == 'B') base = 2;
    text.remove_prefix(base == 10 ? 1 : 2);
    if (base == 10) base = 8;
  }
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto magnitude = read_all<std::uint64_t>(text, base);
  constexpr std::uint64_t kMinMagnitude = std::uint64_t{1} << 63U;
  if (!magnitude || (negative && *magnitude > kMinMagnitude)) return std::nullopt;
  return fmt::format("{}{}", negative && *magnitude != 0 ? "-" : "", *magnitude);
}

/// `[sign] (.digits | digits [. digits]) [e [sign] digits]`
bool looks_like_float(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t start = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > start;
  };
  const auto sign = [&] {
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  };
  sign();
  const bool whole = digits();
  bool fraction = false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = digits();
  }
  if (!whole && !fraction) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    sign();
    if (!digits()) return false;
  }
  return at == text.size();
}

std::optional<std::string> resolve_float(std::string_view text) {
  if (!looks_like_float(text)) return std::nullopt;
  if (text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return fmt::format("{}", value);
}

/// `12`, `1.5Gi`, `500m`: a number followed by letters, which no reader takes for a number.
bool is_plain_quantity(std::string_view text) {
  const std::size_t letters = std::min(text.find_first_not_of("0123456789."), text.size());
  static constexpr std::array<std::string_view, 14> kSuffixes{
      "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  return is_one_of(text.substr(letters), kSuffixes);
}

}  // namespace

std::optional<std::string> resolve_plain_scalar(std::string_view text) {
  if (is_one_of(text, kNull)) return "null";
  if (is_one_of(text, kTrue)) return "true";
  if (is_one_of(text, kFalse)) return "false";
  const char first = text.front();
  if (!is_digit(first) && first != '-' && first != '+' && first != '.') return std::nullopt;
  std::string digits(text);
  if (first != '.') std::erase(digits, '_');
  if (auto integer = resolve_integer(digits)) return integer;
  return resolve_float(digits);
}

bool safe_as_plain_scalar(std::string_view text) {
  if (text.empty() || text.back() == ' ' || text.back() == ':') return false;
  const char first = text.front();
  if (is_digit(first)) return is_plain_quantity(text);
  if (!is_letter(first) && first != '_' && first != '/') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool harmless = is_letter(c) || is_digit(c) ||
                          std::string_view("-_./@+=()*$;<>^~").find(c) != std::string_view::npos;
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    const bool inner = (c == ' ' && next != '#') || (c == ':' && next != ' ') || (c == ',') ||
                       (c == '\'') || (c == '"');
    if (!harmless && !inner) return false;
  }
  return !resolve_plain_scalar(text).has_value();
}

}  // namespace muster::kube

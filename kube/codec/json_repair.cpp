#include "kube/codec/json_repair.hpp"

#include "kube/codec/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace muster::kube {
namespace {

constexpr std::size_t kEscapeLength = 6;  // \uABCD

std::string_view view(std::span<char> text) {
  return {text.data(), text.size()};
}

/// The value of a \uABCD escape at the start of `text`; 0 when there is none.
unsigned read_escape(std::string_view text) {
  unsigned value = 0;
  if (text.size() < kEscapeLength || !text.starts_with("\\u")) return 0;
  const char* const end = text.data() + kEscapeLength;
  const auto read = std::from_chars(text.data() + 2, end, value, 16);
  return read.ec == std::errc() && read.ptr == end ? value : 0;
}
bool is_first_half(unsigned value) {
  return value >= 0xD800 && value <= 0xDBFF;
}
bool is_second_half(unsigned value) {
  return value >= 0xDC00 && value <= 0xDFFF;
}

/// Behind the string whose opening quote is at `at`; the end when it is not closed.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

std::size_t count_digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

/// The length of the number at the start of `text` as JSON spells numbers; 0 when there is none.
std::size_t number_length(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t whole = count_digits(text.substr(at));
  if (whole == 0 || (whole > 1 && text[at] == '0')) return 0;
  at += whole;
  if (text.substr(at).starts_with('.')) {
    const std::size_t fraction = count_digits(text.substr(at + 1));
    if (fraction == 0) return 0;
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = count_digits(text.substr(at));
    if (exponent == 0) return 0;
    at += exponent;
  }
  return at;
}

/// What to write for a number; nothing when it may stay. RapidJSON refuses even zero with an
/// exponent above 308.
std::string_view replacement(std::string_view number) {
  double value = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc())
    return "null";
  return value == 0 && number.find_first_of("eE") != std::string_view::npos ? "0.0" : "";
}

}  // namespace

void repair_utf8(std::span<char> text) {
  for (;;) {
    const std::size_t valid = valid_utf8_prefix(view(text));
    if (valid == text.size()) return;
    text[valid] = '?';
    text = text.subspan(valid + 1);
  }
}

void repair_surrogates(std::span<char> text) {
  const std::string_view all = view(text);
  std::size_t at = all.find('\\');
  while (at < all.size()) {
    const unsigned value = read_escape(all.substr(at));
    if (is_first_half(value) && is_second_half(read_escape(all.substr(at + kEscapeLength)))) {
      at += 2 * kEscapeLength;
    } else if (is_first_half(value) || is_second_half(value)) {
      std::copy_n("\\u003f", kEscapeLength, text.begin() + static_cast<std::ptrdiff_t>(at));
      at += kEscapeLength;
    } else {
      at += 2;
    }
    at = all.find('\\', at);
  }
}

void repair_numbers(std::span<char> text) {
  const std::string_view all = view(text);
  std::size_t at = 0;
  while (at < all.size()) {
    if (all[at] == '"') {
      at = end_of_string(all, at);
    } else if (const std::size_t length = number_length(all.substr(at)); length > 0) {
      const std::string_view instead = replacement(all.substr(at, length));
      if (!instead.empty()) {
        std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), length, ' ');
        std::copy(instead.begin(), instead.end(), text.begin() + static_cast<std::ptrdiff_t>(at));
      }
      at += length;
    } else {
      // No number begins amid digits, and each digit is looked at but a few times.
      at += std::max<std::size_t>(1, count_digits(all.substr(at)));
    }
  }
}

}  // namespace muster::kube

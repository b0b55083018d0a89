#include "kube/codec/base64.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace muster::kube {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xFF;

constexpr std::array<std::uint8_t, 256> kDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  return digits;
}();

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t taken = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (k < taken ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text.push_back(k <= taken ? kAlphabet[group >> (18 - 6 * k) & 63U] : '=');
  }
  return text;
}

Result<std::string> base64_decode(std::string_view lines) {
  std::string text(lines);
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
  if (text.size() % 4 != 0) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("bad base64: {} characters (want a multiple of 4)", text.size()));
  }
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::string_view digits(text.data(), text.size() - padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t pending = 0;
  unsigned bits = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::uint8_t digit = kDigits[static_cast<unsigned char>(digits[i])];
    if (digit == kNoDigit) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("bad base64: unexpected character at {}", i));
    }
    pending = (pending << 6U | digit) & 0xFFFFFU;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<char>(pending >> bits & 0xFFU));
    }
  }
  return bytes;
}

}  // namespace muster::kube

#include "kube/codec/json_text.hpp"

#include <cstdint>
#include <cstring>

namespace muster::kube {
namespace {

/// The length of the well-formed character at the start of `text`, 0 when there is none: no
/// overlong form, no surrogate, nothing above U+10FFFF (Unicode 15, table 3-7).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  std::size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII characters at a time: nearly everything is ASCII.
    std::uint64_t block = 0;
    if (at + sizeof(block) <= text.size()) {
      std::memcpy(&block, text.data() + at, sizeof(block));
      if ((block & kHighBits) == 0) {
        at += sizeof(block);
        continue;
      }
    }
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

std::size_t find_control(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHighBits = 0x80 * kOnes;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t block = 0;
    if (at + sizeof(block) <= text.size()) {
      std::memcpy(&block, text.data() + at, sizeof(block));
      // Some byte below 0x20 borrows into its high bit.
      if (((block - 0x20 * kOnes) & ~block & kHighBits) == 0) {
        at += sizeof(block);
        continue;
      }
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') return at;
    ++at;
  }
  return at;
}

ByteKinds kinds_in(std::string_view text) {
  constexpr std::size_t kBlock = 64;  // Of a fixed size, so that compilers make vectors of it.
  unsigned char high = 0;
  unsigned char low = 0;
  unsigned char backslash = 0;
  const auto look = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    high = static_cast<unsigned char>(high | (byte & 0x80U));
    low = static_cast<unsigned char>(low | (byte < 0x20 ? 1U : 0U));
    backslash = static_cast<unsigned char>(backslash | (byte == '\\' ? 1U : 0U));
  };
  std::size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) look(text[at + i]);
  }
  for (; at < text.size(); ++at) look(text[at]);
  return ByteKinds{high != 0, low != 0, backslash != 0};
}

void append_json_string(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out.push_back('"');
  std::size_t copied = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text.substr(copied, i - copied));
    copied = i + 1;
    out.push_back('\\');
    switch (byte) {
      case '"':
      case '\\':
        out.push_back(static_cast<char>(byte));
        break;
      case '\n':
        out.push_back('n');
        break;
      case '\r':
        out.push_back('r');
        break;
      case '\t':
        out.push_back('t');
        break;
      default:
        out.append("u00");
        out.push_back(kHex[byte >> 4U]);
        out.push_back(kHex[byte & 0xFU]);
    }
  }
  out.append(text.substr(copied));
  out.push_back('"');
}

}  // namespace muster::kube

#include "kube/client/encoding.hpp"

#include <fmt/format.h>

namespace muster::kube {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// -1 for a character outside the alphabet.
int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

Result<std::string> decode_base64(std::string_view text) {
  std::string decoded;
  std::uint32_t bits = 0;
  int bit_count = 0;
  std::size_t characters = 0;
  bool padded = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    ++characters;
    if (c == '=') {
      padded = true;
      continue;
    }
    const int value = base64_value(c);
    if (value < 0 || padded) return fail(invalid_argument("bad base64"));
    bits = ((bits << 6U) | static_cast<std::uint32_t>(value)) & 0xFFFFFFU;
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      decoded += static_cast<char>((bits >> static_cast<unsigned>(bit_count)) & 0xFFU);
    }
  }
  if (characters % 4 != 0) return fail(invalid_argument("bad base64: the end is missing"));
  return decoded;
}

std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace muster::kube

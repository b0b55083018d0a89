#include "base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace muster {
namespace {

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr __int128 kNanosPerUnit = 1'000'000'000;
constexpr __int128 kNanosPerMilli = 1'000'000;

constexpr __int128 power_of_ten(int exponent) {
  __int128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

/// The largest magnitude kept for decimal text: 10^29 units.
constexpr int kMaxNanoDigits = 38;
constexpr __int128 kMaxNanos = power_of_ten(kMaxNanoDigits);

/// Binary text is capped at 2^63-1 units.
constexpr __int128 kMaxBinaryNanos = kInt64Max * kNanosPerUnit;

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// `[sign] digits [. digits] suffix`, taken apart but not yet understood.
struct Parts {
  bool negative = false;
  std::string_view whole;     ///< Without leading zeros.
  std::string_view fraction;  ///< Without trailing zeros.
  std::string_view suffix;
};

Parts split(std::string_view text) {
  Parts parts;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    parts.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const auto take_digits = [&text] {
    std::size_t length = 0;
    while (length < text.size() && is_digit(text[length])) ++length;
    const std::string_view digits = text.substr(0, length);
    text.remove_prefix(length);
    return digits;
  };
  parts.whole = take_digits();
  parts.whole.remove_prefix(std::min(parts.whole.find_first_not_of('0'), parts.whole.size()));
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    parts.fraction = take_digits();
    // npos + 1 is 0: a fraction of zeros only becomes empty.
    parts.fraction = parts.fraction.substr(0, parts.fraction.find_last_not_of('0') + 1);
  }
  parts.suffix = text;
  return parts;
}

struct Scale {
  int base = 10;
  int exponent = 0;
  Quantity::Format format = Quantity::Format::kDecimalSI;
};

constexpr std::array<std::string_view, 10> kDecimalSuffixes{"n", "u", "m", "",  "k",
                                                            "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinarySuffixes{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
/// Exponents beyond this change nothing: the value is zero, rounds up to a billionth, or is capped.
constexpr int kExponentClamp = 1 << 24;

std::optional<Scale> scale_of(std::string_view suffix) {
  for (std::size_t i = 0; i < kDecimalSuffixes.size(); ++i) {
    if (suffix == kDecimalSuffixes[i])
      return Scale{10, static_cast<int>(i) * 3 - 9, Quantity::Format::kDecimalSI};
  }
  for (std::size_t i = 1; i < kBinarySuffixes.size(); ++i) {
    if (suffix == kBinarySuffixes[i])
      return Scale{2, static_cast<int>(i) * 10, Quantity::Format::kBinarySI};
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  std::string_view digits = suffix.substr(1);
  if (digits.front() == '+') digits.remove_prefix(1);
  if (digits.empty() || digits.starts_with("+")) return std::nullopt;
  std::int64_t exponent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  // "e+-5": from_chars takes the minus that the plus before it forbids.
  if (suffix[1] == '+' && digits.front() == '-') return std::nullopt;
  exponent = std::clamp<std::int64_t>(exponent, -kExponentClamp, kExponentClamp);
  return Scale{10, static_cast<int>(exponent), Quantity::Format::kDecimalExponent};
}

/// The decimal number as billionths: the digits up to the billionth's place, one more when anything
/// is cut off. Exact for any number of digits.
__int128 decimal_nanos(const Parts& parts, int exponent) {
  const auto whole_size = static_cast<std::int64_t>(parts.whole.size());
  const auto total = whole_size + static_cast<std::int64_t>(parts.fraction.size());
  const auto digit = [&](std::int64_t i) {
    return i < whole_size ? parts.whole[static_cast<std::size_t>(i)]
                          : parts.fraction[static_cast<std::size_t>(i - whole_size)];
  };
  std::int64_t first = 0;
  while (first < total && digit(first) == '0') ++first;
  if (first == total) return 0;
  // How many of all digits stand before the billionth's place (may exceed their number).
  const std::int64_t kept = whole_size + exponent + 9;
  if (kept - first > kMaxNanoDigits) return kMaxNanos;
  __int128 nanos = 0;
  for (std::int64_t i = first; i < kept; ++i) nanos = nanos * 10 + (i < total ? digit(i) - '0' : 0);
  // Trailing zeros of the fraction are gone, but those of the whole part are not.
  for (std::int64_t i = std::max(first, kept); i < total; ++i) {
    if (digit(i) != '0') return nanos + 1;
  }
  return nanos;
}

/// The number times 2^exponent as billionths, rounded up, at most kMaxBinaryNanos.
__int128 binary_nanos(const Parts& parts, int exponent) {
  if (parts.whole.size() > 19) return kMaxBinaryNanos;
  __int128 whole = 0;
  for (const char c : parts.whole) whole = whole * 10 + (c - '0');
  const __int128 factor = __int128{1} << exponent;
  if (whole > kInt64Max / factor) return kMaxBinaryNanos;

  // The fraction from its last digit to its first: each step divides by ten, and dividing an
  // already floored value floors correctly, so only "was anything cut" must be remembered.
  const __int128 nanos_per_one = factor * kNanosPerUnit;
  __int128 fraction = 0;
  bool cut = false;
  for (auto at = parts.fraction.rbegin(); at != parts.fraction.rend(); ++at) {
    const __int128 scaled = (*at - '0') * nanos_per_one + fraction;
    cut = cut || scaled % 10 != 0;
    fraction = scaled / 10;
  }
  return std::min(whole * nanos_per_one + fraction + (cut ? 1 : 0), kMaxBinaryNanos);
}

std::string to_text(__int128 value) {
  // fmt prints __int128 only where its build says so; split in two 64-bit halves of 18 digits.
  constexpr __int128 kChunk = 1'000'000'000'000'000'000;
  const bool negative = value < 0;
  unsigned __int128 rest =
      negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string digits;
  if (rest >= static_cast<unsigned __int128>(kChunk)) {
    const auto low = static_cast<std::uint64_t>(rest % static_cast<unsigned __int128>(kChunk));
    rest /= static_cast<unsigned __int128>(kChunk);
    digits = fmt::format("{:018}", low);
    if (rest >= static_cast<unsigned __int128>(kChunk)) {
      const auto middle = static_cast<std::uint64_t>(rest % static_cast<unsigned __int128>(kChunk));
      rest /= static_cast<unsigned __int128>(kChunk);
      digits = fmt::format("{:018}", middle) + digits;
    }
  }
  digits = fmt::format("{}", static_cast<std::uint64_t>(rest)) + digits;
  return negative ? "-" + digits : digits;
}

std::int64_t ceil_div_saturating(__int128 value, __int128 by) {
  const __int128 quotient = value / by + (value % by > 0 ? 1 : 0);
  return static_cast<std::int64_t>(std::clamp<__int128>(quotient, -kInt64Max, kInt64Max));
}

bool is_memory_like(const ResourceName& resource) {
  const std::string& name = resource.value();
  return name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
}

}  // namespace

Result<Quantity> Quantity::parse(std::string_view text) {
  const Parts parts = split(text);
  const std::optional<Scale> scale = text.empty() ? std::nullopt : scale_of(parts.suffix);
  // A sign, a point or a suffix alone reads as zero: so the API server does.
  if (!scale) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("bad quantity \"{}\" (want e.g. \"500m\", \"2\", \"1.5Gi\")",
                            text.substr(0, 64)));
  }
  Quantity quantity;
  quantity.format_ = scale->format;
  quantity.nanos_ = scale->base == 2 ? binary_nanos(parts, scale->exponent)
                                     : decimal_nanos(parts, scale->exponent);
  if (parts.negative) quantity.nanos_ = -quantity.nanos_;
  return quantity;
}

Quantity Quantity::from_units(std::int64_t units, Format format) {
  Quantity quantity;
  quantity.nanos_ = units * kNanosPerUnit;
  quantity.format_ = format;
  return quantity;
}

Quantity Quantity::from_millis(std::int64_t millis) {
  Quantity quantity;
  quantity.nanos_ = millis * kNanosPerMilli;
  return quantity;
}

std::int64_t Quantity::units_ceil() const {
  return ceil_div_saturating(nanos_, kNanosPerUnit);
}
std::int64_t Quantity::millis_ceil() const {
  return ceil_div_saturating(nanos_, kNanosPerMilli);
}

std::string Quantity::to_string() const {
  if (nanos_ == 0) return "0";
  // Binary suffixes only for whole numbers of at least 1024, so that nothing is rounded.
  const __int128 units = nanos_ / kNanosPerUnit;
  if (format_ == Format::kBinarySI && nanos_ % kNanosPerUnit == 0 &&
      (units >= 1024 || units <= -1024)) {
    __int128 mantissa = units;
    std::size_t power = 0;
    while (mantissa % 1024 == 0 && power + 1 < kBinarySuffixes.size()) {
      mantissa /= 1024;
      ++power;
    }
    return to_text(mantissa) + std::string(kBinarySuffixes[power]);
  }
  __int128 mantissa = nanos_;
  int exponent = -9;
  const int largest = format_ == Format::kDecimalExponent ? std::numeric_limits<int>::max() : 18;
  while (mantissa % 1000 == 0 && exponent < largest) {
    mantissa /= 1000;
    exponent += 3;
  }
  if (format_ == Format::kDecimalExponent)
    return exponent == 0 ? to_text(mantissa) : fmt::format("{}e{}", to_text(mantissa), exponent);
  return to_text(mantissa) +
         std::string(kDecimalSuffixes[static_cast<std::size_t>(exponent + 9) / 3]);
}

Quantity operator+(Quantity a, Quantity b) {
  Quantity sum;
  sum.format_ = a.is_zero() ? b.format_ : a.format_;
  // Both are within ±10^38, so the sum of two may pass the range of 128 bits, but not by wrapping
  // unseen.
  if (__builtin_add_overflow(a.nanos_, b.nanos_, &sum.nanos_))
    sum.nanos_ = a.nanos_ < 0 ? -kMaxNanos : kMaxNanos;
  sum.nanos_ = std::clamp(sum.nanos_, -kMaxNanos, kMaxNanos);
  return sum;
}

Amount request_amount(const ResourceName& resource, Quantity quantity) {
  return Amount(resource.value() == "cpu" ? quantity.millis_ceil() : quantity.units_ceil());
}

Amount quota_amount(const ResourceName& resource, Quantity quantity) {
  // Beyond this many cores the milli value has no 64-bit form, so the quota is no bound.
  const std::int64_t limit = resource.value() == "cpu" ? kInt64Max / 1000 : kInt64Max;
  const bool unlimited = quantity.compare(Quantity::from_units(limit)) >= 0;
  return unlimited ? Amount::unlimited() : request_amount(resource, quantity);
}

std::string format_amount(const ResourceName& resource, Amount amount) {
  if (resource.value() == "cpu") return Quantity::from_millis(amount.value()).to_string();
  const auto format =
      is_memory_like(resource) ? Quantity::Format::kBinarySI : Quantity::Format::kDecimalSI;
  return Quantity::from_units(amount.value(), format).to_string();
}

}  // namespace muster

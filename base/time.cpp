#include "base/time.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace muster {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;
constexpr std::int64_t kSecondsPerDay = 86'400;

/// A cursor over ASCII text; every step says whether it succeeded.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] bool at_digit() const {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }
  bool skip(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool skip(std::string_view wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }
  int next_digit() {
    const int digit = rest_.front() - '0';
    rest_.remove_prefix(1);
    return digit;
  }
  /// Exactly `width` digits with a value in [low, high].
  bool number(int width, int low, int high, int& out) {
    int value = 0;
    for (int i = 0; i < width; ++i) {
      if (!at_digit()) return false;
      value = value * 10 + next_digit();
    }
    out = value;
    return value >= low && value <= high;
  }

 private:
  std::string_view rest_;
};

constexpr bool is_leap(std::int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

constexpr int days_in_month(std::int64_t year, int month) {
  constexpr std::array<int, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : kDays[static_cast<std::size_t>(month - 1)];
}

struct Date {
  std::int64_t year = 1970;
  int month = 1;
  int day = 1;
};

// Years that start in March put the leap day last, so that a month's start is a linear formula; an
// era is the 400 years after which the calendar repeats.
constexpr std::int64_t days_since_epoch(Date date) {
  const std::int64_t year = date.month <= 2 ? date.year - 1 : date.year;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const int march_month = date.month > 2 ? date.month - 3 : date.month + 9;
  const std::int64_t day_of_year = (153 * march_month + 2) / 5 + date.day - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

constexpr Date date_of(std::int64_t days) {
  const std::int64_t shifted = days + 719'468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const std::int64_t day_of_era = shifted - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t march_month = (5 * day_of_year + 2) / 153;
  const int month = static_cast<int>(march_month < 10 ? march_month + 3 : march_month - 9);
  return Date{year_of_era + era * 400 + (month <= 2 ? 1 : 0), month,
              static_cast<int>(day_of_year - (153 * march_month + 2) / 5 + 1)};
}

static_assert(days_since_epoch({1970, 1, 1}) == 0);
static_assert(days_since_epoch({2000, 2, 29}) == 11'016);
static_assert(date_of(11'016).day == 29);

constexpr std::int64_t floor_div(std::int64_t value, std::int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

std::string format_seconds(std::int64_t seconds) {
  const std::int64_t days = floor_div(seconds, kSecondsPerDay);
  const std::int64_t second_of_day = seconds - days * kSecondsPerDay;
  const Date date = date_of(days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", date.year, date.month, date.day,
                     second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
}

/// `Z` or `±hh:mm`, as seconds east of Greenwich.
bool scan_offset(Scanner& in, std::int64_t& seconds) {
  seconds = 0;
  if (in.skip('Z')) return true;
  const bool west = in.skip('-');
  int hours = 0;
  int minutes = 0;
  if ((!west && !in.skip('+')) || !in.number(2, 0, 24, hours) || !in.skip(':') ||
      !in.number(2, 0, 60, minutes))
    return false;
  seconds = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
  return true;
}

/// An optional fraction of a second; digits beyond microseconds are dropped.
bool scan_fraction(Scanner& in, std::int64_t& micros) {
  micros = 0;
  if (!in.skip('.') && !in.skip(',')) return true;
  if (!in.at_digit()) return false;
  for (std::int64_t unit = kMicrosPerSecond / 10; in.at_digit(); unit /= 10)
    micros += in.next_digit() * unit;
  return true;
}

}  // namespace

Result<Instant> parse_rfc3339(std::string_view text) {
  Scanner in(text);
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::int64_t micros = 0;
  std::int64_t offset = 0;
  const bool ok = in.number(4, 0, 9999, year) && in.skip('-') && in.number(2, 1, 12, month) &&
                  in.skip('-') && in.number(2, 1, days_in_month(year, month), day) &&
                  in.skip('T') && in.number(2, 0, 23, hour) && in.skip(':') &&
                  in.number(2, 0, 59, minute) && in.skip(':') && in.number(2, 0, 59, second) &&
                  scan_fraction(in, micros) && scan_offset(in, offset) && in.done();
  if (!ok) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("bad time \"{}\" (want RFC 3339, e.g. \"2026-11-29T16:00:00Z\")",
                            text.substr(0, 64)));
  }
  const std::int64_t seconds = days_since_epoch({year, month, day}) * kSecondsPerDay + hour * 3600 +
                               minute * 60 + second - offset;
  return Instant{seconds * kMicrosPerSecond + micros};
}

std::string format_rfc3339(Instant at) {
  return format_seconds(floor_div(at.us, kMicrosPerSecond)) + "Z";
}

std::string format_rfc3339_micro(Instant at) {
  const std::int64_t seconds = floor_div(at.us, kMicrosPerSecond);
  // floor_div rounds down, so the product stays within one second of `at` and cannot overflow
  // further than the last representable second: take the remainder directly.
  const std::int64_t remainder = at.us % kMicrosPerSecond;
  const std::int64_t micros = remainder < 0 ? remainder + kMicrosPerSecond : remainder;
  return fmt::format("{}.{:06}Z", format_seconds(seconds), micros);
}

Result<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::int64_t nanos;
  };
  // Longer names first where one is the prefix of another. The two micro signs are U+00B5 and
  // U+03BC.
  static constexpr std::array<Unit, 8> kUnits{{{"ns", 1},
                                               {"us", 1'000},
                                               {"\xC2\xB5s", 1'000},
                                               {"\xCE\xBCs", 1'000},
                                               {"ms", 1'000'000},
                                               {"s", 1'000'000'000},
                                               {"m", 60'000'000'000},
                                               {"h", 3'600'000'000'000}}};
  const auto bad = [&] {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("bad duration \"{}\" (want e.g. \"1h30m\" or \"500ms\")", text.substr(0, 64)));
  };
  Scanner in(text);
  const bool negative = in.skip('-');
  if (!negative) in.skip('+');
  if (in.done()) return bad();
  if (in.skip('0') && in.done()) return Duration(0);

  in = Scanner(text);
  if (!in.skip('-')) in.skip('+');
  constexpr __int128 kMaxNanos = std::numeric_limits<std::int64_t>::max();
  __int128 total = 0;
  while (!in.done()) {
    __int128 whole = 0;
    __int128 fraction = 0;
    __int128 scale = 1;
    bool any = false;
    for (; in.at_digit(); any = true) {
      whole = whole * 10 + in.next_digit();
      if (whole > kMaxNanos) return bad();
    }
    if (in.skip('.')) {
      for (; in.at_digit(); any = true) {
        const int digit = in.next_digit();
        // Digits finer than any unit can show are dropped.
        if (scale < 1'000'000'000'000'000) {
          fraction = fraction * 10 + digit;
          scale *= 10;
        }
      }
    }
    if (!any) return bad();
    const Unit* unit = nullptr;
    for (const Unit& candidate : kUnits) {
      if (in.skip(candidate.name)) {
        unit = &candidate;
        break;
      }
    }
    if (unit == nullptr) return bad();
    total += whole * unit->nanos + fraction * unit->nanos / scale;
    if (total > kMaxNanos) return bad();
  }
  const auto micros = static_cast<std::int64_t>(total / 1000);
  return Duration(negative ? -micros : micros);
}

}  // namespace muster

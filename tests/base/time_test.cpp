#include "base/time.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kSecond = 1'000'000;

TEST(Rfc3339, IsReadToTheMicrosecond) {
  const struct {
    const char* text;
    std::int64_t us;
  } cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1970-01-01T00:00:01.5Z", 1'500'000},
      {"2000-02-29T12:00:00Z", 951'825'600 * kSecond},
      {"2026-11-29T16:00:00Z", 1'795'968'000 * kSecond},
      {"2026-11-29T16:00:00.000001Z", 1'795'968'000 * kSecond + 1},
      {"2026-11-29T16:00:00.123456789Z", 1'795'968'000 * kSecond + 123'456},
      {"2026-11-29T18:30:00+02:30", 1'795'968'000 * kSecond},
      {"2026-11-29T15:00:00-01:00", 1'795'968'000 * kSecond},
      {"1969-12-31T23:59:59Z", -kSecond},
      {"0000-01-01T00:00:00Z", -62'167'219'200 * kSecond},
      {"9999-12-31T23:59:59Z", 253'402'300'799 * kSecond},
  };
  for (const auto& each : cases) {
    const Result<Instant> at = parse_rfc3339(each.text);
    ASSERT_TRUE(at) << each.text;
    EXPECT_EQ(at->us, each.us) << each.text;
  }
}

TEST(Rfc3339, RefusesWhatTheApiServerWouldNotWrite) {
  for (const char* text : {"",
                           "now",
                           "2026-11-29",
                           "2026-11-29T16:00:00",
                           "2026-11-29 16:00:00Z",
                           "2026-11-29t16:00:00z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-02-29T00:00:00Z",
                           "1900-02-29T00:00:00Z",
                           "2026-04-31T00:00:00Z",
                           "2026-11-29T24:00:00Z",
                           "2026-11-29T16:60:00Z",
                           "2026-11-29T16:00:60Z",
                           "2026-11-29T16:00:00.Z",
                           "2026-11-29T16:00:00Zx",
                           "2026-11-29T16:00:00+1:00",
                           "2026-11-29T16:00:00+25:00",
                           "26-11-29T16:00:00Z",
                           "+026-11-29T16:00:00Z"}) {
    const Result<Instant> at = parse_rfc3339(text);
    ASSERT_FALSE(at) << text;
    EXPECT_EQ(at.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Rfc3339, IsWrittenInSecondsOrMicroseconds) {
  const Instant at{1'795'968'000 * kSecond + 1};
  EXPECT_EQ(format_rfc3339(at), "2026-11-29T16:00:00Z");
  EXPECT_EQ(format_rfc3339_micro(at), "2026-11-29T16:00:00.000001Z");
  // Before the epoch the second is the one that has begun.
  EXPECT_EQ(format_rfc3339(Instant{-1}), "1969-12-31T23:59:59Z");
  EXPECT_EQ(format_rfc3339_micro(Instant{-1}), "1969-12-31T23:59:59.999999Z");
  // No input, however far off, does harm.
  EXPECT_FALSE(format_rfc3339_micro(Instant{std::numeric_limits<std::int64_t>::min()}).empty());
  EXPECT_FALSE(format_rfc3339_micro(Instant{std::numeric_limits<std::int64_t>::max()}).empty());
}

TEST(Rfc3339, SurvivesBothDirections) {
  EXPECT_TRUE(rc::check([] {
    const Instant at{
        *rc::gen::inRange<std::int64_t>(-62'167'219'200 * kSecond, 253'402'300'800 * kSecond)};
    const Result<Instant> again = parse_rfc3339(format_rfc3339_micro(at));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == at);
  }));
}

TEST(Duration, IsReadAsGoWritesIt) {
  const struct {
    const char* text;
    Duration wanted;
  } cases[] = {
      {"0", Duration(0)},
      {"-0", Duration(0)},
      {"0s", Duration(0)},
      {"1h30m", minutes(90)},
      {"1.5h", minutes(90)},
      {"500ms", milliseconds(500)},
      {"-5s", seconds(-5)},
      {"+5s", seconds(5)},
      {".5s", milliseconds(500)},
      {"1.s", seconds(1)},
      {"3us", microseconds(3)},
      {"3\xC2\xB5s", microseconds(3)},
      {"3\xCE\xBCs", microseconds(3)},
      {"1999ns", microseconds(1)},
      {"1h1m1s1ms1us1ns", hours(1) + minutes(1) + seconds(1) + milliseconds(1) + microseconds(1)},
      {"0.0000000000000000000000000000001h", Duration(0)},
      {"2562047h", hours(2'562'047)},
      // One third of an hour, as far as its digits go.
      {"0.33333333333333333333h", Duration(1'199'999'999)},
  };
  for (const auto& each : cases) {
    const Result<Duration> duration = parse_duration(each.text);
    ASSERT_TRUE(duration) << each.text;
    EXPECT_EQ(duration->count(), each.wanted.count()) << each.text;
  }
}

TEST(Duration, NeedsANumberAndAUnit) {
  for (const char* text : {"", "-", "+", "5", "s", ".s", "1 h", "1h ", "1d", "1h30", "--1s", "1e3s",
                           "2562048h", "99999999999999999999s", "9223372036854775808ns"}) {
    const Result<Duration> duration = parse_duration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_NE(duration.error().message.find("bad duration"), std::string::npos);
  }
}

}  // namespace
}  // namespace muster

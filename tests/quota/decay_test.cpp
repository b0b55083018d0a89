#include "quota/decay.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace muster::quota {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const ResourceName kCpu("cpu");
const ResourceName kGpu("nvidia.com/gpu");

std::int64_t nanos(FineAmount amount, const ResourceName& resource) {
  return static_cast<std::int64_t>(amount.nanos(resource));
}

TEST(Decay, HalvesInEachHalfLife) {
  struct Case {
    const char* says;
    Duration elapsed;
    std::int64_t kept_nanos;  ///< Of one GPU.
  };
  const std::vector<Case> cases{
      {"nothing at once", Duration(0), 1'000'000'000},
      {"a half", minutes(10), 500'000'000},
      {"a quarter", minutes(20), 250'000'000},
      {"the root of a half", minutes(5), 707'106'781},   // 0.5^0.5 = 0.70710678118…
      {"a thousandth and less", minutes(100), 976'563},  // 2^-10 = 0.0009765625
      {"2^(-1/600)", seconds(1), 998'845'422},           // 0.99884542190…
      {"nothing in the end", hours(24), 0},
      {"none for time that went back", -minutes(5), 1'000'000'000},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    const Decay decay(each.elapsed, minutes(10));
    EXPECT_EQ(nanos(decay.kept(FineAmount(Amount(1))), kGpu), each.kept_nanos);
  }
  EXPECT_TRUE(Decay(seconds(1), Duration(0)).kept(FineAmount(Amount(1))).is_zero());
  EXPECT_TRUE(Decay(seconds(1), -seconds(1)).kept(FineAmount(Amount(1))).is_zero());
}

TEST(Decay, IsAsNearAsItSays) {
  // Against the double, which is good to 2^-53, over the whole range.
  for (std::int64_t i = 1; i < 4'000; ++i) {
    const Duration elapsed(i * 1'234'567);
    const Decay decay(elapsed, hours(1));
    const double exact = std::exp2(-static_cast<double>(elapsed.count()) / 3.6e9);
    EXPECT_NEAR(static_cast<double>(decay.factor()) / std::exp2(64), exact, 1e-15) << i;
  }
}

TEST(Decay, SmallIncrementsAreNotLost) {
  // One GPU for a second, with a half life of a week: 1.146e-6 of a GPU each time, and in the end
  // what one step over the whole time gives.
  const Duration week = hours(168);
  const Decay step(seconds(1), week);
  FineAmount consumed;
  for (int i = 0; i < 3'600; ++i) {
    FineAmount next = step.kept(consumed);
    next += step.gained(Amount(1));
    EXPECT_GT(next, consumed);
    consumed = next;
  }
  const FineAmount at_once = Decay(hours(1), week).gained(Amount(1));
  EXPECT_EQ(nanos(consumed, kGpu), nanos(at_once, kGpu));
  EXPECT_EQ(nanos(at_once, kGpu), 4'117'376);  // 1 - 2^(-1/168)
}

TEST(Decay, SteadyUseIsAFixedPoint) {
  const Decay decay(seconds(7), minutes(11));
  FineAmount next = decay.kept(FineAmount(Amount(12'345)));
  next += decay.gained(Amount(12'345));
  EXPECT_EQ(next, FineAmount(Amount(12'345)));
}

TEST(FineAmount, IsThousandthsOfACoreAndCountsOfAllElse) {
  EXPECT_EQ(nanos(FineAmount(Amount(1'500)), kCpu), 1'500'000'000);
  EXPECT_EQ(nanos(FineAmount(Amount(3)), kGpu), 3'000'000'000);
  EXPECT_TRUE(FineAmount(Amount(-3)).is_zero());
  EXPECT_TRUE(FineAmount::from_nanos(kGpu, -1).is_zero());
}

TEST(FineAmount, SurvivesBeingWrittenDown) {
  EXPECT_TRUE(rc::check("billionths there and back", [] {
    const ResourceName& resource = *rc::gen::arbitrary<bool>() ? kCpu : kGpu;
    const __int128 value =
        __int128{*rc::gen::inRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max())} *
        *rc::gen::inRange<std::int64_t>(1, 1'000'000);
    RC_ASSERT(FineAmount::from_nanos(resource, value).nanos(resource) == value);
  }));
}

TEST(FineAmount, Saturates) {
  FineAmount most(Amount::unlimited());
  for (int i = 0; i < 5; ++i) most += most;
  FineAmount more = most;
  more += FineAmount(Amount(1));
  EXPECT_EQ(more, most);
  EXPECT_GT(most.nanos(kGpu), 0);
  EXPECT_EQ(FineAmount::from_nanos(kCpu, std::numeric_limits<__int128>::max()), most);
}

WeightedUse use(std::vector<std::pair<ResourceName, std::int64_t>> amounts, FairWeight queue = {},
                FairWeight resource = {}) {
  WeightedUse result;
  for (const auto& [name, amount] : amounts) {
    result.add(name, FineAmount(Amount(amount)), resource);
  }
  result.divide_by(queue);
  return result;
}

TEST(WeightedUse, ComparesExactly) {
  constexpr FairWeight kTwo{2'000'000'000};
  constexpr FairWeight kNone{0};
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  struct Case {
    const char* says;
    WeightedUse less;
    WeightedUse more;
  };
  const std::vector<Case> cases{
      {"a core is a count of one", use({{kCpu, 999}}), use({{kGpu, 1}})},
      {"resources add up", use({{kCpu, 1'000}, {kGpu, 1}}), use({{kGpu, 3}})},
      {"memory counts by the byte", use({{kGpu, 100}}), use({{ResourceName("memory"), 101}})},
      {"a weight of a resource multiplies", use({{kGpu, 1}}), use({{kGpu, 1}}, {}, kTwo)},
      {"a resource without weight does not count", use({{kGpu, 9}}, {}, kNone), use({{kGpu, 1}})},
      {"a weight of the queue divides", use({{kGpu, 3}}, kTwo), use({{kGpu, 2}})},
      {"a queue without weight is above all", use({{kGpu, kMost}}), use({}, kNone)},
      {"the largest differ by one thousandth", use({{kCpu, kMost - 1}}), use({{kCpu, kMost}})},
      {"no product overflows", use({{kGpu, kMost - 1}}, FairWeight{kMost}, FairWeight{kMost}),
       use({{kGpu, kMost}}, FairWeight{kMost}, FairWeight{kMost})},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.says);
    EXPECT_TRUE(each.less < each.more);
    EXPECT_FALSE(each.more < each.less);
  }
  EXPECT_EQ(use({{kGpu, 4}}, kTwo).compare(use({{kCpu, 2'000}})), std::strong_ordering::equal);
  EXPECT_EQ(use({{kGpu, 4}}, kNone).compare(use({}, kNone)), std::strong_ordering::equal);
}

}  // namespace
}  // namespace muster::quota

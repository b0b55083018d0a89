#include "base/amount.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

TEST(Amount, UnlimitedFollowsTheFourRules) {
  const Amount unlimited = Amount::unlimited();
  EXPECT_TRUE((unlimited + Amount(-5)).is_unlimited());
  EXPECT_TRUE((Amount(5) + unlimited).is_unlimited());
  EXPECT_TRUE((unlimited - Amount(5)).is_unlimited());
  EXPECT_EQ((Amount(5) - unlimited).value(), kMin);
  EXPECT_TRUE((unlimited - unlimited).is_zero());
}

TEST(Amount, SaturatesInsteadOfWrapping) {
  EXPECT_EQ((Amount(kMax - 1) + Amount(5)).value(), kMax);
  EXPECT_EQ((Amount(kMin) + Amount(-1)).value(), kMin);
  EXPECT_EQ((Amount(kMin) - Amount(1)).value(), kMin);
  EXPECT_EQ((Amount(kMax - 1) - Amount(-5)).value(), kMax);
  EXPECT_EQ((Amount(kMax / 2) * 3).value(), kMax);
  EXPECT_EQ((Amount(kMax / 2) * -3).value(), kMin);
  EXPECT_EQ((Amount(kMin) * -1).value(), kMax);
  EXPECT_EQ((Amount(7) * 6).value(), 42);
}

}  // namespace
}  // namespace muster

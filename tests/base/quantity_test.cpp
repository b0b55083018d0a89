#include "base/quantity.hpp"

#include "tests/base/quantity_cases.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>

namespace muster {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Quantity parsed(const std::string& text) {
  const Result<Quantity> quantity = Quantity::parse(text);
  EXPECT_TRUE(quantity) << text << ": " << (quantity ? "" : quantity.error().message);
  return quantity.value_or(Quantity());
}

TEST(Quantity, AnswersAsApimachineryDoes) {
  for (const QuantityCase& each : kQuantityCases) {
    const Quantity quantity = parsed(each.text);
    EXPECT_EQ(quantity.to_string(), each.canonical) << each.text;
    EXPECT_EQ(quantity.units_ceil(), each.units) << each.text;
    EXPECT_EQ(quantity.millis_ceil(), each.millis) << each.text;
  }
}

TEST(Quantity, RefusesWhatIsNoQuantity) {
  for (const char* text :
       {"",      " ",    "abc",   "1O",  "5.5.5", "--1", "+-1",   "1 Gi",     " 1",
        "1 ",    "0x10", "1_000", "1,5", "NaN",   "inf", "1Gib",  "1GB",      "1g",
        "1K",    "1ki",  "1i",    "1e",  "1e+",   "1e-", "1e+-5", "1e-+5",    "1e--1",
        "1e1.5", "1kk",  "1Kii",  "1m1", "1-1",   "1+1", "1E5i",  "\xC2\xBD", "1\n"}) {
    const Result<Quantity> quantity = Quantity::parse(text);
    ASSERT_FALSE(quantity) << text;
    EXPECT_EQ(quantity.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(quantity.error().message.find("bad quantity"), std::string::npos);
  }
}

TEST(Quantity, KeepsTheErrorShortForAHugeText) {
  const Result<Quantity> quantity = Quantity::parse(std::string(1 << 20, 'x'));
  ASSERT_FALSE(quantity);
  EXPECT_LT(quantity.error().message.size(), 200U);
}

TEST(Quantity, IsExactForAnyNumberOfDigits) {
  // The last digit is beyond a billionth: it rounds up, all others count.
  EXPECT_EQ(parsed("1." + std::string(5000, '0') + "1").to_string(), "1000000001n");
  EXPECT_EQ(parsed("1." + std::string(5000, '0')).to_string(), "1");
  EXPECT_EQ(parsed(std::string(5000, '0') + "1").to_string(), "1");
  // 9.99… rounds up in its billionth, to ten.
  EXPECT_EQ(parsed(std::string(5000, '9') + "e-4999").to_string(), "10");
  // 2^-1 Ki + 10^-20 Ki = 512 units and a crumb, which rounds up to one billionth.
  EXPECT_EQ(parsed("0.50000000000000000001Ki").to_string(), "512000000001n");
}

TEST(Quantity, CapsWhatNoResourceCanHold) {
  EXPECT_EQ(parsed("1e999999999").units_ceil(), kMax);
  EXPECT_EQ(parsed("-1e999999999").units_ceil(), -kMax);
  EXPECT_EQ(parsed("1e-999999999").to_string(), "1e-9");
  EXPECT_EQ(parsed("0e999999999").to_string(), "0");
  EXPECT_EQ(parsed("1000E").to_string(), "1000E");
  // Beyond 10^29 units both are the cap, so they are equal.
  EXPECT_EQ(parsed("1e30"), parsed("1e31"));
  EXPECT_FALSE(Quantity::parse("1e99999999999999999999"));
}

TEST(Quantity, AddsInTheFormatOfTheFirstThatIsNotZero) {
  EXPECT_EQ((parsed("1Gi") + parsed("512Mi")).to_string(), "1536Mi");
  EXPECT_EQ((parsed("0") + parsed("1Gi")).to_string(), "1Gi");
  EXPECT_EQ((parsed("1500m") + parsed("1Ki")).to_string(), "1025500m");
  EXPECT_EQ((parsed("1e29") + parsed("1e29")), parsed("1e29"));
  EXPECT_EQ((parsed("-1e29") + parsed("-1e29")), parsed("-1e29"));
  EXPECT_TRUE((parsed("100m") + parsed("-0.1")).is_zero());
}

TEST(Quantity, ComparesValuesWhateverTheirSpelling) {
  EXPECT_EQ(parsed("1"), parsed("1000m"));
  EXPECT_EQ(parsed("1024"), parsed("1Ki"));
  EXPECT_TRUE(parsed("999999999n").compare(parsed("1")) < 0);
  EXPECT_TRUE(parsed("10000T").compare(parsed("100Gi")) > 0);
  EXPECT_TRUE(parsed("-1n").is_negative());
  EXPECT_FALSE(parsed("-0").is_negative());
}

TEST(Quantity, IsMadeFromNumbers) {
  EXPECT_EQ(Quantity::from_units(8).to_string(), "8");
  EXPECT_EQ(Quantity::from_units(1 << 20, Quantity::Format::kBinarySI).to_string(), "1Mi");
  EXPECT_EQ(Quantity::from_millis(1500).to_string(), "1500m");
  EXPECT_EQ(Quantity::from_millis(2000).to_string(), "2");
  EXPECT_EQ(Quantity::from_units(std::numeric_limits<std::int64_t>::min()).units_ceil(), -kMax);
}

TEST(RequestAmount, CountsCpuInThousandthsAndTheRestInUnitsRoundedUp) {
  const ResourceName cpu("cpu");
  const ResourceName gpu("nvidia.com/gpu");
  EXPECT_EQ(request_amount(cpu, parsed("500m")), Amount(500));
  EXPECT_EQ(request_amount(cpu, parsed("1u")), Amount(1));
  EXPECT_EQ(request_amount(ResourceName("memory"), parsed("1.5Gi")), Amount(1610612736));
  EXPECT_EQ(request_amount(gpu, parsed("500m")), Amount(1));
  EXPECT_EQ(request_amount(gpu, parsed("9Ei")).value(), kMax);
  EXPECT_EQ(request_amount(cpu, parsed("9Ei")).value(), kMax);
}

TEST(QuotaAmount, IsUnlimitedFromWhereTheNumberHasNoBound) {
  const ResourceName cpu("cpu");
  const ResourceName gpu("nvidia.com/gpu");
  EXPECT_EQ(quota_amount(cpu, parsed("10")), Amount(10000));
  // INT64_MAX / 1000 = 9223372036854775 whole cores.
  EXPECT_EQ(quota_amount(cpu, parsed("9223372036854774")), Amount(9223372036854774000));
  EXPECT_FALSE(quota_amount(cpu, parsed("9223372036854774999m")).is_unlimited());
  EXPECT_TRUE(quota_amount(cpu, parsed("9223372036854775")).is_unlimited());
  EXPECT_EQ(quota_amount(gpu, parsed("9223372036854775806")), Amount(kMax - 1));
  EXPECT_TRUE(quota_amount(gpu, parsed("9223372036854775807")).is_unlimited());
  EXPECT_TRUE(quota_amount(gpu, parsed("12E")).is_unlimited());
}

TEST(FormatAmount, UsesTheSuffixesOfTheResource) {
  EXPECT_EQ(format_amount(ResourceName("cpu"), Amount(1500)), "1500m");
  EXPECT_EQ(format_amount(ResourceName("cpu"), Amount(2000)), "2");
  EXPECT_EQ(format_amount(ResourceName("memory"), Amount(1073741824)), "1Gi");
  EXPECT_EQ(format_amount(ResourceName("memory"), Amount(1000)), "1k");
  EXPECT_EQ(format_amount(ResourceName("ephemeral-storage"), Amount(10240)), "10Ki");
  EXPECT_EQ(format_amount(ResourceName("hugepages-2Mi"), Amount(4194304)), "4Mi");
  EXPECT_EQ(format_amount(ResourceName("nvidia.com/gpu"), Amount(8)), "8");
  EXPECT_EQ(format_amount(ResourceName("nvidia.com/gpu"), Amount(-2)), "-2");
  EXPECT_EQ(format_amount(ResourceName("pods"), Amount(10240)), "10240");
  EXPECT_EQ(format_amount(ResourceName("cpu"), Amount()), "0");
}

rc::Gen<std::string> any_quantity_text() {
  return rc::gen::map(
      rc::gen::tuple(
          rc::gen::element<std::string>("", "-", "+"),
          rc::gen::container<std::string>(rc::gen::inRange('0', '9')),
          rc::gen::container<std::string>(rc::gen::inRange('0', '9')),
          rc::gen::element<std::string>("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi",
                                        "Gi", "Ti", "Pi", "Ei", "e3", "E-5", "e+11")),
      [](const auto& parts) {
        const auto& [sign, whole, fraction, suffix] = parts;
        return sign + "1" + whole + (fraction.empty() ? "" : "." + fraction) + suffix;
      });
}

TEST(QuantityProperty, CanonicalTextIsTheSameQuantityAndStaysAsItIs) {
  EXPECT_TRUE(rc::check([] {
    const Result<Quantity> quantity = Quantity::parse(*any_quantity_text());
    RC_ASSERT(quantity.has_value());
    const Result<Quantity> again = Quantity::parse(quantity->to_string());
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == *quantity);
    RC_ASSERT(again->to_string() == quantity->to_string());
  }));
}

TEST(QuantityProperty, AmountsSurviveTheirText) {
  EXPECT_TRUE(rc::check([](std::int64_t value) {
    for (const char* name : {"cpu", "memory", "nvidia.com/gpu"}) {
      const ResourceName resource(name);
      const Amount amount(value == std::numeric_limits<std::int64_t>::min() ? 0 : value);
      const Result<Quantity> quantity = Quantity::parse(format_amount(resource, amount));
      RC_ASSERT(quantity.has_value());
      RC_ASSERT(request_amount(resource, *quantity) == amount);
    }
  }));
}

TEST(QuantityProperty, AdditionDoesNotDependOnTheOrder) {
  EXPECT_TRUE(rc::check([] {
    const Quantity a = Quantity::parse(*any_quantity_text()).value_or(Quantity());
    const Quantity b = Quantity::parse(*any_quantity_text()).value_or(Quantity());
    RC_ASSERT(a + b == b + a);
    RC_ASSERT(a + Quantity() == a);
  }));
}

}  // namespace
}  // namespace muster

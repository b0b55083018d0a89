// Quantities, times and durations: any text is read or refused, and what is read is printed so that
// it reads the same.

#include "base/quantity.hpp"
#include "base/time.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::fuzz::require;
  const std::string_view text = muster::fuzz::as_text(data, size);
  if (const auto quantity = muster::Quantity::parse(text)) {
    const auto again = muster::Quantity::parse(quantity->to_string());
    require(again.has_value() && *again == *quantity);
    require(again->to_string() == quantity->to_string());
    for (const char* name : {"cpu", "memory", "nvidia.com/gpu"}) {
      const muster::ResourceName resource(name);
      require(muster::request_amount(resource, *quantity) <=
              muster::quota_amount(resource, *quantity));
      require(
          !muster::format_amount(resource, muster::request_amount(resource, *quantity)).empty());
    }
    require(*quantity + muster::Quantity() == *quantity);
  }
  if (const auto at = muster::parse_rfc3339(text)) {
    const auto again = muster::parse_rfc3339(muster::format_rfc3339_micro(*at));
    // An offset can carry the first and last day out of the four-digit years.
    if (again) require(*again == *at);
  }
  static_cast<void>(muster::parse_duration(text));
  return 0;
}

#include "quota/decay.hpp"

#include <algorithm>
#include <limits>

namespace muster::quota {
namespace {

using Wide128 = unsigned __int128;

constexpr Wide128 kOne = Wide128{1} << 64U;

/// The largest r with r * r <= value.
constexpr std::uint64_t square_root(Wide128 value) {
  std::uint64_t root = 0;
  for (unsigned bit = 64; bit-- > 0;) {
    const std::uint64_t next = root | (std::uint64_t{1} << bit);
    if (Wide128{next} * next <= value) root = next;
  }
  return root;
}

/// 2^-(2^-i) * 2^64 for i = 1 … 63, each the square root of the one before; the first of 1/2.
constexpr std::array<std::uint64_t, 63> halvings() {
  std::array<std::uint64_t, 63> result{};
  std::uint64_t factor = std::uint64_t{1} << 63U;
  for (std::uint64_t& each : result) {
    factor = square_root(Wide128{factor} << 64U);
    each = factor;
  }
  return result;
}
constexpr std::array<std::uint64_t, 63> kHalvings = halvings();

/// parts * factor / 2^64 for factor <= 2^64.
Wide128 scaled(Wide128 parts, Wide128 factor) {
  const Wide128 high = parts >> 64U;
  const Wide128 low = static_cast<std::uint64_t>(parts);
  return high * factor + (low * factor >> 64U);
}

/// Billionths of an API unit in one unit of Amount: a thousandth of a core, or one.
std::uint64_t nanos_per_unit(const ResourceName& resource) {
  return resource.value() == "cpu" ? 1'000'000 : 1'000'000'000;
}

std::uint64_t non_negative(FairWeight weight) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, weight.nanos));
}

}  // namespace

FineAmount FineAmount::from_nanos(const ResourceName& resource, __int128 billionths) {
  FineAmount result;
  if (billionths <= 0) return result;
  const auto value = static_cast<Wide128>(billionths);
  const std::uint64_t per_unit = nanos_per_unit(resource);
  const Wide128 whole = value / per_unit;
  if (whole >= kOne) {
    result.parts_ = ~Parts{0};
  } else {
    result.parts_ = (whole << 64U) + ((value % per_unit) << 64U) / per_unit;
  }
  return result;
}

__int128 FineAmount::nanos(const ResourceName& resource) const {
  const std::uint64_t per_unit = nanos_per_unit(resource);
  const Wide128 whole = (parts_ >> 64U) * per_unit;
  const Wide128 rest = Wide128{static_cast<std::uint64_t>(parts_)} * per_unit;
  return static_cast<__int128>(whole + ((rest + (Wide128{1} << 63U)) >> 64U));
}

FineAmount& FineAmount::operator+=(FineAmount other) {
  const Parts sum = parts_ + other.parts_;
  parts_ = sum < parts_ ? ~Parts{0} : sum;
  return *this;
}

Decay::Decay(Duration elapsed, Duration half_life) {
  if (half_life.count() <= 0) return;
  const auto half = static_cast<std::uint64_t>(half_life.count());
  const auto past = static_cast<std::uint64_t>(std::max<std::int64_t>(0, elapsed.count()));
  const std::uint64_t whole = past / half;
  if (whole > 64) return;
  factor_ = kOne >> whole;
  // The rest of the quotient, bit by bit: each set bit is a factor of the table.
  Wide128 rest = past % half;
  for (const std::uint64_t halving : kHalvings) {
    rest *= 2;
    if (rest < half) continue;
    rest -= half;
    factor_ = factor_ * halving >> 64U;
  }
}

FineAmount Decay::kept(FineAmount amount) const {
  FineAmount result;
  result.parts_ = scaled(amount.parts_, factor_);
  return result;
}

FineAmount Decay::gained(Amount amount) const {
  FineAmount result;
  result.parts_ = scaled(FineAmount(amount).parts_, kOne - factor_);
  return result;
}

WeightedUse::Wide WeightedUse::times(const Wide& wide, std::uint64_t factor) {
  Wide result{};
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const Wide128 product = Wide128{wide[i]} * factor + carry;
    result[i] = static_cast<std::uint64_t>(product);
    carry = static_cast<std::uint64_t>(product >> 64U);
  }
  return result;
}

void WeightedUse::add(const ResourceName& resource, FineAmount amount, FairWeight resource_weight) {
  Wide term{static_cast<std::uint64_t>(amount.parts_),
            static_cast<std::uint64_t>(amount.parts_ >> 64U)};
  term = times(times(term, non_negative(resource_weight)), nanos_per_unit(resource) / 1'000'000);
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const Wide128 digit = Wide128{sum_[i]} + term[i] + carry;
    sum_[i] = static_cast<std::uint64_t>(digit);
    carry = static_cast<std::uint64_t>(digit >> 64U);
  }
}

void WeightedUse::divide_by(FairWeight queue_weight) {
  queue_weight_ = non_negative(queue_weight);
}

std::strong_ordering WeightedUse::compare(const WeightedUse& other) const {
  if (queue_weight_ == 0 || other.queue_weight_ == 0) {
    return (queue_weight_ == 0) <=> (other.queue_weight_ == 0);
  }
  const Wide mine = times(sum_, other.queue_weight_);
  const Wide theirs = times(other.sum_, queue_weight_);
  return std::lexicographical_compare_three_way(mine.rbegin(), mine.rend(), theirs.rbegin(),
                                                theirs.rend());
}

}  // namespace muster::quota

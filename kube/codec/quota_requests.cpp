#include "kube/codec/quota_requests.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

namespace muster::kube {
namespace {

constexpr __int128 kMost =
    (static_cast<__int128>(1) << 126) - 1 + (static_cast<__int128>(1) << 126);
constexpr __int128 kNanosPerUnit = 1'000'000'000;

/// mantissa / 10^scale. Sums and products are exact up to 38 digits; finer ones lose decimals (away
/// from zero), larger ones saturate.
class Decimal {
 public:
  Decimal() = default;
  /// Exact within the int64 range of units, clamped to it beyond.
  explicit Decimal(const Quantity& quantity) : scale_(9) {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    const std::int64_t units = quantity.units_ceil();
    mantissa_ = units * kNanosPerUnit;
    if (units != kMax && units != -kMax) {
      mantissa_ += (quantity + Quantity::from_units(-units)).nanos_saturated();
    }
    normalize();
  }

  friend Decimal operator*(Decimal a, Decimal b) {
    Decimal product;
    while (__builtin_mul_overflow(a.mantissa_, b.mantissa_, &product.mantissa_)) {
      Decimal& finer = a.scale_ > b.scale_ ? a : b;
      if (finer.scale_ == 0) {
        product.mantissa_ = a.is_negative() == b.is_negative() ? kMost : -kMost;
        break;
      }
      finer.drop_digit();
    }
    product.scale_ = a.scale_ + b.scale_;
    product.normalize();
    return product;
  }

  friend Decimal operator+(Decimal a, Decimal b) {
    Decimal sum;
    for (;;) {
      Decimal& finer = a.scale_ > b.scale_ ? a : b;
      sum.scale_ = finer.scale_;
      Decimal left = a;
      Decimal right = b;
      if (left.scale_up(sum.scale_) && right.scale_up(sum.scale_) &&
          !__builtin_add_overflow(left.mantissa_, right.mantissa_, &sum.mantissa_)) {
        break;
      }
      if (finer.scale_ == 0) {
        sum.mantissa_ = a.is_negative() ? -kMost : kMost;
        break;
      }
      finer.drop_digit();
    }
    sum.normalize();
    return sum;
  }

  [[nodiscard]] bool is_negative() const { return mantissa_ < 0; }

  /// Rounded up to the unit the resource is counted in; at least 0.
  [[nodiscard]] Amount to_request(const ResourceName& resource) const {
    if (mantissa_ <= 0) return Amount();
    Decimal value = *this;
    value.scale_ -= resource == ResourceName("cpu") ? 3 : 0;
    if (value.scale_ < 0 && !value.scale_up(0)) value.mantissa_ = kMost;
    while (value.scale_ > 0) value.drop_digit();
    constexpr __int128 kMax = std::numeric_limits<std::int64_t>::max();
    return Amount(static_cast<std::int64_t>(std::min(value.mantissa_, kMax)));
  }

 private:
  void normalize() {
    while (scale_ > 0 && mantissa_ % 10 == 0) {
      mantissa_ /= 10;
      --scale_;
    }
  }
  void drop_digit() {
    const __int128 rest = mantissa_ % 10;
    mantissa_ /= 10;
    if (rest != 0) mantissa_ += rest > 0 ? 1 : -1;
    --scale_;
  }
  /// False when it has no form of that scale.
  [[nodiscard]] bool scale_up(int scale) {
    for (; scale_ < scale; ++scale_) {
      if (__builtin_mul_overflow(mantissa_, static_cast<__int128>(10), &mantissa_)) return false;
    }
    return true;
  }

  __int128 mantissa_ = 0;
  int scale_ = 0;
};

using Decimals = std::map<ResourceName, Decimal>;

bool is_excluded(const ResourceName& resource, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
    return resource.value().starts_with(prefix);
  });
}

void add_to(Decimals& totals, const ResourceName& resource, const Decimal& amount) {
  Decimal& total = totals[resource];
  total = total + amount;
}

}  // namespace

ResourceList quota_requests(const PodSpec& spec, const ResourceRules& rules) {
  QuantityMap asked = effective_requests(spec);
  std::erase_if(
      asked, [&](const auto& entry) { return is_excluded(entry.first, rules.exclude_prefixes); });
  Decimals retained;
  Decimals generated;
  for (const auto& [resource, quantity] : asked) {
    const auto rule = std::find_if(
        rules.transformations.begin(), rules.transformations.end(),
        [&name = resource](const ResourceTransformation& each) { return each.input == name; });
    if (rule == rules.transformations.end() || rule->retain) {
      retained.emplace(resource, Decimal(quantity));
    }
    if (rule == rules.transformations.end()) continue;
    Decimal input(quantity);
    if (const auto factor = asked.find(rule->multiply_by); factor != asked.end()) {
      input = input * Decimal(factor->second);
    }
    for (const auto& [output, per_unit] : rule->outputs) {
      add_to(generated, output, input * Decimal(per_unit));
    }
  }
  for (const auto& [resource, amount] : generated) {
    add_to(retained, resource, amount.is_negative() ? Decimal() : amount);
  }
  ResourceList requests;
  for (const auto& [resource, amount] : retained) {
    requests.emplace(resource, amount.to_request(resource));
  }
  return requests;
}

}  // namespace muster::kube

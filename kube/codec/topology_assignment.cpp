// The two spellings of a topology assignment. v1beta1 lists every domain. v1beta2 lists slices:
// per level either one value for all domains of the slice or a root for each with a shared prefix
// and suffix, and pod counts either one for all or one each.

#include "kube/codec/object_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::kube {
namespace {

/// What the API allows in one slice, and far more nodes than a scheduler serves.
constexpr std::size_t kMaxDomains = 100'000;
constexpr std::size_t kMaxLevels = 16;
/// Prefixes are shared, so a small text can stand for a large assignment; this is where we stop.
constexpr std::size_t kMaxExpandedBytes = 64U << 20U;

class SliceReader {
 public:
  explicit SliceReader(TopologyAssignment& target) : target_(target) {}

  void read(const Reader& slice) {
    const Reader count_field = slice.get("domainCount");
    const auto count = static_cast<std::size_t>(count_field.integer(1, Reader::kInt32Max, 0));
    if (count == 0) return count_field.fail_unwanted("a number of domains");
    if (count > kMaxDomains - target_.domains.size())
      return count_field.fail(fmt::format("too many domains (want at most {})", kMaxDomains),
                              ErrorCode::kTooLarge);
    const std::size_t first = target_.domains.size();
    const Reader levels = slice.get("valuesPerLevel");
    if (levels.json().size() != target_.levels.size()) {
      return levels.fail(fmt::format("got values for {} levels, want {}", levels.json().size(),
                                     target_.levels.size()));
    }
    target_.domains.resize(first + count);
    bool fine = true;
    levels.each([&](const Reader& level) { fine = fine && read_level(level, first, count); });
    if (!fine) return;
    const Reader counts = slice.get("podCounts");
    read_counts(counts, first, count);
  }

 private:
  bool read_level(const Reader& level, std::size_t first, std::size_t count) {
    const Reader universal = level.get("universal");
    const Reader individual = level.get("individual");
    if (universal.missing() == individual.missing()) {
      level.fail("want exactly one of universal and individual");
      return false;
    }
    if (individual.missing()) {
      const std::string value = universal.string();
      if (!reserve(level, value.size() * count)) return false;
      for (std::size_t i = 0; i < count; ++i) target_.domains[first + i].values.push_back(value);
      return true;
    }
    const std::string prefix = individual.get("prefix").string();
    const std::string suffix = individual.get("suffix").string();
    const Reader roots = individual.get("roots");
    if (roots.json().size() != count) {
      roots.fail(fmt::format("got {} roots, want {}", roots.json().size(), count));
      return false;
    }
    if (!reserve(level, (prefix.size() + suffix.size()) * count)) return false;
    std::size_t at = first;
    roots.each([&](const Reader& root) {
      target_.domains[at++].values.push_back(prefix + root.string() + suffix);
    });
    return at == first + count;
  }

  void read_counts(const Reader& counts, std::size_t first, std::size_t count) {
    const Reader universal = counts.get("universal");
    const Reader individual = counts.get("individual");
    if (universal.missing() == individual.missing())
      return counts.fail("want exactly one of universal and individual");
    if (individual.missing()) {
      const std::int64_t pods = universal.count(0);
      for (std::size_t i = 0; i < count; ++i) target_.domains[first + i].count = pods;
      return;
    }
    if (individual.json().size() != count) {
      return individual.fail(
          fmt::format("got {} counts, want {}", individual.json().size(), count));
    }
    std::size_t at = first;
    individual.each([&](const Reader& pods) { target_.domains[at++].count = pods.count(0); });
  }

  bool reserve(const Reader& where, std::size_t bytes) {
    expanded_ += bytes;
    if (expanded_ <= kMaxExpandedBytes) return true;
    where.fail("the assignment expands too far", ErrorCode::kTooLarge);
    return false;
  }

  TopologyAssignment& target_;
  std::size_t expanded_ = 0;
};

void read_domains(const Reader& domains, TopologyAssignment& target) {
  domains.each([&](const Reader& domain) {
    TopologyDomain read;
    const Reader values = domain.get("values");
    read.values = values.strings();
    if (read.values.size() != target.levels.size()) {
      values.fail(fmt::format("got {} values, want {}", read.values.size(), target.levels.size()));
    }
    read.count = domain.get("count").count(0);
    target.domains.push_back(std::move(read));
  });
}

/// The longest text that all values begin (or, reversed, end) with.
std::size_t common_prefix(const std::vector<std::string_view>& values) {
  std::size_t length = values.front().size();
  for (const std::string_view value : values) {
    const std::size_t limit = std::min(length, value.size());
    length = 0;
    while (length < limit && value[length] == values.front()[length]) ++length;
  }
  return length;
}
std::size_t common_suffix(const std::vector<std::string_view>& values) {
  std::size_t length = values.front().size();
  for (const std::string_view value : values) {
    const std::size_t limit = std::min(length, value.size());
    length = 0;
    while (length < limit &&
           value[value.size() - 1 - length] == values.front()[values.front().size() - 1 - length])
      ++length;
  }
  return length;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Json encode_level(std::vector<std::string_view> values) {
  if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end())
    return Json::object({{"universal", Json::string(values.front())}});
  Json prefix;
  Json suffix;
  // Label values are ASCII; anything else is not cut, for a cut could split a character.
  if (std::all_of(values.begin(), values.end(), is_ascii)) {
    if (const std::size_t length = common_prefix(values); length > 0) {
      prefix = Json::string(values.front().substr(0, length));
      for (std::string_view& value : values) value.remove_prefix(length);
    }
    if (const std::size_t length = common_suffix(values); length > 0) {
      suffix = Json::string(values.front().substr(values.front().size() - length));
      for (std::string_view& value : values) value.remove_suffix(length);
    }
  }
  std::vector<Json> roots;
  roots.reserve(values.size());
  for (const std::string_view value : values) roots.push_back(Json::string(value));
  return Json::object(
      {{"individual",
        Json::object({{"prefix", prefix}, {"suffix", suffix}, {"roots", Json::array(roots)}})}});
}

Json encode_counts(const std::vector<TopologyDomain>& domains) {
  const bool same = std::all_of(domains.begin(), domains.end(), [&](const TopologyDomain& domain) {
    return domain.count == domains.front().count;
  });
  if (same) return Json::object({{"universal", Json::number(domains.front().count)}});
  std::vector<Json> counts;
  counts.reserve(domains.size());
  for (const TopologyDomain& domain : domains) counts.push_back(Json::number(domain.count));
  return Json::object({{"individual", Json::array(counts)}});
}

/// All domains in one slice: every level is one value, or roots with what they share cut off.
Json encode_slice(const TopologyAssignment& assignment) {
  std::vector<Json> levels;
  for (std::size_t level = 0; level < assignment.levels.size(); ++level) {
    std::vector<std::string_view> values;
    values.reserve(assignment.domains.size());
    for (const TopologyDomain& domain : assignment.domains)
      values.push_back(level < domain.values.size() ? std::string_view(domain.values[level])
                                                    : std::string_view());
    levels.push_back(encode_level(std::move(values)));
  }
  return Json::object(
      {{"domainCount", Json::number(static_cast<std::int64_t>(assignment.domains.size()))},
       {"valuesPerLevel", Json::array(levels)},
       {"podCounts", encode_counts(assignment.domains)}});
}

}  // namespace

TopologyAssignment read_topology_assignment(const Reader& assignment) {
  TopologyAssignment result;
  const Reader levels = assignment.get("levels");
  result.levels = levels.strings();
  if (result.levels.size() > kMaxLevels) {
    levels.fail(fmt::format("got {} levels, want at most {}", result.levels.size(), kMaxLevels));
    return result;
  }
  const Reader domains = assignment.get("domains");
  read_domains(domains, result);
  const Reader slices = assignment.get("slices");
  SliceReader slice_reader(result);
  slices.each([&](const Reader& slice) { slice_reader.read(slice); });
  return result;
}

Json encode_topology_assignment(const TopologyAssignment& assignment) {
  std::vector<Json> levels;
  levels.reserve(assignment.levels.size());
  for (const std::string& level : assignment.levels) levels.push_back(Json::string(level));
  std::vector<Json> slices;
  if (!assignment.domains.empty()) slices.push_back(encode_slice(assignment));
  return Json::object({{"levels", Json::array(levels)}, {"slices", Json::array(slices)}});
}

}  // namespace muster::kube

#pragma once
// Short spellings of cohorts and queues for tests.

#include "quota/quota_tree.hpp"

#include <optional>
#include <string>
#include <vector>

namespace muster::quota::testing {

/// Quota of one resource of flavor `f`, unless `flavor` says otherwise.
struct Line {
  std::int64_t nominal = 0;
  std::optional<std::int64_t> borrowing_limit = std::nullopt;
  std::optional<std::int64_t> lending_limit = std::nullopt;
  std::string resource = "cpu";
  std::string flavor = "f";
};

inline std::vector<ResourceGroup> groups(const std::vector<Line>& lines) {
  const auto amount = [](const std::optional<std::int64_t>& value) {
    return value ? std::optional(Amount(*value)) : std::nullopt;
  };
  std::vector<ResourceGroup> made;
  for (const Line& line : lines) {
    FlavorQuotas flavor;
    flavor.flavor = FlavorName(line.flavor);
    flavor.resources.emplace(
        ResourceName(line.resource),
        Quota{Amount(line.nominal), amount(line.borrowing_limit), amount(line.lending_limit)});
    made.push_back(ResourceGroup{{ResourceName(line.resource)}, {flavor}});
  }
  return made;
}

/// An empty parent name: none.
inline CohortSpec cohort(const std::string& name, const std::string& parent = "",
                         const std::vector<Line>& lines = {}) {
  CohortSpec spec;
  spec.name = CohortName(name);
  if (!parent.empty()) spec.parent = CohortName(parent);
  spec.resource_groups = groups(lines);
  return spec;
}

inline QueueQuotaSpec queue(const std::string& name, const std::string& parent = "",
                            const std::vector<Line>& lines = {}) {
  QueueQuotaSpec spec;
  spec.name = ClusterQueueName(name);
  if (!parent.empty()) spec.cohort = CohortName(parent);
  spec.resource_groups = groups(lines);
  return spec;
}

inline FrId fr(const QuotaTree& tree, const std::string& resource = "cpu",
               const std::string& flavor = "f") {
  return tree.find_fr(FlavorResource{FlavorName(flavor), ResourceName(resource)}).value();
}

/// The node of either kind with this name; a cohort wins.
inline NodeIndex node(const QuotaTree& tree, const std::string& name) {
  if (const auto found = tree.find_cohort(CohortName(name))) return *found;
  return tree.find_queue(ClusterQueueName(name)).value();
}

inline std::vector<std::string> names(const QuotaTree& tree, std::span<const NodeIndex> nodes) {
  std::vector<std::string> result;
  for (const NodeIndex index : nodes) result.push_back(tree.name(index));
  return result;
}

}  // namespace muster::quota::testing

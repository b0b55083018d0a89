#pragma once
// What a ClusterQueue or Cohort says about quota (kueue.x-k8s.io v1beta2 resourceGroups).

#include "base/amount.hpp"
#include "base/ids.hpp"

#include <map>
#include <optional>
#include <vector>

namespace muster::quota {

/// Quota of one resource of one flavor on one tree node.
struct Quota {
  Amount nominal;
  std::optional<Amount> borrowing_limit;  ///< Absent: may borrow without limit.
  std::optional<Amount> lending_limit;    ///< Absent: everything unused is lent.
  bool operator==(const Quota&) const = default;
};

struct FlavorQuotas {
  FlavorName flavor;
  std::map<ResourceName, Quota> resources;
  bool operator==(const FlavorQuotas&) const = default;
};

/// Flavors in the order they are tried; all cover the same resources.
struct ResourceGroup {
  std::vector<ResourceName> covered_resources;
  std::vector<FlavorQuotas> flavors;
  bool operator==(const ResourceGroup&) const = default;
};

/// One resource of one flavor: the unit that quota is counted in.
struct FlavorResource {
  FlavorName flavor;
  ResourceName resource;
  auto operator<=>(const FlavorResource&) const = default;
  bool operator==(const FlavorResource&) const = default;
};

/// Amounts per flavor and resource; an absent key is zero.
using FlavorAmounts = std::map<FlavorResource, Amount>;

/// fairSharing.weight in billionths (the API allows 1e-9 steps); absent in the object: 1.
struct FairWeight {
  std::int64_t nanos = 1'000'000'000;
  bool operator==(const FairWeight&) const = default;
};

struct CohortSpec {
  CohortName name;
  std::optional<CohortName> parent;
  std::vector<ResourceGroup> resource_groups;
  FairWeight fair_weight;
  bool operator==(const CohortSpec&) const = default;
};

/// The quota part of a ClusterQueue; the rest of its spec is engine::ClusterQueueSpec.
struct QueueQuotaSpec {
  ClusterQueueName name;
  std::optional<CohortName> cohort;  ///< Absent: a tree of its own, no borrowing.
  std::vector<ResourceGroup> resource_groups;
  FairWeight fair_weight;
  bool operator==(const QueueQuotaSpec&) const = default;
};

}  // namespace muster::quota

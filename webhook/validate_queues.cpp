// ClusterQueue, Cohort, LocalQueue, ResourceFlavor: what their CRD schemas cannot say.
// Rules: queueing semantics (i), webhooks.

#include "webhook/syntax.hpp"
#include "webhook/validate.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace muster::webhook {
namespace {

using kube::Json;

constexpr std::size_t kMaxFlavors = 256;
constexpr std::size_t kMaxCoveredResources = 256;
constexpr std::size_t kMaxQuotasPerGroup = 512;

/// Quotas stand in ClusterQueues and Cohorts, with two differences.
struct QuotaOwner {
  bool has_parent = false;        ///< A cohort (ClusterQueue) or a parent (Cohort): may borrow.
  const char* parent_field = "";  ///< What to set to be allowed to.
  bool lends_at_most_nominal = false;
};

std::string text_of(const Json& value) {
  return std::string(value.string_or(""));
}

void check_limit(const Json& limit, const char* name, const std::string& path,
                 const QuotaOwner& owner, FieldErrors& errors) {
  if (limit.missing()) return;
  check_quantity(limit, fmt::format("{}.{}", path, name), errors);
  if (owner.has_parent) return;
  errors.push_back({fmt::format("{}.{}", path, name), FieldErrorCode::kInvalid,
                    fmt::format("must be left out when {} is empty: there is nobody to borrow "
                                "from or lend to",
                                owner.parent_field)});
}

void check_quota(const Json& quota, const std::string& path, const QuotaOwner& owner,
                 FieldErrors& errors) {
  const Json nominal = quota.get("nominalQuota");
  const Json lending = quota.get("lendingLimit");
  std::optional<Quantity> has;
  if (nominal.missing()) {
    errors.push_back({path + ".nominalQuota", FieldErrorCode::kRequired, "want a quantity"});
  } else {
    has = check_quantity(nominal, path + ".nominalQuota", errors);
  }
  check_limit(quota.get("borrowingLimit"), "borrowingLimit", path, owner, errors);
  check_limit(lending, "lendingLimit", path, owner, errors);
  if (!owner.lends_at_most_nominal || !has || lending.missing()) return;
  FieldErrors reported_above;
  const auto lends = check_quantity(lending, path, reported_above);
  if (lends && lends->compare(*has) > 0) {
    errors.push_back({path + ".lendingLimit", FieldErrorCode::kInvalid,
                      fmt::format("{} is above nominalQuota {}: a queue lends what it has",
                                  lends->to_string(), has->to_string())});
  }
}

/// Resources of a flavor stand in the order of coveredResources.
void check_flavor_resources(const Json& flavor, const Json& covered, const std::string& path,
                            const QuotaOwner& owner, FieldErrors& errors) {
  const Json resources = flavor.get("resources");
  if (resources.size() != covered.size()) {
    errors.push_back({path + ".resources", FieldErrorCode::kInvalid,
                      fmt::format("{} resources, but coveredResources has {}: want one entry "
                                  "for each, in the same order",
                                  resources.size(), covered.size())});
  }
  for (std::size_t k = 0; k < resources.size(); ++k) {
    const Json quota = resources.at(k);
    const std::string at = fmt::format("{}.resources[{}]", path, k);
    const std::string name = text_of(quota.get("name"));
    if (k < covered.size() && name != covered.at(k).string_or("")) {
      errors.push_back({at + ".name", FieldErrorCode::kInvalid,
                        fmt::format("\"{}\" (want \"{}\", the order of coveredResources)", name,
                                    covered.at(k).string_or(""))});
    }
    check_quota(quota, at, owner, errors);
  }
}

void check_resource_groups(const Json& groups, const std::string& path, const QuotaOwner& owner,
                           FieldErrors& errors) {
  std::set<std::string> resources;
  std::set<std::string> flavors;
  std::size_t covered_count = 0;
  std::size_t flavor_count = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string group_path = fmt::format("{}[{}]", path, i);
    const Json covered = groups.at(i).get("coveredResources");
    const Json listed = groups.at(i).get("flavors");
    covered_count += covered.size();
    flavor_count += listed.size();
    for (std::size_t k = 0; k < covered.size(); ++k) {
      const std::string at = fmt::format("{}.coveredResources[{}]", group_path, k);
      const std::string name = text_of(covered.at(k));
      check_label_key(name, at, errors);
      if (!resources.insert(name).second) {
        errors.push_back(
            {at, FieldErrorCode::kDuplicate,
             fmt::format("\"{}\" is covered already: a resource belongs to one group", name)});
      }
    }
    for (std::size_t j = 0; j < listed.size(); ++j) {
      const std::string at = fmt::format("{}.flavors[{}]", group_path, j);
      const std::string name = text_of(listed.at(j).get("name"));
      if (!is_dns_subdomain(name)) {
        errors.push_back({at + ".name", FieldErrorCode::kInvalid,
                          fmt::format("\"{}\" is no name of a ResourceFlavor", name)});
      }
      if (!flavors.insert(name).second) {
        errors.push_back(
            {at + ".name", FieldErrorCode::kDuplicate,
             fmt::format("\"{}\" is listed already: a flavor belongs to one group", name)});
      }
      check_flavor_resources(listed.at(j), covered, at, owner, errors);
    }
    if (covered.size() * listed.size() > kMaxQuotasPerGroup) {
      errors.push_back({group_path, FieldErrorCode::kTooMany,
                        fmt::format("{} flavors x {} resources (want at most {} quotas)",
                                    listed.size(), covered.size(), kMaxQuotasPerGroup)});
    }
  }
  if (flavor_count > kMaxFlavors) {
    errors.push_back({path, FieldErrorCode::kTooMany,
                      fmt::format("{} flavors (want at most {})", flavor_count, kMaxFlavors)});
  }
  if (covered_count > kMaxCoveredResources) {
    errors.push_back({path, FieldErrorCode::kTooMany,
                      fmt::format("{} covered resources (want at most {})", covered_count,
                                  kMaxCoveredResources)});
  }
}

/// Zero means an infinite share; anything else must be above 1e-9, the finest step of a quantity.
void check_fair_weight(const Json& weight, const std::string& path, FieldErrors& errors) {
  if (weight.missing()) return;
  const auto parsed = check_quantity(weight, path, errors);
  const auto finest = Quantity::parse("1n");
  if (!parsed || !finest || parsed->is_zero()) return;
  if (parsed->compare(*finest) <= 0) {
    errors.push_back({path, FieldErrorCode::kInvalid, "too small (want 0 or more than 1e-9)"});
  }
}

void check_selector(const Json& selector, const std::string& path, FieldErrors& errors) {
  check_labels(selector.get("matchLabels"), path + ".matchLabels", errors);
  const Json expressions = selector.get("matchExpressions");
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const std::string at = fmt::format("{}.matchExpressions[{}]", path, i);
    const std::string op = text_of(expressions.at(i).get("operator"));
    const std::size_t values = expressions.at(i).get("values").size();
    check_label_key(expressions.at(i).get("key").string_or(""), at + ".key", errors);
    if (op == "In" || op == "NotIn") {
      if (values == 0) {
        errors.push_back({at + ".values", FieldErrorCode::kRequired, op + " needs values"});
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (values > 0) {
        errors.push_back({at + ".values", FieldErrorCode::kForbidden, op + " takes no values"});
      }
    } else {
      errors.push_back({at + ".operator", FieldErrorCode::kNotSupported,
                        fmt::format("\"{}\" (want In, NotIn, Exists or DoesNotExist)", op)});
    }
  }
}

void check_preemption(const Json& preemption, FieldErrors& errors) {
  const std::string reclaim = text_of(preemption.get("reclaimWithinCohort"));
  const std::string borrow = text_of(preemption.get("borrowWithinCohort", "policy"));
  if ((reclaim.empty() || reclaim == "Never") && !borrow.empty() && borrow != "Never") {
    errors.push_back(
        {"spec.preemption.borrowWithinCohort.policy", FieldErrorCode::kInvalid,
         fmt::format("\"{}\" needs reclaimWithinCohort LowerPriority or Any", borrow)});
  }
}

void check_admission_checks(const Json& spec, FieldErrors& errors) {
  std::set<std::string> own_flavors;
  const Json groups = spec.get("resourceGroups");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Json flavors = groups.at(i).get("flavors");
    for (std::size_t j = 0; j < flavors.size(); ++j) {
      own_flavors.insert(text_of(flavors.at(j).get("name")));
    }
  }
  const Json checks = spec.get("admissionChecksStrategy", "admissionChecks");
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Json on = checks.at(i).get("onFlavors");
    for (std::size_t k = 0; k < on.size(); ++k) {
      if (own_flavors.contains(text_of(on.at(k)))) continue;
      errors.push_back(
          {fmt::format("spec.admissionChecksStrategy.admissionChecks[{}].onFlavors[{}]", i, k),
           FieldErrorCode::kInvalid,
           fmt::format("\"{}\" is no flavor of this ClusterQueue", on.at(k).string_or(""))});
    }
  }
}

void check_taints(const Json& taints, FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < taints.size(); ++i) {
    const std::string at = fmt::format("spec.nodeTaints[{}]", i);
    const std::string key = text_of(taints.at(i).get("key"));
    check_label_key(key, at + ".key", errors);
    if (!is_label_value(taints.at(i).get("value").string_or(""))) {
      errors.push_back({at + ".value", FieldErrorCode::kInvalid, "is no label value"});
    }
    const std::string effect = text_of(taints.at(i).get("effect"));
    if (!seen.insert(fmt::format("{}:{}", key, effect)).second) {
      errors.push_back(
          {at, FieldErrorCode::kDuplicate, fmt::format("{}:{} is listed already", key, effect)});
    }
  }
}

}  // namespace

FieldErrors check_cluster_queue(const Json& object) {
  FieldErrors errors;
  const Json spec = object.get("spec");
  const std::string cohort = text_of(spec.get("cohortName"));
  if (!cohort.empty() && !is_dns_subdomain(cohort)) {
    errors.push_back({"spec.cohortName", FieldErrorCode::kInvalid,
                      fmt::format("\"{}\" is no name of a Cohort", cohort)});
  }
  const QuotaOwner owner{.has_parent = !cohort.empty(),
                         .parent_field = "spec.cohortName",
                         .lends_at_most_nominal = true};
  check_resource_groups(spec.get("resourceGroups"), "spec.resourceGroups", owner, errors);
  check_fair_weight(spec.get("fairSharing", "weight"), "spec.fairSharing.weight", errors);
  check_selector(spec.get("namespaceSelector"), "spec.namespaceSelector", errors);
  check_preemption(spec.get("preemption"), errors);
  check_admission_checks(spec, errors);
  return errors;
}

FieldErrors check_cohort(const Json& object) {
  FieldErrors errors;
  const Json spec = object.get("spec");
  const std::string parent = text_of(spec.get("parentName"));
  if (!parent.empty() && parent == object.get("metadata", "name").string_or("")) {
    errors.push_back({"spec.parentName", FieldErrorCode::kInvalid,
                      "a Cohort cannot be its own parent: it would switch itself off"});
  }
  const QuotaOwner owner{.has_parent = !parent.empty(),
                         .parent_field = "spec.parentName",
                         .lends_at_most_nominal = false};
  check_resource_groups(spec.get("resourceGroups"), "spec.resourceGroups", owner, errors);
  check_fair_weight(spec.get("fairSharing", "weight"), "spec.fairSharing.weight", errors);
  return errors;
}

FieldErrors check_local_queue(const Json& object) {
  FieldErrors errors;
  const Json spec = object.get("spec");
  const std::string queue = text_of(spec.get("clusterQueue"));
  if (!is_dns_subdomain(queue)) {
    errors.push_back({"spec.clusterQueue", FieldErrorCode::kInvalid,
                      fmt::format("\"{}\" is no name of a ClusterQueue", queue)});
  }
  check_fair_weight(spec.get("fairSharing", "weight"), "spec.fairSharing.weight", errors);
  return errors;
}

FieldErrors check_resource_flavor(const Json& object) {
  FieldErrors errors;
  const Json spec = object.get("spec");
  check_labels(spec.get("nodeLabels"), "spec.nodeLabels", errors);
  check_taints(spec.get("nodeTaints"), errors);
  const Json tolerations = spec.get("tolerations");
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    const std::string key = text_of(tolerations.at(i).get("key"));
    if (!key.empty()) {
      check_label_key(key, fmt::format("spec.tolerations[{}].key", i), errors);
    }
  }
  const Json capacity = object.get("metadata", "annotations", "muster.dev/capacity");
  if (capacity.present() && capacity.string_or("") != "fixed" &&
      capacity.string_or("") != "elastic") {
    errors.push_back(
        {"metadata.annotations[muster.dev/capacity]", FieldErrorCode::kNotSupported,
         fmt::format("\"{}\" (want \"fixed\" or \"elastic\")", capacity.string_or(""))});
  }
  return errors;
}

}  // namespace muster::webhook

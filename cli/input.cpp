#include "cli/input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace muster::cli {
namespace {

using kube::Json;

Result<void> not_negative(const Quantity& quantity, const std::string& path) {
  if (!quantity.is_negative()) return {};
  return fail(invalid_argument(
      fmt::format("{}: got {}, want a quantity that is not negative", path, quantity.to_string())));
}

Result<void> check_groups(const std::vector<kube::ResourceGroup>& groups) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t f = 0; f < groups[g].flavors.size(); ++f) {
      const kube::FlavorQuotas& flavor = groups[g].flavors[f];
      for (std::size_t r = 0; r < flavor.resources.size(); ++r) {
        const kube::QuotaEntry& entry = flavor.resources[r];
        const std::string path =
            fmt::format("spec.resourceGroups[{}].flavors[{}].resources[{}]", g, f, r);
        if (auto fine = not_negative(entry.nominal, path + ".nominalQuota"); !fine) return fine;
        if (entry.borrowing_limit) {
          auto fine = not_negative(*entry.borrowing_limit, path + ".borrowingLimit");
          if (!fine) return fine;
        }
        if (entry.lending_limit) {
          auto fine = not_negative(*entry.lending_limit, path + ".lendingLimit");
          if (!fine) return fine;
        }
      }
    }
  }
  return {};
}

Result<void> check(const kube::ClusterQueue& queue) {
  if (queue.fair_weight) {
    if (auto fine = not_negative(*queue.fair_weight, "spec.fairSharing.weight"); !fine) return fine;
  }
  return check_groups(queue.resource_groups);
}

Result<void> check(const kube::Cohort& cohort) {
  if (cohort.fair_weight) {
    auto fine = not_negative(*cohort.fair_weight, "spec.fairSharing.weight");
    if (!fine) return fine;
  }
  return check_groups(cohort.resource_groups);
}

Result<void> check(const kube::Workload& workload) {
  if (!workload.admission) return {};
  for (std::size_t i = 0; i < workload.admission->pod_sets.size(); ++i) {
    for (const auto& [resource, quantity] : workload.admission->pod_sets[i].resource_usage) {
      auto fine = not_negative(
          quantity,
          fmt::format("status.admission.podSetAssignments[{}].resourceUsage[\"{}\"]", i, resource));
      if (!fine) return fine;
    }
  }
  return {};
}

template <class T>
Result<void> check(const T&) {
  return {};
}

template <class T>
Result<void> take(const InputObject& input, std::size_t position, Result<T> decoded,
                  std::vector<Item<T>>& into) {
  if (!decoded) return fail(decoded.error());
  if (auto fine = check(*decoded); !fine) return fine;
  decoded->meta.ns = Namespace(input.ns);
  into.push_back({position, *std::move(decoded)});
  return {};
}

/// As the API server stores it: a Job without labels of its own has those of its pod template.
Result<kube::Job> decode_defaulted_job(const Json& object) {
  auto job = kube::decode_job(object);
  if (job && job->meta.labels.empty()) job->meta.labels = job->pod_template.labels;
  return job;
}

/// Only that its metadata is sound: nothing else of it is needed.
Result<void> check_meta(const Json& object) {
  const auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  return {};
}

Result<void> decode(const InputObject& input, std::size_t position, Input& into) {
  const Json& object = input.object;
  switch (*input.kind) {
    case ManifestKind::kNode:
      return take(input, position, kube::decode_node(object), into.nodes);
    case ManifestKind::kNamespace:
      return take(input, position, kube::decode_namespace(object), into.namespaces);
    case ManifestKind::kPod:
      return take(input, position, kube::decode_pod(object), into.pods);
    case ManifestKind::kPriorityClass:
      return take(input, position, kube::decode_priority_class(object), into.priority_classes);
    case ManifestKind::kLimitRange:
      return into.request_defaults.upsert_limit_range(Namespace(input.ns), input.name, object);
    case ManifestKind::kRuntimeClass:
      return into.request_defaults.upsert_runtime_class(input.name, object);
    case ManifestKind::kResourceFlavor:
      return take(input, position, kube::decode_resource_flavor(object), into.flavors);
    case ManifestKind::kClusterQueue:
      return take(input, position, kube::decode_cluster_queue(object), into.cluster_queues);
    case ManifestKind::kCohort:
      return take(input, position, kube::decode_cohort(object), into.cohorts);
    case ManifestKind::kLocalQueue:
      return take(input, position, kube::decode_local_queue(object), into.local_queues);
    case ManifestKind::kWorkloadPriorityClass:
      return take(input, position, kube::decode_workload_priority_class(object),
                  into.workload_priority_classes);
    case ManifestKind::kTopology:
      return take(input, position, kube::decode_topology(object), into.topologies);
    case ManifestKind::kAdmissionCheck:
      return check_meta(object);
    case ManifestKind::kWorkload:
      return take(input, position, kube::decode_workload(object), into.workloads);
    case ManifestKind::kJob:
      return take(input, position, decode_defaulted_job(object), into.jobs);
  }
  return {};
}

/// The depth of a document is bounded, so recursion is.
void find_latest(const Json& value, std::optional<Instant>& latest) {
  for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
    find_latest(value.at(i), latest);
  }
  for (const auto& [key, member] : value.members()) {
    if (!member.is_string()) {
      find_latest(member, latest);
      continue;
    }
    if (!key.ends_with("Timestamp") && !key.ends_with("Time")) continue;
    const auto at = parse_rfc3339(member.string_or(""));
    if (at) latest = std::max(latest.value_or(*at), *at);
  }
}

}  // namespace

Result<Input> decode_input(std::vector<InputObject> objects) {
  Input input;
  input.objects = std::move(objects);
  for (std::size_t i = 0; i < input.objects.size(); ++i) {
    const InputObject& each = input.objects[i];
    if (!each.kind) continue;
    if (auto decoded = decode(each, i, input); !decoded) {
      return fail(decoded.error().with_context(each.place));
    }
    find_latest(each.object, input.latest);
  }
  return input;
}

}  // namespace muster::cli

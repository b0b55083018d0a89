#include "controller/workload_object.hpp"

#include "base/integer.hpp"
#include "controller/names.hpp"
#include "controller/translate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace muster::controller {
namespace {

using kube::Json;
using Members = std::vector<std::pair<std::string, Json>>;

constexpr std::size_t kMaxNameLength = 253;

// FNV-1a: stable over versions and machines, which is all a name suffix needs.
std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

ResolvedPriority from_pod_class(const std::string& name, const PriorityTable& table) {
  ResolvedPriority result{0, "scheduling.k8s.io", "PriorityClass", name, false};
  const auto found = table.pod_classes.find(name);
  if (found == table.pod_classes.end()) {
    result.missing = true;
  } else {
    result.value = found->second;
  }
  return result;
}

ResolvedPriority cluster_default(const PriorityTable& table) {
  // std::min_element keeps the first of equals, and the map is sorted by name.
  const auto lowest =
      std::min_element(table.default_pod_classes.begin(), table.default_pod_classes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (lowest == table.default_pod_classes.end()) return {};
  return ResolvedPriority{lowest->second, "scheduling.k8s.io", "PriorityClass", lowest->first,
                          false};
}

// The webhook refuses slices that cannot be read. Where it was down they must not be forgotten: a
// gang would start that is spread wider than it may be. No slices have this size.
constexpr std::int64_t kUnreadableSize = 0;

Json topology_request(const Json& pod_template) {
  const Json annotations = pod_template.get("metadata", "annotations");
  Members members;
  if (const Json level = annotations.get(kRequiredTopology); level.is_string()) {
    members.emplace_back("required", level);
  } else if (const Json preferred = annotations.get(kPreferredTopology); preferred.is_string()) {
    members.emplace_back("preferred", preferred);
  } else if (annotations.get(kUnconstrainedTopology).string_or("") == "true") {
    members.emplace_back("unconstrained", Json::boolean(true));
  }
  if (const Json group = annotations.get(kPodSetGroup); group.is_string()) {
    members.emplace_back("podSetGroupName", group);
  }
  if (const Json slice = annotations.get(kSliceTopology); slice.is_string()) {
    members.emplace_back("podSetSliceRequiredTopology", slice);
    const auto size = parse_integer(annotations.get(kSliceSize).string_or(""));
    members.emplace_back("podSetSliceSize", Json::number(size.value_or(kUnreadableSize)));
  }
  if (const Json layers = annotations.get(kSliceConstraints); layers.is_string()) {
    const auto read = Json::parse(layers.string_or(""));
    members.emplace_back(
        "podsetSliceRequiredTopologyConstraints",
        read && read->is_array() && read->size() > 0
            ? *read
            : Json::array({Json::object(
                  {{"topology", Json::string("")}, {"size", Json::number(kUnreadableSize)}})}));
  }
  return members.empty() ? Json() : Json::object(members);
}

Json string_or_absent(const std::string& text) {
  return text.empty() ? Json() : Json::string(text);
}

}  // namespace

void PriorityTable::upsert(const kube::WorkloadPriorityClass& cls) {
  workload_classes[cls.meta.name] = cls.value;
  protections[cls.meta.name] = to_protection(cls.meta);
}

void PriorityTable::upsert(const kube::PriorityClass& cls) {
  pod_classes[cls.meta.name] = cls.value;
  default_pod_classes.erase(cls.meta.name);
  if (cls.global_default) default_pod_classes[cls.meta.name] = cls.value;
}

void PriorityTable::erase_workload_class(const std::string& name) {
  workload_classes.erase(name);
  protections.erase(name);
}

void PriorityTable::erase_pod_class(const std::string& name) {
  pod_classes.erase(name);
  default_pod_classes.erase(name);
}

engine::Protection PriorityTable::protection_of(const kube::Workload& workload) const {
  if (workload.priority_class_kind != "WorkloadPriorityClass") return {};
  const auto found = protections.find(workload.priority_class_name);
  return found == protections.end() ? engine::Protection() : found->second;
}

ResolvedPriority resolve_priority(const kube::ObjectMeta& owner,
                                  const LabelMap& template_annotations,
                                  const std::string& pod_class, const PriorityTable& table) {
  if (const std::string* name = owner.find_label(kPriorityClassLabel)) {
    ResolvedPriority result{0, "kueue.x-k8s.io", "WorkloadPriorityClass", *name, false};
    const auto found = table.workload_classes.find(*name);
    if (found == table.workload_classes.end()) {
      result.missing = true;
    } else {
      result.value = found->second;
    }
    return result;
  }
  std::string name = pod_class;
  if (const auto kept = template_annotations.find(kOriginalPriorityClass);
      kept != template_annotations.end()) {
    name = kept->second;
  } else if (const std::string* on_owner = owner.find_annotation(kOriginalPriorityClass)) {
    name = *on_owner;
  } else if (name == kManagedPriorityClass) {
    // Our own class says nothing about the work's importance.
    name.clear();
  }
  return name.empty() ? cluster_default(table) : from_pod_class(name, table);
}

Json normal_template(const Json& pod_template) {
  // Nulls (`creationTimestamp: null`) do not survive the way through the API server.
  return kube::merge_patch(Json::object({}), pod_template);
}

Json pod_sets_json(const std::vector<OwnerPodSet>& pod_sets) {
  std::vector<Json> elements;
  for (const OwnerPodSet& pod_set : pod_sets) {
    const Json min_count = pod_set.min_count ? Json::number(*pod_set.min_count) : Json();
    elements.push_back(Json::object({{"name", Json::string(pod_set.name)},
                                     {"count", Json::number(pod_set.count)},
                                     {"minCount", min_count},
                                     {"template", normal_template(pod_set.pod_template)},
                                     {"topologyRequest", topology_request(pod_set.pod_template)}}));
  }
  return Json::array(elements);
}

Json workload_object(const OwnerIdentity& owner, const std::vector<OwnerPodSet>& pod_sets,
                     const ResolvedPriority& priority) {
  const kube::ObjectMeta& meta = owner.meta;
  const std::string* queue = meta.find_label(kQueueNameLabel);
  const Json owner_reference = Json::object({{"apiVersion", Json::string(owner.api_version)},
                                             {"kind", Json::string(owner.kind)},
                                             {"name", Json::string(meta.name)},
                                             {"uid", Json::string(meta.uid.value())},
                                             {"controller", Json::boolean(true)},
                                             {"blockOwnerDeletion", Json::boolean(true)}});
  Json labels;
  if (!meta.uid.empty()) {
    labels = Json::object({{kJobUidLabel, Json::string(meta.uid.value())}});
  }
  Json class_ref;
  if (!priority.name.empty()) {
    class_ref = Json::object({{"group", Json::string(priority.group)},
                              {"kind", Json::string(priority.kind)},
                              {"name", Json::string(priority.name)}});
  }
  return Json::object(
      {{"apiVersion", Json::string("kueue.x-k8s.io/v1beta2")},
       {"kind", Json::string("Workload")},
       {"metadata",
        Json::object({{"name", Json::string(workload_name(owner.kind, meta.name, meta.uid))},
                      {"namespace", string_or_absent(meta.ns.value())},
                      {"labels", labels},
                      {"ownerReferences", Json::array({owner_reference})}})},
       {"spec", Json::object({{"podSets", pod_sets_json(pod_sets)},
                              {"queueName", string_or_absent(queue != nullptr ? *queue : "")},
                              {"priorityClassRef", class_ref},
                              {"priority", Json::number(priority.value)},
                              {"active", Json::boolean(true)}})}});
}

std::optional<std::int64_t> min_job_pods(const std::string* annotation, std::int64_t count) {
  if (annotation == nullptr) return std::nullopt;
  const auto least = parse_integer(*annotation);
  return least && *least >= 1 && *least < count ? least : std::nullopt;
}

Json workload_for_job(const kube::Job& job, const PriorityTable& table) {
  return workload_object(
      OwnerIdentity{"batch/v1", "Job", job.meta},
      {OwnerPodSet{kMainPodSet, job.pod_count(), job.pod_template.raw,
                   min_job_pods(job.meta.find_annotation(kMinParallelism), job.pod_count())}},
      resolve_priority(job.meta, job.pod_template.annotations,
                       job.pod_template.spec.priority_class_name, table));
}

Json workload_for_pod(const kube::Pod& pod, const Json& object, const PriorityTable& table) {
  const Json pod_template = Json::object(
      {{"metadata", Json::object({{"labels", object.get("metadata", "labels")},
                                  {"annotations", object.get("metadata", "annotations")}})},
       {"spec", object.get("spec")}});
  return workload_object(OwnerIdentity{"v1", "Pod", pod.meta},
                         {OwnerPodSet{kMainPodSet, 1, pod_template}},
                         resolve_priority(pod.meta, {}, pod.spec.priority_class_name, table));
}

std::string workload_name(std::string_view kind, const std::string& owner_name,
                          const Uid& owner_uid) {
  std::string prefix(kind);
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::uint64_t hash =
      fnv1a(prefix + "\n" + owner_name + "\n" + owner_uid.value()) & 0xfffffULL;
  std::string name = prefix + "-" + owner_name;
  name.resize(std::min(name.size(), kMaxNameLength - 6));
  return fmt::format("{}-{:05x}", name, hash);
}

}  // namespace muster::controller

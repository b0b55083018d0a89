#pragma once
// The Workload object that an owner (a Job, a plain pod) should have, and its priority.
// Rules: queueing semantics section (h).

#include "base/ids.hpp"
#include "engine/specs.hpp"
#include "kube/codec/objects.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::controller {

/// Priority classes known now.
struct PriorityTable {
  std::map<std::string, std::int64_t> workload_classes;
  std::map<std::string, std::int64_t> pod_classes;
  std::map<std::string, std::int64_t> default_pod_classes;  ///< Those with globalDefault.
  std::map<std::string, engine::Protection> protections;    ///< Of workload classes.

  /// What the class of the Workload says; nothing said without one.
  [[nodiscard]] engine::Protection protection_of(const kube::Workload& workload) const;

  void upsert(const kube::WorkloadPriorityClass& cls);
  void upsert(const kube::PriorityClass& cls);
  void erase_workload_class(const std::string& name);
  void erase_pod_class(const std::string& name);
  bool operator==(const PriorityTable&) const = default;
};

struct ResolvedPriority {
  std::int64_t value = 0;
  /// What priorityClassRef says; empty: no class at all.
  std::string group;
  std::string kind;
  std::string name;
  bool missing = false;  ///< The named class does not exist; `value` is 0.
};

/// Label kueue.x-k8s.io/priority-class of the owner, else the pod's class as the user wrote it
/// (annotation muster.dev/priority-class of template or owner where `protect` replaced it; present
/// but empty: none was written), else the cluster's default class (of several the lowest, as the
/// Priority admission plugin picks it), else 0.
[[nodiscard]] ResolvedPriority resolve_priority(const kube::ObjectMeta& owner,
                                                const LabelMap& template_annotations,
                                                const std::string& pod_class,
                                                const PriorityTable& table);

/// One pod set of an owner: how many pods from which template (`metadata`, `spec`).
struct OwnerPodSet {
  std::string name;
  std::int64_t count = 1;
  kube::Json pod_template;
  std::optional<std::int64_t> min_count = std::nullopt;  ///< Absent: all its pods or none.
};

/// What annotation job-min-parallelism makes of a Job with `count` pods. Nothing: no such
/// annotation (nullptr), or one that allows no fewer.
[[nodiscard]] std::optional<std::int64_t> min_job_pods(const std::string* annotation,
                                                       std::int64_t count);

/// A pod template in the form it is stored and compared in: nulls left out.
[[nodiscard]] kube::Json normal_template(const kube::Json& pod_template);

/// spec.podSets of the Workload: templates as they are, topologyRequest from their annotations.
[[nodiscard]] kube::Json pod_sets_json(const std::vector<OwnerPodSet>& pod_sets);

/// Who the Workload belongs to.
struct OwnerIdentity {
  std::string api_version;
  std::string kind;
  kube::ObjectMeta meta;
};

/// The object to create.
[[nodiscard]] kube::Json workload_object(const OwnerIdentity& owner,
                                         const std::vector<OwnerPodSet>& pod_sets,
                                         const ResolvedPriority& priority);

[[nodiscard]] kube::Json workload_for_job(const kube::Job& job, const PriorityTable& table);
/// `object` is the pod's JSON.
[[nodiscard]] kube::Json workload_for_pod(const kube::Pod& pod, const kube::Json& object,
                                          const PriorityTable& table);

/// `<kind>-<name>-<hash5>` in lower case, at most 253 characters: stable for one owner, different
/// for a later owner of the same name.
[[nodiscard]] std::string workload_name(std::string_view kind, const std::string& owner_name,
                                        const Uid& owner_uid);

}  // namespace muster::controller

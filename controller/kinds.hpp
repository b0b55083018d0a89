#pragma once
// Suspendable owners as data: to queue one more kind of work, add a row.

#include "controller/workload_object.hpp"
#include "kube/codec/objects.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::controller {

/// Where a pod template stands in an owner, and how its pods are counted.
struct PodTemplatePath {
  std::string_view pod_set;
  std::vector<std::string_view> path;  ///< `spec`, `template`.
};

/// One kind of owner whose work starts and stops by a boolean in its spec.
struct OwnerKind {
  std::string_view api_version;            ///< `batch/v1`.
  std::string_view kind;                   ///< `Job`.
  std::string_view plural;                 ///< `jobs`, as in paths.
  std::vector<std::string_view> suspend;   ///< Path of the boolean: `spec`, `suspend`.
  std::vector<PodTemplatePath> templates;  ///< One per pod set.
  /// Pods of template `index`: for a Job min(parallelism, completions).
  Result<std::int64_t> (*pod_count)(const kube::Json& owner, std::size_t index);
  /// The fewest pods that template `index` may run with, given how many it asks for; nothing: no
  /// fewer than that.
  std::optional<std::int64_t> (*min_pod_count)(const kube::ObjectMeta& meta, std::int64_t count,
                                               std::size_t index);
  /// The fields that are set to make template `index` run with fewer pods.
  std::vector<std::vector<std::string_view>> (*count_fields)(const kube::ObjectMeta& meta,
                                                             std::size_t index);
  /// Pods of template `index` that have not ended well yet; nothing: that cannot be told.
  std::optional<std::int64_t> (*pods_left)(const kube::Json& owner, std::size_t index);
  /// Its controller has seen the suspension and no pod of it runs any more: only then can the
  /// templates be changed.
  bool (*is_stopped)(const kube::Json& owner);
  /// Path of the time of its last start. API servers before 1.36 let the template change only
  /// while there is none, whatever else stands still.
  std::vector<std::string_view> start_time;
  /// It was never started since it was created or last stopped.
  bool (*never_started)(const kube::Json& owner);
  /// Every pod has a rank of its own for ever.
  bool (*fixed_ranks)(const kube::Json& owner);
  /// Condition type that means success, and the one that means failure.
  std::string_view succeeded_condition;
  std::string_view failed_condition;
  /// Finalizer that makes its controller count a pod's end; removed before a pod is replaced.
  std::string_view pod_finalizer;
};

/// All rows.
[[nodiscard]] std::span<const OwnerKind> owner_kinds();
/// The row of batch/v1 Job.
[[nodiscard]] const OwnerKind& job_kind();

enum class OwnerOutcome { kNone, kSucceeded, kFailed };

/// An owner as its row reads it.
struct OwnerState {
  const OwnerKind* kind = nullptr;
  kube::ObjectMeta meta;
  bool suspended = false;
  bool stopped = false;         ///< Suspended, seen by its controller, nothing running.
  bool never_started = false;   ///< Suspended from the start: templates are free as well.
  bool has_start_time = false;  ///< See OwnerKind::start_time.
  bool fixed_ranks = false;
  OwnerOutcome outcome = OwnerOutcome::kNone;
  std::string outcome_message;
  std::vector<OwnerPodSet> pod_sets;
  std::vector<std::optional<std::int64_t>> pods_left;  ///< By pod set, see OwnerKind::pods_left.

  /// Templates may be changed together with the start.
  [[nodiscard]] bool templates_mutable() const { return suspended && (stopped || never_started); }
};

[[nodiscard]] Result<OwnerState> read_owner(const OwnerKind& kind, const kube::Json& object);

/// `/apis/batch/v1/namespaces/<ns>/jobs/<name>`.
[[nodiscard]] std::string owner_path(const OwnerState& owner);

}  // namespace muster::controller

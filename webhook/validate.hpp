#pragma once
// /validate: objects that cannot work, and every way round the quota. Pure, like mutate.

#include "engine/snapshot.hpp"
#include "webhook/field_error.hpp"
#include "webhook/options.hpp"
#include "webhook/review.hpp"

#include <string>
#include <vector>

namespace muster::webhook {

struct Validation {
  FieldErrors errors;  ///< All that is wrong, not only the first; empty: allowed.
  std::vector<std::string> warnings;
};

/// Kinds and operations that no rule is about are allowed, deletions and the last writes to an
/// object on its way out always. What muster itself writes (WebhookOptions::own_identities) to
/// Jobs, pods and Workloads was decided by the engine and is not judged again.
[[nodiscard]] Validation validate(const AdmissionRequest& request, const engine::Snapshot& snapshot,
                                  const WebhookOptions& options);

// By kind; validate() chooses. In validate_<kind>.cpp.

/// What is wrong with the object by itself. On an update only what was not wrong before counts: a
/// rule that is newer than the object must not stop others from updating it.
[[nodiscard]] FieldErrors check_cluster_queue(const kube::Json& object);
[[nodiscard]] FieldErrors check_cohort(const kube::Json& object);
[[nodiscard]] FieldErrors check_local_queue(const kube::Json& object);
[[nodiscard]] FieldErrors check_resource_flavor(const kube::Json& object);
[[nodiscard]] FieldErrors check_workload(const kube::Json& object);
[[nodiscard]] FieldErrors check_job(const kube::Json& object, const WebhookOptions& options);

/// What may not change, or not by this user; and warnings.
void judge_workload(const AdmissionRequest& request, const WebhookOptions& options,
                    Validation& result);
void judge_job(const AdmissionRequest& request, const engine::Snapshot& snapshot,
               const WebhookOptions& options, Validation& result);
void judge_pod(const AdmissionRequest& request, const engine::Snapshot& snapshot,
               const WebhookOptions& options, Validation& result);

/// Adds `now` without what `before` has as well.
void add_news(const FieldErrors& now, const FieldErrors& before, FieldErrors& errors);

}  // namespace muster::webhook

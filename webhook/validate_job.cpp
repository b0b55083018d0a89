// Job: settings that cannot work, and ways round the quota.
// Rules: queueing semantics (i), jobs; design 2.

#include "base/integer.hpp"
#include "webhook/fit.hpp"
#include "webhook/labels.hpp"
#include "webhook/scope.hpp"
#include "webhook/syntax.hpp"
#include "webhook/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

namespace muster::webhook {
namespace {

using engine::Snapshot;
using engine::WorkloadPhase;
using engine::WorkloadView;
using kube::Json;
using kube::kPreferredTopology;
using kube::kRequiredTopology;
using kube::kSliceConstraints;
using kube::kSliceSize;
using kube::kSliceTopology;
using kube::kUnconstrainedTopology;

constexpr const char* kWhileItRuns =
    "cannot change while the Job runs; set spec.suspend to true in the same change, it then queues "
    "anew";

/// The two versions of one Job, and what the snapshot knows of it.
struct JobChange {
  const Json& now;
  const Json& before;  ///< Missing on CREATE.
  std::shared_ptr<const WorkloadView> workload;

  [[nodiscard]] bool is_update() const { return before.is_object(); }
};

bool is_suspended(const Json& job) {
  return job.get("spec", "suspend").bool_or(false);
}

/// min(parallelism, completions), as the Job controller counts.
std::int64_t pod_count(const Json& job) {
  const std::int64_t parallelism = job.get("spec", "parallelism").int_or(1);
  return std::min(parallelism, job.get("spec", "completions").int_or(parallelism));
}

std::optional<std::int64_t> to_positive(std::string_view text) {
  const auto value = parse_integer(text);
  return value && *value > 0 ? value : std::nullopt;
}

std::string label(const Json& job, const char* key) {
  return std::string(job.get("metadata", "labels", key).string_or(""));
}

std::string at_label(const char* key) {
  return fmt::format("metadata.labels[{}]", key);
}

void check_labels_of_job(const Json& job, FieldErrors& errors) {
  const Json queue = job.get("metadata", "labels", kQueueNameLabel);
  if (queue.present() && !queue.string_or("").empty() && !is_dns_subdomain(queue.string_or(""))) {
    errors.push_back({at_label(kQueueNameLabel), FieldErrorCode::kInvalid,
                      fmt::format("\"{}\" is no name of a LocalQueue", queue.string_or(""))});
  }
  const Json seconds = job.get("metadata", "labels", kMaxExecTimeLabel);
  if (seconds.present() && !to_positive(seconds.string_or(""))) {
    errors.push_back({at_label(kMaxExecTimeLabel), FieldErrorCode::kInvalid,
                      fmt::format("\"{}\" (want whole seconds above 0)", seconds.string_or(""))});
  }
  const Json least = job.get("metadata", "annotations", kMinParallelism);
  // A running Job has as many pods as were admitted, and may be at its least.
  if (least.present() && is_suspended(job)) {
    const auto value = to_positive(least.string_or(""));
    const std::int64_t parallelism = job.get("spec", "parallelism").int_or(1);
    if (!value || *value >= parallelism) {
      errors.push_back({fmt::format("metadata.annotations[{}]", kMinParallelism),
                        FieldErrorCode::kInvalid,
                        fmt::format("\"{}\" (want 1 to parallelism - 1)", least.string_or(""))});
    }
  }
  check_muster_metadata(job.get("metadata"), "metadata", errors);
}

/// `[{"topology": LEVEL, "size": N}, …]`: at most three layers, the widest first, each size a
/// divisor of the one before (semantics section i).
void check_slice_layers(std::string_view text, std::int64_t pods, const std::string& path,
                        FieldErrors& errors) {
  constexpr std::size_t kMostLayers = 3;
  const auto refuse = [&](const std::string& what) {
    errors.push_back({path, FieldErrorCode::kInvalid, what});
  };
  const auto layers = Json::parse(text);
  if (!layers || !layers->is_array() || layers->size() < 1 || layers->size() > kMostLayers) {
    return refuse(
        "want a JSON list of 1 to 3 layers, [{\"topology\": \"<level>\", \"size\": <pods>}]");
  }
  std::set<std::string> seen;
  std::int64_t outer = pods;
  for (std::size_t i = 0; i < layers->size(); ++i) {
    const Json layer = layers->at(i);
    const std::string level(layer.get("topology").string_or(""));
    const std::int64_t size = layer.get("size").int_or(0);
    check_label_key(level, fmt::format("{}[{}].topology", path, i), errors);
    if (!seen.insert(level).second) refuse(fmt::format("level {} stands twice", level));
    if (size < 1 || size > pods || outer % size != 0) {
      return refuse(fmt::format("[{}].size {}: want a divisor of {} ({})", i, size, outer,
                                i == 0 ? "the number of pods" : "the size of the layer before"));
    }
    outer = size;
  }
}

void check_topology_request(const Json& job, FieldErrors& errors) {
  const std::string base = "spec.template.metadata.annotations";
  const Json annotations = job.get("spec", "template", "metadata").get("annotations");
  const auto path = [&](const char* key) { return fmt::format("{}[{}]", base, key); };
  std::int64_t modes = 0;
  for (const char* key : {kRequiredTopology, kPreferredTopology, kUnconstrainedTopology}) {
    if (annotations.get(key).present()) ++modes;
  }
  if (modes > 1) {
    errors.push_back({base, FieldErrorCode::kInvalid,
                      "want at most one of required, preferred and unconstrained topology"});
  }
  for (const char* key : {kRequiredTopology, kPreferredTopology, kSliceTopology}) {
    const Json level = annotations.get(key);
    if (level.present()) check_label_key(level.string_or(""), path(key), errors);
  }
  const Json slice = annotations.get(kSliceTopology);
  const Json size = annotations.get(kSliceSize);
  if (slice.present() != size.present()) {
    errors.push_back({path(slice.present() ? kSliceSize : kSliceTopology),
                      FieldErrorCode::kRequired, "slices need a topology level and a size"});
  } else if (size.present()) {
    const auto value = to_positive(size.string_or(""));
    if (!value || *value > pod_count(job)) {
      errors.push_back({path(kSliceSize), FieldErrorCode::kInvalid,
                        fmt::format("\"{}\" (want 1 to {}, the number of pods)", size.string_or(""),
                                    pod_count(job))});
    }
  }
  const Json layers = annotations.get(kSliceConstraints);
  if (!layers.present()) return;
  if (slice.present()) {
    errors.push_back(
        {path(kSliceConstraints), FieldErrorCode::kInvalid,
         fmt::format("{} says the same in another way: want one of them", kSliceTopology)});
  }
  check_slice_layers(layers.string_or(""), pod_count(job), path(kSliceConstraints), errors);
}

/// What would take a managed Job's pods past kube-scheduler, or past us.
void check_template(const Json& job, const WebhookOptions& options, FieldErrors& errors) {
  const Json spec = job.get("spec", "template", "spec");
  const std::string_view node = spec.get("nodeName").string_or("");
  if (!node.empty()) {
    errors.push_back({"spec.template.spec.nodeName", FieldErrorCode::kForbidden,
                      fmt::format("\"{}\": a queued Job gets its nodes when it is admitted; leave "
                                  "nodeName out (to choose among nodes use nodeSelector)",
                                  node)});
  }
  const std::string scheduler(spec.get("schedulerName").string_or(""));
  if (!scheduler.empty() && !options.scheduler_names.contains(scheduler) &&
      scheduler != options.second_scheduler) {
    errors.push_back(
        {"spec.template.spec.schedulerName", FieldErrorCode::kForbidden,
         fmt::format("\"{}\" does not follow muster's plans; leave schedulerName out", scheduler)});
  }
  if (job.get("spec", "template", "metadata").get("labels", kManagedLabel).present()) {
    errors.push_back({fmt::format("spec.template.metadata.labels[{}]", kManagedLabel),
                      FieldErrorCode::kForbidden,
                      "marks pods that queue for themselves; the pods of a queued Job do not"});
  }
}

void check_suspend(const JobChange& change, FieldErrors& errors) {
  if (is_suspended(change.now)) return;
  if (change.is_update() && !is_suspended(change.before)) return;
  // Of an admitted one too: what starts has to be what was admitted, and only muster sees both.
  errors.push_back({"spec.suspend", FieldErrorCode::kForbidden,
                    "the Job waits in its queue; muster resumes it when it is admitted"});
}

void check_parallelism(const JobChange& change, FieldErrors& errors) {
  if (!change.is_update() || is_suspended(change.now) || is_suspended(change.before)) return;
  std::int64_t admitted = pod_count(change.before);
  if (change.workload && change.workload->phase == WorkloadPhase::kAdmitted) {
    const auto& pod_sets = change.workload->pod_sets;
    admitted =
        std::accumulate(pod_sets.begin(), pod_sets.end(), std::int64_t{0},
                        [](std::int64_t sum, const auto& pod_set) { return sum + pod_set.count; });
  }
  // Lowering is free, and a Job that is above already may not go higher.
  if (pod_count(change.now) <= std::max(admitted, std::int64_t{0}) ||
      pod_count(change.now) <= pod_count(change.before)) {
    return;
  }
  errors.push_back({"spec.parallelism", FieldErrorCode::kForbidden,
                    fmt::format("{} pods, but {} were admitted; set spec.suspend to true in the "
                                "same change, the Job then queues for the new number",
                                pod_count(change.now), admitted)});
}

bool has_class_of_queued_work(const Json& job) {
  return job.get("spec", "template", "spec").get("priorityClassName").string_or("") ==
         kManagedPriorityClass;
}

void check_queue_change(const JobChange& change, const Namespace& ns, const Snapshot& snapshot,
                        FieldErrors& errors) {
  const std::string before = label(change.before, kQueueNameLabel);
  const std::string now = label(change.now, kQueueNameLabel);
  if (before == now) return;
  if (!is_suspended(change.now)) {
    errors.push_back({at_label(kQueueNameLabel), FieldErrorCode::kForbidden, kWhileItRuns});
  } else if (now.empty() && has_class_of_queued_work(change.now)) {
    errors.push_back(
        {at_label(kQueueNameLabel), FieldErrorCode::kForbidden,
         fmt::format("cannot be removed: the template has the priority class {} of queued work, "
                     "and templates do not change; delete the Job and create it without a queue",
                     kManagedPriorityClass)});
  } else if (now.empty() && has_local_queue(ns, kDefaultLocalQueue, snapshot)) {
    errors.push_back(
        {at_label(kQueueNameLabel), FieldErrorCode::kForbidden,
         "cannot be removed: everything in this namespace is queued, by its LocalQueue "
         "default; name another queue instead"});
  }
}

void check_other_labels(const JobChange& change, FieldErrors& errors) {
  const std::string class_before = label(change.before, kPriorityClassLabel);
  const std::string class_now = label(change.now, kPriorityClassLabel);
  if (!class_before.empty() && class_now.empty()) {
    errors.push_back({at_label(kPriorityClassLabel), FieldErrorCode::kForbidden,
                      "cannot be removed; name another WorkloadPriorityClass instead"});
  } else if (class_before.empty() && !class_now.empty() && !is_suspended(change.now)) {
    errors.push_back({at_label(kPriorityClassLabel), FieldErrorCode::kForbidden,
                      "cannot be added while the Job runs; set spec.suspend to true in the same "
                      "change, it then queues anew"});
  }
  const bool stays_suspended = is_suspended(change.before) && is_suspended(change.now);
  if (!stays_suspended &&
      label(change.before, kMaxExecTimeLabel) != label(change.now, kMaxExecTimeLabel)) {
    errors.push_back({at_label(kMaxExecTimeLabel), FieldErrorCode::kForbidden, kWhileItRuns});
  }
  const bool is_starting =
      stays_suspended && change.workload && change.workload->phase == WorkloadPhase::kAdmitted;
  if (!is_suspended(change.now) || is_starting) {
    check_same_protection(change.before, change.now, kWhileItRuns, errors);
  }
}

void add_warnings(const Json& job, const Namespace& ns, const Queueing& queueing,
                  const Snapshot& snapshot, const WebhookOptions& options,
                  std::vector<std::string>& warnings) {
  const auto decoded = kube::decode_job(job);
  if (!decoded) return;
  const std::int64_t least =
      to_positive(job.get("metadata", "annotations", kMinParallelism).string_or(""))
          .value_or(pod_count(job));
  const auto about_queue =
      warn_about_queue(ns, queueing.queue, decoded->pod_template.spec, least, snapshot, options);
  warnings.insert(warnings.end(), about_queue.begin(), about_queue.end());
  if (job.get("spec", "template", "spec").get("resourceClaims").size() > 0) {
    warnings.emplace_back("spec.template.spec.resourceClaims are not counted against any quota");
  }
}

}  // namespace

FieldErrors check_job(const Json& object, const WebhookOptions& options) {
  FieldErrors errors;
  if (!object.is_object()) return errors;
  check_labels_of_job(object, errors);
  check_topology_request(object, errors);
  check_template(object, options, errors);
  return errors;
}

void judge_job(const AdmissionRequest& request, const Snapshot& snapshot,
               const WebhookOptions& options, Validation& result) {
  const Json& job = request.object;
  const auto meta = kube::decode_meta(job);
  if (!meta) {
    result.errors.push_back({"metadata", FieldErrorCode::kInvalid, meta.error().message});
    return;
  }
  if (!is_in_scope(request.ns, snapshot, options)) return;
  const JobChange change{job, request.old_object,
                         meta->uid.empty() ? nullptr : snapshot.find_workload(meta->uid)};
  Queueing queueing = queueing_of_job(*meta, request.ns, snapshot, options);
  if (change.is_update() && queueing.defaulted) {
    // Only a new Job is put into `default`; one that was there before goes on without a queue.
    queueing.managed = options.manage_jobs_without_queue_name;
  }
  const bool was_queued = change.workload || !label(change.before, kQueueNameLabel).empty();
  if (!queueing.managed && !was_queued) return;
  if (!job.get("spec", "template", "spec").get("schedulingGroup").missing()) return;

  // A Job that only now comes to a queue is judged like a new one.
  add_news(check_job(job, options), was_queued ? check_job(change.before, options) : FieldErrors{},
           result.errors);
  check_suspend(change, result.errors);
  if (change.is_update()) {
    check_parallelism(change, result.errors);
    check_queue_change(change, request.ns, snapshot, result.errors);
    check_other_labels(change, result.errors);
  }
  if (!change.is_update() || !(job.get("spec") == change.before.get("spec"))) {
    add_warnings(job, request.ns, queueing, snapshot, options, result.warnings);
  }
}

}  // namespace muster::webhook

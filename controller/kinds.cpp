#include "controller/kinds.hpp"

#include "controller/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::controller {
namespace {

using kube::Json;

Json at_path(const Json& object, const std::vector<std::string_view>& path) {
  Json value = object;
  for (const std::string_view key : path) value = value.get(key);
  return value;
}

// The condition of this type with status True; absent when there is none.
Json true_condition(const Json& object, std::string_view type) {
  const Json conditions = object.get("status", "conditions");
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Json condition = conditions.at(i);
    if (condition.get("type").string_or("") == type &&
        condition.get("status").string_or("") == "True") {
      return condition;
    }
  }
  return {};
}

Result<std::int64_t> job_pod_count(const Json& job, std::size_t /*index*/) {
  std::int64_t count = 1;
  if (const Json parallelism = job.get("spec", "parallelism"); !parallelism.missing()) {
    Result<std::int64_t> value = parallelism.as_int();
    if (!value) return fail(value.error().with_context("spec.parallelism"));
    count = *value;
  }
  if (const Json completions = job.get("spec", "completions"); !completions.missing()) {
    Result<std::int64_t> value = completions.as_int();
    if (!value) return fail(value.error().with_context("spec.completions"));
    count = std::min(count, *value);
  }
  return count;
}

std::optional<std::int64_t> job_min_pod_count(const kube::ObjectMeta& meta, std::int64_t count,
                                              std::size_t /*index*/) {
  return min_job_pods(meta.find_annotation(kMinParallelism), count);
}

std::vector<std::vector<std::string_view>> job_count_fields(const kube::ObjectMeta& meta,
                                                            std::size_t /*index*/) {
  std::vector<std::vector<std::string_view>> fields = {{"spec", "parallelism"}};
  const std::string* follow = meta.find_annotation(kCompletionsFollow);
  if (follow != nullptr && *follow == "true") fields.push_back({"spec", "completions"});
  return fields;
}

std::optional<std::int64_t> job_pods_left(const Json& job, std::size_t /*index*/) {
  const Json completions = job.get("spec", "completions");
  if (completions.missing()) return std::nullopt;
  return std::max<std::int64_t>(0,
                                completions.int_or(0) - job.get("status", "succeeded").int_or(0));
}

bool job_has_no_active_pod(const Json& job) {
  return job.get("status", "active").int_or(0) == 0;
}

bool job_is_stopped(const Json& job) {
  return true_condition(job, "Suspended").present() && job_has_no_active_pod(job);
}

bool job_never_started(const Json& job) {
  return job.get("status", "startTime").missing() && job_has_no_active_pod(job);
}

bool job_fixed_ranks(const Json& job) {
  const Json spec = job.get("spec");
  return spec.get("completionMode").string_or("") == "Indexed" &&
         spec.get("completions").int_or(-1) == spec.get("parallelism").int_or(1);
}

const std::array<OwnerKind, 1>& rows() {
  static const std::array<OwnerKind, 1> kRows = {OwnerKind{
      .api_version = "batch/v1",
      .kind = "Job",
      .plural = "jobs",
      .suspend = {"spec", "suspend"},
      .templates = {{kMainPodSet, {"spec", "template"}}},
      .pod_count = job_pod_count,
      .min_pod_count = job_min_pod_count,
      .count_fields = job_count_fields,
      .pods_left = job_pods_left,
      .is_stopped = job_is_stopped,
      .start_time = {"status", "startTime"},
      .never_started = job_never_started,
      .fixed_ranks = job_fixed_ranks,
      .succeeded_condition = "Complete",
      .failed_condition = "Failed",
      .pod_finalizer = kJobTrackingFinalizer,
  }};
  return kRows;
}

}  // namespace

std::span<const OwnerKind> owner_kinds() {
  return rows();
}

const OwnerKind& job_kind() {
  return rows().front();
}

Result<OwnerState> read_owner(const OwnerKind& kind, const Json& object) {
  Result<kube::ObjectMeta> meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  OwnerState owner;
  owner.kind = &kind;
  owner.meta = std::move(*meta);
  owner.suspended = at_path(object, kind.suspend).bool_or(false);
  owner.stopped = owner.suspended && kind.is_stopped(object);
  owner.never_started = owner.suspended && kind.never_started(object);
  owner.has_start_time = at_path(object, kind.start_time).present();
  owner.fixed_ranks = kind.fixed_ranks(object);
  for (const auto& [type, outcome] : {std::pair{kind.succeeded_condition, OwnerOutcome::kSucceeded},
                                      std::pair{kind.failed_condition, OwnerOutcome::kFailed}}) {
    if (const Json condition = true_condition(object, type); condition.present()) {
      owner.outcome = outcome;
      owner.outcome_message = condition.get("message").string_or("");
    }
  }
  for (std::size_t i = 0; i < kind.templates.size(); ++i) {
    const Json pod_template = at_path(object, kind.templates[i].path);
    if (!pod_template.is_object()) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: want an object", fmt::join(kind.templates[i].path, ".")));
    }
    Result<std::int64_t> count = kind.pod_count(object, i);
    if (!count) return fail(count.error());
    owner.pod_sets.push_back(OwnerPodSet{std::string(kind.templates[i].pod_set), *count,
                                         normal_template(pod_template).detached(),
                                         kind.min_pod_count(owner.meta, *count, i)});
    owner.pods_left.push_back(kind.pods_left(object, i));
  }
  return owner;
}

std::string owner_path(const OwnerState& owner) {
  return fmt::format("/apis/{}/namespaces/{}/{}/{}", owner.kind->api_version, owner.meta.ns,
                     owner.kind->plural, owner.meta.name);
}

}  // namespace muster::controller

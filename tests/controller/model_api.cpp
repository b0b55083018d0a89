#include "tests/controller/model_api.hpp"

#include "engine/slots.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace muster::controller::testing {
namespace {

using kube::Json;

std::string text(const Json& value) {
  return std::string(value.string_or(""));
}
std::string name_of(const Json& object) {
  return text(object.get("metadata", "name"));
}
std::string namespace_of(const Json& object) {
  return text(object.get("metadata", "namespace"));
}
std::string uid_of(const Json& object) {
  return text(object.get("metadata", "uid"));
}

std::vector<Json> elements(const Json& array) {
  std::vector<Json> result;
  for (std::size_t i = 0; i < array.size(); ++i) result.push_back(array.at(i));
  return result;
}

Json with_metadata(const Json& object, std::string_view key, const Json& value) {
  return object.with("metadata", object.get("metadata").with(key, value));
}
Json with_spec(const Json& object, std::string_view key, const Json& value) {
  return object.with("spec", object.get("spec").with(key, value));
}
Json with_status(const Json& object, std::string_view key, const Json& value) {
  return object.with("status", object.get("status").with(key, value));
}

std::string path_of(ResourceKind kind, const std::string& ns, const std::string& name) {
  std::string collection(collection_path(kind));
  if (!ns.empty()) {
    const std::size_t plural = collection.rfind('/');
    collection = collection.substr(0, plural) + "/namespaces/" + ns + collection.substr(plural);
  }
  return name.empty() ? collection : collection + "/" + name;
}

std::optional<ResourceKind> kind_of_collection(const std::string& collection) {
  const std::string plural = collection.substr(collection.rfind('/') + 1);
  for (const ResourceKind kind : kResourceKinds) {
    if (to_string(kind) == plural) return kind;
  }
  return std::nullopt;
}

Json condition(std::string_view type, bool status, Instant now, std::string_view reason = "Model") {
  return Json::object({{"type", Json::string(type)},
                       {"status", Json::string(status ? "True" : "False")},
                       {"reason", Json::string(reason)},
                       {"message", Json::string("")},
                       {"lastTransitionTime", Json::string(format_rfc3339(now))}});
}

bool has_condition(const Json& object, std::string_view type, std::string_view status = "True") {
  for (const Json& known : elements(object.get("status", "conditions"))) {
    if (known.get("type").string_or("") == type && known.get("status").string_or("") == status) {
      return true;
    }
  }
  return false;
}

Json with_condition(const Json& object, const Json& added) {
  std::vector<Json> conditions;
  for (const Json& known : elements(object.get("status", "conditions"))) {
    if (!(known.get("type") == added.get("type"))) conditions.push_back(known);
  }
  conditions.push_back(added);
  return with_status(object, "conditions", Json::array(conditions));
}

bool is_terminal(const Json& pod) {
  const std::string phase = text(pod.get("status", "phase"));
  return phase == "Succeeded" || phase == "Failed";
}
bool is_dying(const Json& pod) {
  return pod.get("metadata", "deletionTimestamp").present();
}
bool is_bound(const Json& pod) {
  return !text(pod.get("spec", "nodeName")).empty();
}

std::int64_t gpus(const Json& pod) {
  return std::stoll(
      "0" +
      text(pod.get("spec", "containers").at(0).get("resources", "requests").get("nvidia.com/gpu")));
}

const char* const kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

std::vector<std::string> pinned_names(const Json& pod) {
  std::vector<std::string> names;
  const Json terms = pod.get("spec", "affinity", "nodeAffinity", kRequired, "nodeSelectorTerms");
  for (const Json& term : elements(terms)) {
    for (const Json& field : elements(term.get("matchFields"))) {
      for (const Json& value : elements(field.get("values"))) names.push_back(text(value));
    }
  }
  return names;
}

std::int64_t index_of(const Json& pod) {
  const std::string index =
      text(pod.get("metadata", "labels", "batch.kubernetes.io/job-completion-index"));
  return index.empty() ? -1 : std::stoll(index);
}

/// What a strategic patch says of conditions, as a merge patch: those of other types stay.
Json with_all_conditions(const Json& change, const Json& object) {
  const Json added = change.get("status", "conditions");
  if (added.missing()) return change;
  std::vector<Json> all;
  const Json known = object.get("status", "conditions");
  for (std::size_t i = 0; i < known.size(); ++i) {
    bool replaced = false;
    for (std::size_t j = 0; j < added.size(); ++j) {
      replaced = replaced || added.at(j).get("type") == known.at(i).get("type");
    }
    if (!replaced) all.push_back(known.at(i));
  }
  for (std::size_t j = 0; j < added.size(); ++j) all.push_back(added.at(j));
  return change.with("status", change.get("status").with("conditions", Json::array(all)));
}

}  // namespace

Json json(std::string_view source) {
  const auto parsed = Json::parse(source);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message) << "\n" << source;
  return parsed.value_or(Json());
}

void ModelApi::remember(ResourceKind kind, const std::string& path, Json object) {
  object = with_metadata(object, "resourceVersion", Json::string(std::to_string(++version_)));
  objects_[path] = Stored{kind, object};
  changes_.push_back({kind, ChangeKind::kUpsert, object});
}

void ModelApi::forget(const std::string& path) {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return;
  const Json last = with_metadata(found->second.object, "resourceVersion",
                                  Json::string(std::to_string(++version_)));
  changes_.push_back({found->second.kind, ChangeKind::kDelete, last});
  objects_.erase(found);
  dying_.erase(path);
}

Json ModelApi::create(ResourceKind kind, const Json& object) {
  const std::string path = path_of(kind, namespace_of(object), name_of(object));
  Json stored = with_metadata(object, "uid", Json::string(fmt::format("uid-{:04}", next_uid_++)));
  if (object.get("metadata", "creationTimestamp").missing()) {
    stored = with_metadata(stored, "creationTimestamp", Json::string(format_rfc3339(now_)));
  }
  remember(kind, path, stored);
  return objects_.at(path).object;
}

Json ModelApi::get(ResourceKind kind, const std::string& ns, const std::string& name) const {
  const auto found = objects_.find(path_of(kind, ns, name));
  return found != objects_.end() ? found->second.object : Json();
}

std::vector<Json> ModelApi::list(ResourceKind kind) const {
  std::vector<Json> result;
  for (const auto& [path, stored] : objects_) {
    if (stored.kind == kind) result.push_back(stored.object);
  }
  return result;
}

void ModelApi::store(ResourceKind kind, const Json& object) {
  remember(kind, path_of(kind, namespace_of(object), name_of(object)), object);
}

void ModelApi::erase(ResourceKind kind, const std::string& ns, const std::string& name) {
  if (kind == ResourceKind::kPod) {
    if (const Json pod = get(kind, ns, name); pod.present()) delete_pod(pod);
    return;
  }
  delete_object(path_of(kind, ns, name));
}

void ModelApi::delete_object(const std::string& path) {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return;
  const Stored stored = found->second;
  if (stored.object.get("metadata", "finalizers").size() == 0) return forget(path);
  if (stored.object.get("metadata", "deletionTimestamp").present()) return;
  remember(stored.kind, path,
           with_metadata(stored.object, "deletionTimestamp", Json::string(format_rfc3339(now_))));
}

std::vector<WatchEvent> ModelApi::take_watch_events() {
  return std::exchange(changes_, {});
}

WriteResult ModelApi::apply(const Write& write) {
  if (fault) {
    if (const auto error = fault(write)) return fail(*error);
  }
  const Json body = json(write.body);
  switch (write.method) {
    case WriteMethod::kPost:
      return post(write.path, body);
    case WriteMethod::kPatch: {
      const bool status = write.path.ends_with("/status");
      const std::string path = status ? write.path.substr(0, write.path.size() - 7) : write.path;
      if (write.content_type != "application/strategic-merge-patch+json") {
        return patch(path, status, body);
      }
      const auto found = objects_.find(path);
      if (found == objects_.end()) return fail(ErrorCode::kNotFound, path);
      return patch(path, status, with_all_conditions(body, found->second.object));
    }
    case WriteMethod::kDelete:
      return remove(write.path, body);
  }
  return fail(ErrorCode::kInternal, "method");
}

WriteResult ModelApi::post(const std::string& collection, const Json& object) {
  if (collection.ends_with("/events")) {
    events_.push_back(object);
    return object;
  }
  const auto kind = kind_of_collection(collection);
  if (!kind) return fail(ErrorCode::kNotFound, "no such collection " + collection);
  if (objects_.contains(collection + "/" + name_of(object))) {
    return fail(ErrorCode::kConflict, "exists already");
  }
  return create(*kind, object);
}

WriteResult ModelApi::patch(const std::string& path, bool status, const Json& change) {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return fail(ErrorCode::kNotFound, path);
  const Json old = found->second.object;
  const Json wanted_version = change.get("metadata", "resourceVersion");
  if (wanted_version.present() && !(wanted_version == old.get("metadata", "resourceVersion"))) {
    return fail(ErrorCode::kConflict, "the object has been modified");
  }
  const Json uid = change.get("metadata", "uid");
  if (uid.present() && !(uid == old.get("metadata", "uid"))) {
    return fail(ErrorCode::kInvalidArgument, "uid is immutable");
  }
  Json next = kube::merge_patch(old, change);
  const bool has_status = found->second.kind == ResourceKind::kWorkload ||
                          found->second.kind == ResourceKind::kJob ||
                          found->second.kind == ResourceKind::kClusterQueue ||
                          found->second.kind == ResourceKind::kLocalQueue ||
                          found->second.kind == ResourceKind::kCohort;
  if (has_status) {
    next = status ? old.with("status", next.get("status")) : next.with("status", old.get("status"));
  }
  if (found->second.kind == ResourceKind::kJob &&
      !(next.get("spec", "template") == old.get("spec", "template"))) {
    const bool free = old.get("spec", "suspend").bool_or(false) &&
                      (old.get("status", "startTime").missing() ||
                       (!started_templates_are_fixed && has_condition(old, "Suspended"))) &&
                      old.get("status", "active").int_or(0) == 0;
    if (!free) return fail(ErrorCode::kInvalidArgument, "spec.template: field is immutable");
  }
  if (found->second.kind == ResourceKind::kWorkload && !status &&
      has_condition(old, "QuotaReserved") &&
      !(next.get("spec", "podSets") == old.get("spec", "podSets"))) {
    return fail(ErrorCode::kInvalidArgument, "spec.podSets: immutable while quota is reserved");
  }
  if (next == old) return old;
  remember(found->second.kind, path, next);
  return objects_.at(path).object;
}

WriteResult ModelApi::remove(const std::string& path, const Json& options) {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return fail(ErrorCode::kNotFound, path);
  const Json uid = options.get("preconditions", "uid");
  if (uid.present() && text(uid) != uid_of(found->second.object)) {
    return fail(ErrorCode::kConflict, "uid precondition");
  }
  const Json object = found->second.object;
  if (found->second.kind == ResourceKind::kPod) {
    delete_pod(object);
  } else {
    delete_object(path);
  }
  return object;
}

void ModelApi::delete_pod(const Json& pod) {
  const std::string path = path_of(ResourceKind::kPod, namespace_of(pod), name_of(pod));
  if (is_dying(pod)) return;
  // With its finalizer still on, the Job controller counts the pod as failed.
  if (!is_terminal(pod) && pod.get("metadata", "finalizers").size() > 0) {
    for (const Json& owner : elements(pod.get("metadata", "ownerReferences"))) {
      ++failures_[text(owner.get("uid"))];
    }
  }
  if (!is_bound(pod) || is_terminal(pod)) return forget(path);
  dying_[path] = grace_steps;
  remember(ResourceKind::kPod, path,
           with_metadata(pod, "deletionTimestamp", Json::string(format_rfc3339(now_))));
}

std::vector<Json> ModelApi::pods_of(const std::string& job_uid) const {
  std::vector<Json> result;
  for (const Json& pod : list(ResourceKind::kPod)) {
    for (const Json& owner : elements(pod.get("metadata", "ownerReferences"))) {
      if (text(owner.get("uid")) == job_uid) result.push_back(pod);
    }
  }
  return result;
}

bool ModelApi::run_job_controller() {
  if (!job_controller_on) return false;
  bool changed = false;
  for (const Json& job : list(ResourceKind::kJob)) changed = reconcile_job(job) || changed;
  return changed;
}

bool ModelApi::reconcile_job(const Json& job) {
  if (has_condition(job, "Complete") || has_condition(job, "Failed")) return false;
  const std::uint64_t before = version_;
  const std::string uid = uid_of(job);
  const std::int64_t parallelism = job.get("spec", "parallelism").int_or(1);
  const std::int64_t completions = job.get("spec", "completions").int_or(parallelism);
  Json next = job;
  std::int64_t succeeded = 0;
  std::set<std::int64_t> live;
  std::set<std::int64_t> done;
  for (const Json& pod : pods_of(uid)) {
    if (text(pod.get("status", "phase")) == "Succeeded") {
      ++succeeded;
      done.insert(index_of(pod));
    } else if (!is_terminal(pod) && !is_dying(pod)) {
      live.insert(index_of(pod));
    }
  }
  if (job.get("spec", "suspend").bool_or(false)) {
    for (const Json& pod : pods_of(uid)) {
      if (is_terminal(pod) || is_dying(pod)) continue;
      // The controller takes its own finalizer off first: a suspension is no failure.
      const std::string path = path_of(ResourceKind::kPod, namespace_of(pod), name_of(pod));
      remember(ResourceKind::kPod, path, with_metadata(pod, "finalizers", Json()));
      delete_pod(objects_.at(path).object);
    }
    live.clear();
    if (!started_templates_are_fixed) next = with_status(next, "startTime", Json());
    if (!has_condition(next, "Suspended")) {
      next = with_condition(next, condition("Suspended", true, now_));
    }
  } else {
    if (next.get("status", "startTime").missing()) {
      next = with_status(next, "startTime", Json::string(format_rfc3339(now_)));
    }
    if (has_condition(next, "Suspended")) {
      next = with_condition(next, condition("Suspended", false, now_));
    }
    for (std::int64_t index = 0; index < std::min(parallelism, completions); ++index) {
      if (live.contains(index) || done.contains(index)) continue;
      create_pod(job, index);
      live.insert(index);
    }
  }
  next = with_status(next, "active", Json::number(static_cast<std::int64_t>(live.size())));
  next = with_status(next, "succeeded", Json::number(succeeded));
  if (succeeded >= completions) next = with_condition(next, condition("Complete", true, now_));
  if (failures_[uid] > job.get("spec", "backoffLimit").int_or(6)) {
    next = with_condition(next, condition("Failed", true, now_, "BackoffLimitExceeded"));
    for (const Json& pod : pods_of(uid)) {
      if (is_terminal(pod) || is_dying(pod)) continue;
      const std::string path = path_of(ResourceKind::kPod, namespace_of(pod), name_of(pod));
      remember(ResourceKind::kPod, path, with_metadata(pod, "finalizers", Json()));
      delete_pod(objects_.at(path).object);
    }
  }
  if (!(next == job)) store(ResourceKind::kJob, next);
  return version_ != before;
}

void ModelApi::create_pod(const Json& job, std::int64_t index) {
  const Json pod_template = job.get("spec", "template");
  Json metadata = pod_template.get("metadata");
  const bool indexed = text(job.get("spec", "completionMode")) == "Indexed";
  metadata =
      metadata.with("name", Json::string(fmt::format("{}-{}-{}", name_of(job), index, next_pod_++)))
          .with("namespace", Json::string(namespace_of(job)))
          .with("labels", metadata.get("labels").with("batch.kubernetes.io/job-completion-index",
                                                      Json::string(std::to_string(index))))
          .with("finalizers", Json::array({Json::string("batch.kubernetes.io/job-tracking")}))
          .with("ownerReferences",
                Json::array({Json::object({{"apiVersion", Json::string("batch/v1")},
                                           {"kind", Json::string("Job")},
                                           {"name", Json::string(name_of(job))},
                                           {"uid", Json::string(uid_of(job))},
                                           {"controller", Json::boolean(true)}})}));
  Json pod = Json::object({{"metadata", metadata},
                           {"spec", pod_template.get("spec")},
                           {"status", json(R"({"phase":"Pending"})")}});
  if (indexed && pin_webhook_on) pod = narrow(pod, job, index);
  create(ResourceKind::kPod, pod);
}

Json ModelApi::workload_of(const std::string& owner_uid) const {
  for (const Json& workload : list(ResourceKind::kWorkload)) {
    if (text(workload.get("metadata", "ownerReferences").at(0).get("uid")) == owner_uid) {
      return workload;
    }
  }
  return {};
}

Json ModelApi::narrow(const Json& pod, const Json& job, std::int64_t index) const {
  const auto workload = kube::decode_workload(workload_of(uid_of(job)));
  if (!workload || !workload->admission || !workload->admission->pod_sets.at(0).topology) {
    return pod;
  }
  std::vector<NodeName> slots;
  for (const auto& domain : workload->admission->pod_sets.at(0).topology->domains) {
    // Plans name hosts, pins name nodes.
    for (const Json& node : list(ResourceKind::kNode)) {
      const Json host = node.get("metadata", "labels", "kubernetes.io/hostname");
      if (text(host) != domain.values.back()) continue;
      slots.insert(slots.end(), static_cast<std::size_t>(domain.count), NodeName(name_of(node)));
    }
  }
  std::map<std::int64_t, NodeName> bound;
  for (const Json& member : pods_of(uid_of(job))) {
    if (is_bound(member) && !is_terminal(member) && !is_dying(member)) {
      bound[index_of(member)] = NodeName(text(member.get("spec", "nodeName")));
    }
  }
  const auto node = engine::node_of_rank(slots, bound, index);
  if (!node) return pod;
  const Json term = json(fmt::format(
      R"({{"matchFields":[{{"key":"metadata.name","operator":"In","values":["{}"]}}]}})",
      node->value()));
  const Json required = Json::object({{"nodeSelectorTerms", Json::array({term})}});
  return with_spec(pod, "affinity",
                   Json::object({{"nodeAffinity", Json::object({{kRequired, required}})}}));
}

bool ModelApi::run_scheduler() {
  if (!scheduler_on) return false;
  bool changed = false;
  for (const Json& pod : list(ResourceKind::kPod)) {
    if (is_bound(pod) || is_terminal(pod) || is_dying(pod) ||
        pod.get("spec", "schedulingGates").size() > 0) {
      continue;
    }
    std::vector<std::string> candidates = pinned_names(pod);
    if (candidates.empty()) {
      for (const Json& node : list(ResourceKind::kNode)) candidates.push_back(name_of(node));
    }
    if (extender) {
      if (refused_[uid_of(pod)] == text(pod.get("metadata", "resourceVersion"))) continue;
      candidates = extender(pod);
      if (candidates.empty()) {
        store(ResourceKind::kPod,
              with_condition(pod, condition("PodScheduled", false, now_, "Unschedulable")));
        refused_[uid_of(pod)] = text(get(ResourceKind::kPod, namespace_of(pod), name_of(pod))
                                         .get("metadata", "resourceVersion"));
        changed = true;
        continue;
      }
    }
    for (const std::string& candidate : candidates) {
      const Json node = get(ResourceKind::kNode, "", candidate);
      if (!node.present()) continue;
      std::int64_t used = gpus(pod);
      for (const Json& other : list(ResourceKind::kPod)) {
        if (text(other.get("spec", "nodeName")) == candidate && !is_terminal(other)) {
          used += gpus(other);
        }
      }
      if (used > std::stoll(text(node.get("status", "allocatable", "nvidia.com/gpu")))) continue;
      store(ResourceKind::kPod, with_status(with_spec(pod, "nodeName", Json::string(candidate)),
                                            "phase", Json::string("Running")));
      changed = true;
      break;
    }
  }
  return changed;
}

bool ModelApi::run_kubelets() {
  const std::uint64_t before = version_;
  const auto dying = dying_;
  for (const auto& [path, left] : dying) {
    if (left > 0) {
      dying_[path] = left - 1;
    } else {
      forget(path);
    }
  }
  return version_ != before || !dying.empty();
}

bool ModelApi::run_garbage_collector() {
  const std::uint64_t before = version_;
  std::set<std::string> uids;
  for (const auto& [path, stored] : objects_) uids.insert(uid_of(stored.object));
  for (const Json& pod : list(ResourceKind::kPod)) {
    if (is_bound(pod) && !is_terminal(pod) &&
        !get(ResourceKind::kNode, "", text(pod.get("spec", "nodeName"))).present()) {
      forget(path_of(ResourceKind::kPod, namespace_of(pod), name_of(pod)));
    }
  }
  for (const ResourceKind kind : {ResourceKind::kWorkload, ResourceKind::kPod}) {
    for (const Json& object : list(kind)) {
      const Json owner = object.get("metadata", "ownerReferences").at(0);
      if (owner.present() && !uids.contains(text(owner.get("uid")))) {
        erase(kind, namespace_of(object), name_of(object));
      }
    }
  }
  return version_ != before;
}

void ModelApi::finish_pods(const std::string& ns, const std::string& job) {
  for (const Json& pod : pods_of(uid_of(get(ResourceKind::kJob, ns, job)))) {
    if (is_bound(pod) && !is_terminal(pod)) {
      store(ResourceKind::kPod, with_status(pod, "phase", Json::string("Succeeded")));
    }
  }
}

void ModelApi::preempt_pod(const std::string& ns, const std::string& name) {
  const Json pod = get(ResourceKind::kPod, ns, name);
  if (is_terminal(pod)) return;
  store(ResourceKind::kPod,
        with_condition(pod, condition("DisruptionTarget", true, now_, "PreemptionByScheduler")));
  delete_pod(get(ResourceKind::kPod, ns, name));
}

}  // namespace muster::controller::testing

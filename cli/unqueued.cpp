#include "cli/unqueued.hpp"

#include "kube/codec/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace muster::cli {
namespace {

using kube::Json;
using kube::kDefaultLocalQueue;
using kube::kNamespaceNameLabel;
using kube::kQueueNameLabel;

constexpr const char* kGroupTotal = "kueue.x-k8s.io/pod-group-total-count";
constexpr const char* kIsGroupWorkload = "kueue.x-k8s.io/is-group-workload";
constexpr const char* kRoleHash = "kueue.x-k8s.io/role-hash";

Json with_created(const Json& object, const std::optional<Instant>& created) {
  if (!created) return object;
  return object.with(
      "metadata",
      object.get("metadata").with("creationTimestamp", Json::string(format_rfc3339(*created))));
}

/// What makes pods of a group alike: the fields that decide where a pod can run and what it asks.
std::string role_of(const kube::Pod& pod, const Json& object) {
  if (const std::string* role = pod.meta.find_annotation(kRoleHash)) return *role;
  const Json spec = object.get("spec");
  const auto shapes = [](const Json& containers) {
    std::vector<Json> result;
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const Json each = containers.at(i);
      result.push_back(
          Json::object({{"resources", each.get("resources")}, {"ports", each.get("ports")}}));
    }
    return Json::array(result);
  };
  const std::string shape =
      Json::object({{"containers", shapes(spec.get("containers"))},
                    {"initContainers", shapes(spec.get("initContainers"))},
                    {"nodeSelector", spec.get("nodeSelector")},
                    {"affinity", spec.get("affinity")},
                    {"tolerations", spec.get("tolerations")},
                    {"runtimeClassName", spec.get("runtimeClassName")},
                    {"priority", spec.get("priority")},
                    {"topologySpreadConstraints", spec.get("topologySpreadConstraints")},
                    {"overhead", spec.get("overhead")},
                    {"resourceClaims", spec.get("resourceClaims")},
                    {"resources", spec.get("resources")}})
          .dump();
  // FNV-1a, for a short name that is the same on every machine.
  std::uint32_t hash = 0x811c9dc5U;
  for (const char c : shape) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  return fmt::format("{:08x}", hash);
}

std::optional<std::int64_t> group_total(const kube::Pod& pod) {
  const std::string* text = pod.meta.find_annotation(kGroupTotal);
  if (text == nullptr) return std::nullopt;
  std::int32_t total = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), total);
  if (error != std::errc() || end != text->data() + text->size() || total < 1) return std::nullopt;
  return total;
}

engine::Explanation misconfigured(std::string detail, std::string needs = {}) {
  return {engine::PendingReason::kMisconfigured,
          {engine::QueueUnusable{std::move(detail), std::move(needs)}}};
}

bool names_queue(const kube::ObjectMeta& meta) {
  const std::string* queue = meta.find_label(kQueueNameLabel);
  return queue != nullptr && !queue->empty();
}

bool is_running(const kube::Job& job) {
  return !job.suspend && !job.finished() && (job.active > 0 || job.start_time);
}

class Finder {
 public:
  Finder(const Input& input, const OwnerIndex& owners, const Configuration& configuration,
         const controller::PriorityTable& priorities)
      : input_(input), owners_(owners), configuration_(configuration), priorities_(priorities) {
    for (const Item<kube::LocalQueue>& queue : input.local_queues) {
      if (queue.object.meta.name == kDefaultLocalQueue) with_default_.insert(queue.object.meta.ns);
    }
    for (const Item<kube::Namespace_>& ns : input.namespaces) {
      namespaces_[Namespace(ns.object.meta.name)] = ns.object.meta.labels;
    }
    for (const Item<kube::Workload>& workload : input.workloads) {
      names_.insert({workload.object.meta.ns, workload.object.meta.name});
    }
  }

  UnqueuedWork run() {
    for (const Item<kube::Job>& job : input_.jobs) add_job(job);
    using GroupKey = std::pair<Namespace, std::string>;
    std::map<GroupKey, std::vector<const Item<kube::Pod>*>> groups;
    for (const Item<kube::Pod>& pod : input_.pods) {
      if (!is_live(pod.object)) continue;
      const std::string group = pod_group_of(pod.object);
      if (group.empty()) {
        add_pod(pod);
      } else if (owners_.workloads_of(pod.object).empty()) {
        groups[{pod.object.meta.ns, group}].push_back(&pod);
      }
    }
    for (const auto& [key, members] : groups) add_group(key.first, key.second, members);
    note_left_alone();
    std::sort(found_.list.begin(), found_.list.end(),
              [](const Unqueued& a, const Unqueued& b) { return a.position < b.position; });
    return std::move(found_);
  }

 private:
  static bool is_live(const kube::Pod& pod) {
    return !pod.terminal() && !pod.meta.deleted && !pod.is_daemon() && !pod.is_mirror();
  }

  /// Of the namespaces that are managed at all.
  bool in_scope(const Namespace& ns, std::size_t position, bool kind_managed) {
    const auto known = namespaces_.find(ns);
    LabelMap labels = known == namespaces_.end() ? LabelMap() : known->second;
    labels.emplace(kNamespaceNameLabel, ns.value());
    const char* why = nullptr;
    if (!kind_managed) why = "its kind is not among integrations.frameworks";
    if (!matches(configuration_.managed_namespaces, labels)) {
      why = "its namespace is outside managedJobsNamespaceSelector";
    }
    if (why == nullptr) return true;
    const InputObject& object = input_.objects[position];
    found_.warnings.push_back(
        fmt::format("{}: {}/{} is not queued: {}", object.place, object.ns, object.name, why));
    return false;
  }

  /// The owner as its Workload sees it: with the queue that it is given where it names none.
  kube::ObjectMeta with_queue(const kube::ObjectMeta& meta) const {
    kube::ObjectMeta result = meta;
    if (!names_queue(meta) && with_default_.contains(meta.ns)) {
      result.labels[kQueueNameLabel] = kDefaultLocalQueue;
    }
    return result;
  }

  /// True, and said of `found`, when there is no Workload before its priority class exists. The API
  /// server would refuse pods of a PriorityClass that does not exist, so that is only worth a
  /// warning.
  bool waits_for_class(const controller::ResolvedPriority& priority, Unqueued& found) {
    if (!priority.missing) return false;
    if (priority.kind == "WorkloadPriorityClass") {
      found.incomplete = missing_class(priority.name);
      return true;
    }
    found_.warnings.push_back(fmt::format("{}: {} {} does not exist, the priority counts as 0",
                                          input_.objects[found.position].place, priority.kind,
                                          priority.name));
    return false;
  }

  /// The server touches no Job that names no queue. One that is still to be created is a question
  /// to be answered, one that runs is none of ours.
  bool is_left_alone(const kube::Job& job) {
    if (names_queue(job.meta) || configuration_.manage_jobs_without_queue_name) return false;
    if (!is_running(job)) return false;
    if (left_alone_++ == 0) first_left_alone_ = fmt::format("{}/{}", job.meta.ns, job.meta.name);
    return true;
  }

  /// Another object may have the name that a new Workload would get.
  Json with_free_name(const Json& workload, const Namespace& ns) {
    std::string name(workload.get("metadata", "name").string_or(""));
    while (!names_.insert({ns, name}).second) name += "-1";
    return workload.with("metadata", workload.get("metadata").with("name", Json::string(name)));
  }

  void note_left_alone() {
    if (left_alone_ == 0) return;
    std::string text = fmt::format("Job {} names no queue and is left alone", first_left_alone_);
    if (left_alone_ > 1) text += fmt::format(" (and {} more)", left_alone_ - 1);
    found_.notes.push_back(std::move(text));
  }

  void add_job(const Item<kube::Job>& item) {
    if (!owners_.workloads_of(item.object).empty()) return;
    if (item.object.meta.deleted) return;
    if (!in_scope(item.object.meta.ns, item.position, configuration_.manage_jobs)) return;
    kube::Job job = item.object;
    job.meta = with_queue(job.meta);
    if (is_left_alone(job)) return;
    Unqueued& found = found_.list.emplace_back();
    found.position = item.position;
    found.key = {job.meta.ns, job.meta.name};
    const auto priority =
        controller::resolve_priority(job.meta, job.pod_template.annotations,
                                     job.pod_template.spec.priority_class_name, priorities_);
    if (!job.finished() && waits_for_class(priority, found)) return;
    found.workload = with_free_name(
        with_created(controller::workload_for_job(job, priorities_), job.meta.created),
        job.meta.ns);
    found.finished = job.finished();
    found.succeeded = kube::is_true(job.conditions, "Complete");
  }

  void add_pod(const Item<kube::Pod>& item) {
    const kube::Pod& pod = item.object;
    if (!names_queue(pod.meta) || !pod.spec.node_name.empty()) return;
    if (!owners_.workloads_of(pod).empty()) return;
    const kube::OwnerReference* owner = pod.meta.controller_owner();
    // A Job's pods queue as its gang; so do those that carry the mark of a pod set.
    if (owner != nullptr &&
        (owner->kind == "Job" || pod.meta.find_label(kube::kPodSetLabel) != nullptr)) {
      return;
    }
    if (!in_scope(pod.meta.ns, item.position, configuration_.manage_pods)) return;
    Unqueued& found = found_.list.emplace_back();
    found.position = item.position;
    found.key = {pod.meta.ns, pod.meta.name};
    const auto priority =
        controller::resolve_priority(pod.meta, {}, pod.spec.priority_class_name, priorities_);
    if (waits_for_class(priority, found)) return;
    found.workload = with_free_name(
        with_created(
            controller::workload_for_pod(pod, input_.objects[item.position].object, priorities_),
            pod.meta.created),
        pod.meta.ns);
  }

  void add_group(const Namespace& ns, const std::string& name,
                 const std::vector<const Item<kube::Pod>*>& members) {
    // All members bound and no Workload: a group that runs outside the queues.
    const bool waits = std::any_of(members.begin(), members.end(), [](const auto* member) {
      return member->object.spec.node_name.empty();
    });
    const Item<kube::Pod>& first = *members.front();
    if (!waits || !in_scope(ns, first.position, configuration_.manage_pods)) return;
    Unqueued& found = found_.list.emplace_back();
    found.position = first.position;
    found.key = {ns, name};
    const auto total = group_total(first.object);
    if (!is_sound_name(name)) {
      found.key.name = first.object.meta.name;
      found.incomplete = misconfigured("the name of its pod group is no name of an object");
      return;
    }
    if (!total) {
      found.incomplete = misconfigured(
          fmt::format("the pods of group {} lack a good annotation {}", name, kGroupTotal));
      return;
    }
    if (const auto lacking = *total - std::ssize(members); lacking > 0) {
      found.incomplete = {
          engine::PendingReason::kPendingEvaluation,
          {engine::QueueUnusable{
              fmt::format("{} of {} pods of group {} exist", members.size(), *total, name),
              fmt::format("{} more pod{} of group {}", lacking, lacking == 1 ? "" : "s", name)}}};
      return;
    }
    const auto priority = controller::resolve_priority(
        first.object.meta, {}, first.object.spec.priority_class_name, priorities_);
    if (waits_for_class(priority, found)) return;
    found.workload = group_workload(
        name, {members.begin(), members.begin() + static_cast<std::ptrdiff_t>(*total)}, priority);
  }

  Json group_workload(const std::string& name, const std::vector<const Item<kube::Pod>*>& members,
                      const controller::ResolvedPriority& priority) {
    const Item<kube::Pod>& first = *members.front();
    std::vector<controller::OwnerPodSet> roles;
    std::vector<Json> references;
    std::optional<Instant> created = first.object.meta.created;
    for (const Item<kube::Pod>* member : members) {
      const Json& object = input_.objects[member->position].object;
      const kube::ObjectMeta& meta = member->object.meta;
      references.push_back(Json::object({{"apiVersion", Json::string("v1")},
                                         {"kind", Json::string("Pod")},
                                         {"name", Json::string(meta.name)},
                                         {"uid", Json::string(meta.uid.value())}}));
      // The group is there when its last pod is.
      if (!created || !meta.created) {
        created.reset();
      } else {
        created = std::max(*created, *meta.created);
      }
      const std::string role = role_of(member->object, object);
      const auto known = std::find_if(roles.begin(), roles.end(),
                                      [&](const auto& each) { return each.name == role; });
      if (known != roles.end()) {
        ++known->count;
        continue;
      }
      const Json pod_template = Json::object(
          {{"metadata", Json::object({{"labels", object.get("metadata", "labels")},
                                      {"annotations", object.get("metadata", "annotations")}})},
           {"spec", object.get("spec")}});
      roles.push_back({role, 1, pod_template});
    }
    const Json workload =
        controller::workload_object({"v1", "Pod", with_queue(first.object.meta)}, roles, priority);
    const Json meta =
        Json::object({{"name", Json::string(name)},
                      {"namespace", Json::string(first.object.meta.ns.value())},
                      {"annotations", Json::object({{kIsGroupWorkload, Json::string("true")}})},
                      {"ownerReferences", Json::array(references)}});
    return with_free_name(with_created(workload.with("metadata", meta), created),
                          first.object.meta.ns);
  }

  const Input& input_;
  const OwnerIndex& owners_;
  const Configuration& configuration_;
  const controller::PriorityTable& priorities_;
  std::set<Namespace> with_default_;
  std::map<Namespace, LabelMap> namespaces_;
  std::set<std::pair<Namespace, std::string>> names_;
  std::size_t left_alone_ = 0;
  std::string first_left_alone_;
  UnqueuedWork found_;
};

}  // namespace

engine::Explanation missing_class(const std::string& name) {
  return misconfigured(fmt::format("WorkloadPriorityClass {} does not exist", name),
                       fmt::format("WorkloadPriorityClass {} to be created", name));
}

UnqueuedWork find_unqueued(const Input& input, const OwnerIndex& owners,
                           const Configuration& configuration,
                           const controller::PriorityTable& priorities) {
  return Finder(input, owners, configuration, priorities).run();
}

}  // namespace muster::cli

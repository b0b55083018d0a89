#include "webhook/scope.hpp"

#include "webhook/labels.hpp"

namespace muster::webhook {
namespace {

using engine::Snapshot;

Queueing queueing_of(const kube::ObjectMeta& meta, const Namespace& ns, const Snapshot& snapshot,
                     const WebhookOptions& options) {
  const std::string label = label_of(meta, kQueueNameLabel);
  if (!label.empty()) return {.managed = true, .queue = label, .defaulted = false};
  if (has_local_queue(ns, kDefaultLocalQueue, snapshot)) {
    return {.managed = true, .queue = kDefaultLocalQueue, .defaulted = true};
  }
  return {.managed = options.manage_jobs_without_queue_name, .queue = {}, .defaulted = false};
}

/// None for a namespace that the snapshot does not know yet.
const LabelMap& labels_of(const Namespace& ns, const Snapshot& snapshot) {
  static const LabelMap kNone;
  if (!snapshot.queues) return kNone;
  const auto found = snapshot.queues->namespaces.find(ns);
  return found == snapshot.queues->namespaces.end() ? kNone : found->second;
}

}  // namespace

std::string label_of(const kube::ObjectMeta& meta, const std::string& key) {
  const std::string* const value = meta.find_label(key);
  return value == nullptr ? std::string() : *value;
}

bool is_in_scope(const Namespace& ns, const Snapshot& snapshot, const WebhookOptions& options) {
  LabelMap labels = labels_of(ns, snapshot);
  labels.emplace(kNamespaceNameLabel, ns.value());
  return matches(options.managed_namespaces, labels);
}

bool is_given_over(const Namespace& ns, const Snapshot& snapshot) {
  const LabelMap& labels = labels_of(ns, snapshot);
  const auto label = labels.find(kGivenOverLabel);
  return label != labels.end() && label->second == "true";
}

const kube::OwnerReference* controlling_job(const kube::ObjectMeta& meta) {
  const kube::OwnerReference* const owner = meta.controller_owner();
  const bool is_job = owner != nullptr && owner->api_version == "batch/v1" && owner->kind == "Job";
  return is_job ? owner : nullptr;
}

bool has_local_queue(const Namespace& ns, const std::string& name, const Snapshot& snapshot) {
  return snapshot.queues && snapshot.queues->local_queues.contains(LocalQueueKey{ns, name});
}

std::shared_ptr<const engine::WorkloadView> find_owner_workload(const kube::ObjectMeta& meta,
                                                                const Snapshot& snapshot) {
  const kube::OwnerReference* const job = controlling_job(meta);
  if (job == nullptr) return nullptr;
  auto workload = snapshot.find_workload(job->uid);
  if (workload && !meta.ns.value().empty() && workload->key.ns != meta.ns) return nullptr;
  return workload;
}

Queueing queueing_of_job(const kube::ObjectMeta& meta, const Namespace& ns,
                         const Snapshot& snapshot, const WebhookOptions& options) {
  if (!is_in_scope(ns, snapshot, options)) return {};
  return queueing_of(meta, ns, snapshot, options);
}

Queueing queueing_of_pod(const kube::ObjectMeta& meta, const Namespace& ns,
                         const Snapshot& snapshot, const WebhookOptions& options) {
  if (!is_in_scope(ns, snapshot, options)) return {};
  kube::Pod pod;
  pod.meta = meta;
  if (pod.is_daemon() || pod.is_mirror()) return {};
  if (find_owner_workload(meta, snapshot)) return {};
  // Pods of a started Job carry the pod set's label even where the snapshot does not know their
  // workload any more; they never queue on their own, nor do those of a Job that is not queued.
  if (controlling_job(meta) != nullptr &&
      (meta.find_label(kPodSetLabel) != nullptr || label_of(meta, kQueueNameLabel).empty())) {
    return {};
  }
  return queueing_of(meta, ns, snapshot, options);
}

}  // namespace muster::webhook

#pragma once
// What of the cluster's work is queued: the rules that mutate and validate share.
// Rules: queueing semantics (h), job protocol and plain pods.

#include "base/ids.hpp"
#include "engine/snapshot.hpp"
#include "kube/codec/objects.hpp"
#include "webhook/options.hpp"

#include <memory>
#include <string>

namespace muster::webhook {

/// Whether anything in this namespace may be queued. A namespace that the snapshot does not know
/// yet has no labels but its name.
[[nodiscard]] bool is_in_scope(const Namespace& ns, const engine::Snapshot& snapshot,
                               const WebhookOptions& options);

/// Everything in the namespace is queued: its label muster.dev/managed is "true".
[[nodiscard]] bool is_given_over(const Namespace& ns, const engine::Snapshot& snapshot);

/// The Job that controls the object (a pod, a Workload); null: none does. Anybody may write any
/// owner reference, and other kinds own no Workload: what a queued pod starts (a Spark driver its
/// executors) is work of its own.
[[nodiscard]] const kube::OwnerReference* controlling_job(const kube::ObjectMeta& meta);

/// The workload of the Job that controls a pod; null: no Job does, or none that is queued.
[[nodiscard]] std::shared_ptr<const engine::WorkloadView> find_owner_workload(
    const kube::ObjectMeta& meta, const engine::Snapshot& snapshot);

/// How an object of a kind that can be queued stands to the queues.
struct Queueing {
  bool managed = false;
  std::string queue;       ///< Its LocalQueue; empty: it has to wait for one.
  bool defaulted = false;  ///< The queue is the namespace's `default`, not its own label.
};

/// `meta` without the namespace a CREATE may leave to the request, hence `ns`.
[[nodiscard]] Queueing queueing_of_job(const kube::ObjectMeta& meta, const Namespace& ns,
                                       const engine::Snapshot& snapshot,
                                       const WebhookOptions& options);
/// Of a pod that queues for itself. Members of a workload, DaemonSet and static pods do not, and
/// pods with a controller only by their own label.
[[nodiscard]] Queueing queueing_of_pod(const kube::ObjectMeta& meta, const Namespace& ns,
                                       const engine::Snapshot& snapshot,
                                       const WebhookOptions& options);

[[nodiscard]] bool has_local_queue(const Namespace& ns, const std::string& name,
                                   const engine::Snapshot& snapshot);

/// The label's value; empty without one.
[[nodiscard]] std::string label_of(const kube::ObjectMeta& meta, const std::string& key);

}  // namespace muster::webhook

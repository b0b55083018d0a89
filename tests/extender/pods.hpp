#pragma once
// Pods as kube-scheduler would show them.

#include "kube/codec/objects.hpp"

#include <string>

namespace muster::testing {

inline kube::Pod foreign_pod(const std::string& uid, std::int64_t gpus) {
  kube::Pod pod;
  pod.meta.name = uid;
  pod.meta.ns = Namespace("team");
  pod.meta.uid = Uid(uid);
  pod.meta.resource_version = "100";
  kube::Container container;
  container.name = "main";
  if (gpus > 0) container.requests[ResourceName("nvidia.com/gpu")] = Quantity::from_units(gpus);
  pod.spec.containers.push_back(container);
  return pod;
}

/// Owned by the Job `owner`; without a rank unless one is given.
inline kube::Pod member_pod(const std::string& uid, const std::string& owner, int rank = -1,
                            std::int64_t gpus = 8) {
  kube::Pod pod = foreign_pod(uid, gpus);
  kube::OwnerReference reference;
  reference.api_version = "batch/v1";
  reference.kind = "Job";
  reference.name = owner;
  reference.uid = Uid(owner);
  reference.controller = true;
  pod.meta.owners.push_back(reference);
  pod.meta.labels["kueue.x-k8s.io/podset"] = "main";
  if (rank >= 0) {
    pod.meta.labels["batch.kubernetes.io/job-completion-index"] = std::to_string(rank);
  }
  return pod;
}

inline kube::Pod daemon_pod(const std::string& uid, std::int64_t gpus) {
  kube::Pod pod = member_pod(uid, "daemons", -1, gpus);
  pod.meta.owners.front().api_version = "apps/v1";
  pod.meta.owners.front().kind = "DaemonSet";
  pod.meta.labels.clear();
  return pod;
}

inline kube::Condition unschedulable(const std::string& message) {
  kube::Condition condition;
  condition.type = "PodScheduled";
  condition.status = "False";
  condition.reason = "Unschedulable";
  condition.message = message;
  return condition;
}

}  // namespace muster::testing

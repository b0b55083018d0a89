#include "cli/owner_index.hpp"

#include "controller/names.hpp"

#include <algorithm>

namespace muster::cli {
namespace {

// Owners own owners (JobSet, Job, pod); no real chain is longer.
constexpr std::size_t kMaxDepth = 8;

}  // namespace

OwnerIndex::OwnerIndex(const Input& input) {
  for (std::size_t i = 0; i < input.workloads.size(); ++i) {
    const kube::ObjectMeta& meta = input.workloads[i].object.meta;
    by_name_.emplace(std::pair(meta.ns, meta.name), i);
    for (const kube::OwnerReference& owner : meta.owners) {
      by_owner_[{meta.ns, owner.kind, owner.name}].push_back(i);
    }
  }
  for (const Item<kube::Job>& job : input.jobs) {
    jobs_.emplace(std::pair(job.object.meta.ns, job.object.meta.name), &job.object);
  }
}

const std::vector<std::size_t>& OwnerIndex::workloads_of(const Namespace& ns,
                                                         const std::string& kind,
                                                         const std::string& name) const {
  static const std::vector<std::size_t> none;
  const auto found = by_owner_.find({ns, kind, name});
  return found == by_owner_.end() ? none : found->second;
}

std::vector<std::size_t> OwnerIndex::workloads_of(const kube::Job& job) const {
  std::vector<std::size_t> found = workloads_of(job.meta.ns, "Job", job.meta.name);
  if (found.empty()) collect(job.meta, 0, found);
  return found;
}

std::vector<std::size_t> OwnerIndex::workloads_of(const kube::Pod& pod) const {
  std::vector<std::size_t> found = workloads_of(pod.meta.ns, "Pod", pod.meta.name);
  if (!found.empty()) return found;
  if (const std::string group = pod_group_of(pod); !group.empty()) {
    const auto named = by_name_.find({pod.meta.ns, group});
    if (named != by_name_.end()) return {named->second};
  }
  collect(pod.meta, 0, found);
  return found;
}

void OwnerIndex::collect(const kube::ObjectMeta& meta, std::size_t depth,
                         std::vector<std::size_t>& into) const {
  if (depth >= kMaxDepth) return;
  for (const kube::OwnerReference& owner : meta.owners) {
    const auto& own = workloads_of(meta.ns, owner.kind, owner.name);
    into.insert(into.end(), own.begin(), own.end());
    if (!into.empty() || owner.kind != "Job") continue;
    const auto job = jobs_.find({meta.ns, owner.name});
    if (job != jobs_.end()) collect(job->second->meta, depth + 1, into);
  }
}

std::string pod_group_of(const kube::Pod& pod) {
  const std::string* name = pod.meta.find_annotation(controller::kPodGroupLabel);
  if (name == nullptr) name = pod.meta.find_label(controller::kPodGroupLabel);
  return name == nullptr ? std::string() : *name;
}

}  // namespace muster::cli

#include "webhook/fit.hpp"

#include <fmt/format.h>

namespace muster::webhook {
namespace {

void warn_about_resources(const engine::LocalQueueView& queue, const kube::PodSpec& pod,
                          std::int64_t count, const WebhookOptions& options,
                          std::vector<std::string>& warnings) {
  for (const auto& [resource, amount] : kube::quota_requests(pod, options.resource_rules)) {
    const Amount asked = amount * count;
    if (asked <= Amount()) continue;
    const auto most = queue.potential.find(resource);
    if (most == queue.potential.end()) {
      if (options.ignore_undeclared_resources) continue;
      warnings.push_back(
          fmt::format("asks for {}, which ClusterQueue {} does not offer: it can "
                      "never be admitted there",
                      resource, queue.cluster_queue));
    } else if (!most->second.is_unlimited() && asked > most->second) {
      warnings.push_back(fmt::format(
          "asks for {} {}, but ClusterQueue {} can have {} at most: it can never be admitted there",
          format_amount(resource, asked), resource, queue.cluster_queue,
          format_amount(resource, most->second)));
    }
  }
}

}  // namespace

std::vector<std::string> warn_about_queue(const Namespace& ns, const std::string& queue,
                                          const kube::PodSpec& pod, std::int64_t count,
                                          const engine::Snapshot& snapshot,
                                          const WebhookOptions& options) {
  std::vector<std::string> warnings;
  if (!snapshot.queues) return warnings;
  if (queue.empty()) {
    warnings.push_back("waits for a queue: set the label kueue.x-k8s.io/queue-name");
    return warnings;
  }
  const auto found = snapshot.queues->local_queues.find(LocalQueueKey{ns, queue});
  if (found == snapshot.queues->local_queues.end()) {
    warnings.push_back(
        fmt::format("LocalQueue {} does not exist in namespace {}: it waits there", queue, ns));
    return warnings;
  }
  const engine::LocalQueueView& view = found->second;
  if (!view.active) {
    warnings.push_back(fmt::format("LocalQueue {} is not active: {}", queue, view.inactive_reason));
  }
  if (view.active || !view.potential.empty()) {
    warn_about_resources(view, pod, count, options, warnings);
  }
  return warnings;
}

}  // namespace muster::webhook

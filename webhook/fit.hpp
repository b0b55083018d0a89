#pragma once
// What a user should know at once: that a request can never be served where it is queued.

#include "base/ids.hpp"
#include "base/resources.hpp"
#include "engine/snapshot.hpp"
#include "kube/codec/objects.hpp"
#include "webhook/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::webhook {

/// Warnings about `count` pods like this in a LocalQueue: that it does not exist or is inactive, or
/// that its ClusterQueue could not serve them even with an empty cluster. An empty queue name: that
/// the work waits for one.
[[nodiscard]] std::vector<std::string> warn_about_queue(
    const Namespace& ns, const std::string& queue, const kube::PodSpec& pod, std::int64_t count,
    const engine::Snapshot& snapshot, const WebhookOptions& options);

}  // namespace muster::webhook

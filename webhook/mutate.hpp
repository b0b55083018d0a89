#pragma once
// /mutate: puts work into its queue and pods onto their planned node. Pure: the answer depends on
// the request, the snapshot and the options only, and nothing is remembered, so that a dry run is
// like any other call. What was mutated once is not mutated again.

#include "engine/snapshot.hpp"
#include "webhook/options.hpp"
#include "webhook/review.hpp"

#include <string>
#include <vector>

namespace muster::webhook {

struct Mutation {
  kube::Json object;  ///< As it should be; equal to the request's when nothing is to change.
  std::vector<std::string> warnings;
};

/// - A Job on its way into a queue is suspended, gets the queue's label if it has none and the
///   namespace has a LocalQueue `default`, and (podPriority `protect`) the class muster-managed in
///   its template; the class it had is kept in an annotation.
/// - A plain pod on its way into a queue gets our gate and the managed label, and the class.
/// - A member of an admitted workload is pinned to the node of its rank.
/// - With a second scheduler, a pod that asks for a managed resource is given to it.
/// - An update of a managed Job cannot put the class back: templates are immutable, and a
///   repeated `kubectl apply` of the user's manifest would be refused for it.
///
/// An object whose metadata cannot be read is an error: whether it queues cannot be told.
[[nodiscard]] Result<Mutation> mutate(const AdmissionRequest& request,
                                      const engine::Snapshot& snapshot,
                                      const WebhookOptions& options);

}  // namespace muster::webhook

#pragma once
// Everything that can happen. Engine::step(Event, Instant) is the only door that changes state.

#include "base/shared.hpp"
#include "engine/specs.hpp"

#include <variant>

namespace muster::engine {

struct NodeUpserted {
  NodeSpec node;
};
struct NodeDeleted {
  NodeName name;
};
struct NamespaceUpserted {
  NamespaceSpec ns;
};
struct NamespaceDeleted {
  Namespace name;
};
struct FlavorUpserted {
  FlavorSpec flavor;
};
struct FlavorDeleted {
  FlavorName name;
};
struct TopologyUpserted {
  TopologySpec topology;
};
struct TopologyDeleted {
  TopologyName name;
};
struct CohortUpserted {
  quota::CohortSpec cohort;
};
struct CohortDeleted {
  CohortName name;
};
struct ClusterQueueUpserted {
  ClusterQueueSpec queue;
};
struct ClusterQueueDeleted {
  ClusterQueueName name;
};
struct LocalQueueUpserted {
  LocalQueueSpec queue;
};
struct LocalQueueDeleted {
  LocalQueueKey key;
};

/// The object as the API server holds it now. The sender drops versions older than its own last
/// write, so that what is said here is never behind what the engine already decided and saw
/// written. While an admission is being written (see Admit), a version without one does not undo
/// it.
struct WorkloadUpserted {
  WorkloadSpec workload;
};
struct WorkloadDeleted {
  WorkloadKey key;
};

/// A pod holds room on a node (or is nominated to one).
struct PodPlaced {
  Shared<PodUse> pod;
};
/// The pod holds no room any more: deleted, terminal, or no longer nominated.
struct PodGone {
  Uid uid;
};

/// The write of an admission was refused for good: forget it, the workload is pending again.
struct AdmissionRefused {
  WorkloadKey key;
};
/// The write of an eviction was refused for good: the workload is not on its way out.
struct EvictionRefused {
  WorkloadKey key;
};
/// All pods of an evicted workload are gone and its admission was cleared: the quota is free.
struct QuotaReleased {
  WorkloadKey key;
};

/// Foreign pods that the extender allowed on these nodes and that are not bound yet: new plans
/// avoid the nodes where they can. Replaces the former set.
struct NodesInDoubt {
  std::vector<NodeName> nodes;
};

/// Take decisions until nothing changes or the step's budget is used (Effects::more).
struct Settle {};

using Event =
    std::variant<NodeUpserted, NodeDeleted, NamespaceUpserted, NamespaceDeleted, FlavorUpserted,
                 FlavorDeleted, TopologyUpserted, TopologyDeleted, CohortUpserted, CohortDeleted,
                 ClusterQueueUpserted, ClusterQueueDeleted, LocalQueueUpserted, LocalQueueDeleted,
                 WorkloadUpserted, WorkloadDeleted, PodPlaced, PodGone, AdmissionRefused,
                 EvictionRefused, QuotaReleased, NodesInDoubt, Settle>;

}  // namespace muster::engine

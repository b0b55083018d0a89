#pragma once
// Everything the engine may ask of the world: values with their reasons, carried out elsewhere.

#include "engine/reason.hpp"
#include "engine/specs.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace muster::engine {

/// Quota is reserved and the plan is charged from this moment. To be written; answered by a
/// WorkloadUpserted that carries the admission, or by AdmissionRefused.
struct Admit {
  WorkloadKey workload;
  Admission admission;
  quota::FlavorAmounts borrowed;  ///< What of it is above the queue's nominal quota; empty: none.
  /// Of what is borrowed: the smallest cohort around the queue whose quota holds all of it.
  std::map<quota::FlavorResource, std::string> lenders;
};

/// A plan of an admitted workload had to change (a node was lost, or room was taken). To be written
/// like an admission; members that are not bound yet follow the new plan.
struct Replan {
  WorkloadKey workload;
  Admission admission;
};

/// The workload must go, as a whole. Its quota and room stay charged until QuotaReleased.
struct Evict {
  WorkloadKey workload;
  ClusterQueueName cluster_queue;
  EvictionReason reason = EvictionReason::kPreempted;
  /// Only with kPreempted: by which rule, for whom.
  std::optional<PreemptionRule> rule;
  std::optional<WorkloadKey> preemptor;
  ClusterQueueName preemptor_queue;
  Uid preemptor_uid;  ///< Of its Workload; empty: it has none yet.
  NodeName node;      ///< Only with kNodeFailures: where its room is gone.
};

/// The verdict on a workload that stays pending; sent only when it differs from the last one.
struct StillPending {
  WorkloadKey workload;
  ClusterQueueName cluster_queue;  ///< Empty: its queue does not lead to one.
  Explanation explanation;
};

using Effect = std::variant<Admit, Replan, Evict, StillPending>;

struct Effects {
  std::vector<Effect> list;  ///< In the order the decisions were taken.
  bool more = false;         ///< The budget ran out: send Settle again.
};

}  // namespace muster::engine

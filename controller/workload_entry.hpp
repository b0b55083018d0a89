#pragma once
// All that the controller holds about one workload. What must survive a restart is in `object`; the
// rest is derived again.

#include "controller/outbox.hpp"
#include "controller/workload_status.hpp"
#include "engine/effect.hpp"
#include "kube/codec/objects.hpp"

#include <map>
#include <optional>
#include <string>

namespace muster::controller {

/// Who starts and stops the pods.
enum class OwnerType {
  kNone,   ///< Nobody we know: somebody else's workload, we only decide.
  kOwner,  ///< A suspendable owner (kinds.hpp).
  kPod,    ///< A plain pod, itself.
};

struct PlannedEviction {
  EvictionWords words;
  bool by_engine = true;  ///< The engine decided it and waits for its end.
};

struct PreemptedMember {
  std::string name;
  Instant at;
  bool handled = false;  ///< Its gang was evicted for it.
};

struct WorkloadEntry {
  WorkloadKey key;
  Uid owner_uid;
  OwnerType owner_type = OwnerType::kNone;
  std::optional<kube::Workload> object;     ///< Absent: not created yet.
  kube::Json pod_sets;                      ///< spec.podSets as stored.
  std::optional<engine::WorkloadSpec> fed;  ///< What the engine was told last.
  bool surplus = false;                     ///< A second Workload of one owner: to be deleted.
  /// The object is gone and its pods are not: the engine goes on counting `fed`.
  bool leaving = false;
  std::optional<Instant> owner_gone_at;       ///< The owner was seen to be missing.
  std::optional<Uid> deleted_while_creating;  ///< So that the answer does not revive it.
  kube::Json written_pod_sets;                ///< What we last sent as spec.podSets.

  // Decisions not written yet.
  std::optional<engine::Admission> admit;
  std::string admit_message;
  std::optional<PlannedEviction> eviction;
  bool eviction_refused = false;  ///< The engine is to be told, after a pause.
  std::optional<engine::Explanation> pending;
  std::optional<Instant> pending_since;
  std::optional<Instant> pending_written_at;
  std::optional<Instant> pending_look_at;  ///< When its words are compared again.
  bool pending_turn = false;               ///< It may be written down now.
  std::string pending_event_reason;        ///< Of the last event.

  // The write under way (one at a time) and what its failure means.
  std::optional<WriteId> in_flight;
  std::optional<engine::Admission> writing;  ///< The admission in it.
  int failures = 0;                          ///< In a row.
  std::optional<Instant> retry_at;
  /// After a conflict: wait until this version was replaced, but not for ever.
  std::string conflict_version;
  Uid conflict_object;  ///< The pod it was about; empty: the Workload or its owner.
  std::optional<Instant> conflict_until;
  /// After a refusal: not before this time again.
  std::optional<Instant> hold_until;
  int refusals = 0;

  // The start.
  std::uint64_t plan_generation = 0;  ///< First snapshot that shows the plan; 0: none yet.
  std::optional<Instant> plan_written_at;
  bool barrier_held = false;

  std::optional<Instant> reclaim_at;  ///< When to write down the pods that ended well.

  // Members.
  /// Preempted by kube-scheduler; kept when the pod is gone before we looked.
  std::map<Uid, PreemptedMember> preempted;
  std::map<std::int64_t, Instant> replaced_at;  ///< By rank; rankless: -1, -2, …
  std::optional<Instant> node_missing_since;    ///< An unbound member's planned node is not there.
};

}  // namespace muster::controller

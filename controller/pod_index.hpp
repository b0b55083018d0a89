#pragma once
// Pods as far as the controller needs them: who belongs to whom, who takes room, who is stuck.

#include "base/boxed.hpp"
#include "base/ids.hpp"
#include "base/shared.hpp"
#include "base/time.hpp"
#include "engine/specs.hpp"
#include "kube/codec/objects.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::controller {

struct PodRecord {
  Uid uid;
  PodKey key;
  std::string resource_version;
  Uid member_of;       ///< See member_uid().
  bool plain = false;  ///< It queues for itself: member_of is its own uid by gate or label.
  bool gated = false;  ///< Carries our gate.
  bool terminal = false;
  std::string phase;
  NodeName node;                    ///< Where it is bound; empty: nowhere.
  std::optional<Instant> deletion;  ///< When its grace ends; absent: not being deleted.
  std::optional<std::int64_t> rank;
  std::string pod_set;
  /// While unbound: the nodes that its required affinity names; empty: not pinned.
  std::set<NodeName> pins;
  std::vector<std::string> finalizers;
  /// When kube-scheduler's preemption marked it; absent: never.
  std::optional<Instant> scheduler_preempted;
  std::string evict_at;                       ///< Its annotation muster.dev/evict-at; empty: none.
  std::optional<Shared<engine::PodUse>> use;  ///< What the engine was told.
  /// What it will take, its node left open; absent: gated, terminal, or known where.
  Boxed<engine::PodUse> to_come;
  /// With to_come: where it seems to be on its way to; see PodIndex::presume.
  std::optional<NodeName> presumed;
  /// Kept for plain pods that were not started yet (they are patched), absent else.
  kube::Json object;
  Boxed<kube::ObjectMeta> meta;  ///< Of plain pods only.
  bool unschedulable = false;  ///< kube-scheduler found no node for it (PodScheduled is False).
  bool placed = false;         ///< Carries kPlacedAnnotation.
  bool delete_sent = false;
  /// Its owner is there and does not own it any more: somebody took the reference away.
  bool released = false;
};

/// The difference a change makes for the engine.
struct PodChange {
  std::optional<Shared<engine::PodUse>> placed;
  std::optional<Uid> gone;
  /// Whose members changed (may be the pod itself).
  std::optional<Uid> member_of;
  /// A record of the same name and another uid was replaced: that pod is gone.
  std::optional<Uid> replaced;
  std::optional<Uid> replaced_member_of;
  bool replaced_had_use = false;
};

class PodIndex {
 public:
  /// A pod that loses its owner stays a member of what that owner ran. `owner_lives`: that owner is
  /// there and not on its way out.
  PodChange upsert(const kube::Pod& pod, const kube::Json& object, bool owner_lives);
  /// Nothing to do for an unknown pod or another uid (an empty uid means whatever is there).
  PodChange erase(const PodKey& key, const Uid& uid);

  /// An unbound pod seems to be on its way to `node` and takes its room there until it is seen
  /// elsewhere, or gone; nothing: it is not any more. Nothing to do for other pods.
  PodChange presume(const Uid& uid, std::optional<NodeName> node);

  [[nodiscard]] const PodRecord* find(const Uid& uid) const;
  [[nodiscard]] PodRecord* find(const Uid& uid);
  [[nodiscard]] const PodRecord* find(const PodKey& key) const;
  /// Members in the order of their uids; plain pods are members of themselves. Owners own nothing
  /// in other namespaces, whatever the pods there say.
  [[nodiscard]] std::vector<const PodRecord*> members(const Uid& member_of,
                                                      const Namespace& ns) const;

 private:
  void unlink(const PodRecord& record);

  std::map<Uid, PodRecord> pods_;
  std::map<PodKey, Uid> by_key_;
  std::map<Uid, std::set<Uid>> by_member_;
};

}  // namespace muster::controller

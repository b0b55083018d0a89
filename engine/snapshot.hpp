#pragma once
// What network threads read: an immutable picture of the fleet, published after each drained batch.
// Chunks that did not change are shared with the former picture (copy on write).

#include "base/resources.hpp"
#include "base/shared.hpp"
#include "engine/node_lookup.hpp"
#include "engine/node_table.hpp"
#include "engine/specs.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace muster::engine {

/// A pod that holds room on a node.
struct PodView {
  Shared<PodUse> use;
  Resources requests;    ///< Of use->requests, what Snapshot::resources names.
  bool planned = false;  ///< It sits in a slot of its workload's plan.
};

struct NodeView {
  NodeName name;
  std::string hostname;  ///< Label kubernetes.io/hostname; the node's name when it has none.
  bool usable = true;    ///< Ready and schedulable.
  Resources allocatable;
  Resources foreign;  ///< Bound or nominated pods that sit in no slot of a plan.
  Resources planned;  ///< All slots of all plans on this node, taken or not.
  std::vector<PodView> pods;

  /// Room that no plan holds: allocatable − foreign − planned. May be negative.
  [[nodiscard]] Resources unplanned_room() const {
    Resources room = allocatable;
    room -= foreign;
    room -= planned;
    return room;
  }
};

/// Nodes that are published together.
struct NodeChunk {
  explicit NodeChunk(std::vector<NodeView> all) : nodes(std::move(all)), table(nodes) {}
  std::vector<NodeView> nodes;
  NodeTable table;  ///< Of `nodes`.
};

struct PodSetView {
  PodSetName name;
  std::int64_t count = 0;                        ///< Admitted pods; what was asked while pending.
  std::vector<NodeName> slots;                   ///< The plan, one entry a slot; empty: no plan.
  Resources per_pod;                             ///< Node view of one pod.
  std::map<std::int64_t, NodeName> bound_ranks;  ///< Ranks with a bound live pod.
  /// Bound live pods without a rank, per node.
  std::map<NodeName, std::int64_t> bound_rankless;
  LabelMap node_labels;                 ///< Labels of the assigned flavors, for pins.
  std::vector<Toleration> tolerations;  ///< Tolerations of the assigned flavors.
};

enum class WorkloadPhase { kPending, kAdmitted, kEvicting, kFinished };

struct WorkloadView {
  WorkloadKey key;
  Uid owner_uid;
  std::string queue_name;
  WorkloadPhase phase = WorkloadPhase::kPending;
  std::vector<PodSetView> pod_sets;
  std::int64_t total_pods = 0;  ///< More than one: a gang.
  bool held = false;            ///< Admitted, and waits for nodes as a whole: elastic.hpp.
};

/// Where a LocalQueue leads and what could ever be had there.
struct LocalQueueView {
  ClusterQueueName cluster_queue;
  bool active = false;
  std::string inactive_reason;
  /// With Admission Fair Sharing: what it used lately, as of the last sample. Absent: none yet.
  std::optional<ConsumedResources> consumed;
  /// Most that the queue could ever have of each resource, over its flavors (empty cluster).
  std::map<ResourceName, Amount> potential;
};

struct ClusterQueueView {
  ClusterQueueName name;
  std::optional<CohortName> cohort;
  bool active = false;
  std::string inactive_reason;  ///< API reason: `Stopped`, `FlavorNotFound`, …; empty when active.
  std::string inactive_message;
  std::int64_t pending = 0;
  std::int64_t reserving = 0;
  std::int64_t admitted = 0;
  quota::FlavorAmounts nominal;
  quota::FlavorAmounts usage;
  quota::FlavorAmounts borrowed;  ///< max(0, usage − nominal); empty without a cohort.
  /// Dominant resource share, the status value of semantics (e): ceil; INT64_MAX = infinite.
  std::int64_t weighted_share = 0;
};

/// Counts of one LocalQueue (status and metrics).
struct LocalQueueCounts {
  std::int64_t pending = 0;
  std::int64_t reserving = 0;
  std::int64_t admitted = 0;
  quota::FlavorAmounts usage;
  bool operator==(const LocalQueueCounts&) const = default;
};

/// Queues and namespaces: rebuilt when one of them, or a count, changed.
struct QueuesView {
  bool fair_sharing = false;  ///< Shares decide.
  /// As ClusterQueueView::weighted_share; of Cohort objects, and only with fair sharing.
  std::map<CohortName, std::int64_t> cohort_shares;
  std::map<LocalQueueKey, LocalQueueView> local_queues;
  std::map<LocalQueueKey, LocalQueueCounts> local_queue_counts;
  std::map<ClusterQueueName, ClusterQueueView> cluster_queues;
  std::map<Namespace, LabelMap> namespaces;
};

class Snapshot {
 public:
  static constexpr std::size_t kChunkNodes = 128;
  static constexpr std::size_t kShards = 256;

  using WorkloadShard = std::map<Uid, std::shared_ptr<const WorkloadView>>;

  /// Grows with every publication.
  std::uint64_t generation = 0;
  /// A gang is held (elastic.hpp): what becomes free may be kept for it.
  bool holds_gangs = false;
  std::shared_ptr<const ResourceTable> resources;
  /// Position of a node in `node_chunks` (chunk = position / kChunkNodes). Removed nodes are
  /// absent.
  std::shared_ptr<const NodeLookup> node_index;
  std::vector<std::shared_ptr<const NodeChunk>> node_chunks;
  std::array<std::shared_ptr<const WorkloadShard>, kShards> workloads;
  std::shared_ptr<const QueuesView> queues;

  /// nullptr: unknown to us.
  [[nodiscard]] const NodeView* find_node(std::string_view name) const;
  /// The workload whose members have this controller owner (or are this pod). nullptr: none.
  [[nodiscard]] std::shared_ptr<const WorkloadView> find_workload(const Uid& owner_uid) const;
  [[nodiscard]] static std::size_t shard_of(const Uid& owner_uid);
};

}  // namespace muster::engine

#pragma once
// The controller: object changes in, API writes out. A deterministic state machine without socket,
// clock or thread. It owns the conversation with the engine: every change becomes an Event, every
// Effect becomes writes in the order of design section 2.
//
// How it is driven, on one thread, for each batch of inputs:
//
//     for each input: on_object / on_synced / on_write_done / on_nodes_in_doubt
//     on_tick(now)                                  // decides, asks the barrier, makes writes
//     snapshot = engine.publish(); hand it out;     // plans are visible before anything is written
//     on_published(snapshot, now)
//     for each of take_writes(): send it            // answers come back by on_write_done
//     call again for the next inputs, or at next_wakeup() with none
//
// Nothing is decided and nothing is written before every kind is synced. All that must survive a
// restart is in the API objects: after a crash a new Controller over the same objects goes on where
// the old one stopped, whatever writes of it had been done.

#include "base/constraints.hpp"
#include "base/ids.hpp"
#include "base/resources.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "engine/engine.hpp"
#include "kube/codec/json.hpp"
#include "kube/codec/quota_requests.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::controller {

/// What is watched. In the order in which objects are taken after a start: those of a kind when all
/// kinds before it are synced; until then they are kept as they came. What is referred to comes
/// first, and Workloads before their owners, so that ended owners without one can be left out.
enum class ResourceKind {
  kNode,
  kNamespace,
  kLimitRange,
  kRuntimeClass,
  kPriorityClass,
  kWorkloadPriorityClass,
  kResourceFlavor,
  kTopology,
  kCohort,
  kClusterQueue,
  kLocalQueue,
  kWorkload,
  kJob,
  kPod,
};
inline constexpr std::array kResourceKinds = {
    ResourceKind::kNode,
    ResourceKind::kNamespace,
    ResourceKind::kLimitRange,
    ResourceKind::kRuntimeClass,
    ResourceKind::kPriorityClass,
    ResourceKind::kWorkloadPriorityClass,
    ResourceKind::kResourceFlavor,
    ResourceKind::kTopology,
    ResourceKind::kCohort,
    ResourceKind::kClusterQueue,
    ResourceKind::kLocalQueue,
    ResourceKind::kWorkload,
    ResourceKind::kJob,
    ResourceKind::kPod,
};
/// `nodes`, `workloads`: for logs and metrics.
[[nodiscard]] std::string_view to_string(ResourceKind kind);
/// The collection to list and watch: `/apis/kueue.x-k8s.io/v1beta2/workloads`.
[[nodiscard]] std::string_view collection_path(ResourceKind kind);

enum class ChangeKind { kUpsert, kDelete };

enum class WriteMethod { kPost, kPatch, kDelete };
[[nodiscard]] std::string_view to_string(WriteMethod method);

/// What a write is for.
enum class WriteKind {
  kCreateWorkload,
  kUpdateWorkload,  ///< Pod sets or priority of a pending Workload follow its owner.
  kDeleteWorkload,
  kAdmit,
  kReplan,
  kReclaim,  ///< Pods that ended well give their quota back.
  kEvict,
  kRelease,  ///< Admission cleared after the pods are gone.
  kFinish,
  kPending,  ///< Why it waits.
  kResume,
  kSuspend,
  kRestore,      ///< The template as the user wrote it.
  kForgetStart,  ///< The start time of an owner that stands still, see OwnerKind::start_time.
  kUngatePod,
  kTellPlaced,  ///< To a pod: its gang, which was held, has its nodes.
  kUnfinalizePod,
  kDeletePod,
  kAnnounceEviction,  ///< To a pod: when it goes.
  kClusterQueueStatus,
  kLocalQueueStatus,
  kCohortStatus,
  kEvent,
};
inline constexpr std::size_t kWriteKinds = static_cast<std::size_t>(WriteKind::kEvent) + 1;
[[nodiscard]] std::string_view to_string(WriteKind kind);

using WriteId = std::uint64_t;

struct Write {
  WriteId id = 0;
  WriteKind kind = WriteKind::kEvent;
  WriteMethod method = WriteMethod::kPatch;
  std::string path;          ///< With query, percent-encoded where needed.
  std::string content_type;  ///< For a patch which kind of patch, else `application/json`.
  std::string body;
  std::string subject;  ///< `namespace/name` of what it is about, for logs.
};

/// The answer to a write: the object as the server returned it (absent for an empty body), or the
/// error. 404, 409 and 422 must come as kNotFound, kConflict and kInvalidArgument. A write whose
/// outcome is unknown is an error too (kUnavailable, kDeadline): all writes bear being repeated.
using WriteResult = Result<kube::Json>;

/// Asked before a gang starts: may foreign pods that were answered from a snapshot older than
/// `generation` still land on these nodes and not fit beside the plan?
struct BarrierQuery {
  WorkloadKey workload;
  Uid owner_uid;
  /// What the plan puts on each of its nodes, in all.
  std::map<NodeName, ResourceList> planned;
  /// The first snapshot that shows the plan.
  std::uint64_t generation = 0;
};
/// True: clear, the gang may start. Must not call back.
using Barrier = std::function<bool(const BarrierQuery&)>;

struct ControllerOptions {
  /// Of flavors without the annotation muster.dev/capacity.
  engine::Capacity default_capacity = engine::Capacity::kFixed;
  /// Namespaces whose owners are looked at at all; absent: all but kube-system.
  std::optional<LabelSelector> managed_namespaces;
  std::string event_source = "muster";
  /// What pods' requests count as against quota.
  kube::ResourceRules resource_rules;
  /// Longest wait at the commit barrier, from the admission's write.
  Duration barrier_timeout = std::chrono::seconds(2);
  /// So many pods of held elastic gangs at once (elastic_window.hpp).
  std::int64_t elastic_window = 64;
  /// How long a workload is pending before that is written down: most start sooner.
  Duration pending_delay = std::chrono::seconds(1);
  /// Of those writes so many at once, then one per interval (pending_turns.hpp).
  int pending_burst = 100;
  Duration pending_interval = std::chrono::milliseconds(40);
  /// Shortest time between two status writes of one queue; stretched five times while workload
  /// writes are under way, or more where many queues change (queue_status.cpp).
  Duration queue_status_interval = std::chrono::seconds(1);
  /// A pod that cannot follow its plan is replaced at most once in this time, per rank.
  Duration replace_interval = std::chrono::seconds(10);
  /// Sees every effect as it is taken (metrics, logs).
  std::function<void(const engine::Effect&, Instant)> on_effect;
};

struct ControllerStats {
  std::array<std::uint64_t, kWriteKinds> writes{};
  std::uint64_t write_conflicts = 0;
  std::uint64_t write_retries = 0;   ///< After a time-out or a fault of the server.
  std::uint64_t writes_refused = 0;  ///< 404, 422 and the like.
  std::uint64_t stale_dropped = 0;   ///< Watch versions older than our own last write.
  std::uint64_t decode_errors = 0;
  std::uint64_t barrier_waits = 0;     ///< Starts that the barrier held back at least once.
  std::uint64_t barrier_timeouts = 0;  ///< Starts that went on without its leave.
  std::uint64_t gangs_torn = 0;        ///< Gangs evicted since the scheduler preempted a member.
  std::uint64_t pods_replaced = 0;
  std::uint64_t gangs_held = 0;     ///< Now: elastic gangs whose pods wait for nodes.
  std::uint64_t gangs_waiting = 0;  ///< Now: those whose pods are not created for now.
  std::uint64_t events_dropped = 0;  ///< Over the rate limit.
};

class Controller {
 public:
  /// Both outlive the controller; nobody else steps the engine.
  Controller(engine::Engine& engine, ControllerOptions options, Barrier barrier);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// With kDelete only metadata.{namespace,name,uid} is read. An object that cannot be decoded is
  /// logged and left out; the last good version stays.
  void on_object(ResourceKind kind, ChangeKind change, const kube::Json& object, Instant now);
  /// The first complete list of a kind was delivered. Later calls change nothing.
  void on_synced(ResourceKind kind, Instant now);
  void on_write_done(WriteId id, const WriteResult& result, Instant now);
  /// Nodes on which answered foreign pods may still land (from the extender's ledger).
  void on_nodes_in_doubt(std::vector<NodeName> nodes, Instant now);
  /// An unbound pod that the scheduler seems to have sent to `node` and has not bound yet (from the
  /// extender's ledger) takes its room there; nothing: it is not on its way any more.
  void on_pod_presumed(const Uid& pod, std::optional<NodeName> node, Instant now);
  /// Whether our own pin webhook answers; pods are replaced only while it does (default true).
  void on_hook_health(bool answers);
  /// Ends a batch of inputs, or serves next_wakeup().
  void on_tick(Instant now);
  /// Every plan decided so far is visible from this snapshot on.
  void on_published(std::shared_ptr<const engine::Snapshot> snapshot, Instant now);

  /// Writes made since the last call, to be sent in any order and at once: what must wait for
  /// another write's answer is not among them yet.
  [[nodiscard]] std::vector<Write> take_writes();

  /// When on_tick is due without further input; nothing: only input makes work. May be in the past:
  /// at once.
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  [[nodiscard]] bool synced() const;
  [[nodiscard]] const ControllerStats& stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::controller

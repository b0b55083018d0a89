#pragma once
// The controller's state and steps; see controller.hpp for what it does and how it is driven.
//
// Level-triggered: inputs change what is known and mark workloads dirty; reconcile() looks at one
// workload as it is and makes the one write that brings it forward. What it must do never depends
// on which event came last, so lost, repeated and late events do no harm, and neither does a crash.
//
//   controller.cpp    the public calls, time, answers to writes
//   feed.cpp          objects -> stores and engine events; effects -> entries
//   reconcile.cpp     the order of steps; Workload status writes
//   owner_flow.cpp    suspendable owners: create, follow, start, stop, restore
//   pod_flow.cpp      plain pods
//   grace.cpp         time for a checkpoint before an evicted workload stops
//   held_flow.cpp     elastic gangs that wait for nodes
//   members.cpp       gangs that something outside tore, pods that cannot follow their plan

#include "controller/controller.hpp"
#include "controller/elastic_window.hpp"
#include "controller/event_log.hpp"
#include "controller/kinds.hpp"
#include "controller/outbox.hpp"
#include "controller/pending_turns.hpp"
#include "controller/pins.hpp"
#include "controller/pod_index.hpp"
#include "controller/queue_status.hpp"
#include "controller/translate.hpp"
#include "controller/workload_entry.hpp"
#include "controller/workload_object.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::controller {

/// True when version `a` is older than `b`. Versions are decimal numbers without leading zeros (the
/// API server compares them so since 1.35, and etcd revisions always were); anything else: false.
[[nodiscard]] bool older_version(const std::string& a, const std::string& b);

class Controller::Impl {
 public:
  Impl(engine::Engine& engine, ControllerOptions options, Barrier barrier);

  void on_object(ResourceKind kind, ChangeKind change, const kube::Json& object, Instant now);
  void on_synced(ResourceKind kind, Instant now);
  void on_write_done(WriteId id, const WriteResult& result, Instant now);
  void on_nodes_in_doubt(std::vector<NodeName> nodes, Instant now);
  void on_pod_presumed(const Uid& pod, std::optional<NodeName> node, Instant now);
  void on_hook_health(bool answers) { hook_answers_ = answers; }
  void on_tick(Instant now);
  void on_published(std::shared_ptr<const engine::Snapshot> snapshot, Instant now);
  [[nodiscard]] std::vector<Write> take_writes();
  [[nodiscard]] std::optional<Instant> next_wakeup() const;
  [[nodiscard]] bool synced() const { return synced_.size() == kResourceKinds.size(); }
  [[nodiscard]] const ControllerStats& stats() const;

 private:
  using ObjectName = std::pair<std::string, std::string>;  // namespace, name

  // feed.cpp
  void apply(ResourceKind kind, ChangeKind change, const kube::Json& object, Instant now);
  void apply_upsert(ResourceKind kind, const kube::Json& object, Instant now);
  void apply_delete(ResourceKind kind, const kube::Json& object, Instant now);
  void upsert_node(const kube::Json& object, Instant now);
  void upsert_namespace(const kube::Json& object, Instant now);
  void upsert_flavor(const kube::Json& object, Instant now);
  void upsert_cluster_queue(const kube::Json& object, Instant now);
  void upsert_local_queue(const kube::Json& object, Instant now);
  void upsert_request_defaults(ResourceKind kind, const kube::Json& object, Instant now);
  /// Pending workloads of the namespace (nothing: of all) may ask for something else now.
  void requests_changed(const std::optional<Namespace>& ns, Instant now);
  void upsert_priority_class(ResourceKind kind, const kube::Json& object);
  void upsert_owner(const OwnerKind& kind, const kube::Json& object, Instant now);
  void delete_owner(const ObjectName& name, const Uid& uid, Instant now);
  void upsert_workload(const kube::Json& object, Instant now);
  void delete_workload(const WorkloadKey& key, const Uid& uid, Instant now);
  void upsert_pod(const kube::Json& object, Instant now);
  void apply_pod_change(const Namespace& ns, const PodChange& change, Instant now);
  /// What the pod is known to be a member of is there, and not on its way out.
  [[nodiscard]] bool owner_lives(const Uid& pod) const;
  void adopt(WorkloadEntry& entry, const kube::Workload& workload);
  void feed_workload(WorkloadEntry& entry, Instant now);
  void priorities_changed();
  /// Of the Job or plain pod; nullptr: not known.
  [[nodiscard]] const kube::ObjectMeta* owner_meta(const WorkloadEntry& entry) const;
  /// A Workload that cannot be read stands for the same owner: nothing may be concluded from not
  /// knowing it.
  [[nodiscard]] bool is_unreadable(const WorkloadEntry& entry) const;
  /// What the Workload names as its owner is in another namespace.
  [[nodiscard]] bool owner_is_elsewhere(const WorkloadEntry& entry) const;
  void send(const engine::Event& event, Instant now);
  void take_effects(const engine::Effects& effects, Instant now);
  void take(const engine::Admit& effect);
  void take(const engine::Replan& effect);
  void take(const engine::Evict& effect);
  void take(const engine::StillPending& effect, Instant now);
  [[nodiscard]] ObjectLookup lookup() const;
  template <class T>
  [[nodiscard]] bool decoded(const Result<T>& result, ResourceKind kind);

  // controller.cpp
  /// How many kinds, the first ones, have all before them complete: their objects are taken.
  [[nodiscard]] std::size_t kinds_open() const;
  void succeeded(const InFlight& what, const kube::Json& body, Instant now);
  void failed(const InFlight& what, const Error& error, Instant now);
  void failed_for_workload(WorkloadEntry& entry, const InFlight& what, const Error& error,
                           Instant now);
  void refused(WorkloadEntry& entry, const InFlight& what, const Error& error, Instant now);
  /// A template could not be changed since the owner has a start time; from now on that goes first.
  bool start_time_is_in_the_way(const InFlight& what);
  void refused_admission(WorkloadEntry& entry, WriteKind kind, const Error& error, Instant now);
  void retry_later(WorkloadEntry& entry, Instant now);
  void write_queue_status(Instant now);
  /// Marks the next one that may write why it waits. False: nobody may at this time.
  bool give_pending_turn(Instant now);
  void mark(const WorkloadKey& key) { dirty_.insert(key); }
  void schedule(const WorkloadKey& key, Instant at) { timers_.emplace(at, key); }
  [[nodiscard]] WorkloadEntry* find(const WorkloadKey& key);
  [[nodiscard]] WorkloadEntry* find_by_owner(const Namespace& ns, const Uid& owner_uid);
  /// Owners own nothing in other namespaces, whatever the Workloads there say. nullptr: not known.
  [[nodiscard]] const OwnerState* owner_of(const WorkloadEntry& entry) const;
  [[nodiscard]] const PodRecord* owning_pod_of(const WorkloadEntry& entry) const;
  /// It does not stand for its owner any more; another Workload of that owner goes on doing so.
  void forget_owner(const WorkloadEntry& entry);
  void erase_if_forgotten(const WorkloadKey& key);

  // reconcile.cpp
  void reconcile(WorkloadEntry& entry, Instant now);
  [[nodiscard]] bool must_wait(WorkloadEntry& entry, Instant now);
  void forget_work(WorkloadEntry& entry);
  void reconcile_owned(WorkloadEntry& entry, Instant now);
  void reconcile_unowned(WorkloadEntry& entry, Instant now);
  void reconcile_ownerless(WorkloadEntry& entry, Instant now);
  /// Writes a decided eviction, or drops one that is written already or was overtaken. True: that
  /// was this step.
  [[nodiscard]] bool settle_eviction(WorkloadEntry& entry, Instant now);
  void write_admission(WorkloadEntry& entry, Instant now);
  void write_eviction(WorkloadEntry& entry, Instant now);
  void write_release(WorkloadEntry& entry, Instant now);
  void write_finish(WorkloadEntry& entry, bool succeeded, const std::string& message, Instant now);
  void write_pending(WorkloadEntry& entry, Instant now);
  void delete_workload_object(WorkloadEntry& entry);
  void create_workload(WorkloadEntry& entry, const kube::Json& object);
  void update_workload(WorkloadEntry& entry, const kube::Json& spec);
  void evict_ourselves(WorkloadEntry& entry, EvictionWords words);
  void patch_workload(WorkloadEntry& entry, WriteKind kind, const kube::Json& patch);
  [[nodiscard]] EventSubject subject_of(const WorkloadEntry& entry) const;
  void event(const WorkloadEntry& entry, bool warning, const std::string& reason,
             const std::string& message, Instant now);
  /// All members deleted or terminal, or given up on a node that does not answer.
  [[nodiscard]] bool members_gone(const WorkloadEntry& entry, Instant now);
  /// The barrier's answer, or its time-out. Schedules the next look when it is neither.
  [[nodiscard]] bool may_start(WorkloadEntry& entry, Instant now);
  /// Nothing when the admission says nothing of this pod set.
  [[nodiscard]] std::optional<PodSetPins> pins_of(const WorkloadEntry& entry,
                                                  const std::string& pod_set) const;

  // owner_flow.cpp
  void reconcile_owner(WorkloadEntry& entry, const OwnerState& owner, Instant now);
  void create_for_owner(WorkloadEntry& entry, const OwnerState& owner, Instant now);
  /// True when Workload and owner had to be brought in line first.
  /// The Workload is gone and its pods are not yet.
  void let_leave(WorkloadEntry& entry);
  void take_back_released(WorkloadEntry& entry);
  [[nodiscard]] bool follow_owner(WorkloadEntry& entry, const OwnerState& owner);
  /// What would be started is what was admitted, in the queue that admitted it.
  [[nodiscard]] bool is_as_admitted(const WorkloadEntry& entry, const OwnerState& owner) const;
  /// Pods that ended well give their quota back. True: that was this step.
  [[nodiscard]] bool write_reclaimable(WorkloadEntry& entry, const OwnerState& owner, Instant now);
  void stop_owner(WorkloadEntry& entry, const OwnerState& owner, Instant now);
  void start_owner(WorkloadEntry& entry, const OwnerState& owner, Instant now);
  void suspend_owner(WorkloadEntry& entry, const OwnerState& owner);
  /// The templates as the user wrote them, as changes to the owner; absent: they are so already.
  [[nodiscard]] kube::Json restoration(const WorkloadEntry& entry, const OwnerState& owner) const;
  void restore_owner(WorkloadEntry& entry, const OwnerState& owner, const kube::Json& changes);
  /// Takes the start time away where it keeps the template from being changed; true: that is under
  /// way, the change comes after it.
  bool forget_start(WorkloadEntry& entry, const OwnerState& owner);
  void patch_owner(WorkloadEntry& entry, const OwnerState& owner, WriteKind kind,
                   const kube::Json& changes);
  void write_to_owner(WorkloadEntry& entry, const OwnerState& owner, WriteKind kind,
                      std::string path, const kube::Json& changes);
  /// As it was before the start, around the containers as they are: those neither start nor stop
  /// ever touches, so what is different in them the owner wants.
  [[nodiscard]] kube::Json original_template(const WorkloadEntry& entry,
                                             const OwnerPodSet& pod_set) const;
  [[nodiscard]] bool is_managed(const OwnerState& owner) const;
  [[nodiscard]] bool namespace_is_managed(const Namespace& ns) const;
  /// Nothing while its WorkloadPriorityClass does not exist.
  [[nodiscard]] std::optional<ResolvedPriority> priority_of(WorkloadEntry& entry,
                                                            const OwnerState& owner, Instant now);
  [[nodiscard]] bool has_live_member(const WorkloadEntry& entry) const;

  // pod_flow.cpp
  void reconcile_pod(WorkloadEntry& entry, const PodRecord& pod, Instant now);
  void create_for_pod(WorkloadEntry& entry, const PodRecord& pod);
  [[nodiscard]] bool follow_pod(WorkloadEntry& entry, const PodRecord& pod);
  void start_pod(WorkloadEntry& entry, const PodRecord& pod, Instant now);
  void delete_pod(WorkloadEntry& entry, const PodRecord& pod);

  // grace.cpp
  /// When the pods of an evicted workload go at last; nothing: at once.
  [[nodiscard]] std::optional<Instant> grace_end(const WorkloadEntry& entry) const;
  /// Tells the running members, one write at a time. False: it is over, or there is none.
  [[nodiscard]] bool wait_for_checkpoint(WorkloadEntry& entry, Instant now);

  // held_flow.cpp
  /// Call when anything about the workload changed.
  void update_window(const WorkloadEntry& entry);
  /// Its pods may exist: it does not wait for nodes, or it is its turn to wait with them.
  [[nodiscard]] bool may_be_created(const WorkloadEntry& entry) const;
  /// Tells members that were refused while their gang was held, one write at a time.
  void tell_placed(WorkloadEntry& entry, Instant now);

  // members.cpp
  void watch_members(WorkloadEntry& entry, const OwnerState& owner, Instant now);
  /// The member that kube-scheduler preempted under the present admission; nullptr: none.
  [[nodiscard]] const PreemptedMember* torn_member(const WorkloadEntry& entry) const;
  void replace_misplaced(WorkloadEntry& entry, const OwnerState& owner, Instant now);
  void replace_pod(WorkloadEntry& entry, const OwnerState& owner, const PodRecord& pod,
                   std::int64_t slot_key, Instant now);
  void watch_missing_nodes(WorkloadEntry& entry, Instant now);

  engine::Engine& engine_;
  ControllerOptions options_;
  Barrier barrier_;
  mutable ControllerStats stats_;

  std::set<ResourceKind> synced_;
  std::size_t open_ = 1;  ///< kinds_open(), and what came before was fed.
  bool started_templates_are_fixed_ = false;  ///< See start_time_is_in_the_way.
  std::map<ResourceKind, std::map<ObjectName, kube::Json>> unfed_;  // until its kind is open

  std::map<NodeName, std::string> nodes_;  // -> hostname label
  std::map<std::string, std::set<NodeName>> hostnames_;
  std::set<NodeName> ready_nodes_;
  std::map<Namespace, LabelMap> namespaces_;
  std::map<FlavorName, engine::FlavorSpec> flavors_;
  RequestDefaults request_defaults_;
  PriorityTable priorities_;
  std::map<Uid, OwnerState> owners_;
  std::map<ObjectName, Uid> owner_names_;
  PodIndex pods_;

  std::map<WorkloadKey, WorkloadEntry> workloads_;
  std::map<std::pair<Namespace, Uid>, WorkloadKey> by_owner_;
  std::map<WorkloadKey, Uid> unreadable_;  // -> owner
  std::set<WorkloadKey> dirty_;
  std::set<std::pair<Instant, WorkloadKey>> timers_;
  std::set<WorkloadKey> unpublished_;  // with a plan that no snapshot shows yet
  std::set<WorkloadKey> at_barrier_;

  Outbox outbox_;
  QueueStatus queue_status_;
  PendingTurns pending_turns_;
  ElasticWindow window_;
  EventLog events_;
  bool hook_answers_ = true;
  bool more_to_settle_ = false;
  Instant now_{};  // of the last call
};

}  // namespace muster::controller

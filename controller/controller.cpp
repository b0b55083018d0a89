#include "controller/controller.hpp"

#include "base/log.hpp"
#include "controller/impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::controller {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(10);
/// A watch that is this late is not waited for: the retry will find out.
constexpr Duration kConflictPatience = std::chrono::seconds(1);
/// After that an object that was to be deleted is looked at again.
constexpr Duration kDeletionPatience = std::chrono::seconds(5);
constexpr Duration kFirstHold = std::chrono::seconds(10);
constexpr int kLongestHoldSteps = 5;  // 10 s doubled five times: 320 s
constexpr int kStartAttempts = 7;     // over some 13 s

Duration pause_after(int failures) {
  const int steps = std::min(failures, 7);
  return std::min(kLongestPause, kFirstPause * (1 << steps));
}

bool is_passing(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadline:
    case ErrorCode::kInternal:
      return true;
    default:
      return false;
  }
}

bool is_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string_view to_string(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kNode:
      return "nodes";
    case ResourceKind::kNamespace:
      return "namespaces";
    case ResourceKind::kLimitRange:
      return "limitranges";
    case ResourceKind::kRuntimeClass:
      return "runtimeclasses";
    case ResourceKind::kPriorityClass:
      return "priorityclasses";
    case ResourceKind::kWorkloadPriorityClass:
      return "workloadpriorityclasses";
    case ResourceKind::kResourceFlavor:
      return "resourceflavors";
    case ResourceKind::kTopology:
      return "topologies";
    case ResourceKind::kCohort:
      return "cohorts";
    case ResourceKind::kClusterQueue:
      return "clusterqueues";
    case ResourceKind::kLocalQueue:
      return "localqueues";
    case ResourceKind::kJob:
      return "jobs";
    case ResourceKind::kWorkload:
      return "workloads";
    case ResourceKind::kPod:
      return "pods";
  }
  return "";
}

std::string_view collection_path(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kNode:
      return "/api/v1/nodes";
    case ResourceKind::kNamespace:
      return "/api/v1/namespaces";
    case ResourceKind::kLimitRange:
      return "/api/v1/limitranges";
    case ResourceKind::kRuntimeClass:
      return "/apis/node.k8s.io/v1/runtimeclasses";
    case ResourceKind::kPriorityClass:
      return "/apis/scheduling.k8s.io/v1/priorityclasses";
    case ResourceKind::kWorkloadPriorityClass:
      return "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses";
    case ResourceKind::kResourceFlavor:
      return "/apis/kueue.x-k8s.io/v1beta2/resourceflavors";
    case ResourceKind::kTopology:
      return "/apis/kueue.x-k8s.io/v1beta2/topologies";
    case ResourceKind::kCohort:
      return "/apis/kueue.x-k8s.io/v1beta2/cohorts";
    case ResourceKind::kClusterQueue:
      return "/apis/kueue.x-k8s.io/v1beta2/clusterqueues";
    case ResourceKind::kLocalQueue:
      return "/apis/kueue.x-k8s.io/v1beta2/localqueues";
    case ResourceKind::kJob:
      return "/apis/batch/v1/jobs";
    case ResourceKind::kWorkload:
      return "/apis/kueue.x-k8s.io/v1beta2/workloads";
    case ResourceKind::kPod:
      return "/api/v1/pods";
  }
  return "";
}

std::string_view to_string(WriteMethod method) {
  switch (method) {
    case WriteMethod::kPost:
      return "POST";
    case WriteMethod::kPatch:
      return "PATCH";
    case WriteMethod::kDelete:
      return "DELETE";
  }
  return "";
}

std::string_view to_string(WriteKind kind) {
  static constexpr std::array<std::string_view, kWriteKinds> kNames = {"create_workload",
                                                                       "update_workload",
                                                                       "delete_workload",
                                                                       "admit",
                                                                       "replan",
                                                                       "reclaim",
                                                                       "evict",
                                                                       "release",
                                                                       "finish",
                                                                       "pending",
                                                                       "resume",
                                                                       "suspend",
                                                                       "restore",
                                                                       "forget_start",
                                                                       "ungate_pod",
                                                                       "tell_placed",
                                                                       "unfinalize_pod",
                                                                       "delete_pod",
                                                                       "announce_eviction",
                                                                       "cluster_queue_status",
                                                                       "local_queue_status",
                                                                       "cohort_status",
                                                                       "event"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool older_version(const std::string& a, const std::string& b) {
  if (!is_digits(a) || !is_digits(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

Controller::Impl::Impl(engine::Engine& engine, ControllerOptions options, Barrier barrier)
    : engine_(engine),
      options_(std::move(options)),
      barrier_(std::move(barrier)),
      queue_status_(options_.queue_status_interval),
      pending_turns_(Pace(options_.pending_interval, options_.pending_burst)),
      window_(options_.elastic_window),
      events_(options_.event_source) {}

void Controller::Impl::on_object(ResourceKind kind, ChangeKind change, const kube::Json& object,
                                 Instant now) {
  now_ = now;
  if (static_cast<std::size_t>(kind) < open_) {
    apply(kind, change, object, now);
    return;
  }
  const kube::Json meta = object.get("metadata");
  const ObjectName name(meta.get("namespace").string_or(""), meta.get("name").string_or(""));
  if (change == ChangeKind::kDelete) {
    unfed_[kind].erase(name);
  } else {
    unfed_[kind][name] = object;
  }
}

std::size_t Controller::Impl::kinds_open() const {
  std::size_t open = 0;
  while (open < kResourceKinds.size() && synced_.contains(kResourceKinds[open])) ++open;
  return std::min(open + 1, kResourceKinds.size());
}

void Controller::Impl::on_synced(ResourceKind kind, Instant now) {
  now_ = now;
  if (!synced_.insert(kind).second) return;
  for (; open_ < kinds_open(); ++open_) {
    const auto objects = unfed_.extract(kResourceKinds[open_]);
    if (objects.empty()) continue;
    for (const auto& [name, object] : objects.mapped()) {
      apply(objects.key(), ChangeKind::kUpsert, object, now);
    }
  }
}

void Controller::Impl::on_write_done(WriteId id, const WriteResult& result, Instant now) {
  now_ = now;
  const std::optional<InFlight> what = outbox_.answered(id);
  if (!what) return;
  if (what->kind == WriteKind::kEvent) return;
  if (what->kind == WriteKind::kClusterQueueStatus || what->kind == WriteKind::kLocalQueueStatus ||
      what->kind == WriteKind::kCohortStatus) {
    const bool cohort = what->kind == WriteKind::kCohortStatus;
    queue_status_.on_written(QueueId{what->queue_ns, what->queue_name, cohort}, result, now);
    return;
  }
  if (WorkloadEntry* entry = find(what->workload); entry != nullptr && entry->in_flight == id) {
    entry->in_flight.reset();
  }
  mark(what->workload);
  if (result) {
    succeeded(*what, *result, now);
  } else {
    failed(*what, result.error(), now);
  }
}

void Controller::Impl::succeeded(const InFlight& what, const kube::Json& body, Instant now) {
  WorkloadEntry* entry = find(what.workload);
  if (entry == nullptr) return;
  entry->failures = 0;
  entry->retry_at.reset();
  // Until the new version is known (from this answer, or from the watch when the answer was empty)
  // nothing more is decided on the old one.
  entry->conflict_version = what.version;
  entry->conflict_object = what.object;
  entry->conflict_until = now + kConflictPatience;
  const Uid answered_uid(body.get("metadata", "uid").string_or(""));
  const bool has_object = body.get("metadata", "resourceVersion").is_string();
  switch (what.kind) {
    case WriteKind::kAdmit:
    case WriteKind::kReplan:
      entry->writing.reset();
      entry->refusals = 0;
      entry->plan_written_at = now;
      break;
    case WriteKind::kEvict:
      entry->eviction.reset();
      break;
    case WriteKind::kDeleteWorkload:
      if (!entry->object) break;  // The watch was faster.
      entry->retry_at = now + kDeletionPatience;
      schedule(entry->key, *entry->retry_at);
      break;
    default:
      break;
  }
  switch (what.kind) {
    case WriteKind::kCreateWorkload:
      if (has_object && entry->deleted_while_creating != answered_uid) upsert_workload(body, now);
      entry->deleted_while_creating.reset();
      break;
    case WriteKind::kUpdateWorkload:
    case WriteKind::kAdmit:
    case WriteKind::kReplan:
    case WriteKind::kReclaim:
    case WriteKind::kEvict:
    case WriteKind::kRelease:
    case WriteKind::kFinish:
    case WriteKind::kPending:
      // An object that was deleted meanwhile must not come back.
      if (has_object && entry->object && entry->object->meta.uid == answered_uid) {
        upsert_workload(body, now);
      }
      break;
    case WriteKind::kResume:
    case WriteKind::kSuspend:
    case WriteKind::kRestore:
    case WriteKind::kForgetStart:
      if (const auto owner = owners_.find(answered_uid); has_object && owner != owners_.end()) {
        upsert_owner(*owner->second.kind, body, now);
      }
      break;
    case WriteKind::kUngatePod:
    case WriteKind::kTellPlaced:
    case WriteKind::kUnfinalizePod:
    case WriteKind::kAnnounceEviction:
      if (has_object && pods_.find(answered_uid) != nullptr) upsert_pod(body, now);
      break;
    default:
      break;
  }
}

void Controller::Impl::failed(const InFlight& what, const Error& error, Instant now) {
  WorkloadEntry* entry = find(what.workload);
  if (entry == nullptr) return;
  failed_for_workload(*entry, what, error, now);
}

void Controller::Impl::failed_for_workload(WorkloadEntry& entry, const InFlight& what,
                                           const Error& error, Instant now) {
  const bool is_delete =
      what.kind == WriteKind::kDeletePod || what.kind == WriteKind::kDeleteWorkload;
  if (is_delete) {
    if (PodRecord* pod = pods_.find(what.object)) pod->delete_sent = false;
  }
  // A newer decision about the same admission wins over the one that was not written.
  if (entry.writing && !entry.admit) entry.admit = std::move(entry.writing);
  entry.writing.reset();

  if (error.code == ErrorCode::kConflict) {
    ++stats_.write_conflicts;
    if (is_delete || what.kind == WriteKind::kCreateWorkload) {
      // Another object of that name: the watch will show it.
      entry.retry_at = now + kConflictPatience;
      schedule(entry.key, *entry.retry_at);
    } else {
      entry.conflict_version = what.version;
      entry.conflict_object = what.object;
      entry.conflict_until = now + kConflictPatience;
      schedule(entry.key, *entry.conflict_until);
    }
    return;
  }
  if (is_passing(error.code)) {
    ++stats_.write_retries;
    log::info("{} of {} will be tried again: {}", to_string(what.kind), entry.key, error.message);
    retry_later(entry, now);
    return;
  }
  if (what.kind == WriteKind::kDeleteWorkload && error.code == ErrorCode::kNotFound) {
    // It is gone, whether the watch told or not.
    if (entry.object) delete_workload(entry.key, entry.object->meta.uid, now);
    return;
  }
  ++stats_.writes_refused;
  log::warning("{} of {} was refused: {}", to_string(what.kind), entry.key, error.message);
  refused(entry, what, error, now);
}

void Controller::Impl::refused(WorkloadEntry& entry, const InFlight& what, const Error& error,
                               Instant now) {
  if ((what.kind == WriteKind::kResume || what.kind == WriteKind::kRestore) &&
      error.code == ErrorCode::kInvalidArgument && start_time_is_in_the_way(what)) {
    return;  // The same again, once the start time is gone.
  }
  switch (what.kind) {
    case WriteKind::kAdmit:
    case WriteKind::kReplan:
      refused_admission(entry, what.kind, error, now);
      break;
    case WriteKind::kEvict:
      if (entry.eviction && entry.eviction->by_engine) entry.eviction_refused = true;
      entry.eviction.reset();
      break;
    case WriteKind::kResume:
    case WriteKind::kUngatePod:
      if (error.code != ErrorCode::kNotFound && entry.failures >= kStartAttempts) {
        entry.hold_until = now + kFirstHold * (1 << std::min(entry.refusals++, kLongestHoldSteps));
        evict_ourselves(entry, {"FailedToStart", "", "It could not be started: " + error.message});
        event(entry, true, "FailedToStart", error.message, now);
        entry.failures = 0;
        return;
      }
      break;
    default:
      break;
  }
  retry_later(entry, now);
}

bool Controller::Impl::start_time_is_in_the_way(const InFlight& what) {
  const auto owner = owners_.find(what.object);
  if (owner == owners_.end() || !owner->second.has_start_time) return false;
  started_templates_are_fixed_ = true;
  return true;
}

void Controller::Impl::refused_admission(WorkloadEntry& entry, WriteKind kind, const Error& error,
                                         Instant now) {
  entry.admit.reset();
  entry.hold_until = now + kFirstHold * (1 << std::min(entry.refusals++, kLongestHoldSteps));
  if (kind == WriteKind::kReplan) {
    evict_ourselves(entry, {"NodeFailures", "", "Its new plan was refused: " + error.message});
    return;
  }
  // The hold goes first: without it the engine would decide the same again at once.
  feed_workload(entry, now);
  send(engine::AdmissionRefused{entry.key}, now);
}

void Controller::Impl::retry_later(WorkloadEntry& entry, Instant now) {
  entry.retry_at = now + pause_after(entry.failures++);
  schedule(entry.key, *entry.retry_at);
}

void Controller::Impl::on_pod_presumed(const Uid& pod, std::optional<NodeName> node, Instant now) {
  now_ = now;
  const PodRecord* const record = pods_.find(pod);
  if (record == nullptr) return;
  apply_pod_change(record->key.ns, pods_.presume(pod, std::move(node)), now);
}

void Controller::Impl::on_nodes_in_doubt(std::vector<NodeName> nodes, Instant now) {
  now_ = now;
  if (synced()) send(engine::NodesInDoubt{std::move(nodes)}, now);
}

void Controller::Impl::on_tick(Instant now) {
  now_ = now;
  if (!synced()) return;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    mark(timers_.begin()->second);
    timers_.erase(timers_.begin());
  }
  dirty_.insert(at_barrier_.begin(), at_barrier_.end());
  if (more_to_settle_ || engine_.wants_settle(now)) {
    const engine::Effects effects = engine_.step(engine::Settle{}, now);
    more_to_settle_ = effects.more;
    take_effects(effects, now);
  }
  // Steps may mark further workloads, never the same one again without a write or a timer.
  do {
    while (!dirty_.empty()) {
      const WorkloadKey key = *dirty_.begin();
      dirty_.erase(dirty_.begin());
      if (WorkloadEntry* entry = find(key)) reconcile(*entry, now);
      erase_if_forgotten(key);
    }
  } while (give_pending_turn(now));
  write_queue_status(now);
}

bool Controller::Impl::give_pending_turn(Instant now) {
  const std::optional<WorkloadKey> next = pending_turns_.take(now);
  if (!next) return false;
  if (WorkloadEntry* entry = find(*next); entry != nullptr && entry->pending) {
    entry->pending_turn = true;
    mark(*next);
  }
  return true;
}

void Controller::Impl::write_queue_status(Instant now) {
  for (QueueStatusWrite& due : queue_status_.due(outbox_.busy(), now)) {
    InFlight what;
    what.queue_ns = due.queue.ns;
    what.queue_name = due.queue.name;
    WriteKind kind = WriteKind::kClusterQueueStatus;
    if (due.queue.is_local()) kind = WriteKind::kLocalQueueStatus;
    if (due.queue.cohort) kind = WriteKind::kCohortStatus;
    outbox_.patch(kind, due.queue.status_path(), due.patch, std::move(what));
  }
}

void Controller::Impl::on_published(std::shared_ptr<const engine::Snapshot> snapshot, Instant now) {
  now_ = now;
  for (const WorkloadKey& key : std::exchange(unpublished_, {})) {
    if (WorkloadEntry* entry = find(key)) {
      entry->plan_generation = snapshot->generation;
      mark(key);
    }
  }
  queue_status_.on_snapshot(snapshot->queues);
  if (synced()) write_queue_status(now);
}

std::vector<Write> Controller::Impl::take_writes() {
  return outbox_.take();
}

std::optional<Instant> Controller::Impl::next_wakeup() const {
  if (!synced()) return std::nullopt;
  if (!dirty_.empty() || more_to_settle_ || engine_.wants_settle(now_)) return now_;
  std::optional<Instant> next = engine_.next_wakeup();
  const auto consider = [&next](std::optional<Instant> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  if (!timers_.empty()) consider(timers_.begin()->first);
  consider(queue_status_.next_wakeup());
  consider(pending_turns_.next_wakeup());
  return next;
}

const ControllerStats& Controller::Impl::stats() const {
  stats_.writes = outbox_.counts();
  stats_.gangs_held = window_.open_gangs();
  stats_.gangs_waiting = window_.waiting_gangs();
  return stats_;
}

WorkloadEntry* Controller::Impl::find(const WorkloadKey& key) {
  const auto found = workloads_.find(key);
  return found != workloads_.end() ? &found->second : nullptr;
}

WorkloadEntry* Controller::Impl::find_by_owner(const Namespace& ns, const Uid& owner_uid) {
  const auto found = by_owner_.find({ns, owner_uid});
  return found != by_owner_.end() ? find(found->second) : nullptr;
}

const OwnerState* Controller::Impl::owner_of(const WorkloadEntry& entry) const {
  const auto found = owners_.find(entry.owner_uid);
  return found != owners_.end() && found->second.meta.ns == entry.key.ns ? &found->second : nullptr;
}

const PodRecord* Controller::Impl::owning_pod_of(const WorkloadEntry& entry) const {
  const PodRecord* const pod = pods_.find(entry.owner_uid);
  return pod != nullptr && pod->key.ns == entry.key.ns ? pod : nullptr;
}

void Controller::Impl::forget_owner(const WorkloadEntry& entry) {
  const auto known = by_owner_.find({entry.key.ns, entry.owner_uid});
  if (known != by_owner_.end() && known->second == entry.key) by_owner_.erase(known);
}

void Controller::Impl::erase_if_forgotten(const WorkloadKey& key) {
  const WorkloadEntry* entry = find(key);
  if (entry == nullptr || entry->object || entry->in_flight || entry->leaving) return;
  if (owner_of(*entry) != nullptr || owning_pod_of(*entry) != nullptr) return;
  forget_owner(*entry);
  unpublished_.erase(key);
  at_barrier_.erase(key);
  workloads_.erase(key);
}

Controller::Controller(engine::Engine& engine, ControllerOptions options, Barrier barrier)
    : impl_(std::make_unique<Impl>(engine, std::move(options), std::move(barrier))) {}
Controller::~Controller() = default;

void Controller::on_object(ResourceKind kind, ChangeKind change, const kube::Json& object,
                           Instant now) {
  impl_->on_object(kind, change, object, now);
}
void Controller::on_synced(ResourceKind kind, Instant now) {
  impl_->on_synced(kind, now);
}
void Controller::on_write_done(WriteId id, const WriteResult& result, Instant now) {
  impl_->on_write_done(id, result, now);
}
void Controller::on_nodes_in_doubt(std::vector<NodeName> nodes, Instant now) {
  impl_->on_nodes_in_doubt(std::move(nodes), now);
}
void Controller::on_pod_presumed(const Uid& pod, std::optional<NodeName> node, Instant now) {
  impl_->on_pod_presumed(pod, std::move(node), now);
}
void Controller::on_hook_health(bool answers) {
  impl_->on_hook_health(answers);
}
void Controller::on_tick(Instant now) {
  impl_->on_tick(now);
}
void Controller::on_published(std::shared_ptr<const engine::Snapshot> snapshot, Instant now) {
  impl_->on_published(std::move(snapshot), now);
}
std::vector<Write> Controller::take_writes() {
  return impl_->take_writes();
}
std::optional<Instant> Controller::next_wakeup() const {
  return impl_->next_wakeup();
}
bool Controller::synced() const {
  return impl_->synced();
}
const ControllerStats& Controller::stats() const {
  return impl_->stats();
}

}  // namespace muster::controller

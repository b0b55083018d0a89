#include "server/engine_strand.hpp"

#include "base/log.hpp"
#include "base/overloaded.hpp"
#include "extender/membership.hpp"
#include "extender/wake.hpp"
#include "kube/codec/objects.hpp"
#include "server/clock.hpp"

#include <algorithm>
#include <chrono>

namespace muster::server {
namespace {

/// How long a batch may grow before it is decided on: one watch burst, not more.
constexpr std::size_t kBatchInputs = 1024;
/// Refused pods are looked at this often (see extender/wake.hpp for why not at every snapshot).
constexpr Duration kWakeInterval = std::chrono::milliseconds(200);
/// How often the largest gangs are counted, for the metric.
constexpr Duration kRoomInterval = std::chrono::seconds(10);
/// A new leader treats unbound pods as answered everywhere for this long (design 2.4).
constexpr Duration kAssumedAnswers = std::chrono::seconds(2);

}  // namespace

EngineStrand::EngineStrand(Config config, SnapshotSlot& slot, extender::Ledger& ledger)
    : config_(std::move(config)),
      slot_(slot),
      ledger_(ledger),
      engine_(config_.engine),
      controller_(
          engine_, config_.controller,
          [this](const controller::BarrierQuery& query) {
            return !published_ ||
                   ledger_.blocking(query.planned, query.generation, *published_, wall_clock_now())
                       .empty();
          }),
      leading_(config_.leading) {}

EngineStrand::~EngineStrand() {
  stop();
}

void EngineStrand::start() {
  thread_ = std::thread([this] { run(); });
}

void EngineStrand::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  has_input_.notify_all();
  has_room_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EngineStrand::on_object(controller::ResourceKind kind, controller::ChangeKind change,
                             kube::Json object) {
  push(ObjectInput{kind, change, std::move(object)}, true);
}
void EngineStrand::on_synced(controller::ResourceKind kind) {
  push(SyncedInput{kind}, true);
}
void EngineStrand::on_write_done(controller::WriteId id, controller::WriteResult result) {
  // Never waits: there are no more of them than writes in flight.
  push(WriteInput{id, std::move(result)}, false);
}
void EngineStrand::on_leading(bool leading) {
  push(LeadingInput{leading}, false);
}

StrandStats EngineStrand::stats() const {
  const std::lock_guard lock(mutex_);
  StrandStats stats = stats_;
  stats.queued = queue_.size();
  return stats;
}

void EngineStrand::push(Input input, bool wait_for_room) {
  {
    std::unique_lock lock(mutex_);
    if (wait_for_room && queue_.size() >= config_.queue_limit) {
      ++stats_.full_waits;
      has_room_.wait(lock, [&] { return queue_.size() < config_.queue_limit || stopping_; });
    }
    if (stopping_) return;
    queue_.push_back(std::move(input));
  }
  has_input_.notify_one();
}

std::vector<EngineStrand::Input> EngineStrand::next_batch() {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return !queue_.empty() || stopping_; };
  if (wakeup_) {
    const Duration wait = std::max(Duration(0), *wakeup_ - wall_clock_now());
    has_input_.wait_for(lock, wait, ready);
  } else {
    has_input_.wait(lock, ready);
  }
  std::vector<Input> batch;
  while (!queue_.empty() && batch.size() < kBatchInputs) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  stats_.inputs += batch.size();
  ++stats_.batches;
  lock.unlock();
  has_room_.notify_all();
  return batch;
}

void EngineStrand::run() {
  while (true) {
    const std::vector<Input> batch = next_batch();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ && batch.empty()) return;
    }
    const auto begin = std::chrono::steady_clock::now();
    const Instant now = wall_clock_now();
    for (const Input& input : batch) handle(input, now);
    finish_batch(now);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const std::lock_guard lock(mutex_);
    stats_.longest_batch_seconds = std::max(stats_.longest_batch_seconds, took.count());
  }
}

void EngineStrand::handle(const Input& input, Instant now) {
  std::visit(Overloaded{
                 [&](const ObjectInput& in) {
                   controller_.on_object(in.kind, in.change, in.object, now);
                   if (in.kind == controller::ResourceKind::kPod) note_pod(in);
                 },
                 [&](const SyncedInput& in) { controller_.on_synced(in.kind, now); },
                 [&](const WriteInput& in) { controller_.on_write_done(in.id, in.result, now); },
                 [&](const LeadingInput& in) { leading_ = in.leading; },
             },
             input);
}

void EngineStrand::finish_batch(Instant now) {
  // Readers get nothing before every cache is complete: half a picture would let pods through.
  if (!controller_.synced()) {
    seen_pods_.clear();
    gone_pods_.clear();
    return;
  }
  if (leading_) {
    if (!assumed_) assume_answers(now);
    std::vector<NodeName> doubt = ledger_.nodes_in_doubt();
    if (doubt != doubt_) {
      doubt_ = doubt;
      controller_.on_nodes_in_doubt(std::move(doubt), now);
    }
    presume_landed(now);
    controller_.on_tick(now);
  }
  published_ = engine_.publish();
  slot_.set(published_);
  tell_ledger(published_->generation);
  controller_.on_published(published_, now);
  std::vector<controller::Write> writes = controller_.take_writes();
  if (leading_) {
    for (controller::Write& write : writes) config_.send(std::move(write));
    if (config_.wake_pod && now >= next_wake_) {
      next_wake_ = now + kWakeInterval;
      for (const extender::PodToWake& pod :
           extender::take_pods_to_wake(*published_, ledger_, now)) {
        config_.wake_pod(pod.key, pod.uid);
      }
    }
  }
  std::optional<Instant> wakeup = leading_ ? controller_.next_wakeup() : std::nullopt;
  const bool watching = ledger_.stats().refusals > 0 || !presumed_.empty();
  if (leading_ && watching && (!wakeup || *wakeup > next_wake_)) {
    wakeup = next_wake_;
  }
  std::optional<std::vector<engine::LargestGang>> largest_gangs;
  if (now >= next_room_look_) {
    next_room_look_ = now + kRoomInterval;
    largest_gangs = engine_.largest_gangs();
  }
  const std::lock_guard lock(mutex_);
  if (largest_gangs) stats_.largest_gangs = *std::move(largest_gangs);
  wakeup_ = wakeup;
  stats_.controller = controller_.stats();
  stats_.synced = true;
}

void EngineStrand::note_pod(const ObjectInput& input) {
  if (input.change == controller::ChangeKind::kDelete) {
    const Uid uid(input.object.get("metadata").get("uid").string_or(""));
    gone_pods_.push_back(uid);
    unbound_pods_.erase(uid);
    return;
  }
  auto pod = kube::decode_pod(input.object);
  if (!pod) return;  // The controller logs it.
  if (!assumed_) {
    const bool waits =
        pod->spec.node_name.empty() && pod->spec.scheduling_gates.empty() && !pod->terminal();
    if (waits) {
      unbound_pods_.insert_or_assign(pod->meta.uid, *pod);
    } else {
      unbound_pods_.erase(pod->meta.uid);
    }
  }
  seen_pods_.push_back(std::move(*pod));
}

void EngineStrand::tell_ledger(std::uint64_t generation) {
  for (const kube::Pod& pod : seen_pods_) ledger_.observe(pod, generation);
  for (const Uid& uid : gone_pods_) ledger_.forget(uid);
  seen_pods_.clear();
  gone_pods_.clear();
}

// A pod that was answered before a plan was made may be on its way to a planned node for longer
// than the barrier waits (design 2.4), unseen until it is bound. That kube-scheduler has no room
// for the member whose slot is there tells of it: the plan is repaired around it.
void EngineStrand::presume_landed(Instant now) {
  for (auto known = presumed_.begin(); known != presumed_.end();) {
    if (ledger_.is_open(*known->second)) {
      ++known;
      continue;
    }
    controller_.on_pod_presumed(known->first, std::nullopt, now);
    known = presumed_.erase(known);
  }
  if (!published_) return;
  for (const kube::Pod& pod : seen_pods_) {
    const auto node = extender::find_refused_slot(pod, *published_, ledger_);
    if (!node) continue;
    for (auto& answer : ledger_.landed_unseen(*node, *published_, now)) {
      log::info("{}/{} finds no room on {}: pod {} seems to be on its way there", pod.meta.ns,
                pod.meta.name, *node, answer->uid);
      controller_.on_pod_presumed(answer->uid, *node, now);
      presumed_.insert_or_assign(answer->uid, std::move(answer));
    }
  }
}

void EngineStrand::assume_answers(Instant now) {
  assumed_ = true;
  const auto snapshot = engine_.publish();
  for (const auto& [uid, pod] : unbound_pods_) {
    const kube::OwnerReference* owner = pod.meta.controller_owner();
    const bool member = snapshot->find_workload(owner != nullptr ? owner->uid : uid) != nullptr;
    if (member) continue;
    // A name that no node offers is left out: such a pod was allowed nowhere.
    ledger_.assume_answered(
        uid, Resources::from_list_known(kube::node_charge(pod.spec), *snapshot->resources),
        now + kAssumedAnswers);
  }
  unbound_pods_.clear();
}

}  // namespace muster::server

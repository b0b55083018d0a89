#include "engine/pass.hpp"

#include "engine/attempt.hpp"
#include "engine/planner.hpp"
#include "engine/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace muster::engine {

bool Pass::Head::operator<(const Head& other) const {
  return std::tie(borrow_level, order, queue) <
         std::tie(other.borrow_level, other.order, other.queue);
}

Pass::Pass(State& state, Instant now) : state_(state), now_(now) {
  state_.wants_pass = false;
  state_.last_pass = now;
}

Pass::~Pass() {
  for (const Held& held : held_) {
    state_.tree.remove_usage(held.queue, held.amounts);
    for (const topology::NodeUse& use : held.room) {
      state_.fleet.release(use.node, topology::UseKind::kPlanned, use.amount);
    }
  }
}

bool Pass::run(std::size_t budget, std::vector<Effect>& effects) {
  work_ = 0;
  if (!started_) {
    started_ = true;
    drain_stopped(effects);
    for (const WorkloadKey& key : state_.homeless_unannounced) {
      effects.emplace_back(
          StillPending{key, ClusterQueueName(), state_.homeless_reason(state_.workloads.at(key))});
    }
    state_.homeless_unannounced.clear();
    std::vector<ClusterQueueName> queues;
    for (const auto& [name, classes] : state_.pending) queues.push_back(name);
    for (const ClusterQueueName& name : queues) start_queue(name, effects);
    consider_preemptors(effects);
    for (const ClusterQueueName& name : queues) push_head(name);
  }
  while (!heads_.empty()) {
    if (budget != 0 && work_ >= budget) return false;
    const Head head = *heads_.begin();
    heads_.erase(heads_.begin());
    ++work_;
    consider(head, effects);
    push_head(head.queue);
  }
  return true;
}

void Pass::drain_stopped(std::vector<Effect>& effects) {
  const auto evict = [&](const WorkloadKey& key, EvictionReason reason) {
    WorkloadRecord& record = state_.workloads.at(key);
    if (record.phase == Phase::kEvicting) return;
    state_.set_phase(record, Phase::kEvicting);
    effects.emplace_back(
        Evict{key, record.queue, reason, std::nullopt, std::nullopt, ClusterQueueName()});
  };
  std::vector<std::pair<WorkloadKey, EvictionReason>> leaving;
  for (const auto& [name, keys] : state_.holders) {
    const auto queue = state_.queues.find(name);
    const bool drained =
        queue != state_.queues.end() && queue->second.stop_policy == StopPolicy::kHoldAndDrain;
    for (const WorkloadKey& key : keys) {
      const WorkloadSpec& spec = state_.workloads.at(key).spec;
      const auto local = state_.local_queues.find(LocalQueueKey{key.ns, spec.queue_name});
      if (!spec.active) {
        leaving.emplace_back(key, EvictionReason::kDeactivated);
      } else if (drained) {
        leaving.emplace_back(key, EvictionReason::kClusterQueueStopped);
      } else if (local != state_.local_queues.end() &&
                 local->second.stop_policy == StopPolicy::kHoldAndDrain) {
        leaving.emplace_back(key, EvictionReason::kLocalQueueStopped);
      }
    }
  }
  for (const auto& [key, reason] : leaving) evict(key, reason);
}

std::optional<Explanation> Pass::unusable_class(const ClusterQueueSpec& queue,
                                                const WorkloadSpec& member) const {
  const auto local = state_.local_queues.find(LocalQueueKey{member.key.ns, member.queue_name});
  if (local != state_.local_queues.end() && local->second.stop_policy != StopPolicy::kNone) {
    return Explanation{PendingReason::kSuspended,
                       {QueueUnusable{fmt::format("LocalQueue {} is stopped", member.queue_name)}}};
  }
  const auto ns = state_.namespaces.find(member.key.ns);
  const LabelMap none;
  const LabelMap& labels = ns == state_.namespaces.end() ? none : ns->second;
  if (!queue.namespace_selector || !matches(*queue.namespace_selector, labels)) {
    return Explanation{
        PendingReason::kMisconfigured,
        {QueueUnusable{fmt::format("ClusterQueue {} does not accept workloads of namespace {}",
                                   queue.name(), member.key.ns)}}};
  }
  for (const PodSetSpec& pod_set : member.pod_sets) {
    if (pod_set.unfit.empty()) continue;
    return Explanation{PendingReason::kMisconfigured,
                       {QueueUnusable{fmt::format("pods of {} could not be created: {}",
                                                  pod_set.name, pod_set.unfit)}}};
  }
  return std::nullopt;
}

void Pass::start_queue(const ClusterQueueName& name, std::vector<Effect>& effects) {
  const ClusterQueueSpec& queue = state_.queues.at(name);
  Cursor& cursor = cursors_[name];
  const auto problem = state_.problem_of(queue);
  std::vector<std::pair<std::string, Explanation>> verdicts;
  for (const auto& [class_key, same] : state_.pending.at(name)) {
    if (problem) {
      const PendingReason reason =
          problem->reason == "Stopped" ? PendingReason::kSuspended : PendingReason::kMisconfigured;
      verdicts.emplace_back(class_key, Explanation{reason, {QueueUnusable{problem->message}}});
      continue;
    }
    const WorkloadSpec& member = state_.workloads.at(same.members.begin()->key).spec;
    if (auto unusable = unusable_class(queue, member)) verdicts.emplace_back(class_key, *unusable);
  }
  for (const auto& [class_key, explanation] : verdicts) {
    cursor.dropped.insert(class_key);
    give_verdict(name, class_key, explanation, effects);
  }
}

void Pass::consider_preemptors(std::vector<Effect>& effects) {
  std::set<Head> waiting;
  for (const WorkloadKey& key : state_.preemptors) {
    const WorkloadRecord& record = state_.workloads.at(key);
    if (record.class_key.empty()) continue;
    waiting.insert(Head{0, pending_order(record.spec), record.queue, record.class_key});
  }
  for (const Head& head : waiting) {
    const Cursor& cursor = cursors_[head.queue];
    if (cursor.blocked || cursor.dropped.contains(head.class_key)) continue;
    considered_first_.insert(head.order.key);
    state_.preemptors.erase(head.order.key);  // consider() puts it back while it waits.
    ++work_;
    consider(head, effects);
  }
}

void Pass::push_head(const ClusterQueueName& name) {
  Cursor& cursor = cursors_[name];
  if (cursor.blocked) return;
  const auto classes = state_.pending.find(name);
  if (classes == state_.pending.end()) return;
  std::optional<Head> best;
  for (const auto& [class_key, same] : classes->second) {
    if (cursor.dropped.contains(class_key)) continue;
    const auto last = cursor.considered.find(class_key);
    auto member = last == cursor.considered.end() ? same.members.begin()
                                                  : same.members.upper_bound(last->second);
    while (member != same.members.end()) {
      const auto& requeue_at = state_.workloads.at(member->key).spec.requeue_at;
      const bool due = !requeue_at || *requeue_at <= now_;
      if (due && !considered_first_.contains(member->key)) break;
      ++member;
    }
    if (member == same.members.end()) continue;
    if (!best || *member < best->order) best = Head{0, *member, name, class_key};
  }
  if (!best) return;
  AssignOptions options;
  options.quota_only = true;
  const WorkloadSpec& spec = state_.workloads.at(best->order.key).spec;
  best->borrow_level = assign_flavors(state_, spec, state_.queues.at(name), options).borrow_level;
  heads_.insert(*best);
}

void Pass::consider(const Head& head, std::vector<Effect>& effects) {
  WorkloadRecord& record = state_.workloads.at(head.order.key);
  const ClusterQueueSpec& queue = state_.queues.at(head.queue);
  Cursor& cursor = cursors_[head.queue];
  if (!considered_first_.contains(head.order.key)) {
    cursor.considered.insert_or_assign(head.class_key, head.order);
  }

  const Attempt tried = attempt(state_, record.spec, queue, work_);
  if (tried.assignment.mode == Mode::kFit) {
    admit(record, tried.assignment, effects);
    return;
  }
  if (tried.victims) {
    await(record, tried.assignment, *tried.victims, effects);
    if (queue.strategy == QueueingStrategy::kStrictFifo) {
      block_behind(head.queue, record.spec.key, effects);
    }
    return;
  }
  // Within a pass the state only gets fuller: what the first of a class was refused, all are.
  cursor.dropped.insert(head.class_key);
  give_verdict(head.queue, head.class_key, tried.assignment.why, effects);
  if (queue.strategy == QueueingStrategy::kStrictFifo) {
    block_behind(head.queue, record.spec.key, effects);
  }
}

void Pass::admit(WorkloadRecord& record, const Assignment& assignment,
                 std::vector<Effect>& effects) {
  Admit effect;
  effect.workload = record.spec.key;
  effect.admission = assignment.admission;
  const quota::NodeIndex queue = state_.queue_node(assignment.admission.cluster_queue);
  quota::FlavorAmounts before;
  for (const auto& [fr, amount] : assignment.amounts) {
    before[state_.tree.fr(fr)] = state_.tree.borrowed(queue, fr);
  }
  state_.hold(record, assignment.admission, Phase::kAssumed, now_);
  for (const auto& [fr, amount] : assignment.amounts) {
    const Amount more = state_.tree.borrowed(queue, fr) - before[state_.tree.fr(fr)];
    if (more > Amount()) effect.borrowed[state_.tree.fr(fr)] = more;
  }
  effects.emplace_back(std::move(effect));
}

void Pass::await(WorkloadRecord& record, const Assignment& assignment,
                 const std::vector<Victim>& victims, std::vector<Effect>& effects) {
  for (const Victim& victim : victims) {
    WorkloadRecord& leaving = state_.workloads.at(victim.workload);
    state_.set_phase(leaving, Phase::kEvicting);
    effects.emplace_back(Evict{victim.workload, leaving.queue, EvictionReason::kPreempted,
                               victim.rule, record.spec.key, record.queue, record.spec.uid});
  }
  AwaitingVictims awaiting;
  if (victims.empty()) {
    awaiting.victims.assign(state_.evicting.begin(), state_.evicting.end());
  } else {
    for (const Victim& victim : victims) awaiting.victims.push_back(victim.workload);
  }
  // The verdict is this member's own: the next of its class may still start.
  const Explanation explanation{PendingReason::kWaitingForPreemptedWorkloads, {awaiting}};
  PendingClass& same = state_.pending.at(record.queue).at(record.class_key);
  same.verdict = explanation;
  if (same.unannounced.erase(pending_order(record.spec)) > 0) {
    effects.emplace_back(StillPending{record.spec.key, record.queue, explanation});
  }
  state_.preemptors.insert(record.spec.key);
  keep_room(record, assignment);
}

void Pass::keep_room(const WorkloadRecord& record, const Assignment& assignment) {
  Held held;
  held.queue = state_.queue_node(record.queue);
  held.amounts = assignment.amounts;
  {
    Trial gone(state_);
    for (const WorkloadKey& key : state_.evicting) gone.remove(state_.workloads.at(key));
    Admission planned = assignment.admission;
    if (place_all(state_, record.spec, planned, nullptr)) {
      for (std::size_t i = 0; i < planned.pod_sets.size(); ++i) {
        const Resources per_pod =
            Resources::from_list(record.spec.pod_sets[i].node_requests, state_.resources);
        for (const NodeCount& entry : planned.pod_sets[i].nodes) {
          held.room.push_back({*state_.fleet.find(entry.node), per_pod.times(entry.count)});
        }
      }
    }
  }
  state_.tree.add_usage(held.queue, held.amounts);
  for (const topology::NodeUse& use : held.room) {
    state_.fleet.charge(use.node, topology::UseKind::kPlanned, use.amount);
  }
  held_.push_back(std::move(held));
}

void Pass::give_verdict(const ClusterQueueName& queue, const std::string& class_key,
                        const Explanation& explanation, std::vector<Effect>& effects) {
  const auto classes = state_.pending.find(queue);
  if (classes == state_.pending.end()) return;
  const auto position = classes->second.find(class_key);
  if (position == classes->second.end()) return;
  PendingClass& same = position->second;
  if (!same.verdict || same.verdict->reason != explanation.reason) same.unannounced = same.members;
  same.verdict = explanation;
  for (const PendingOrder& member : same.unannounced) {
    effects.emplace_back(StillPending{member.key, queue, explanation});
  }
  same.unannounced.clear();
}

void Pass::block_behind(const ClusterQueueName& queue, const WorkloadKey& head,
                        std::vector<Effect>& effects) {
  Cursor& cursor = cursors_[queue];
  cursor.blocked = true;
  const Explanation behind{
      PendingReason::kWaitingForQuota,
      {QueueUnusable{fmt::format("waits behind {} in StrictFIFO ClusterQueue {}", head, queue)}}};
  const auto classes = state_.pending.find(queue);
  if (classes == state_.pending.end()) return;
  std::vector<std::string> keys;
  for (const auto& [class_key, same] : classes->second) {
    if (!cursor.dropped.contains(class_key) && !cursor.considered.contains(class_key)) {
      keys.push_back(class_key);
    }
  }
  for (const std::string& class_key : keys) give_verdict(queue, class_key, behind, effects);
}

}  // namespace muster::engine

// A pass the way Kueue 0.17 makes its cycles (semantics c): one head of each queue, all of them
// judged on the state as it was when the pass began. Who failed is parked until something in its
// tree becomes free.

#include "engine/attempt.hpp"
#include "engine/pass.hpp"
#include "engine/planner.hpp"
#include "engine/trial.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace muster::engine {

/// PeerFacts::scans_go_on: after so many cycles without a change none will come.
constexpr std::size_t kMostInVain = 8;

/// A head with what was found for it when the pass began.
struct Pass::Nomination {
  Head head;
  Attempt found;
  /// With its nodes: those that are free or, where others have to go, those that their leaving
  /// frees; without anybody who may go, those of a fleet that nothing is planned on (semantics
  /// c.5d). No nodes where it does not fit there.
  Admission planned;
};

namespace {

/// Whether the nodes have it all now.
bool has_room(const State& state, const std::vector<topology::NodeUse>& room) {
  std::map<topology::NodeIndex, Resources> sums;
  for (const topology::NodeUse& use : room) sums[use.node] += use.amount;
  if (state.options.peer.earlier_are_no_pods) {
    for (auto& [node, sum] : sums) sum.set(ResourceTable::kPods, Amount());
  }
  return std::all_of(sums.begin(), sums.end(), [&](const auto& entry) {
    return entry.second.fits_in(state.fleet.free(entry.first));
  });
}

/// PeerFacts::plan_is_final: what is counted too much for the rest of the cycle.
std::vector<topology::NodeUse> counted_again(const State& state, const WorkloadSpec& workload,
                                             const Admission& planned) {
  std::vector<topology::NodeUse> room;
  if (!state.options.peer.plan_is_final) return room;
  Admission again = planned;
  for (PodSetAssignment& pod_set : again.pod_sets) {
    const auto times = static_cast<std::int64_t>(pod_set.flavors.size()) - 1;
    for (NodeCount& entry : pod_set.nodes) entry.count *= times;
    std::erase_if(pod_set.nodes, [](const NodeCount& entry) { return entry.count <= 0; });
  }
  return room_of(state, workload, again);
}

std::vector<topology::NodeUse> room_in_cycle(const State& state, const WorkloadSpec& workload,
                                             const Admission& planned) {
  std::vector<topology::NodeUse> room = room_of(state, workload, planned);
  const auto again = counted_again(state, workload, planned);
  room.insert(room.end(), again.begin(), again.end());
  return room;
}

}  // namespace

std::optional<Head> Pass::only_head(const ClusterQueueName& name) {
  const ClusterQueueSpec& queue = state_.queues.at(name);
  const Cursor& cursor = cursors_.at(name);
  const auto parked = state_.parked.find(name);
  const auto sticky = state_.sticky.find(name);
  std::optional<Head> best;
  for (const Turn& turn : cursor.turns) {
    if (turn.dropped) continue;
    for (WorkloadRecord* const member : turn.same->members) {
      const WorkloadKey& key = member->spec.key;
      if (parked != state_.parked.end() && parked->second.contains(key)) continue;
      if (!is_due(member->spec)) continue;
      const bool first = sticky != state_.sticky.end() && sticky->second == key;
      if (first || !best || goes_before(queue, *member, *best->record)) {
        best = Head{0, member, name, {}};
      }
      if (first) return best;
    }
  }
  return best;
}

Pass::Nomination Pass::nominate(const Head& head) {
  FlavorAssigner flavors(state_, head.record->spec, state_.queues.at(head.queue));
  Nomination nomination{
      head, attempt(state_, head.record->spec, state_.queues.at(head.queue), flavors, work_)};
  nomination.head.borrow_level = nomination.found.assignment.borrow_level;
  nomination.head.amounts = nomination.found.assignment.amounts;
  nomination.planned = nomination.found.assignment.admission;
  if (nomination.found.assignment.mode != Mode::kPreempt) return nomination;
  Trial gone(state_);
  if (nomination.found.victims) {
    remove_victims(gone, *nomination.found.victims);
  } else {
    gone.remove_plans();
  }
  if (!place_all(state_, head.record->spec, nomination.planned, nullptr)) {
    for (PodSetAssignment& pod_set : nomination.planned.pod_sets) pod_set.nodes.clear();
  }
  return nomination;
}

void Pass::run_cycle(const std::vector<ClusterQueueName>& queues, std::vector<Effect>& effects) {
  std::map<ClusterQueueName, Nomination> nominations;
  for (const ClusterQueueName& name : queues) {
    if (!state_.pending.contains(name)) continue;
    if (const auto head = only_head(name)) nominations.emplace(name, nominate(*head));
  }
  for (const auto& [name, nomination] : nominations) heads_.push(nomination.head);
  ++state_.cycles_in_vain;
  while (!heads_.empty()) commit(nominations.at(heads_.pop().queue), effects);
  // Who is not parked since flavors are left is looked at again, but not for ever.
  if (!state_.scans.empty() && state_.cycles_in_vain < kMostInVain) state_.want_pass();
}

void Pass::commit(Nomination& nomination, std::vector<Effect>& effects) {
  const Head& head = nomination.head;
  const ClusterQueueSpec& queue = state_.queues.at(head.queue);
  WorkloadRecord& record = *head.record;
  const bool strict = queue.strategy == QueueingStrategy::kStrictFifo;
  const Assignment& assignment = nomination.found.assignment;
  if (!nomination.found.works()) {
    if (assignment.mode == Mode::kPreempt) reserve_for(nomination);
    const bool goes_on = keep_scan(record, assignment);
    if (strict) {
      cursors_.at(head.queue).turn(*record.pending_class).dropped = true;
    } else if (!goes_on) {
      state_.cycles_in_vain = 0;
      state_.parked[head.queue].insert(record.spec.key);
      state_.want_pass();
    }
    give_verdict(head.queue, *record.pending_class, assignment.why, effects);
    if (strict) block_behind(head.queue, record.spec.key, effects);
    return;
  }
  state_.scans.erase(record.spec.key);
  // What an earlier head of this pass took makes this one wait for the next pass.
  if (!still_fits(nomination)) return;
  state_.cycles_in_vain = 0;
  if (assignment.mode == Mode::kFit) {
    Assignment placed = assignment;
    placed.admission = nomination.planned;
    admit(record, placed, effects);
    Hold again;
    again.queue = state_.queue_node(head.queue);
    again.room = counted_again(state_, record.spec, nomination.planned);
    if (!again.room.empty()) state_.add_hold(record.spec.key, std::move(again));
    return;
  }
  if (!strict) state_.sticky[head.queue] = record.spec.key;
  await(record, *nomination.found.victims, effects);
  keep_plan(record, assignment.amounts, room_in_cycle(state_, record.spec, nomination.planned));
}

bool Pass::still_fits(Nomination& nomination) {
  const quota::NodeIndex queue = state_.queue_node(nomination.head.queue);
  const Assignment& assignment = nomination.found.assignment;
  Trial gone(state_);
  if (assignment.mode == Mode::kPreempt) {
    for (const Victim& victim : *nomination.found.victims) {
      // Two preemptors never count on the same victim.
      WorkloadRecord& record = state_.workloads.at(victim.workload);
      if (state_.evicting.contains(&record)) return false;
      gone.remove(record);
    }
  }
  // Who fits starts at once: not on what those who are leaving still hold.
  if (assignment.mode == Mode::kPreempt || state_.options.peer.leaving_is_gone) {
    gone.remove_leaving();
  }
  if (!state_.tree.fits(queue, assignment.amounts)) return false;
  const WorkloadRecord& record = *nomination.head.record;
  if (has_room(state_, room_of(state_, record.spec, nomination.planned))) return true;
  // Somebody before it took the nodes: others may do (semantics c.5a; row c1: not in 0.17.0).
  return !state_.options.peer.plan_is_final &&
         place_all(state_, record.spec, nomination.planned, nullptr);
}

bool Pass::keep_scan(const WorkloadRecord& record, const Assignment& assignment) {
  if (!state_.options.peer.scans_go_on) return false;
  ScanProgress& scan = state_.scans[record.spec.key];
  // Words that change are written to the status, and who is updated begins anew (row b3).
  scan.next = scan.flaws == assignment.flaws ? assignment.rest : ScanStart();
  scan.flaws = assignment.flaws;
  return !assignment.rest.empty();
}

void Pass::reserve_for(const Nomination& nomination) {
  const Head& head = nomination.head;
  const Assignment& assignment = nomination.found.assignment;
  if (state_.queues.at(head.queue).preemption.reclaim_within_cohort == PreemptionPolicy::kAny) {
    return;
  }
  Hold kept;
  kept.queue = state_.queue_node(head.queue);
  const quota::QuotaTree& tree = state_.tree;
  for (const auto& [fr, amount] : assignment.amounts) {
    const Amount rest = tree.nominal(kept.queue, fr) - tree.usage(kept.queue, fr);
    const auto limit = tree.borrowing_limit(kept.queue, fr);
    Amount reserved = std::max(Amount(), std::min(amount, rest));
    if (assignment.borrow_level > 0) {
      reserved = limit ? std::max(Amount(), std::min(amount, rest + *limit)) : amount;
    }
    kept.amounts.emplace_back(fr, reserved);
  }
  kept.room = room_in_cycle(state_, head.record->spec, nomination.planned);
  state_.add_hold(head.record->spec.key, std::move(kept));
}

}  // namespace muster::engine

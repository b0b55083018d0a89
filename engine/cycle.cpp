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
};

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

void Pass::commit(const Nomination& nomination, std::vector<Effect>& effects) {
  const Head& head = nomination.head;
  const ClusterQueueSpec& queue = state_.queues.at(head.queue);
  WorkloadRecord& record = *head.record;
  const bool strict = queue.strategy == QueueingStrategy::kStrictFifo;
  const Assignment& assignment = nomination.found.assignment;
  if (!nomination.found.works()) {
    if (assignment.mode == Mode::kPreempt) reserve_for(head, assignment);
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
    if (place_all(state_, record.spec, placed.admission, nullptr)) admit(record, placed, effects);
    return;
  }
  if (!strict) state_.sticky[head.queue] = record.spec.key;
  await(record, assignment, *nomination.found.victims, effects);
}

bool Pass::still_fits(const Nomination& nomination) {
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
  return state_.tree.fits(queue, assignment.amounts);
}

bool Pass::keep_scan(const WorkloadRecord& record, const Assignment& assignment) {
  if (!state_.options.peer.scans_go_on) return false;
  ScanProgress& scan = state_.scans[record.spec.key];
  // Words that change are written to the status, and who is updated begins anew (row b3).
  scan.next = scan.flaws == assignment.flaws ? assignment.rest : ScanStart();
  scan.flaws = assignment.flaws;
  return !assignment.rest.empty();
}

void Pass::reserve_for(const Head& head, const Assignment& assignment) {
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
  state_.add_hold(head.record->spec.key, std::move(kept));
}

}  // namespace muster::engine

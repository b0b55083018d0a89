#include "engine/pass.hpp"

#include "engine/elastic.hpp"
#include "engine/planner.hpp"
#include "engine/trial.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::engine {
namespace {

Explanation waits_behind(const WorkloadKey& head, const ClusterQueueName& queue) {
  return {PendingReason::kWaitingForQuota,
          {QueueUnusable{fmt::format("waits behind {} in StrictFIFO ClusterQueue {}", head, queue),
                         fmt::format("{} to start", head)}}};
}

Explanation kept_for(const WorkloadKey& waiting) {
  return {PendingReason::kWaitingForQuota,
          {QueueUnusable{fmt::format("quota is kept for {}, which may not borrow", waiting),
                         fmt::format("{} to start", waiting)}}};
}

}  // namespace

Pass::Pass(State& state, Instant now)
    : state_(state), now_(now), all_(must_look_at_all()), heads_(state) {
  fresh_.swap(state_.fresh_classes);
  state_.wants_pass = state_.look_at_all = false;
  state_.last_pass = now;
  if (all_) look_at_all();
}

bool Pass::must_look_at_all() const {
  const auto back = state_.backing_off.begin();
  return state_.look_at_all || state_.arrivals_matter || !state_.passed_once ||
         !state_.options.improvements.every_class || !state_.preemptors.empty() ||
         (state_.wake_at && *state_.wake_at <= now_) ||
         (back != state_.backing_off.end() && back->first <= now_);
}

bool Pass::refuses_all_fresh(std::size_t budget, std::vector<Effect>& effects) {
  std::vector<std::tuple<ClusterQueueName, PendingClass*, Explanation>> verdicts;
  for (const auto& [name, keys] : fresh_) {
    const auto classes = state_.pending.find(name);
    if (classes == state_.pending.end()) continue;
    const ClusterQueueSpec& queue = state_.queues.at(name);
    if (state_.problem_of(queue)) return false;
    for (const std::string& key : keys) {
      const auto same = classes->second.find(key);
      if (same == classes->second.end()) continue;
      const RecordsInOrder& members = same->second.members;
      const auto due = std::find_if(members.begin(), members.end(),
                                    [&](const auto* member) { return is_due(member->spec); });
      if (due == members.end()) continue;
      const WorkloadRecord* const first = *due;
      // It may take less than the others of its class.
      if (State::went_round(*first)) return false;
      if (auto unusable = unusable_class(queue, first->spec)) {
        verdicts.emplace_back(name, &same->second, *std::move(unusable));
        continue;
      }
      if (queue.strategy == QueueingStrategy::kStrictFifo) {
        const WorkloadRecord* const head = head_of(queue, classes->second);
        if (head == nullptr || head == first) return false;
        verdicts.emplace_back(name, &same->second, waits_behind(head->spec.key, name));
        continue;
      }
      if (budget != 0 && ++work_ >= budget) return false;
      spared_.clear();
      FlavorAssigner flavors(state_, first->spec, queue);
      Attempt tried = try_with(flavors, queue, *first, Reach::kAny);
      if (tried.works()) return false;
      add_spared(tried.assignment.why);
      verdicts.emplace_back(name, &same->second, std::move(tried.assignment.why));
    }
  }
  for (auto& [name, same, why] : verdicts) give_verdict(name, *same, std::move(why), effects);
  return true;
}

const WorkloadRecord* Pass::head_of(const ClusterQueueSpec& queue,
                                    const std::map<std::string, PendingClass>& classes) const {
  if (queue.usage_based && state_.usage_history) return nullptr;  // Not by their order alone.
  const WorkloadRecord* head = nullptr;
  for (const auto& [key, same] : classes) {
    const auto first = std::find_if(same.members.begin(), same.members.end(),
                                    [&](const auto* member) { return is_due(member->spec); });
    if (first == same.members.end()) continue;
    if (head == nullptr || queue_order((*first)->spec, head->spec) < 0) head = *first;
  }
  return head;
}

void Pass::look_at_all() {
  all_ = true;
  state_.wake_at.reset();
  state_.arrivals_matter = false;
}

Pass::~Pass() {
  while (!state_.holds.empty()) state_.drop_hold(state_.holds.begin()->first);
  state_.passed_once = true;
}

bool Pass::run(std::size_t budget, std::vector<Effect>& effects) {
  work_ = 0;
  if (!started_) {
    started_ = true;
    if (all_) drain_stopped(effects);
    for (const WorkloadKey& key : state_.homeless_unannounced) {
      effects.emplace_back(
          StillPending{key, ClusterQueueName(), state_.homeless_reason(state_.workloads.at(key))});
    }
    state_.homeless_unannounced.clear();
    if (!all_) {
      if (refuses_all_fresh(budget, effects)) return true;
      look_at_all();
    }
    for (const auto& [name, classes] : state_.pending) queues_.push_back(name);
  }
  const auto spent = [&] { return budget != 0 && work_ >= budget; };
  for (; begun_ < queues_.size(); ++begun_) {
    if (spent()) return false;
    start_queue(queues_[begun_], effects);
  }
  if (!state_.options.improvements.every_class) {
    run_cycle(queues_, effects);
    return true;
  }
  if (!held_) {
    held_ = true;
    hold_for_preemptors();
  }
  for (; entered_ < queues_.size(); ++entered_) {
    if (spent()) return false;
    ++work_;
    push_head(queues_[entered_], effects);
  }
  while (!heads_.empty()) {
    if (spent()) return false;
    const Head head = heads_.pop();
    ++work_;
    // Shares give no order between a head and who holds: under fair sharing those go last.
    while (!state_.options.fair_sharing && !waiting_.empty() && *waiting_.begin() < head) {
      settle_first_preemptor(effects);
    }
    consider(head, effects);
    push_head(head.queue, effects);
  }
  while (!waiting_.empty()) {
    if (spent()) return false;
    settle_first_preemptor(effects);
  }
  return true;
}

void Pass::drain_stopped(std::vector<Effect>& effects) {
  const auto evict = [&](const WorkloadKey& key, EvictionReason reason) {
    WorkloadRecord& record = state_.workloads.at(key);
    if (record.phase == Phase::kEvicting) return;
    state_.set_phase(record, Phase::kEvicting, now_);
    effects.emplace_back(
        Evict{key, record.queue, reason, std::nullopt, std::nullopt, ClusterQueueName()});
  };
  // Hold takes back what is reserved and not admitted; HoldAndDrain sends away what runs, too.
  const auto stops = [](StopPolicy policy, const WorkloadRecord& record) {
    if (policy == StopPolicy::kHoldAndDrain) return true;
    return policy == StopPolicy::kHold && record.phase == Phase::kReserved && !record.spec.admitted;
  };
  // By queue and key; the first reason counts.
  std::map<std::pair<ClusterQueueName, WorkloadKey>, EvictionReason> leaving;
  for (const WorkloadKey& key : state_.deactivated) {
    leaving.emplace(std::pair(state_.workloads.at(key).queue, key), EvictionReason::kDeactivated);
  }
  for (const auto& [name, queue] : state_.queues) {
    const auto held = state_.holders.find(name);
    if (queue.stop_policy == StopPolicy::kNone || held == state_.holders.end()) continue;
    for (const WorkloadRecord* const record : held->second) {
      if (!stops(queue.stop_policy, *record)) continue;
      leaving.emplace(std::pair(name, record->spec.key), EvictionReason::kClusterQueueStopped);
    }
  }
  for (const auto& [name, local] : state_.local_queues) {
    const auto members = state_.workloads_by_local_queue.find(name);
    if (local.stop_policy == StopPolicy::kNone ||
        members == state_.workloads_by_local_queue.end()) {
      continue;
    }
    for (const WorkloadRecord* const record : members->second) {
      if (!record->holds_quota() || !stops(local.stop_policy, *record)) continue;
      leaving.emplace(std::pair(record->queue, record->spec.key),
                      EvictionReason::kLocalQueueStopped);
    }
  }
  for (const auto& [who, reason] : leaving) evict(who.second, reason);
}

std::optional<Explanation> Pass::unusable_class(const ClusterQueueSpec& queue,
                                                const WorkloadSpec& member) const {
  const auto local = state_.local_queues.find(LocalQueueKey{member.key.ns, member.queue_name});
  if (local != state_.local_queues.end() && local->second.stop_policy != StopPolicy::kNone) {
    return Explanation{
        PendingReason::kSuspended,
        {QueueUnusable{fmt::format("LocalQueue {} is stopped", member.queue_name),
                       fmt::format("LocalQueue {} to be resumed", member.queue_name)}}};
  }
  const auto ns = state_.namespaces.find(member.key.ns);
  const LabelMap none;
  const LabelMap& labels = ns == state_.namespaces.end() ? none : ns->second;
  if (!queue.namespace_selector || !matches(*queue.namespace_selector, labels)) {
    return Explanation{
        PendingReason::kMisconfigured,
        {QueueUnusable{
            fmt::format("ClusterQueue {} does not accept workloads of namespace {}", queue.name(),
                        member.key.ns),
            fmt::format("ClusterQueue {} to select namespace {}", queue.name(), member.key.ns)}}};
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
  constexpr std::size_t kClassesOfWork = 16;  // As much as one look at a workload.
  const ClusterQueueSpec& queue = state_.queues.at(name);
  Cursor& cursor = cursors_[name];
  cursor.queue = &queue;
  const auto problem = state_.problem_of(queue);
  for (auto& [key, same] : state_.pending.at(name)) {
    cursor.places.emplace(&same, cursor.turns.size());
    Turn& turn = cursor.turns.emplace_back();
    turn.same = &same;
    std::optional<Explanation> verdict;
    if (problem) {
      const PendingReason reason =
          problem->reason == "Stopped" ? PendingReason::kSuspended : PendingReason::kMisconfigured;
      verdict = Explanation{reason, {QueueUnusable{problem->message, problem->needs}}};
    } else {
      verdict = unusable_class(queue, (*same.members.begin())->spec);
    }
    if (!verdict) continue;
    turn.dropped = true;
    give_verdict(name, same, *std::move(verdict), effects);
  }
  work_ += 1 + (cursor.turns.size() / kClassesOfWork);
}

void Pass::hold_for_preemptors() {
  if (!state_.options.improvements.holds) return;
  if (!state_.passed_once) state_.recall_preemptors();
  RecordsInOrder in_order;
  for (const auto& [key, since] : state_.preemptors) in_order.insert(&state_.workloads.at(key));
  for (WorkloadRecord* const record : in_order) hold_for(*record);
}

void Pass::hold_for(WorkloadRecord& record) {
  if (record.pending_class == nullptr || !is_due(record.spec)) return;
  Cursor& cursor = cursors_[record.queue];
  if (cursor.turn(*record.pending_class).dropped) return;
  ++work_;
  const Attempt tried = try_for(cursor, record, Reach::kLeavingOnly);
  if (tried.victims) {
    Instant patience = state_.preemptors.at(record.spec.key) + state_.options.hold_timeout;
    for (const WorkloadRecord* const leaving : state_.evicting) {
      patience = std::max(patience, due_to_leave(state_, *leaving).value_or(patience));
    }
    if (patience <= now_) search_again_.insert(&record);
    state_.ask_to_wake(patience);
  }
  if (!tried.works() || search_again_.contains(&record) || short_by(record, tried) != nullptr) {
    // What leaves is not enough, or does not leave: it looks for victims anew, in its turn.
    state_.preemptors.erase(record.spec.key);
    return;
  }
  waiting_.insert(Head{tried.assignment.borrow_level, &record, record.queue, {}});
  holding_.insert(&record);
  const ClusterQueueSpec& queue = *cursor.queue;
  const bool strict = queue.strategy == QueueingStrategy::kStrictFifo;
  if (strict && (cursor.last == nullptr || goes_before(queue, record, *cursor.last))) {
    cursor.last = &record;
  }
  keep_room(record, tried.assignment);
}

void Pass::settle_first_preemptor(std::vector<Effect>& effects) {
  WorkloadRecord& record = *waiting_.begin()->record;
  const WorkloadKey& key = record.spec.key;
  waiting_.erase(waiting_.begin());
  ++work_;
  // Somebody of higher rank took what was held: it looks for victims anew.
  if (!state_.holds.contains(key)) return;
  state_.drop_hold(key);
  Cursor& cursor = cursors_.at(record.queue);
  Attempt tried = try_for(cursor, record, Reach::kLeavingOnly);
  std::map<WorkloadKey, Hold> behind;
  if (!tried.works()) {
    // Who may not borrow needs its queue's own quota, in which those behind it count as well.
    for (const Head& head : waiting_) {
      const auto hold = state_.holds.find(head.record->spec.key);
      if (hold == state_.holds.end()) continue;
      behind.insert(*hold);
      state_.drop_hold(head.record->spec.key);
    }
    tried = try_for(cursor, record, Reach::kLeavingOnly);
  }
  if (tried.assignment.mode == Mode::kFit) {
    // Who stands behind it in a StrictFIFO queue is free to be looked at now.
    if (cursor.last != nullptr && cursor.blocked) state_.want_pass();
    if (kept_back_) state_.want_pass();
    if (cursor.last == &record) cursor.last = nullptr;
    admit(record, tried.assignment, effects);
  } else if (tried.victims) {
    await(record, {}, effects);
    keep_room(record, tried.assignment);
  } else {
    state_.preemptors.erase(key);
    state_.want_pass();
  }
  for (auto& [other, hold] : behind) state_.add_hold(other, std::move(hold));
}

bool Pass::is_due(const WorkloadSpec& spec) const {
  return !spec.requeue_at || *spec.requeue_at <= now_;
}

const quota::WeightedUse& Pass::use_of(const WorkloadRecord& record) {
  const LocalQueueKey queue{record.spec.key.ns, record.spec.queue_name};
  auto known = uses_.find(queue);
  if (known == uses_.end()) {
    known = uses_.emplace(queue, state_.usage_history->use(queue, now_)).first;
  }
  return known->second;
}

bool Pass::goes_before(const ClusterQueueSpec& queue, const WorkloadRecord& a,
                       const WorkloadRecord& b) {
  if (queue.usage_based && state_.usage_history) {
    if (const auto order = use_of(a).compare(use_of(b)); order != 0) return order < 0;
  }
  return queue_order(a.spec, b.spec) < 0;
}

WorkloadRecord* Pass::next_of(Turn& turn) const {
  if (turn.dropped || turn.same == nullptr) return nullptr;
  if (turn.next) return *turn.next;
  const RecordsInOrder& members = turn.same->members;
  auto member = turn.considered == nullptr ? members.begin() : members.upper_bound(turn.considered);
  while (member != members.end() && (!is_due((*member)->spec) || holding_.contains(*member))) {
    ++member;
  }
  turn.next = member == members.end() ? nullptr : *member;
  return *turn.next;
}

WorkloadRecord* Pass::first_of(const ClusterQueueSpec& queue, Cursor& cursor) {
  if (queue.usage_based && state_.usage_history) {  // Whoever starts may change the order.
    WorkloadRecord* first = nullptr;
    for (Turn& turn : cursor.turns) {
      WorkloadRecord* const member = next_of(turn);
      if (member == nullptr) continue;
      if (first == nullptr || goes_before(queue, *member, *first)) first = member;
    }
    return first;
  }
  const auto goes_after = [](const Cursor::Place& a, const Cursor::Place& b) {
    return queue_order(a.record->spec, b.record->spec) > 0;
  };
  const bool is_new = !cursor.line;
  std::vector<Cursor::Place>& line = is_new ? cursor.line.emplace() : *cursor.line;
  const auto join = [&](std::size_t turn) {
    WorkloadRecord* const member = next_of(cursor.turns[turn]);
    if (member == nullptr) return;
    line.push_back({member, turn});
    std::push_heap(line.begin(), line.end(), goes_after);
  };
  for (std::size_t i = 0; is_new && i < cursor.turns.size(); ++i) join(i);
  // The next of a class only ever moves back: where it did, it finds its place when it is on top.
  while (!line.empty()) {
    const auto [record, turn] = line.front();
    if (next_of(cursor.turns[turn]) == record) return record;
    std::pop_heap(line.begin(), line.end(), goes_after);
    line.pop_back();
    join(turn);
  }
  return nullptr;
}

void Pass::push_head(const ClusterQueueName& name, std::vector<Effect>& effects) {
  Cursor& cursor = cursors_.at(name);
  if (cursor.blocked) return;
  const ClusterQueueSpec& queue = *cursor.queue;
  Head best;
  best.queue = name;
  best.record = first_of(queue, cursor);
  if (best.record == nullptr) return;
  if (cursor.last != nullptr && goes_before(queue, *cursor.last, *best.record)) {
    block_behind(name, cursor.last->spec.key, effects);
    return;
  }
  AssignOptions options;
  options.quota_only = true;
  Assignment likely = flavors_of(cursor, *best.record).assign(options);
  best.borrow_level = likely.borrow_level;
  best.amounts = std::move(likely.amounts);
  heads_.push(std::move(best));
}

FlavorAssigner& Pass::flavors_of(Cursor& cursor, const WorkloadRecord& record) {
  std::unique_ptr<FlavorAssigner>& known = cursor.turn(*record.pending_class).flavors;
  if (known == nullptr) {
    known = std::make_unique<FlavorAssigner>(state_, record.spec, *cursor.queue);
  }
  return *known;
}

Attempt Pass::try_for(Cursor& cursor, const WorkloadRecord& record, Reach reach) {
  return try_with(flavors_of(cursor, record), *cursor.queue, record, reach);
}

Attempt Pass::try_with(FlavorAssigner& flavors, const ClusterQueueSpec& queue,
                       const WorkloadRecord& record, Reach reach) {
  SearchOptions search;
  search.reach = reach;
  search.spared = &spared_;
  return attempt(state_, record.spec, queue, flavors, work_, search);
}

void Pass::consider(const Head& head, std::vector<Effect>& effects) {
  WorkloadRecord& record = *head.record;
  Cursor& cursor = cursors_.at(head.queue);
  const ClusterQueueSpec& queue = *cursor.queue;
  Turn& turn = cursor.turn(*record.pending_class);
  turn.considered = &record;
  turn.next.reset();

  spared_.clear();
  const bool again = search_again_.contains(&record);
  Attempt tried = try_for(cursor, record, again ? Reach::kWithoutOverdue : Reach::kAny);
  // Better to go on waiting than not to wait at all.
  if (again && !tried.works()) tried = try_for(cursor, record, Reach::kAny);
  if (const WorkloadKey* const waiting = tried.works() ? short_by(record, tried) : nullptr) {
    kept_back_ = true;
    tried.victims.reset();
    tried.assignment.mode = Mode::kNoFit;
    tried.assignment.why = kept_for(*waiting);
  }
  if (tried.victims) {
    if (take_holds(*tried.victims)) tried = try_for(cursor, record, Reach::kLeavingOnly);
  }
  if (tried.assignment.mode == Mode::kFit) {
    admit(record, tried.assignment, effects);
    return;
  }
  if (tried.victims) {
    await(record, *tried.victims, effects);
    keep_room(record, tried.assignment);
    if (queue.strategy == QueueingStrategy::kStrictFifo) {
      block_behind(head.queue, record.spec.key, effects);
    }
    return;
  }
  // Within a pass the state only gets fuller: what the first of a class was refused, all are. But
  // whoever was preempted itself may take less than another of its class.
  if (!State::went_round(record)) {
    turn.dropped = true;
    turn.flavors.reset();
  }
  add_spared(tried.assignment.why);
  give_verdict(head.queue, *turn.same, std::move(tried.assignment.why), effects);
  if (queue.strategy == QueueingStrategy::kStrictFifo) {
    block_behind(head.queue, record.spec.key, effects);
  }
}

const WorkloadKey* Pass::short_by(const WorkloadRecord& record, const Attempt& attempt) const {
  if (state_.own_only_holds().empty()) return nullptr;
  const quota::QuotaTree& tree = state_.tree;
  const quota::NodeIndex queue = state_.queue_node(record.queue);
  Trial gone(state_);
  remove_victims(gone, attempt.victims.value_or(std::vector<Victim>()));
  const Trial::Checkpoint before = gone.checkpoint();
  for (const auto& [key, kept] : state_.own_only_holds()) {
    const Hold& hold = *kept;
    if (tree.root(hold.queue) != tree.root(queue)) continue;
    gone.rollback_to(before);
    gone.remove(hold);
    const auto is_short = [&] {
      return std::any_of(hold.amounts.begin(), hold.amounts.end(), [&](const auto& entry) {
        return tree.own_limit(hold.queue, entry.first, entry.second).has_value();
      });
    };
    if (is_short()) continue;
    gone.charge(queue, attempt.assignment.amounts);
    if (is_short()) return &key;
  }
  return nullptr;
}

bool Pass::take_holds(std::vector<Victim>& victims) {
  const auto first = std::stable_partition(victims.begin(), victims.end(),
                                           [](const Victim& victim) { return !victim.hold; });
  const bool any = first != victims.end();
  for (auto taken = first; taken != victims.end(); ++taken) {
    state_.drop_hold(taken->workload);
    state_.preemptors.erase(taken->workload);
    state_.want_pass();  // It looks for victims anew.
  }
  victims.erase(first, victims.end());
  return any && victims.empty();
}

void Pass::add_spared(Explanation& why) const {
  const bool contended = why.reason == PendingReason::kWaitingForQuota ||
                         why.reason == PendingReason::kTopologyPlacementFailed;
  if (!contended || spared_.empty()) return;
  Spared spared;
  for (const auto& [key, one] : spared_) spared.workloads.push_back(one);
  why.causes.emplace_back(std::move(spared));
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
  if (PendingClass* const same = record.pending_class; same->members.size() == 1) {
    // It is gone with its last member.
    Cursor& cursor = cursors_[record.queue];
    Turn& turn = cursor.turn(*same);
    turn.same = nullptr;
    turn.flavors.reset();
    cursor.places.erase(same);
  }
  state_.hold(record, assignment.admission, Phase::kAssumed, now_);
  // Who borrows now, or has the larger share, may be preempted by those who were refused before.
  state_.look_at_all = true;
  if (state_.options.fair_sharing) state_.want_pass();
  if (state_.usage_history) {
    state_.sync_usage(now_);
    uses_.erase(LocalQueueKey{record.spec.key.ns, record.spec.queue_name});
  }
  for (const auto& [fr, amount] : assignment.amounts) {
    const Amount more = state_.tree.borrowed(queue, fr) - before[state_.tree.fr(fr)];
    if (more <= Amount()) continue;
    effect.borrowed[state_.tree.fr(fr)] = more;
    for (const quota::NodeIndex cohort : state_.tree.ancestors(queue)) {
      effect.lenders[state_.tree.fr(fr)] = state_.tree.name(cohort);
      if (!state_.tree.borrowing(cohort, fr)) break;
    }
  }
  effects.emplace_back(std::move(effect));
  // It waits for nodes: those behind it must not take the ones that there are. If it is not the
  // only one, it has its turn when this part of the pass ends: to look at all for each takes long.
  if (state_.unplanned.size() == 1 && state_.unplanned.contains(record.spec.key)) {
    place_held(state_, effects);
  }
}

void Pass::await(WorkloadRecord& record, const std::vector<Victim>& victims,
                 std::vector<Effect>& effects) {
  for (const Victim& victim : victims) {
    WorkloadRecord& leaving = state_.workloads.at(victim.workload);
    state_.set_phase(leaving, Phase::kEvicting, now_);
    leaving.preempted_at = now_;
    effects.emplace_back(Evict{victim.workload, leaving.queue, EvictionReason::kPreempted,
                               victim.rule, record.spec.key, record.queue, record.spec.uid});
  }
  AwaitingVictims awaiting;
  awaiting.again = search_again_.contains(&record) && !victims.empty();
  if (victims.empty()) {
    for (const WorkloadRecord* const leaving : state_.evicting) {
      awaiting.victims.push_back(leaving->spec.key);
    }
  } else {
    for (const Victim& victim : victims) awaiting.victims.push_back(victim.workload);
  }
  // The verdict is this member's own: the next of its class may still start.
  const Explanation explanation{PendingReason::kWaitingForPreemptedWorkloads, {awaiting}};
  PendingClass& same = *record.pending_class;
  same.verdict = explanation;
  if (same.unannounced.erase(&record) > 0 || awaiting.again) {
    effects.emplace_back(StillPending{record.spec.key, record.queue, explanation});
  }
  // For who waits for what others leave behind nothing was freed: when it is, those who left may be
  // before it in the order.
  const auto known = state_.preemptors.find(record.spec.key);
  if (state_.options.improvements.holds && (known != state_.preemptors.end() || !victims.empty())) {
    Instant& since = state_.preemptors.try_emplace(record.spec.key, now_).first->second;
    if (!victims.empty()) since = now_;
    state_.ask_to_wake(since + state_.options.hold_timeout);
  }
}

void Pass::keep_room(const WorkloadRecord& record, const Assignment& assignment) {
  Admission planned = assignment.admission;
  Trial gone(state_);
  gone.remove_leaving();
  if (assignment.mode != Mode::kFit && !place_all(state_, record.spec, planned, nullptr)) {
    for (PodSetAssignment& pod_set : planned.pod_sets) pod_set.nodes.clear();
  }
  gone.rollback_to({});
  keep_plan(record, assignment.amounts, room_of(state_, record.spec, planned));
}

void Pass::keep_plan(const WorkloadRecord& record, const quota::FrAmounts& amounts,
                     std::vector<topology::NodeUse> room) {
  Hold hold;
  hold.queue = state_.queue_node(record.queue);
  hold.amounts = amounts;
  hold.own_only = state_.own_only(record.spec, record.queue);
  hold.room = std::move(room);
  state_.add_hold(record.spec.key, std::move(hold));
}

void Pass::give_verdict(const ClusterQueueName& queue, PendingClass& same, Explanation explanation,
                        std::vector<Effect>& effects) {
  if (!same.verdict || same.verdict->reason != explanation.reason) same.unannounced = same.members;
  same.verdict = std::move(explanation);
  for (const WorkloadRecord* const member : same.unannounced) {
    effects.emplace_back(StillPending{member->spec.key, queue, *same.verdict});
  }
  same.unannounced.clear();
}

void Pass::block_behind(const ClusterQueueName& queue, const WorkloadKey& head,
                        std::vector<Effect>& effects) {
  Cursor& cursor = cursors_[queue];
  cursor.blocked = true;
  const Explanation behind = waits_behind(head, queue);
  for (Turn& turn : cursor.turns) {
    if (turn.dropped || turn.same == nullptr || turn.considered != nullptr) continue;
    give_verdict(queue, *turn.same, behind, effects);
  }
}

}  // namespace muster::engine

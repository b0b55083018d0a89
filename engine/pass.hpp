#pragma once
// One pass over everything pending: queueing semantics (c), with every equivalence class considered
// instead of one head per queue (design section 5).

#include "engine/attempt.hpp"
#include "engine/effect.hpp"
#include "engine/flavor_assigner.hpp"
#include "engine/heads.hpp"
#include "engine/preemption.hpp"
#include "engine/state.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace muster::engine {

/// Heads of all queues compete (heads.hpp). The winner is decided on the live state, and the next
/// of its queue takes its place. A pass may be run in slices; any other event ends it early, which
/// loses nothing but the place in the order.
///
/// What a workload waits for (its victims are leaving) is held for it, in this pass and, as it is
/// held anew when the next one begins, until it starts or its need goes away. Only who could
/// preempt it may take what is held; then it looks for victims anew.
class Pass {
 public:
  Pass(State& state, Instant now);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Takes decisions until done (true) or until `budget` is used up (0: no limit).
  [[nodiscard]] bool run(std::size_t budget, std::vector<Effect>& effects);

 private:
  /// Where the pass stands in one class.
  struct Turn {
    PendingClass* same = nullptr;             ///< nullptr: its last member started.
    bool dropped = false;                     ///< It got a final verdict.
    WorkloadRecord* considered = nullptr;     ///< The last member looked at; nullptr: none yet.
    std::optional<WorkloadRecord*> next;      ///< The one to look at next, nullptr: none is left.
                                              ///< Absent: to be found.
    std::unique_ptr<FlavorAssigner> flavors;  ///< For any member; nullptr: not asked for yet.
  };
  /// Where the pass stands in one queue.
  struct Cursor {
    const ClusterQueueSpec* queue = nullptr;
    std::vector<Turn> turns;  ///< In the order of State::pending.
    std::unordered_map<const PendingClass*, std::size_t> places;  ///< In `turns`.
    struct Place {
      WorkloadRecord* record = nullptr;
      std::size_t turn = 0;
    };
    /// A heap with one member of each class, the next or one who was next before it; the first in
    /// order on top. Absent: not begun.
    std::optional<std::vector<Place>> line;
    bool blocked = false;            ///< StrictFIFO: the head did not start.
    WorkloadRecord* last = nullptr;  ///< StrictFIFO: it waits for its victims, all behind it wait.
    [[nodiscard]] Turn& turn(const PendingClass& same) { return turns[places.at(&same)]; }
  };

  /// Why this pass has to look at everything pending.
  [[nodiscard]] bool must_look_at_all() const;
  void look_at_all();
  /// True: none of the fresh classes has a workload that may start, nor one that others would have
  /// to go for; they got their verdicts, and all other verdicts stand. False: only a look at
  /// everything can tell, or `budget` is used up.
  [[nodiscard]] bool refuses_all_fresh(std::size_t budget, std::vector<Effect>& effects);
  /// Who stands first of those that are due; nullptr: nobody, or not to be told by their order.
  [[nodiscard]] const WorkloadRecord* head_of(
      const ClusterQueueSpec& queue, const std::map<std::string, PendingClass>& classes) const;
  void drain_stopped(std::vector<Effect>& effects);
  void start_queue(const ClusterQueueName& queue, std::vector<Effect>& effects);
  [[nodiscard]] std::optional<Explanation> unusable_class(const ClusterQueueSpec& queue,
                                                          const WorkloadSpec& member) const;
  /// Before anybody is looked at: what was freed is kept for whom it was freed.
  void hold_for_preemptors();
  void hold_for(WorkloadRecord& record);
  /// In its place in the order, behind whoever may take what is held for it: it starts, or goes on
  /// waiting.
  void settle_first_preemptor(std::vector<Effect>& effects);
  [[nodiscard]] bool is_due(const WorkloadSpec& spec) const;
  [[nodiscard]] WorkloadRecord* next_of(Turn& turn) const;
  /// Who is to be looked at next in the queue; nullptr: nobody is left.
  [[nodiscard]] WorkloadRecord* first_of(const ClusterQueueSpec& queue, Cursor& cursor);
  void push_head(const ClusterQueueName& queue, std::vector<Effect>& effects);
  void consider(const Head& head, std::vector<Effect>& effects);
  void admit(WorkloadRecord& record, const Assignment& assignment, std::vector<Effect>& effects);
  void await(WorkloadRecord& record, const std::vector<Victim>& victims,
             std::vector<Effect>& effects);
  void keep_room(const WorkloadRecord& record, const Assignment& assignment);
  void keep_plan(const WorkloadRecord& record, const quota::FrAmounts& amounts,
                 std::vector<topology::NodeUse> room);
  static void give_verdict(const ClusterQueueName& queue, PendingClass& same,
                           Explanation explanation, std::vector<Effect>& effects);
  void block_behind(const ClusterQueueName& queue, const WorkloadKey& head,
                    std::vector<Effect>& effects);
  /// The queue must have been started.
  [[nodiscard]] FlavorAssigner& flavors_of(Cursor& cursor, const WorkloadRecord& record);
  [[nodiscard]] Attempt try_for(Cursor& cursor, const WorkloadRecord& record, Reach reach);
  [[nodiscard]] Attempt try_with(FlavorAssigner& flavors, const ClusterQueueSpec& queue,
                                 const WorkloadRecord& record, Reach reach);
  /// For whom is kept what the workload would take with this attempt: somebody who may not borrow
  /// would find its queue's own quota, or that of a cohort, borrowed away. nullptr: nobody.
  [[nodiscard]] const WorkloadKey* short_by(const WorkloadRecord& record,
                                            const Attempt& attempt) const;
  /// Drops the holds among the victims, from them too. True: there were some, and nothing else.
  [[nodiscard]] bool take_holds(std::vector<Victim>& victims);
  void add_spared(Explanation& why) const;
  /// Whether `a` has its turn before `b`, both of one queue: with Admission Fair Sharing by what
  /// their LocalQueues used lately, then by their order.
  [[nodiscard]] bool goes_before(const ClusterQueueSpec& queue, const WorkloadRecord& a,
                                 const WorkloadRecord& b);
  [[nodiscard]] const quota::WeightedUse& use_of(const WorkloadRecord& record);

  // One head of each queue (cycle.cpp).
  struct Nomination;
  void run_cycle(const std::vector<ClusterQueueName>& queues, std::vector<Effect>& effects);
  /// The first of the queue that is not parked; the one that others were preempted for goes before.
  [[nodiscard]] std::optional<Head> only_head(const ClusterQueueName& queue);
  [[nodiscard]] Nomination nominate(const Head& head);
  void commit(Nomination& nomination, std::vector<Effect>& effects);
  /// May find it other nodes.
  [[nodiscard]] bool still_fits(Nomination& nomination);
  /// PeerFacts::scans_go_on, for who failed: whether flavors are left to scan. Who has some is not
  /// parked.
  [[nodiscard]] bool keep_scan(const WorkloadRecord& record, const Assignment& assignment);
  /// What a head that may preempt nobody could have keeps others out for this pass, unless it may
  /// reclaim it from anybody later (semantics c.5d).
  void reserve_for(const Nomination& nomination);

  State& state_;
  Instant now_;
  bool started_ = false;
  bool all_;  ///< It looks at everything pending; false: at fresh_ first.
  std::map<ClusterQueueName, std::set<std::string>> fresh_;
  std::vector<ClusterQueueName> queues_;  ///< That have something pending.
  std::size_t begun_ = 0;                 ///< Of queues_, those for which start_queue() is done.
  bool held_ = false;                     ///< hold_for_preemptors() is done.
  std::size_t entered_ = 0;               ///< Of queues_, those whose first head competes.
  Heads heads_;
  std::set<Head> waiting_;  ///< Those with a hold that were not settled yet.
  std::unordered_set<const WorkloadRecord*> holding_;  ///< All that ever were: not looked at in
                                                       ///< between.
  bool kept_back_ = false;                             ///< Somebody did not start: see short_by().
  std::unordered_set<const WorkloadRecord*>
      search_again_;  ///< Their victims did not leave in time.
  std::map<ClusterQueueName, Cursor> cursors_;
  std::map<WorkloadKey, SparedWorkload> spared_;      ///< For the workload that is looked at.
  std::map<LocalQueueKey, quota::WeightedUse> uses_;  ///< Counted since the last admission.
  std::size_t work_ = 0;
};

}  // namespace muster::engine

#pragma once
// One pass over everything pending: queueing semantics (c), with every equivalence class considered
// instead of one head per queue (design section 5).

#include "engine/effect.hpp"
#include "engine/flavor_assigner.hpp"
#include "engine/preemption.hpp"
#include "engine/state.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::engine {

/// Heads of all queues compete: lower borrow level first, then priority, age, uid. The winner is
/// decided on the live state, and the next of its queue takes its place. A pass may be run in
/// slices; any other event ends it early, which loses nothing but the place in the order.
///
/// What a workload waits for (its victims are leaving) is held for it until the pass ends, so that
/// nobody after it in the order takes the room; who comes before it in the order may.
class Pass {
 public:
  Pass(State& state, Instant now);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Takes decisions until done (true) or until `budget` is used up (0: no limit).
  [[nodiscard]] bool run(std::size_t budget, std::vector<Effect>& effects);

 private:
  struct Head {
    std::int64_t borrow_level = 0;
    PendingOrder order;
    ClusterQueueName queue;
    std::string class_key;
    bool operator<(const Head& other) const;
  };
  /// Where the pass stands in one queue.
  struct Cursor {
    std::set<std::string> dropped;                   ///< Classes that got a final verdict.
    std::map<std::string, PendingOrder> considered;  ///< By class: the last member looked at.
    bool blocked = false;                            ///< StrictFIFO: the head did not start.
  };
  /// Quota and room kept for a workload whose victims are leaving.
  struct Held {
    quota::NodeIndex queue;
    quota::FrAmounts amounts;
    std::vector<topology::NodeUse> room;
  };

  void drain_stopped(std::vector<Effect>& effects);
  void start_queue(const ClusterQueueName& queue, std::vector<Effect>& effects);
  [[nodiscard]] std::optional<Explanation> unusable_class(const ClusterQueueSpec& queue,
                                                          const WorkloadSpec& member) const;
  /// Those for whom others were evicted come first, whoever else would: the room was made for them.
  void consider_preemptors(std::vector<Effect>& effects);
  void push_head(const ClusterQueueName& queue);
  void consider(const Head& head, std::vector<Effect>& effects);
  void admit(WorkloadRecord& record, const Assignment& assignment, std::vector<Effect>& effects);
  void await(WorkloadRecord& record, const Assignment& assignment,
             const std::vector<Victim>& victims, std::vector<Effect>& effects);
  void keep_room(const WorkloadRecord& record, const Assignment& assignment);
  void give_verdict(const ClusterQueueName& queue, const std::string& class_key,
                    const Explanation& explanation, std::vector<Effect>& effects);
  void block_behind(const ClusterQueueName& queue, const WorkloadKey& head,
                    std::vector<Effect>& effects);

  State& state_;
  Instant now_;
  bool started_ = false;
  std::set<Head> heads_;
  std::set<WorkloadKey> considered_first_;  ///< Preemptors of this pass: not looked at again.
  std::map<ClusterQueueName, Cursor> cursors_;
  std::vector<Held> held_;
  std::size_t work_ = 0;
};

}  // namespace muster::engine

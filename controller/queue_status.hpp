#pragma once
// Status of ClusterQueues, LocalQueues and Cohorts: what the last snapshot says, written when it
// differs from what is stored, at most once per interval and queue.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "engine/snapshot.hpp"
#include "kube/codec/objects.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::controller {

/// A queue of either kind, or a Cohort: the namespace is empty for all but a LocalQueue.
struct QueueId {
  Namespace ns;
  std::string name;
  bool cohort = false;
  auto operator<=>(const QueueId&) const = default;
  bool operator==(const QueueId&) const = default;
  [[nodiscard]] bool is_local() const { return !ns.empty(); }
  [[nodiscard]] std::string status_path() const;
};

struct QueueStatusWrite {
  QueueId queue;
  kube::Json patch;
};

class QueueStatus {
 public:
  explicit QueueStatus(Duration interval) : interval_(interval) {}

  /// The object as it is stored: what its status says, and that it exists.
  void on_stored(const QueueId& queue, const kube::Json& object);
  void on_deleted(const QueueId& queue);
  void on_snapshot(std::shared_ptr<const engine::QueuesView> view);
  void on_written(const QueueId& queue, const Result<kube::Json>& result, Instant now);

  /// What is due now. `busy`: workload writes are under way, and queues can wait longer: five
  /// intervals, or so long that there are ten writes per interval.
  [[nodiscard]] std::vector<QueueStatusWrite> due(bool busy, Instant now);
  /// When due() may have something; nothing: not before a change.
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

 private:
  struct Entry {
    kube::Json stored;  ///< `status` of the stored object.
    std::vector<kube::Condition> conditions;
    bool in_flight = false;
    bool check = true;                 ///< Something changed since the last comparison.
    std::optional<Instant> looked_at;  ///< When it was compared last.
    std::optional<Instant> due_at;
    std::optional<Instant> changed_at;  ///< When a difference was first seen.
    std::optional<Instant> written_at;
  };

  [[nodiscard]] kube::Json desired(const QueueId& queue, const Entry& entry, Instant now) const;
  [[nodiscard]] kube::Json desired_cluster_queue(const std::string& name, const Entry& entry,
                                                 Instant now) const;
  [[nodiscard]] kube::Json desired_cohort(const std::string& name) const;
  [[nodiscard]] kube::Json desired_local_queue(const LocalQueueKey& key, const Entry& entry,
                                               Instant now) const;

  Duration interval_;
  std::shared_ptr<const engine::QueuesView> view_;
  std::map<QueueId, Entry> entries_;
  std::optional<Instant> busy_at_;  ///< When it was busy last.
};

}  // namespace muster::controller

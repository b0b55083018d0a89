#pragma once
// Which held gangs (engine/elastic.hpp) get their pods created, so that an autoscaler sees them: in
// order, and not too many pods at once, since kube-scheduler looks at each of them again with every
// event (design section 2).

#include "base/ids.hpp"
#include "base/time.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace muster::controller {

/// Turns go by priority, then by the time since when quota is held.
struct HeldTurn {
  std::int64_t minus_priority = 0;
  Instant since;
  WorkloadKey key;
  auto operator<=>(const HeldTurn&) const = default;
};

class ElasticWindow {
 public:
  /// `limit`: so many pods at once, or one gang that has more.
  explicit ElasticWindow(std::int64_t limit) : limit_(limit) {}

  /// The gang waits for its turn; its pods do not exist.
  void wait(const HeldTurn& turn, std::int64_t pods);
  /// Its pods exist, or are about to.
  void open(const WorkloadKey& key, std::int64_t pods);
  /// It is not held any more.
  void forget(const WorkloadKey& key);

  /// Whose turn it is; nothing: nobody waits, or there is no room for the first.
  [[nodiscard]] std::optional<WorkloadKey> next() const;
  [[nodiscard]] std::size_t waiting_gangs() const { return waiting_.size(); }
  [[nodiscard]] std::size_t open_gangs() const { return open_.size(); }
  [[nodiscard]] std::int64_t open_pods() const { return open_pods_; }

 private:
  struct Waiting {
    HeldTurn turn;
    std::int64_t pods = 0;
  };

  std::int64_t limit_;
  std::map<WorkloadKey, std::int64_t> open_;  ///< -> pods
  std::int64_t open_pods_ = 0;
  std::map<WorkloadKey, Waiting> waiting_;
  std::set<HeldTurn> turns_;  ///< Of those that wait.
};

}  // namespace muster::controller

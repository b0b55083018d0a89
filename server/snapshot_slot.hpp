#pragma once
// Where network threads find the current picture. No lock is held longer than a pointer copy.

#include "engine/snapshot.hpp"

#include <memory>
#include <mutex>

namespace muster::server {

/// Safe from any thread. A mutex, not std::atomic<shared_ptr>: ThreadSanitizer cannot follow the
/// latter in this standard library (google/sanitizers#1558).
class SnapshotSlot {
 public:
  /// Null before the first publication after all caches are complete.
  [[nodiscard]] std::shared_ptr<const engine::Snapshot> get() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
  }
  void set(std::shared_ptr<const engine::Snapshot> snapshot) {
    const std::lock_guard lock(mutex_);
    snapshot_.swap(snapshot);  // The former one is freed after the lock is released.
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const engine::Snapshot> snapshot_;
};

}  // namespace muster::server

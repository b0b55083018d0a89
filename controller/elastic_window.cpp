#include "controller/elastic_window.hpp"

namespace muster::controller {

void ElasticWindow::wait(const HeldTurn& turn, std::int64_t pods) {
  forget(turn.key);
  waiting_.emplace(turn.key, Waiting{turn, pods});
  turns_.insert(turn);
}

void ElasticWindow::open(const WorkloadKey& key, std::int64_t pods) {
  forget(key);
  open_.emplace(key, pods);
  open_pods_ += pods;
}

void ElasticWindow::forget(const WorkloadKey& key) {
  if (const auto waits = waiting_.find(key); waits != waiting_.end()) {
    turns_.erase(waits->second.turn);
    waiting_.erase(waits);
  }
  if (const auto is_open = open_.find(key); is_open != open_.end()) {
    open_pods_ -= is_open->second;
    open_.erase(is_open);
  }
}

std::optional<WorkloadKey> ElasticWindow::next() const {
  if (turns_.empty()) return std::nullopt;
  const WorkloadKey& first = turns_.begin()->key;
  const bool has_room = open_.empty() || open_pods_ + waiting_.at(first).pods <= limit_;
  return has_room ? std::optional(first) : std::nullopt;
}

}  // namespace muster::controller

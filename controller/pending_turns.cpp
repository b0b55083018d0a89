#include "controller/pending_turns.hpp"

namespace muster::controller {
namespace {

constexpr int kBusyStretch = 5;

}  // namespace

void PendingTurns::ask(const WorkloadKey& key, bool new_reason) {
  if (const auto known = places_.find(key); known != places_.end()) {
    if (!new_reason || !known->second.new_words_only) return;
    lines_[key.ns].erase(known->second);
    places_.erase(known);
  }
  const Place place{!new_reason, next_ticket_++};
  lines_[key.ns].emplace(place, key.name);
  places_.emplace(key, place);
}

std::optional<WorkloadKey> PendingTurns::take(Instant now) {
  if (lines_.empty() || !pace_.free(now)) return std::nullopt;
  auto line = lines_.upper_bound(last_served_);
  if (line == lines_.end()) line = lines_.begin();
  const WorkloadKey next{line->first, line->second.begin()->second};
  last_served_ = next.ns;
  line->second.erase(line->second.begin());
  if (line->second.empty()) lines_.erase(line);
  places_.erase(next);
  return next;
}

void PendingTurns::wrote(bool busy, Instant now) {
  pace_.spend(now, busy ? kBusyStretch : 1);
}

std::optional<Instant> PendingTurns::next_wakeup() const {
  if (lines_.empty()) return std::nullopt;
  return pace_.free_at();
}

}  // namespace muster::controller

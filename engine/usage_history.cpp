#include "engine/usage_history.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::engine {
namespace {

using quota::Decay;
using quota::FineAmount;
using quota::FineAmounts;

Amount clamped(__int128 value) {
  constexpr __int128 kMax = std::numeric_limits<std::int64_t>::max();
  return Amount(static_cast<std::int64_t>(std::clamp<__int128>(value, 0, kMax)));
}

}  // namespace

UsageHistory::UsageHistory(AdmissionFairSharing rules)
    : rules_(std::move(rules)), entry_(rules_.usage_sampling_interval, rules_.usage_half_life) {}

void UsageHistory::upsert_queue(const LocalQueueSpec& queue, Instant now) {
  Queue& entry = queues_[queue.key];
  entry.weight = queue.fair_weight;
  if (entry.known) return;
  entry.known = true;
  entry.at = now;
  entry.consumed.clear();
  if (queue.consumed) {
    entry.sample = queue.consumed;
    entry.told_to = queue.consumed->at;
    const Decay past(now - queue.consumed->at, rules_.usage_half_life);
    for (const auto& [resource, amount] : queue.consumed->amounts) {
      entry.consumed[resource] = past.kept(amount);
    }
  }
  for (const auto& [workload, part] : parts_) {
    if (part.queue == queue.key && part.admitted) add_past(entry, part, now);
  }
}

void UsageHistory::delete_queue(const LocalQueueKey& queue) {
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return;
  Queue& entry = found->second;
  if (entry.admitted.empty() && entry.entering.empty()) {
    queues_.erase(found);
    return;
  }
  // What runs still names it; a new object of the name begins anew.
  entry.known = false;
  entry.consumed.clear();
  entry.told_to.reset();
  entry.sample.reset();
}

/// A workload that is seen admitted for the first time: what it did before, as far as C does not
/// have it yet.
void UsageHistory::add_past(Queue& queue, const UsagePart& part, Instant now) const {
  if (rules_.usage_half_life.count() <= 0) return;
  const bool told = queue.told_to && part.since <= *queue.told_to;
  const Decay past(now - (told ? *queue.told_to : part.since), rules_.usage_half_life);
  for (const auto& [resource, amount] : part.usage) {
    queue.consumed[resource] += past.gained(amount);
  }
  if (told) return;
  for (const auto& [resource, amount] : part.entry) {
    queue.consumed[resource] += past.kept(entry_.gained(amount));
  }
}

void UsageHistory::leave(const WorkloadKey& workload, const UsagePart& part, Instant now) {
  const auto found = queues_.find(part.queue);
  if (found == queues_.end()) return;  // Deleted, and the part was nothing.
  Queue& queue = found->second;
  if (!part.admitted) {
    queue.entering.erase(workload);
  } else {
    advance(queue, now);
    for (const auto& [resource, amount] : part.usage) {
      __int128& sum = queue.admitted[resource];
      sum -= amount.value();
      if (sum == 0) queue.admitted.erase(resource);
    }
  }
  queue.changed = true;
  if (!queue.known && queue.admitted.empty() && queue.entering.empty()) queues_.erase(found);
}

void UsageHistory::set_part(const WorkloadKey& workload, const std::optional<UsagePart>& part,
                            Instant now) {
  const auto known = parts_.find(workload);
  if (known == parts_.end() ? !part : part && known->second == *part) return;
  bool was_entering = false;
  bool was_admitted = false;
  if (known != parts_.end()) {
    was_admitted = known->second.admitted;
    was_entering = !was_admitted && part && known->second.queue == part->queue;
    leave(workload, known->second, now);
    parts_.erase(known);
  }
  if (!part) return;
  parts_.emplace(workload, *part);
  Queue& queue = queues_[part->queue];
  queue.changed = true;
  if (!part->admitted) {
    queue.entering[workload] = part->entry;
    return;
  }
  if (queue.known) {
    advance(queue, now);
    if (was_entering && rules_.usage_half_life.count() > 0) {
      for (const auto& [resource, amount] : part->entry) {
        queue.consumed[resource] += entry_.gained(amount);
      }
    } else if (!was_entering && !was_admitted) {
      add_past(queue, *part, now);
    }
  }
  for (const auto& [resource, amount] : part->usage) {
    __int128& sum = queue.admitted[resource];
    sum += amount.value();
    if (sum == 0) queue.admitted.erase(resource);
  }
}

FineAmounts UsageHistory::consumed(const Queue& queue, Instant now) const {
  if (rules_.usage_half_life.count() <= 0) return {};
  if (now <= queue.at) return queue.consumed;
  const Decay past(now - queue.at, rules_.usage_half_life);
  FineAmounts result;
  for (const auto& [resource, amount] : queue.consumed) {
    if (const FineAmount kept = past.kept(amount); !kept.is_zero()) result[resource] = kept;
  }
  for (const auto& [resource, sum] : queue.admitted) {
    result[resource] += past.gained(clamped(sum));
  }
  return result;
}

void UsageHistory::advance(Queue& queue, Instant now) const {
  queue.consumed = consumed(queue, now);
  queue.at = std::max(queue.at, now);
}

FineAmounts UsageHistory::consumed(const LocalQueueKey& queue, Instant now) const {
  const auto found = queues_.find(queue);
  return found == queues_.end() ? FineAmounts() : consumed(found->second, now);
}

quota::WeightedUse UsageHistory::use(const LocalQueueKey& queue, Instant now) const {
  quota::WeightedUse result;
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return result;
  const auto add = [&](const ResourceName& resource, FineAmount amount) {
    const auto weight = rules_.resource_weights.find(resource);
    result.add(resource, amount,
               weight == rules_.resource_weights.end() ? quota::FairWeight{} : weight->second);
  };
  for (const auto& [resource, amount] : consumed(found->second, now)) add(resource, amount);
  if (rules_.usage_half_life.count() > 0) {
    for (const auto& [workload, entry] : found->second.entering) {
      for (const auto& [resource, amount] : entry) add(resource, entry_.gained(amount));
    }
  }
  result.divide_by(found->second.weight);
  return result;
}

const ConsumedResources* UsageHistory::sample(const LocalQueueKey& queue) const {
  const auto found = queues_.find(queue);
  return found != queues_.end() && found->second.sample ? &*found->second.sample : nullptr;
}

bool UsageHistory::Queue::is_due(Instant now, Duration interval) const {
  if (!known || (!changed && admitted.empty())) return false;
  return !sample || sample->at + interval <= now;
}

bool UsageHistory::take_samples(Instant now) {
  bool any = false;
  for (auto& [key, queue] : queues_) {
    if (!queue.is_due(now, rules_.usage_sampling_interval)) continue;
    queue.sample = ConsumedResources{consumed(queue, now), now};
    queue.changed = false;
    any = true;
  }
  return any;
}

std::optional<Instant> UsageHistory::next_sample() const {
  std::optional<Instant> next;
  constexpr Instant kEver{std::numeric_limits<std::int64_t>::max()};
  for (const auto& [key, queue] : queues_) {
    if (!queue.is_due(kEver, Duration(0))) continue;
    const Instant at = queue.sample ? queue.sample->at + rules_.usage_sampling_interval : queue.at;
    if (!next || at < *next) next = at;
  }
  return next;
}

}  // namespace muster::engine

#include "controller/queue_status.hpp"

#include "controller/translate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace muster::controller {
namespace {

using kube::Json;
using Members = std::vector<std::pair<std::string, Json>>;

// While workload writes are under way a change waits for five intervals, or for as many tenths of
// one as there are queues that changed: ten writes per interval at most, whoever's turn it is.
constexpr int kBusyStretch = 5;
constexpr int kBusyWrites = 10;

/// `[{name: flavor, resources: [{name, total, borrowed?}]}]` for every flavor and resource that
/// `frame` or `usage` names.
Json flavor_usage(const quota::FlavorAmounts& frame, const quota::FlavorAmounts& usage,
                  const quota::FlavorAmounts* borrowed) {
  const auto amount_of = [](const quota::FlavorAmounts& amounts, const quota::FlavorResource& key) {
    const auto found = amounts.find(key);
    return found != amounts.end() ? found->second : Amount();
  };
  std::set<quota::FlavorResource> keys;
  for (const auto& [key, nominal] : frame) keys.insert(key);
  for (const auto& [key, amount] : usage) keys.insert(key);
  std::map<FlavorName, std::vector<Json>> by_flavor;
  for (const quota::FlavorResource& key : keys) {
    Members members = {{"name", Json::string(key.resource.value())},
                       {"total", Json::string(format_amount(key.resource, amount_of(usage, key)))}};
    if (borrowed != nullptr) {
      members.emplace_back("borrowed",
                           Json::string(format_amount(key.resource, amount_of(*borrowed, key))));
    }
    by_flavor[key.flavor].push_back(Json::object(members));
  }
  std::vector<Json> flavors;
  for (const auto& [flavor, resources] : by_flavor) {
    flavors.push_back(Json::object(
        {{"name", Json::string(flavor.value())}, {"resources", Json::array(resources)}}));
  }
  return Json::array(flavors);
}

/// status.fairSharing of a ClusterQueue or Cohort. Without fair sharing it is null, which takes
/// away what is stored.
Json share_status(std::int64_t weighted_share) {
  return Json::object({{"weightedShare", Json::number(weighted_share)}});
}

/// status.fairSharing of a LocalQueue, as a patch of the `stored` status.
Json consumed_status(const engine::ConsumedResources& consumed, const Json& stored) {
  Json status = to_consumed(consumed);
  Json amounts = status.get("consumedResources");
  const Json before = stored.get("fairSharing", "admissionFairSharingStatus", "consumedResources");
  for (const auto& [resource, amount] : before.members()) {
    if (!amounts.get(resource).present()) amounts = amounts.with(resource, Json::null());
  }
  // The API wants a share; a LocalQueue has none.
  return Json::object({{"weightedShare", Json::number(std::int64_t{0})},
                       {"admissionFairSharingStatus", status.with("consumedResources", amounts)}});
}

/// The stored conditions with Active as it is now.
Json with_active(std::vector<kube::Condition> conditions, bool active, std::string_view reason,
                 std::string_view message, Instant now) {
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [](const kube::Condition& known) { return known.type == "Active"; });
  if (found == conditions.end()) {
    conditions.emplace_back().type = "Active";
    found = std::prev(conditions.end());
  }
  const std::string_view status = active ? "True" : "False";
  if (found->status != status || !found->last_transition) found->last_transition = now;
  found->status = status;
  found->reason = reason;
  found->message = message;
  std::vector<Json> elements;
  for (const kube::Condition& condition : conditions) {
    elements.push_back(kube::encode_condition(condition));
  }
  return Json::array(elements);
}

std::vector<kube::Condition> decode_conditions(const Json& status) {
  std::vector<kube::Condition> result;
  const Json list = status.get("conditions");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json element = list.at(i);
    kube::Condition condition;
    condition.type = element.get("type").string_or("");
    condition.status = element.get("status").string_or("");
    condition.reason = element.get("reason").string_or("");
    condition.message = element.get("message").string_or("");
    condition.observed_generation = element.get("observedGeneration").int_or(0);
    if (const auto at = parse_rfc3339(element.get("lastTransitionTime").string_or(""))) {
      condition.last_transition = *at;
    }
    result.push_back(std::move(condition));
  }
  return result;
}

}  // namespace

std::string QueueId::status_path() const {
  if (is_local()) {
    return fmt::format("/apis/kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues/{}/status", ns,
                       name);
  }
  return fmt::format("/apis/kueue.x-k8s.io/v1beta2/{}/{}/status",
                     cohort ? "cohorts" : "clusterqueues", name);
}

void QueueStatus::on_stored(const QueueId& queue, const Json& object) {
  Entry& entry = entries_[queue];
  entry.stored = object.get("status");
  entry.conditions = decode_conditions(entry.stored);
  entry.check = true;
}

void QueueStatus::on_deleted(const QueueId& queue) {
  entries_.erase(queue);
}

void QueueStatus::on_snapshot(std::shared_ptr<const engine::QueuesView> view) {
  if (view_ == view) return;
  view_ = std::move(view);
  for (auto& [queue, entry] : entries_) entry.check = true;
}

void QueueStatus::on_written(const QueueId& queue, const Result<Json>& result, Instant now) {
  const auto found = entries_.find(queue);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.in_flight = false;
  entry.check = true;
  entry.written_at = now;
  if (result && result->get("metadata").is_object()) on_stored(queue, *result);
}

Json QueueStatus::desired_cluster_queue(const std::string& name, const Entry& entry,
                                        Instant now) const {
  const auto found = view_->cluster_queues.find(ClusterQueueName(name));
  if (found == view_->cluster_queues.end()) return {};
  const engine::ClusterQueueView& queue = found->second;
  const Json usage = flavor_usage(queue.nominal, queue.usage, &queue.borrowed);
  return Json::object(
      {{"conditions",
        with_active(entry.conditions, queue.active, queue.active ? "Ready" : queue.inactive_reason,
                    queue.active ? "Can admit new workloads" : queue.inactive_message, now)},
       {"pendingWorkloads", Json::number(queue.pending)},
       {"reservingWorkloads", Json::number(queue.reserving)},
       {"admittedWorkloads", Json::number(queue.admitted)},
       {"flavorsReservation", usage},
       {"flavorsUsage", usage},
       {"fairSharing", view_->fair_sharing ? share_status(queue.weighted_share) : Json::null()}});
}

Json QueueStatus::desired_cohort(const std::string& name) const {
  if (!view_->fair_sharing) return Json::object({{"fairSharing", Json::null()}});
  const auto found = view_->cohort_shares.find(CohortName(name));
  if (found == view_->cohort_shares.end()) return {};
  return Json::object({{"fairSharing", share_status(found->second)}});
}

Json QueueStatus::desired_local_queue(const LocalQueueKey& key, const Entry& entry,
                                      Instant now) const {
  const auto found = view_->local_queues.find(key);
  if (found == view_->local_queues.end()) return {};
  const engine::LocalQueueView& queue = found->second;
  engine::LocalQueueCounts counts;
  if (const auto known = view_->local_queue_counts.find(key);
      known != view_->local_queue_counts.end()) {
    counts = known->second;
  }
  static const quota::FlavorAmounts kNone;
  const auto parent = view_->cluster_queues.find(queue.cluster_queue);
  const quota::FlavorAmounts& frame =
      parent != view_->cluster_queues.end() ? parent->second.nominal : kNone;
  std::string_view reason = "Ready";
  std::string message = "Can submit new workloads to ClusterQueue";
  if (!queue.active) {
    if (parent == view_->cluster_queues.end()) {
      reason = "ClusterQueueDoesNotExist";
    } else {
      reason = parent->second.active ? "Stopped" : "ClusterQueueIsInactive";
    }
    message = queue.inactive_reason;
  }
  const Json usage = flavor_usage(frame, counts.usage, nullptr);
  // Absent: what is stored stays.
  const Json sharing = queue.consumed ? consumed_status(*queue.consumed, entry.stored) : Json();
  return Json::object(
      {{"conditions", with_active(entry.conditions, queue.active, reason, message, now)},
       {"pendingWorkloads", Json::number(counts.pending)},
       {"reservingWorkloads", Json::number(counts.reserving)},
       {"admittedWorkloads", Json::number(counts.admitted)},
       {"flavorsReservation", usage},
       {"flavorsUsage", usage},
       {"fairSharing", sharing}});
}

Json QueueStatus::desired(const QueueId& queue, const Entry& entry, Instant now) const {
  if (!view_) return {};
  if (queue.cohort) return desired_cohort(queue.name);
  return queue.is_local() ? desired_local_queue(LocalQueueKey{queue.ns, queue.name}, entry, now)
                          : desired_cluster_queue(queue.name, entry, now);
}

std::vector<QueueStatusWrite> QueueStatus::due(bool busy, Instant now) {
  if (!view_) return {};
  if (busy) busy_at_ = now;
  // Between two writes of a stream it is busy as well.
  const bool calm = !busy_at_ || *busy_at_ + interval_ < now;
  const auto changed = std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.second.changed_at.has_value();
  });
  const Duration stretched = std::max(kBusyStretch * interval_, changed * interval_ / kBusyWrites);
  std::vector<QueueStatusWrite> writes;
  for (auto& [queue, entry] : entries_) {
    if (entry.in_flight || (!entry.check && !(entry.due_at && *entry.due_at <= now))) continue;
    // Snapshots come with every event; what the status should be is worked out once per interval.
    if (entry.looked_at && now < *entry.looked_at + interval_) {
      entry.due_at = *entry.looked_at + interval_;
      continue;
    }
    entry.looked_at = now;
    entry.check = false;
    entry.due_at.reset();
    const Json status = desired(queue, entry, now);
    if (!status.present() || kube::merge_patch(entry.stored, status) == entry.stored) {
      entry.changed_at.reset();
      continue;
    }
    if (!entry.changed_at) entry.changed_at = now;
    Instant at = entry.written_at ? *entry.written_at + interval_ : now;
    if (!calm) at = std::max(at, *entry.changed_at + stretched);
    if (at > now) {
      // Looked at again each interval, for it need not stay busy.
      entry.due_at = std::min(at, now + interval_);
      continue;
    }
    entry.in_flight = true;
    entry.changed_at.reset();
    writes.push_back({queue, Json::object({{"status", status}})});
  }
  return writes;
}

std::optional<Instant> QueueStatus::next_wakeup() const {
  std::optional<Instant> next;
  for (const auto& [queue, entry] : entries_) {
    if (entry.due_at && (!next || *entry.due_at < *next)) next = entry.due_at;
  }
  return next;
}

}  // namespace muster::controller

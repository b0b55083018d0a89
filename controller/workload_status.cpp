#include "controller/workload_status.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::controller {
namespace {

using kube::Condition;
using kube::Json;

// The API refuses longer messages.
constexpr std::size_t kMaxMessage = 32'768;
constexpr std::string_view kPreviously = "Previously: ";
constexpr std::string_view kAt = " [at ";
constexpr std::size_t kMaxSuffix = 64;
/// Whether a gang that was admitted without nodes has them; absent: it never lacked them.
constexpr std::string_view kPlaced = "muster.dev/Placed";

/// A workload's conditions on their way to the next write.
class Conditions {
 public:
  Conditions(const kube::Workload& workload, Instant now)
      : list_(workload.conditions), generation_(workload.meta.generation), now_(now) {}

  Conditions& set(std::string_view type, bool status, std::string_view reason,
                  std::string_view message) {
    auto found = std::find_if(list_.begin(), list_.end(),
                              [&](const Condition& known) { return known.type == type; });
    if (found == list_.end()) {
      list_.emplace_back().type = type;
      found = std::prev(list_.end());
    }
    const std::string_view word = status ? "True" : "False";
    // The transition time tells when the status changed, not when the words did.
    if (found->status != word || !found->last_transition) found->last_transition = now_;
    found->status = word;
    found->reason = reason;
    found->message = message.substr(0, kMaxMessage);
    found->observed_generation = generation_;
    return *this;
  }

  /// Whether a gang waits for nodes. One that never did has no such condition.
  Conditions& set_placed(bool held) {
    if (held) {
      return set(kPlaced, false, "WaitingForCapacity",
                 "The gang waits for nodes for all of its pods");
    }
    if (kube::find_condition(list_, kPlaced) == nullptr) return *this;
    return set(kPlaced, true, "Placed", "All pods of the gang have their nodes");
  }

  /// True -> False, keeping what it said.
  Conditions& flip(std::string_view type, std::string_view reason) {
    const Condition* known = kube::find_condition(list_, type);
    if (known == nullptr || known->status != "True") return *this;
    std::string message = std::string(kPreviously) + known->message;
    message.resize(std::min(message.size(), kMaxMessage - kMaxSuffix));
    if (known->last_transition) {
      message += std::string(kAt) + format_rfc3339(*known->last_transition) + "]";
    }
    return set(type, false, reason, message);
  }

  [[nodiscard]] Json json() const {
    std::vector<Json> elements;
    for (const Condition& condition : list_) elements.push_back(kube::encode_condition(condition));
    return Json::array(elements);
  }

 private:
  std::vector<Condition> list_;
  std::int64_t generation_;
  Instant now_;
};

Json patch(const kube::Workload& workload, const Json& status) {
  return Json::object({{"metadata", Json::object({{"resourceVersion",
                                                   Json::string(workload.meta.resource_version)}})},
                       {"status", status}});
}

// What a workload is pending for right after its quota was given back.
std::string_view pending_reason_after(std::string_view eviction) {
  if (eviction.starts_with("Deactivated")) return "Deactivated";
  if (eviction == "ClusterQueueStopped" || eviction == "LocalQueueStopped") return "Suspended";
  return "PendingEvaluation";
}

}  // namespace

Json admit_patch(const kube::Workload& workload, const kube::WorkloadAdmission& admission,
                 const std::string& message, bool held, Instant now) {
  Conditions conditions(workload, now);
  conditions.set_placed(held)
      .set("QuotaReserved", true, "QuotaReserved", message)
      .set("Admitted", true, "Admitted", "The workload is admitted")
      .flip("Evicted", "QuotaReserved")
      .flip("Preempted", "QuotaReserved");
  return patch(workload, Json::object({{"admission", kube::encode_admission(admission)},
                                       {"conditions", conditions.json()}}));
}

Json replan_patch(const kube::Workload& workload, const kube::WorkloadAdmission& admission,
                  bool held, Instant now) {
  const Json encoded = kube::encode_admission(admission);
  if (!held && kube::find_condition(workload.conditions, kPlaced) == nullptr) {
    return patch(workload, Json::object({{"admission", encoded}}));
  }
  Conditions conditions(workload, now);
  conditions.set_placed(held);
  return patch(workload, Json::object({{"admission", encoded}, {"conditions", conditions.json()}}));
}

Json reclaim_patch(const kube::Workload& workload,
                   const std::map<std::string, std::int64_t>& reclaimable) {
  std::vector<Json> elements;
  for (const auto& [name, count] : reclaimable) {
    elements.push_back(
        Json::object({{"name", Json::string(name)}, {"count", Json::number(count)}}));
  }
  return patch(
      workload,
      Json::object({{"reclaimablePods", elements.empty() ? Json::null() : Json::array(elements)}}));
}

Json evict_patch(const kube::Workload& workload, const EvictionWords& words, Instant now) {
  Conditions conditions(workload, now);
  conditions.set("Evicted", true, words.reason, words.message);
  if (!words.rule.empty()) conditions.set("Preempted", true, words.rule, words.message);
  return patch(workload, Json::object({{"conditions", conditions.json()}}));
}

Json release_patch(const kube::Workload& workload, std::optional<Instant> requeue_at, Instant now) {
  const Condition* evicted = kube::find_condition(workload.conditions, "Evicted");
  const std::string reason = evicted != nullptr ? evicted->reason : "Preempted";
  const bool requeued = pending_reason_after(reason) == "PendingEvaluation" && !requeue_at;
  Conditions conditions(workload, now);
  conditions
      .set("QuotaReserved", false, pending_reason_after(reason),
           "Quota was released after eviction: " + reason)
      .set("Admitted", false, "NoReservation", "The workload has no reservation")
      .set("Requeued", requeued, reason,
           requeued ? "Back in its queue" : "Held back after eviction");
  if (kube::find_condition(workload.conditions, kPlaced) != nullptr) {
    conditions.set(kPlaced, false, "NoReservation", "The workload has no reservation");
  }
  Json requeue_state;
  if (requeue_at) {
    requeue_state = Json::object({{"count", Json::number(workload.requeue_count + 1)},
                                  {"requeueAt", Json::string(format_rfc3339(*requeue_at))}});
  }
  return patch(workload, Json::object({{"admission", Json::null()},
                                       {"conditions", conditions.json()},
                                       {"requeueState", requeue_state}}));
}

Json finish_patch(const kube::Workload& workload, bool succeeded, const std::string& message,
                  Instant now) {
  Conditions conditions(workload, now);
  conditions.set("Finished", true, succeeded ? "Succeeded" : "Failed", message);
  return patch(workload, Json::object({{"conditions", conditions.json()}}));
}

Json pending_patch(const kube::Workload& workload, std::string_view reason,
                   const std::string& message, Instant now) {
  const Condition* known = kube::find_condition(workload.conditions, "QuotaReserved");
  if (known != nullptr && known->status == "False" && known->reason == reason &&
      known->message == message) {
    return {};
  }
  Conditions conditions(workload, now);
  conditions.set("QuotaReserved", false, reason, message);
  return patch(workload, Json::object({{"conditions", conditions.json()}}));
}

std::optional<Instant> former_time(const kube::Condition& condition) {
  const std::string_view message = condition.message;
  if (!message.starts_with(kPreviously)) return std::nullopt;
  const std::size_t at = message.rfind(kAt);
  if (at != std::string_view::npos && message.ends_with(']')) {
    std::string_view time = message.substr(at + kAt.size());
    time.remove_suffix(1);
    if (const auto parsed = parse_rfc3339(time)) return *parsed;
  }
  return condition.last_transition;
}

bool is_reserved(const kube::Workload& workload) {
  return kube::is_true(workload.conditions, "QuotaReserved") && workload.admission.has_value();
}

}  // namespace muster::controller

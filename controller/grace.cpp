// Checkpoint grace: the pods of an evicted workload are told when they go, and may use the time.

#include "controller/impl.hpp"
#include "controller/names.hpp"
#include "engine/state.hpp"

#include <fmt/format.h>

#include <utility>

namespace muster::controller {
namespace {

using kube::Json;

constexpr const char* kMessage = "The workload is evicted; the pod is deleted at ";

/// Into metadata and status at once, which the status subresource of pods allows; conditions of
/// other types stay as they are.
Json announcement(const PodRecord& pod, const std::string& evict_at, Instant now) {
  const Json condition = Json::object({{"type", Json::string("DisruptionTarget")},
                                       {"status", Json::string("True")},
                                       {"reason", Json::string("EvictionByMuster")},
                                       {"message", Json::string(kMessage + evict_at)},
                                       {"lastTransitionTime", Json::string(format_rfc3339(now))}});
  return Json::object(
      {{"metadata", Json::object({{"uid", Json::string(pod.uid.value())},
                                  {"annotations",
                                   Json::object({{kEvictAtAnnotation, Json::string(evict_at)}})}})},
       {"status", Json::object({{"conditions", Json::array({condition})}})}});
}

/// Whether the gang is still whole: what kube-scheduler or a lost node tore goes at once.
bool is_whole(const kube::Workload& workload, const kube::Condition& evicted) {
  if (evicted.reason == "NodeFailures") return false;
  return evicted.reason != "Preempted" || kube::is_true(workload.conditions, "Preempted");
}

}  // namespace

std::optional<Instant> Controller::Impl::grace_end(const WorkloadEntry& entry) const {
  const kube::Condition* evicted = kube::find_condition(entry.object->conditions, "Evicted");
  if (evicted == nullptr || !evicted->last_transition || !entry.fed || !entry.fed->admission ||
      !is_whole(*entry.object, *evicted)) {
    return std::nullopt;
  }
  const auto grace = engine_.state()
                         .protection_of(*entry.fed, entry.fed->admission->cluster_queue)
                         .checkpoint_grace;
  if (!grace || *grace <= Duration::zero()) return std::nullopt;
  // Written while it was already leaving: there is nothing more to wait for.
  const auto& checkpoint = entry.fed->last_checkpoint;
  if (checkpoint && *checkpoint >= *evicted->last_transition) return std::nullopt;
  return *evicted->last_transition + *grace;
}

bool Controller::Impl::wait_for_checkpoint(WorkloadEntry& entry, Instant now) {
  const auto end = grace_end(entry);
  if (!end || now >= *end) return false;
  const std::string evict_at = format_rfc3339(*end);
  bool any = false;
  for (const PodRecord* pod : pods_.members(entry.owner_uid, entry.key.ns)) {
    // What does not run has nothing to save.
    if (pod->terminal || pod->deletion || pod->node.empty()) continue;
    any = true;
    if (pod->evict_at == evict_at) continue;
    InFlight what;
    what.workload = entry.key;
    what.object = pod->uid;
    entry.in_flight = outbox_.strategic_patch(
        WriteKind::kAnnounceEviction,
        fmt::format("/api/v1/namespaces/{}/pods/{}/status", pod->key.ns, pod->key.name),
        announcement(*pod, evict_at, now), std::move(what));
    return true;
  }
  if (any) schedule(entry.key, *end);
  return any;
}

}  // namespace muster::controller

#include "engine/elastic.hpp"

#include "engine/planner.hpp"
#include "engine/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace muster::engine {
namespace {

bool is_elastic(const State& state, const PodSetAssignment& assignment) {
  return std::all_of(assignment.flavors.begin(), assignment.flavors.end(), [&](const auto& entry) {
    const auto flavor = state.flavors.find(entry.second);
    return flavor == state.flavors.end() ||
           (flavor->second.capacity == Capacity::kElastic && !flavor->second.topology);
  });
}

bool has_bound_member(const State& state, const WorkloadRecord& record) {
  const auto members = state.pods_by_owner.find(record.spec.owner_uid);
  if (members == state.pods_by_owner.end()) return false;
  return std::any_of(members->second.begin(), members->second.end(),
                     [&](const Uid& uid) { return !state.pods.at(uid).use->nominated; });
}

/// The slots that there is room for now, of the pod sets that have no plan. The first pod sets come
/// first.
std::vector<PlannedSlots> slots_that_fit(State& state, const WorkloadRecord& record) {
  std::vector<PlannedSlots> slots;
  std::vector<topology::NodeUse> assumed;
  const std::vector<PodSetAssignment>& pod_sets = record.admission->pod_sets;
  for (std::size_t i = 0; i < pod_sets.size() && i < record.spec.pod_sets.size(); ++i) {
    if (!pod_sets[i].lacks_plan()) continue;
    topology::PlaceRequest request = scope_of(state, record.spec.pod_sets[i], pod_sets[i]).request;
    request.assumed = assumed;
    const auto candidates = state.candidates.get(request.nodes, state.fleet);
    request.count = std::min(request.count, topology::max_gang(request, *candidates, state.fleet));
    if (request.count <= 0) continue;
    const auto placed = topology::place(request, *candidates, state.fleet);
    if (!placed) continue;
    for (const topology::NodeShare& share : *placed) {
      slots.push_back(PlannedSlots{share.node, i, share.count, 0});
      assumed.push_back({share.node, request.per_pod.times(share.count)});
    }
  }
  return slots;
}

bool is_planned(const Admission& admission) {
  return std::none_of(admission.pod_sets.begin(), admission.pod_sets.end(),
                      [](const PodSetAssignment& pod_set) { return pod_set.lacks_plan(); });
}

/// Of two gangs with the same, either both fit or none.
std::string shape_of(const WorkloadRecord& record) {
  std::string shape = pending_class_key(record.spec, record.queue);
  for (const PodSetAssignment& pod_set : record.admission->pod_sets) {
    shape += fmt::format("|{}", pod_set.count);
    for (const auto& [resource, flavor] : pod_set.flavors) {
      shape += fmt::format(";{}={}", resource, flavor);
    }
  }
  return shape;
}

std::set<FlavorName> flavors_of_unplanned(const WorkloadRecord& record) {
  std::set<FlavorName> flavors;
  for (const PodSetAssignment& pod_set : record.admission->pod_sets) {
    if (!pod_set.lacks_plan()) continue;
    for (const auto& [resource, flavor] : pod_set.flavors) flavors.insert(flavor);
  }
  return flavors;
}

}  // namespace

bool is_held(const State& state, const WorkloadRecord& record) {
  if (!state.unplanned.contains(record.spec.key) || record.phase == Phase::kEvicting) return false;
  if (has_bound_member(state, record)) return false;
  const std::vector<PodSetAssignment>& pod_sets = record.admission->pod_sets;
  return std::all_of(pod_sets.begin(), pod_sets.end(), [&](const PodSetAssignment& pod_set) {
    return !pod_set.lacks_plan() || is_elastic(state, pod_set);
  });
}

std::vector<const WorkloadRecord*> held_gangs(const State& state) {
  std::vector<const WorkloadRecord*> held;
  for (const WorkloadKey& key : state.unplanned) {
    const WorkloadRecord& record = state.workloads.at(key);
    if (is_held(state, record)) held.push_back(&record);
  }
  const auto rank = [](const WorkloadRecord* record) {
    return std::tuple(record->spec.uncreated, -record->spec.priority,
                      record->reserved_at.value_or(Instant{}), record->spec.uid, record->spec.key);
  };
  std::sort(held.begin(), held.end(),
            [&](const WorkloadRecord* a, const WorkloadRecord* b) { return rank(a) < rank(b); });
  return held;
}

void place_held(State& state, std::vector<Effect>& effects) {
  if (state.unplanned.empty() && state.keepers.empty()) return;
  if (state.fleet.slots() == 0) return;
  const std::vector<const WorkloadRecord*> held = held_gangs(state);
  std::vector<std::pair<WorkloadKey, Admission>> placed;
  std::map<WorkloadKey, std::vector<PlannedSlots>> kept;
  {
    Trial trial(state);
    for (const WorkloadKey& key : state.keepers) {
      for (const PlannedSlots& entry : state.workloads.at(key).kept) {
        const Resources& each = state.workloads.at(key).per_pod[entry.pod_set];
        trial.release({entry.node, each.times(entry.slots)});
      }
    }
    std::set<FlavorName> spoken_for;
    std::set<std::string> refused;  // Room only gets less here: what did not fit does not fit.
    for (const WorkloadRecord* const record : held) {
      const Trial::Checkpoint before = trial.checkpoint();
      const std::string shape = shape_of(*record);
      Admission admission = *record->admission;
      if (!refused.contains(shape)) {
        // Pod sets that are planned already may move: nobody runs yet.
        for (const PlannedSlots& entry : record->plan) {
          trial.release({entry.node, record->per_pod[entry.pod_set].times(entry.slots)});
        }
        if (place_all(state, record->spec, admission, nullptr) && is_planned(admission)) {
          for (const topology::NodeUse& use : room_of(state, record->spec, admission)) {
            trial.charge(use);
          }
          placed.emplace_back(record->spec.key, std::move(admission));
          continue;
        }
        trial.rollback_to(before);
        refused.insert(shape);
      }
      const std::set<FlavorName> flavors = flavors_of_unplanned(*record);
      const bool is_first = std::none_of(flavors.begin(), flavors.end(), [&](const auto& flavor) {
        return spoken_for.contains(flavor);
      });
      spoken_for.insert(flavors.begin(), flavors.end());
      if (!is_first) continue;
      std::vector<PlannedSlots> slots = slots_that_fit(state, *record);
      for (const PlannedSlots& entry : slots) {
        trial.charge({entry.node, record->per_pod[entry.pod_set].times(entry.slots)});
      }
      if (!slots.empty()) kept.emplace(record->spec.key, std::move(slots));
    }
  }
  const std::set<WorkloadKey> before = state.keepers;
  for (const WorkloadKey& key : before) {
    if (!kept.contains(key)) state.keep(state.workloads.at(key), {});
  }
  for (auto& [key, admission] : placed) {
    state.change_plan(state.workloads.at(key), admission);
    effects.emplace_back(Replan{key, std::move(admission)});
  }
  for (auto& [key, slots] : kept) state.keep(state.workloads.at(key), std::move(slots));
}

}  // namespace muster::engine

#include "tests/differential/parts.hpp"

#include <fmt/format.h>

#include <numeric>
#include <string_view>
#include <utility>

namespace muster::differential {

std::vector<int> Random::order_of(int count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next() % i]);
  return order;
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string list_of_objects(const std::vector<std::string>& objects) {
  return fmt::format(R"({{"apiVersion":"v1","kind":"List","items":[{}]}})", joined(objects));
}

std::vector<std::string> some_strategies(Random& random) {
  switch (random.below(3)) {
    case 0:
      return {"LessThanOrEqualToFinalShare"};
    case 1:
      return {"LessThanInitialShare"};
    default:
      return {"LessThanOrEqualToFinalShare", "LessThanInitialShare"};
  }
}

std::string some_preemption(Random& random) {
  const char* within =
      random.pick<const char*>({"Never", "LowerPriority", "LowerPriority", "LowerPriority",
                                "LowerOrNewerEqualPriority", "LowerOrNewerEqualPriority"});
  const char* reclaim =
      random.pick<const char*>({"Never", "LowerPriority", "LowerPriority", "Any", "Any", "Any"});
  std::string borrow;
  if (reclaim != std::string_view("Never") && random.chance(40)) {
    borrow = R"(,"borrowWithinCohort":{"policy":"LowerPriority")";
    if (random.chance(50)) borrow += fmt::format(R"(,"maxPriorityThreshold":{})", random.below(3));
    borrow += "}";
  }
  return fmt::format(R"(,"preemption":{{"withinClusterQueue":"{}","reclaimWithinCohort":"{}"{}}})",
                     within, reclaim, borrow);
}

std::string some_fungibility(Random& random) {
  const bool borrow_next = random.chance(45);
  const bool preempt_next = random.chance(50);
  std::string preference;
  if (borrow_next && preempt_next && random.chance(60)) {
    preference = fmt::format(
        R"(,"preference":"{}")",
        random.pick<const char*>({"BorrowingOverPreemption", "PreemptionOverBorrowing"}));
  }
  const auto stop = [](bool next) { return next ? "TryNextFlavor" : "MayStopSearch"; };
  return fmt::format(R"(,"flavorFungibility":{{"whenCanBorrow":"{}","whenCanPreempt":"{}"{}}})",
                     stop(borrow_next), stop(preempt_next), preference);
}

std::string local_queue(const std::string& cluster_queue) {
  return fmt::format(
      R"({{{},"kind":"LocalQueue","metadata":{{"name":"{}","namespace":"team"}},"spec":{{"clusterQueue":"{}"}}}})",
      kApi, cluster_queue, cluster_queue);
}

std::string pod_spec(const std::map<std::string, int>& requests, bool tolerates) {
  std::vector<std::string> list;
  for (const auto& [resource, amount] : requests) {
    list.push_back(fmt::format(R"("{}":"{}")", resource, amount));
  }
  std::string spec = fmt::format(
      R"("restartPolicy":"Never","containers":[{{"name":"c","image":"i","resources":{{"requests":{{{}}}}}}}])",
      joined(list));
  if (tolerates) {
    spec += R"(,"tolerations":[{"key":"spot","operator":"Exists","effect":"NoSchedule"}])";
  }
  return spec;
}

std::string workload(const WorkloadParts& parts) {
  return fmt::format(
      R"({{{},"kind":"Workload","metadata":{{"name":"w{}","namespace":"team","uid":"w{}","creationTimestamp":"{}{:02}Z"}},"spec":{{"active":true,"queueName":"{}","priority":{},"podSets":[{}]}}{}}})",
      kApi, parts.index, parts.index, kStart, parts.created, parts.queue, parts.priority,
      joined(parts.pod_sets), parts.status);
}

std::string running_since(int second, const std::string& cluster_queue,
                          const std::vector<std::string>& assignments) {
  const auto condition = [&](const char* type, const char* reason) {
    return fmt::format(
        R"({{"type":"{}","status":"True","reason":"{}","message":"","lastTransitionTime":"2026-03-01T00:30:{:02}Z"}})",
        type, reason, second);
  };
  return fmt::format(
      R"(,"status":{{"admission":{{"clusterQueue":"{}","podSetAssignments":[{}]}},"conditions":[{},{}]}})",
      cluster_queue, joined(assignments), condition("QuotaReserved", "QuotaReserved"),
      condition("Admitted", "Admitted"));
}

}  // namespace muster::differential

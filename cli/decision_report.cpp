#include "cli/decision_report.hpp"

#include <utility>

namespace muster::cli {
namespace {

using kube::Json;
using Members = std::vector<std::pair<std::string, Json>>;

Json strings(const std::vector<std::string>& texts) {
  std::vector<Json> elements;
  elements.reserve(texts.size());
  for (const std::string& text : texts) elements.push_back(Json::string(text));
  return Json::array(elements);
}

Json string_map(const std::map<std::string, std::string>& map) {
  Members members;
  for (const auto& [key, value] : map) members.emplace_back(key, Json::string(value));
  return Json::object(members);
}

Json amounts(const ReportedAmounts& by_flavor) {
  Members members;
  for (const auto& [flavor, resources] : by_flavor) {
    members.emplace_back(flavor, string_map(resources));
  }
  return Json::object(members);
}

Json pod_set_json(const ReportedPodSet& pod_set) {
  Members nodes;
  for (const auto& [node, count] : pod_set.nodes) nodes.emplace_back(node, Json::number(count));
  Json topology;
  if (!pod_set.levels.empty()) {
    std::vector<Json> domains;
    for (const ReportedDomain& domain : pod_set.domains) {
      domains.push_back(Json::object(
          {{"values", strings(domain.values)}, {"count", Json::number(domain.count)}}));
    }
    topology =
        Json::object({{"levels", strings(pod_set.levels)}, {"domains", Json::array(domains)}});
  }
  return Json::object({{"name", Json::string(pod_set.name)},
                       {"count", Json::number(pod_set.count)},
                       {"flavors", string_map(pod_set.flavors)},
                       {"nodes", nodes.empty() ? Json() : Json::object(nodes)},
                       {"topology", topology}});
}

Json decision_json(const Decision& decision) {
  const bool admitted = decision.type == DecisionType::kAdmitted;
  Json pod_sets;
  if (admitted) {
    std::vector<Json> elements;
    for (const ReportedPodSet& each : decision.pod_sets) elements.push_back(pod_set_json(each));
    pod_sets = Json::array(elements);
  }
  const bool preempted = decision.type == DecisionType::kPreempted;
  const bool pending = decision.type == DecisionType::kPending;
  return Json::object({{"cycle", Json::number(decision.cycle)},
                       {"type", Json::string(to_string(decision.type))},
                       {"workload", Json::string(decision.workload)},
                       {"clusterQueue", Json::string(decision.cluster_queue)},
                       {"reason", admitted ? Json() : Json::string(decision.reason)},
                       {"by", preempted ? Json::string(decision.by) : Json()},
                       {"borrowing", admitted ? Json::boolean(decision.borrowing) : Json()},
                       {"message", Json::string(decision.message)},
                       {"needs", pending ? Json::string(decision.needs) : Json()},
                       {"podSets", pod_sets}});
}

Json workload_json(const ReportedWorkload& workload) {
  const bool pending = workload.state == WorkloadState::kPending;
  const auto text = [&](const std::string& words) {
    return pending ? Json::string(words) : Json();
  };
  return Json::object({{"state", Json::string(to_string(workload.state))},
                       {"reason", text(workload.waiting.reason)},
                       {"message", text(workload.waiting.message)},
                       {"needs", text(workload.waiting.needs)}});
}

}  // namespace

std::string_view to_string(DecisionType type) {
  switch (type) {
    case DecisionType::kAdmitted:
      return "Admitted";
    case DecisionType::kPreempted:
      return "Preempted";
    case DecisionType::kEvicted:
      return "Evicted";
    case DecisionType::kPending:
      return "Pending";
  }
  return "Pending";
}

std::string_view to_string(WorkloadState state) {
  switch (state) {
    case WorkloadState::kAdmitted:
      return "Admitted";
    case WorkloadState::kQuotaReserved:
      return "QuotaReserved";
    case WorkloadState::kPending:
      return "Pending";
    case WorkloadState::kFinished:
      return "Finished";
  }
  return "Pending";
}

Json to_json(const DecisionReport& report) {
  std::vector<Json> decisions;
  for (const Decision& decision : report.decisions) decisions.push_back(decision_json(decision));
  Members workloads;
  for (const auto& [key, workload] : report.workloads) {
    workloads.emplace_back(key, workload_json(workload));
  }
  Members queues;
  for (const auto& [name, queue] : report.cluster_queues) {
    queues.emplace_back(name,
                        Json::object({{"usage", amounts(queue.usage)},
                                      {"borrowed", amounts(queue.borrowed)},
                                      {"weightedShare", Json::number(queue.weighted_share)}}));
  }
  return Json::object({{"apiVersion", Json::string("muster.dev/v1")},
                       {"kind", Json::string("DecisionReport")},
                       {"cycles", Json::number(report.cycles)},
                       {"decisions", Json::array(decisions)},
                       {"workloads", Json::object(workloads)},
                       {"clusterQueues", Json::object(queues)}});
}

}  // namespace muster::cli

// The report for people.

#include "cli/decision_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::cli {
namespace {

/// Columns as wide as their widest cell; the last one runs on.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.size() == 1; }

  void print(std::string& out) const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

/// What a queue has of one resource, and what of that it borrowed.
void add_queue(const std::string& name, const ReportedQueue& queue, Table& table) {
  const std::string share = std::to_string(queue.weighted_share);
  if (queue.usage.empty()) table.add({name, "-", "-", "0", "0", share});
  for (const auto& [flavor, resources] : queue.usage) {
    for (const auto& [resource, amount] : resources) {
      std::string borrowed = "0";
      const auto of_flavor = queue.borrowed.find(flavor);
      if (of_flavor != queue.borrowed.end() && of_flavor->second.contains(resource)) {
        borrowed = of_flavor->second.at(resource);
      }
      table.add({name, flavor, resource, amount, borrowed, share});
    }
  }
}

}  // namespace

std::string to_table(const DecisionReport& report) {
  std::string out;
  Table decisions({"CYCLE", "DECISION", "WORKLOAD", "CLUSTERQUEUE", "REASON", "MESSAGE"});
  for (const Decision& decision : report.decisions) {
    if (decision.type == DecisionType::kPending) continue;
    decisions.add({std::to_string(decision.cycle), std::string(to_string(decision.type)),
                   decision.workload, or_dash(decision.cluster_queue), or_dash(decision.reason),
                   decision.message});
  }
  if (decisions.empty()) {
    out += "No decision to take.\n";
  } else {
    decisions.print(out);
  }

  std::array<std::size_t, 4> states{};
  for (const auto& [key, workload] : report.workloads) {
    ++states[static_cast<std::size_t>(workload.state)];
  }
  const auto count = [&](WorkloadState state) { return states[static_cast<std::size_t>(state)]; };
  out += fmt::format(
      "\n{} cycle{}. Workloads: {} admitted, {} with quota reserved, {} pending, {} finished.\n",
      report.cycles, report.cycles == 1 ? "" : "s", count(WorkloadState::kAdmitted),
      count(WorkloadState::kQuotaReserved), count(WorkloadState::kPending),
      count(WorkloadState::kFinished));

  Table pending({"PENDING", "CLUSTERQUEUE", "REASON", "NEEDS", "MESSAGE"});
  for (const Decision& decision : report.decisions) {
    if (decision.type != DecisionType::kPending) continue;
    pending.add({decision.workload, or_dash(decision.cluster_queue), decision.reason,
                 or_dash(decision.needs), decision.message});
  }
  if (!pending.empty()) {
    out += "\n";
    pending.print(out);
  }

  Table rooms({"FLAVOR", "WHOLE FREE HOSTS", "IN ONE"});
  for (const engine::LargestGang& gang : report.largest_gangs) {
    const std::string domain = gang.domain.empty() ? "" : fmt::format(" ({})", gang.domain);
    rooms.add({gang.flavor.value(), std::to_string(gang.hosts),
               gang.level.empty() ? "-" : gang.level + domain});
  }
  if (!rooms.empty()) {
    out += "\n";
    rooms.print(out);
  }

  Table queues({"CLUSTERQUEUE", "FLAVOR", "RESOURCE", "USED", "BORROWED", "SHARE"});
  for (const auto& [name, queue] : report.cluster_queues) add_queue(name, queue, queues);
  if (!queues.empty()) {
    out += "\n";
    queues.print(out);
  }
  return out;
}

}  // namespace muster::cli

#pragma once
// What decide found, as values. The JSON form (kind DecisionReport of muster.dev/v1) is a contract:
// design 4.2; docs/decide.md describes it.

#include "base/ids.hpp"
#include "base/quantity.hpp"
#include "engine/effect.hpp"
#include "engine/fragmentation.hpp"
#include "engine/snapshot.hpp"
#include "kube/codec/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

enum class DecisionType { kAdmitted, kPreempted, kEvicted, kPending };
[[nodiscard]] std::string_view to_string(DecisionType type);

enum class WorkloadState { kAdmitted, kQuotaReserved, kPending, kFinished };
[[nodiscard]] std::string_view to_string(WorkloadState state);

/// Why a workload waits, in words.
struct Waiting {
  std::string reason;
  std::string message;
  std::string needs;  ///< Empty: no change of capacity would help.
};

struct ReportedDomain {
  std::vector<std::string> values;  ///< One per level.
  std::int64_t count = 0;
};

struct ReportedPodSet {
  std::string name;
  std::int64_t count = 0;
  std::map<std::string, std::string> flavors;  ///< By resource.
  std::map<std::string, std::int64_t> nodes;   ///< The plan; empty: none.
  std::vector<std::string> levels;             ///< Empty: no topology flavor.
  std::vector<ReportedDomain> domains;
};

struct Decision {
  std::int64_t cycle = 0;
  DecisionType type = DecisionType::kPending;
  std::string workload;       ///< `namespace/name`.
  std::string cluster_queue;  ///< Empty: its queue leads to none.
  std::string reason;         ///< All but kAdmitted.
  std::string message;
  std::string by;                        ///< kPreempted: for whom.
  std::string needs;                     ///< kPending.
  bool borrowing = false;                ///< kAdmitted.
  std::vector<ReportedPodSet> pod_sets;  ///< kAdmitted.
};

struct ReportedWorkload {
  WorkloadState state = WorkloadState::kPending;
  Waiting waiting;  ///< kPending.
};

/// flavor -> resource -> amount; no zero entries.
using ReportedAmounts = std::map<std::string, std::map<std::string, std::string>>;

struct ReportedQueue {
  ReportedAmounts usage;
  ReportedAmounts borrowed;
  std::int64_t weighted_share = 0;
};

struct DecisionReport {
  std::int64_t cycles = 0;
  std::vector<Decision> decisions;  ///< In the order they were taken.
  std::map<std::string, ReportedWorkload> workloads;
  std::map<std::string, ReportedQueue> cluster_queues;
  std::vector<engine::LargestGang> largest_gangs;  ///< For people only: no part of the JSON.
};

[[nodiscard]] kube::Json to_json(const DecisionReport& report);

/// For people: one line per decision, then what waits for what, then the largest gang of whole
/// hosts that would fit now, by flavor and level, then the queues.
[[nodiscard]] std::string to_table(const DecisionReport& report);

}  // namespace muster::cli

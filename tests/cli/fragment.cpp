#include "tests/cli/fragment.hpp"

#include "base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace muster::cli::test {

using kube::Json;

std::string mismatch(const Json& wanted, const Json& actual, const std::string& path) {
  const auto differs = [&] {
    return fmt::format("{}: got {}, want {}", path, actual.present() ? actual.dump() : "nothing",
                       wanted.dump());
  };
  switch (wanted.kind()) {
    case Json::Kind::kNull:
      return actual.present() ? differs() : "";
    case Json::Kind::kObject:
      if (!actual.is_object()) return differs();
      for (const auto& [key, member] : wanted.members()) {
        auto found = mismatch(member, actual.get(key), fmt::format("{}.{}", path, key));
        if (!found.empty()) return found;
      }
      return "";
    case Json::Kind::kArray:
      if (!actual.is_array() || actual.size() != wanted.size()) return differs();
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        auto found = mismatch(wanted.at(i), actual.at(i), fmt::format("{}[{}]", path, i));
        if (!found.empty()) return found;
      }
      return "";
    case Json::Kind::kString: {
      const std::string_view text = wanted.string_or("");
      if (!text.starts_with('~')) break;
      const bool contains = actual.string_or("").find(text.substr(1)) != std::string_view::npos;
      return contains ? "" : differs();
    }
    default:
      break;
  }
  return wanted == actual ? "" : differs();
}

namespace {

/// The member names of `object` are all of `required` and some of `optional`, in no other order
/// than they come: JSON objects have none.
std::string check_keys(const Json& object, const std::set<std::string>& required,
                       const std::set<std::string>& optional, const std::string& path) {
  if (!object.is_object()) return path + ": no object";
  std::set<std::string> seen;
  for (const auto& [key, value] : object.members()) {
    const std::string name(key);
    if (!required.contains(name) && !optional.contains(name)) return path + ": stray key " + name;
    seen.insert(name);
  }
  for (const std::string& key : required) {
    if (!seen.contains(key)) return path + ": no key " + key;
  }
  return "";
}

std::string check_sorted(const Json& object, const std::string& path) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.members()) keys.emplace_back(key);
  return std::is_sorted(keys.begin(), keys.end()) ? "" : path + ": keys are not sorted";
}

std::string check_amounts(const Json& by_flavor, const std::string& path) {
  if (auto breach = check_sorted(by_flavor, path); !breach.empty()) return breach;
  for (const auto& [flavor, resources] : by_flavor.members()) {
    const std::string at = fmt::format("{}.{}", path, flavor);
    if (resources.size() == 0) return at + ": empty";
    if (auto breach = check_sorted(resources, at); !breach.empty()) return breach;
    for (const auto& [resource, amount] : resources.members()) {
      const auto quantity = Quantity::parse(amount.string_or("no quantity"));
      if (!quantity || quantity->is_zero() || quantity->to_string() != amount.string_or("")) {
        return fmt::format("{}.{}: {} is not canonical, or zero", at, resource, amount.dump());
      }
    }
  }
  return "";
}

std::string check_pod_set(const Json& pod_set, const std::string& path) {
  auto breach = check_keys(pod_set, {"name", "count", "flavors"}, {"nodes", "topology"}, path);
  if (!breach.empty()) return breach;
  for (const char* key : {"flavors", "nodes"}) {
    breach = check_sorted(pod_set.get(key), path + "." + key);
    if (!breach.empty()) return breach;
  }
  const Json nodes = pod_set.get("nodes");
  std::int64_t planned = 0;
  for (const auto& [node, count] : nodes.members()) planned += count.int_or(0);
  if (nodes.present() && planned != pod_set.get("count").int_or(-1)) {
    return fmt::format("{}: {} slots for {} pods", path, planned, pod_set.get("count").dump());
  }
  const Json topology = pod_set.get("topology");
  if (!topology.present()) return "";
  breach = check_keys(topology, {"levels", "domains"}, {}, path + ".topology");
  if (!breach.empty()) return breach;
  std::int64_t in_domains = 0;
  for (std::size_t i = 0; i < topology.get("domains").size(); ++i) {
    const Json domain = topology.get("domains").at(i);
    breach = check_keys(domain, {"values", "count"}, {}, path + ".topology.domains");
    if (!breach.empty()) return breach;
    if (domain.get("values").size() != topology.get("levels").size()) {
      return path + ".topology: values do not match levels";
    }
    in_domains += domain.get("count").int_or(0);
  }
  return in_domains == planned ? "" : path + ".topology: does not match nodes";
}

std::string check_decision(const Json& decision, std::int64_t cycles, const std::string& path) {
  const std::string_view type = decision.get("type").string_or("");
  std::set<std::string> required{"cycle", "type", "workload", "clusterQueue", "message"};
  if (type != "Admitted") required.insert("reason");
  if (type == "Admitted") required.insert({"borrowing", "podSets"});
  if (type == "Preempted") required.insert("by");
  if (type == "Pending") required.insert("needs");
  if (type != "Admitted" && type != "Preempted" && type != "Evicted" && type != "Pending") {
    return path + ": type " + std::string(type);
  }
  if (auto breach = check_keys(decision, required, {}, path); !breach.empty()) return breach;
  const std::int64_t cycle = decision.get("cycle").int_or(0);
  if (cycle < 1 || cycle > cycles) return path + ": cycle " + std::to_string(cycle);
  if (type == "Pending" && cycle != cycles) return path + ": Pending before the last cycle";
  if (decision.get("message").string_or("").empty()) return path + ": no message";
  for (std::size_t i = 0; i < decision.get("podSets").size(); ++i) {
    auto breach =
        check_pod_set(decision.get("podSets").at(i), fmt::format("{}.podSets[{}]", path, i));
    if (!breach.empty()) return breach;
  }
  return "";
}

}  // namespace

std::string contract_breach(const Json& report) {
  auto breach = check_keys(
      report, {"apiVersion", "kind", "cycles", "decisions", "workloads", "clusterQueues"}, {}, "");
  if (!breach.empty()) return breach;
  const Json decisions = report.get("decisions");
  const Json workloads = report.get("workloads");
  std::set<std::string> pending;
  std::int64_t last_cycle = 0;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Json decision = decisions.at(i);
    breach =
        check_decision(decision, report.get("cycles").int_or(0), fmt::format("decisions[{}]", i));
    if (!breach.empty()) return breach;
    const std::string workload(decision.get("workload").string_or(""));
    if (!workloads.get(workload).present()) return "decision about unlisted " + workload;
    if (decision.get("cycle").int_or(0) < last_cycle) return "decisions out of order";
    last_cycle = decision.get("cycle").int_or(0);
    if (decision.get("type").string_or("") != "Pending") continue;
    if (!pending.insert(workload).second) return "two Pending decisions for " + workload;
  }
  if (breach = check_sorted(workloads, "workloads"); !breach.empty()) return breach;
  for (const auto& [key, workload] : workloads.members()) {
    const std::string path = fmt::format("workloads.{}", key);
    const bool waits = workload.get("state").string_or("") == "Pending";
    breach = waits ? check_keys(workload, {"state", "reason", "message", "needs"}, {}, path)
                   : check_keys(workload, {"state"}, {}, path);
    if (!breach.empty()) return breach;
    if (waits != pending.contains(std::string(key))) return path + ": Pending, but no decision";
  }
  const Json queues = report.get("clusterQueues");
  if (breach = check_sorted(queues, "clusterQueues"); !breach.empty()) return breach;
  for (const auto& [name, queue] : queues.members()) {
    const std::string path = fmt::format("clusterQueues.{}", name);
    breach = check_keys(queue, {"usage", "borrowed", "weightedShare"}, {}, path);
    if (breach.empty()) breach = check_amounts(queue.get("usage"), path + ".usage");
    if (breach.empty()) breach = check_amounts(queue.get("borrowed"), path + ".borrowed");
    if (!breach.empty()) return breach;
  }
  return "";
}

}  // namespace muster::cli::test

// What a report says a workload needs is what it needs: with that much more quota it is admitted,
// with one unit less it is not.

#include "tests/differential/outcome.hpp"
#include "tests/differential/worlds.hpp"
#include "tests/rounds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace muster::differential {
namespace {

using kube::Json;

struct Need {
  std::int64_t amount = 0;
  std::string resource;
  std::string flavor;
  std::string kind;  ///< ClusterQueue or Cohort.
  std::string name;
};

/// From `4 cpu in cohort root and 2 nvidia.com/gpu in ClusterQueue q1`; the flavors stand in the
/// message.
std::vector<Need> needs_of(const cli::Decision& pending) {
  static const std::regex need("([0-9]+) ([^ ]+) in (cohort|ClusterQueue) ([^ ]+)");
  static const std::regex flavor("in flavor ([^ ]+) of");
  std::vector<Need> needs;
  auto at = std::sregex_iterator(pending.message.begin(), pending.message.end(), flavor);
  for (auto it = std::sregex_iterator(pending.needs.begin(), pending.needs.end(), need);
       it != std::sregex_iterator() && at != std::sregex_iterator(); ++it, ++at) {
    needs.push_back({std::stoll((*it)[1]), (*it)[2], (*at)[1],
                     (*it)[3] == "cohort" ? "Cohort" : "ClusterQueue", (*it)[4]});
  }
  return needs;
}

Json one_group(const Need& need, std::int64_t amount) {
  const Json quota = Json::object({{"name", Json::string(need.resource)},
                                   {"nominalQuota", Json::string(std::to_string(amount))}});
  const Json flavor =
      Json::object({{"name", Json::string(need.flavor)}, {"resources", Json::array({quota})}});
  return Json::object({{"coveredResources", Json::array({Json::string(need.resource)})},
                       {"flavors", Json::array({flavor})}});
}

/// The elements with the one of this name replaced; nothing when there is none.
template <class Change>
std::optional<Json> with_named(const Json& list, const std::string& name, const Change& change) {
  std::vector<Json> elements;
  bool found = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Json element = list.at(i);
    if (element.get("name").string_or("") == name) {
      const std::optional<Json> changed = change(element);
      if (!changed) return std::nullopt;
      element = *changed;
      found = true;
    }
    elements.push_back(element);
  }
  if (!found) return std::nullopt;
  return Json::array(elements);
}

std::optional<Json> with_more_quota(const Json& group, const Need& need, std::int64_t amount) {
  const auto flavors =
      with_named(group.get("flavors"), need.flavor, [&](const Json& flavor) -> std::optional<Json> {
        const auto resources = with_named(
            flavor.get("resources"), need.resource, [&](const Json& quota) -> std::optional<Json> {
              const std::int64_t nominal =
                  std::stoll(std::string(quota.get("nominalQuota").string_or("0")));
              return quota.with("nominalQuota", Json::string(std::to_string(nominal + amount)));
            });
        if (!resources) return std::nullopt;
        return flavor.with("resources", *resources);
      });
  if (!flavors) return std::nullopt;
  return group.with("flavors", *flavors);
}

/// The objects with that much more nominal quota where the need says.
std::vector<Json> with_quota(const std::vector<Json>& objects, const Need& need,
                             std::int64_t amount) {
  std::vector<Json> result;
  bool met = false;
  for (const Json& object : objects) {
    result.push_back(object);
    if (object.get("kind").string_or("") != need.kind ||
        object.get("metadata", "name").string_or("") != need.name) {
      continue;
    }
    met = true;
    const Json groups = object.get("spec", "resourceGroups");
    std::vector<Json> changed;
    bool raised = false;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto more = with_more_quota(groups.at(i), need, amount);
      changed.push_back(more.value_or(groups.at(i)));
      raised = raised || more.has_value();
    }
    if (!raised) changed.push_back(one_group(need, amount));
    result.back() =
        object.with("spec", object.get("spec").with("resourceGroups", Json::array(changed)));
  }
  if (met) return result;
  const Json spec = Json::object({{"resourceGroups", Json::array({one_group(need, amount)})}});
  result.push_back(Json::object({{"apiVersion", Json::string("kueue.x-k8s.io/v1beta2")},
                                 {"kind", Json::string("Cohort")},
                                 {"metadata", Json::object({{"name", Json::string(need.name)}})},
                                 {"spec", spec}}));
  return result;
}

/// What binds is told of the first pod set that does not fit.
bool has_one_pod_set(const Decided& decided, const std::string& workload) {
  for (const Json& object : decided.after) {
    if (object.get("kind").string_or("") == "Workload" &&
        "team/" + std::string(object.get("metadata", "name").string_or("")) == workload) {
      return object.get("spec", "podSets").size() == 1;
    }
  }
  return false;
}

/// Everything but the other workloads that wait.
std::vector<Json> alone(const Decided& decided, const std::string& workload) {
  std::vector<Json> objects;
  for (const Json& object : decided.after) {
    const std::string name(object.get("metadata", "name").string_or(""));
    const bool waits = object.get("kind").string_or("") == "Workload" &&
                       !object.get("status", "admission").is_object();
    if (!waits || "team/" + name == workload) objects.push_back(object);
  }
  return objects;
}

struct Verdict {
  bool admitted = false;
  bool preempted = false;
};

Verdict verdict_with(std::vector<Json> objects, const std::vector<Need>& needs, std::int64_t less,
                     const std::string& workload, const std::string& configuration) {
  for (std::size_t i = 0; i < needs.size(); ++i) {
    objects = with_quota(objects, needs[i], needs[i].amount - (i == 0 ? less : 0));
  }
  Verdict verdict;
  for (const cli::Decision& decision : decide_world(list_of(objects), configuration).decisions) {
    if (decision.type == cli::DecisionType::kPreempted) verdict.preempted = true;
    if (decision.type == cli::DecisionType::kAdmitted && decision.workload == workload) {
      verdict.admitted = true;
    }
  }
  return verdict;
}

TEST(Needs, AreWhatAdmits) {
  const std::uint64_t seeds = test::rounds(300, 5'000);
  std::uint64_t tried = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const World world = world_of(seed);
    const std::string configuration = configuration_of(world, "muster");
    const Decided decided = decide_world(world.manifests, configuration);
    for (const cli::Decision& pending : decided.decisions) {
      if (pending.type != cli::DecisionType::kPending || pending.reason != "WaitingForQuota" ||
          !has_one_pod_set(decided, pending.workload)) {
        continue;
      }
      const std::vector<Need> needs = needs_of(pending);
      if (needs.empty()) continue;  // Behind another one in a StrictFIFO queue.
      SCOPED_TRACE(fmt::format("seed {}: {} needs {} ({})", seed, pending.workload, pending.needs,
                               pending.message));
      ++tried;
      const std::vector<Json> objects = alone(decided, pending.workload);
      EXPECT_TRUE(verdict_with(objects, needs, 0, pending.workload, configuration).admitted);
      const Verdict less = verdict_with(objects, needs, 1, pending.workload, configuration);
      EXPECT_TRUE(!less.admitted || less.preempted) << "less would do";
    }
  }
  EXPECT_GE(tried, seeds / 4);
}

}  // namespace
}  // namespace muster::differential

#include "cli/fair_config.hpp"

#include <string>
#include <utility>
#include <vector>

namespace muster::cli {
namespace {

using kube::Reader;

void read_strategies(const Reader& list, engine::FairSharing& sharing) {
  const std::vector<std::string> words = list.strings();
  if (words.empty()) return;
  std::vector<engine::FairStrategy> strategies;
  for (const std::string& word : words) {
    if (word == "LessThanOrEqualToFinalShare") {
      strategies.push_back(engine::FairStrategy::kLessThanOrEqualToFinalShare);
    } else if (word == "LessThanInitialShare") {
      strategies.push_back(engine::FairStrategy::kLessThanInitialShare);
    }
  }
  const bool known = strategies.size() == words.size();
  const bool ordered = strategies.size() == 1 || strategies == engine::FairSharing{}.strategies;
  if (!known || !ordered) {
    list.fail_unwanted("LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order");
    return;
  }
  sharing.strategies = std::move(strategies);
}

/// `target` stays as it is when the text is missing; below `least` is an error.
void read_duration(const Reader& text, Duration least, std::string_view wanted, Duration& target) {
  const auto word = text.optional_string();
  if (!word) return;
  const auto duration = parse_duration(*word);
  if (!duration || *duration < least) {
    text.fail_unwanted(wanted);
    return;
  }
  target = *duration;
}

void read_admission_fair_sharing(const Reader& section, engine::AdmissionFairSharing& sharing) {
  const Reader half_life = section.get("usageHalfLifeTime");
  read_duration(half_life, Duration(0), "a duration like 168h, 0s or more",
                sharing.usage_half_life);
  const Reader interval = section.get("usageSamplingInterval");
  read_duration(interval, Duration(1), "a duration like 5m, more than 0s",
                sharing.usage_sampling_interval);
  const Reader weights = section.get("resourceWeights");
  weights.each_member([&](std::string_view resource, const Reader& member) {
    const auto weight = member.quantity();
    if (!weight) return;
    if (weight->is_negative()) {
      member.fail_unwanted("a weight, 0 or more");
      return;
    }
    sharing.resource_weights[ResourceName(std::string(resource))] =
        quota::FairWeight{weight->nanos_saturated()};
  });
}

}  // namespace

void read_fair_sharing(const Reader& root, bool v1beta1, engine::Options& options) {
  const Reader sharing = root.get("fairSharing");
  if (!sharing.missing()) {
    const Reader enable = sharing.get("enable");
    const Reader strategies = sharing.get("preemptionStrategies");
    if (enable.boolean(!v1beta1)) read_strategies(strategies, options.fair_sharing.emplace());
  }
  const Reader admission = root.get("admissionFairSharing");
  if (!admission.missing()) {
    read_admission_fair_sharing(admission, options.admission_fair_sharing.emplace());
  }
}

}  // namespace muster::cli

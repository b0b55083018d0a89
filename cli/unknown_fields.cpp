#include "cli/unknown_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace muster::cli {
namespace {

using kube::Json;

/// `a b{c d} e@v1beta1`: b is an object, or a list of objects, of c and d; e is of that version
/// only. What has no members here may hold anything.
struct KindFields {
  ManifestKind kind;
  std::string_view text;
};

constexpr std::string_view kOfEveryObject =
    "apiVersion kind metadata{name generateName namespace labels annotations ownerReferences "
    "finalizers uid resourceVersion generation creationTimestamp deletionTimestamp "
    "deletionGracePeriodSeconds managedFields selfLink} ";

constexpr std::array kFields = std::to_array<KindFields>({
    {ManifestKind::kResourceFlavor,
     "spec{nodeLabels nodeTaints{key value effect timeAdded} "
     "tolerations{key operator value effect tolerationSeconds} topologyName} status@v1beta1"},
    {ManifestKind::kClusterQueue,
     "spec{resourceGroups{coveredResources flavors{name resources{"
     "name nominalQuota borrowingLimit lendingLimit}}} cohortName@v1beta2 cohort@v1beta1 "
     "queueingStrategy namespaceSelector{matchLabels matchExpressions{key operator values}} "
     "flavorFungibility{whenCanBorrow whenCanPreempt preference} "
     "preemption{reclaimWithinCohort borrowWithinCohort{policy maxPriorityThreshold} "
     "withinClusterQueue} admissionChecks@v1beta1 "
     "admissionChecksStrategy{admissionChecks{name onFlavors}} stopPolicy fairSharing{weight} "
     "admissionScope{admissionMode} "
     "concurrentAdmissionPolicy{migration{mode constraints{lastAcceptableFlavorName}}}} status"},
    {ManifestKind::kCohort,
     "spec{parentName resourceGroups{coveredResources flavors{name resources{"
     "name nominalQuota borrowingLimit lendingLimit}}} fairSharing{weight}} status"},
    {ManifestKind::kLocalQueue, "spec{clusterQueue stopPolicy fairSharing{weight}} status"},
    {ManifestKind::kWorkloadPriorityClass, "value description"},
    {ManifestKind::kTopology, "spec{levels{nodeLabel}}"},
    {ManifestKind::kAdmissionCheck,
     "spec{controllerName parameters{apiGroup kind name} retryDelayMinutes@v1beta1} status"},
    {ManifestKind::kWorkload,
     "spec{podSets{name template{metadata spec} count minCount topologyRequest{required preferred "
     "unconstrained podIndexLabel subGroupIndexLabel subGroupCount podSetGroupName "
     "podSetSliceRequiredTopology podSetSliceSize "
     "podsetSliceRequiredTopologyConstraints{topology size}}} queueName "
     "priorityClassRef{group kind name}@v1beta2 priorityClassName@v1beta1 "
     "priorityClassSource@v1beta1 priority active maximumExecutionTimeSeconds "
     "preemptionGates{name}} "
     "status{conditions{type status reason message observedGeneration lastTransitionTime} "
     "admission{clusterQueue podSetAssignments{name flavors resourceUsage count "
     "topologyAssignment{levels domains{values count}@v1beta1 slices{domainCount "
     "valuesPerLevel{universal individual{prefix suffix roots}} "
     "podCounts{universal individual}}@v1beta2} delayedTopologyRequest}} "
     "requeueState{count requeueAt} reclaimablePods{name count} "
     "admissionChecks{name state lastTransitionTime message requeueAfterSeconds retryCount "
     "podSetUpdates} resourceRequests{name resources} accumulatedPastExecutionTimeSeconds@v1beta2 "
     "accumulatedPastExexcutionTimeSeconds@v1beta1 schedulingStats "
     "nominatedClusterNames clusterName unhealthyNodes{name} "
     "preemptionGates{name position lastTransitionTime}}"},
    {ManifestKind::kJob,
     "spec{parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy "
     "backoffLimit backoffLimitPerIndex maxFailedIndexes selector manualSelector "
     "template{metadata spec} ttlSecondsAfterFinished completionMode suspend podReplacementPolicy "
     "managedBy scheduling} status"},
});

struct Field {
  std::string_view name;
  std::string_view version;  ///< Empty: every one.
  std::vector<Field> members;
};

/// Takes what it reads off `rest`, up to the brace that closes the list.
std::vector<Field> read_fields(std::string_view& rest) {
  std::vector<Field> fields;
  while (!rest.empty() && rest.front() != '}') {
    const char next = rest.front();
    const std::size_t length = next == ' ' || next == '{' ? 1 : rest.find_first_of(" {}@", 1);
    const std::string_view word = rest.substr(0, length);
    rest.remove_prefix(word.size());
    if (next == '@') {
      fields.back().version = word.substr(1);
    } else if (next == '{') {
      fields.back().members = read_fields(rest);
      rest.remove_prefix(1);
    } else if (next != ' ') {
      fields.push_back({word, {}, {}});
    }
  }
  return fields;
}

std::vector<Field> fields_of(const KindFields& kind) {
  std::string_view common = kOfEveryObject;
  std::string_view own = kind.text;
  std::vector<Field> fields = read_fields(common);
  for (Field& field : read_fields(own)) fields.push_back(std::move(field));
  return fields;
}

bool is_of(const Field& field, std::string_view version) {
  return field.version.empty() || field.version == version;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Insertions, deletions and replacements that make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// The known name that was meant: a few letters off, or shortened. Empty: none is close.
std::string_view nearest(std::string_view wrong, const std::vector<Field>& fields,
                         std::string_view version) {
  const std::string written = lower(wrong);
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, written.size() / 3) + 1;
  for (const Field& field : fields) {
    if (!is_of(field, version)) continue;
    const std::string known = lower(field.name);
    const bool shortened =
        written.size() >= 4 && (known.starts_with(written) || written.starts_with(known));
    const std::size_t off = shortened ? 1 : distance(written, known);
    if (off >= least) continue;
    least = off;
    best = field.name;
  }
  return best;
}

class Checker {
 public:
  Checker() {
    for (const KindFields& kind : kFields) fields_.emplace(kind.kind, fields_of(kind));
  }

  void check(const InputObject& object) {
    const auto fields = fields_.find(*object.kind);
    if (fields == fields_.end()) return;
    const std::string_view api = object.object.get("apiVersion").string_or("");
    object_ = &object;
    version_ = api.substr(api.find('/') + 1);
    check_members(object.object, fields->second, "");
  }

  std::vector<std::string> finish() {
    std::vector<std::string> lines;
    for (const Slip* slip : order_) {
      lines.push_back(slip->objects > 1 ? fmt::format("{} ({} objects)", slip->text, slip->objects)
                                        : slip->text);
    }
    return lines;
  }

 private:
  struct Slip {
    std::string text;
    std::size_t objects = 0;
  };

  void check_members(const Json& value, const std::vector<Field>& fields, const std::string& path) {
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      check_members(value.at(i), fields, fmt::format("{}[{}]", path, i));
    }
    for (const auto& [key, member] : value.members()) {
      const std::string at = path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
      const auto known = std::find_if(
          fields.begin(), fields.end(),
          [&, name = key](const Field& f) { return f.name == name && is_of(f, version_); });
      if (known == fields.end()) {
        note(key, fields, at);
      } else if (!known->members.empty()) {
        check_members(member, known->members, at);
      }
    }
  }

  /// A field that every object of a kind has is said once.
  void note(std::string_view key, const std::vector<Field>& fields, const std::string& path) {
    const std::string kind(object_->object.get("kind").string_or(""));
    Slip& slip = slips_[{kind, std::string(version_), path}];
    if (slip.objects++ > 0) return;
    order_.push_back(&slip);
    const std::string_view meant = nearest(key, fields, version_);
    slip.text = fmt::format("{}: {}: {} has no such field{}", object_->place, path, kind,
                            meant.empty() ? "" : fmt::format(", did you mean {}?", meant));
  }

  std::map<ManifestKind, std::vector<Field>> fields_;
  std::map<std::tuple<std::string, std::string, std::string>, Slip> slips_;
  std::vector<const Slip*> order_;
  const InputObject* object_ = nullptr;
  std::string_view version_;
};

void collect(const std::vector<Field>& fields, std::string_view version, const std::string& prefix,
             std::vector<std::string>& into) {
  for (const Field& field : fields) {
    if (!is_of(field, version)) continue;
    const std::string path = prefix + std::string(field.name);
    into.push_back(path);
    collect(field.members, version, path + ".", into);
  }
}

}  // namespace

std::vector<std::string> unknown_fields(const std::vector<InputObject>& objects) {
  Checker checker;
  for (const InputObject& object : objects) {
    if (object.kind) checker.check(object);
  }
  return checker.finish();
}

std::vector<std::string> known_fields(ManifestKind kind, std::string_view version) {
  std::vector<std::string> paths;
  for (const KindFields& each : kFields) {
    if (each.kind == kind) collect(fields_of(each), version, "", paths);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace muster::cli

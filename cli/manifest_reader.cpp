#include "cli/manifest_reader.hpp"

#include "cli/text_file.hpp"
#include "kube/codec/list.hpp"
#include "kube/codec/reader.hpp"
#include "kube/codec/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

namespace muster::cli {
namespace {

using kube::Json;
using kube::Reader;

struct KindRow {
  std::string_view group;  ///< Empty: core.
  std::string_view versions;
  std::string_view kind;
  ManifestKind value;
  bool namespaced;
};

constexpr std::string_view kQueueGroup = "kueue.x-k8s.io";
constexpr std::string_view kQueueVersions = "v1beta1 v1beta2";
constexpr std::array kKinds = std::to_array<KindRow>({
    {"", "v1", "Node", ManifestKind::kNode, false},
    {"", "v1", "Namespace", ManifestKind::kNamespace, false},
    {"", "v1", "Pod", ManifestKind::kPod, true},
    {"", "v1", "LimitRange", ManifestKind::kLimitRange, true},
    {"scheduling.k8s.io", "v1", "PriorityClass", ManifestKind::kPriorityClass, false},
    {"node.k8s.io", "v1", "RuntimeClass", ManifestKind::kRuntimeClass, false},
    {"batch", "v1", "Job", ManifestKind::kJob, true},
    {kQueueGroup, kQueueVersions, "ResourceFlavor", ManifestKind::kResourceFlavor, false},
    {kQueueGroup, kQueueVersions, "ClusterQueue", ManifestKind::kClusterQueue, false},
    {kQueueGroup, kQueueVersions, "Cohort", ManifestKind::kCohort, false},
    {kQueueGroup, kQueueVersions, "LocalQueue", ManifestKind::kLocalQueue, true},
    {kQueueGroup, kQueueVersions, "WorkloadPriorityClass", ManifestKind::kWorkloadPriorityClass,
     false},
    {kQueueGroup, kQueueVersions, "Topology", ManifestKind::kTopology, false},
    {kQueueGroup, kQueueVersions, "AdmissionCheck", ManifestKind::kAdmissionCheck, false},
    {kQueueGroup, kQueueVersions, "Workload", ManifestKind::kWorkload, true},
});

// Leaves room for a number in a name of at most 253 bytes.
constexpr std::size_t kMaxPrefix = 233;

/// `batch/v1` -> {`batch`, `v1`}; `v1` -> {``, `v1`}.
std::pair<std::string_view, std::string_view> split_api_version(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {std::string_view(), text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

const KindRow* find_kind(std::string_view api_version, std::string_view kind) {
  const auto [group, version] = split_api_version(api_version);
  const auto found =
      std::find_if(kKinds.begin(), kKinds.end(), [&, g = group, v = version](const KindRow& row) {
        return row.group == g && row.kind == kind && has_word(row.versions, v);
      });
  return found == kKinds.end() ? nullptr : &*found;
}

class Collector {
 public:
  Result<void> add_text(const NamedText& text) {
    const auto documents = kube::parse_yaml(text.text);
    if (!documents) return fail(documents.error().with_context(text.name));
    for (std::size_t i = 0; i < documents->size(); ++i) {
      const std::string place = fmt::format("{}: document {}", text.name, i + 1);
      const auto listed = kube::split_list((*documents)[i]);
      if (!listed) return fail(listed.error().with_context(place));
      for (const kube::ListedObject& each : *listed) {
        const std::string where = each.place.empty() ? place : place + ": " + each.place;
        if (auto added = add(each.object, where); !added) return added;
      }
    }
    return {};
  }

  Manifests finish() {
    for (const auto& [index, prefix] : unnamed_) name_object(result_.objects[index], prefix);
    for (const auto& [what, seen] : unread_) {
      result_.warnings.push_back(
          fmt::format("{}: kind {} of {} is not read{}", seen.place, what.second, what.first,
                      seen.count > 1 ? fmt::format(" ({} objects)", seen.count) : ""));
    }
    return std::move(result_);
  }

 private:
  /// Group, kind, namespace, name: the version does not make another object.
  using Identity = std::tuple<std::string, std::string, std::string, std::string>;
  struct Unread {
    std::string place;  ///< Of the first.
    std::size_t count = 0;
  };

  Result<void> add(const Json& object, const std::string& place) {
    kube::FirstError errors;
    const Reader root(object, errors);
    root.require_object();
    const Reader api_version = root.get("apiVersion");
    const Reader kind = root.get("kind");
    const std::string api = api_version.string();
    const std::string kind_name = kind.string();
    if (api.empty()) api_version.fail_unwanted("an API version");
    if (kind_name.empty()) kind.fail_unwanted("a kind");
    const KindRow* row = find_kind(api, kind_name);
    const Reader meta = root.get("metadata");
    InputObject input;
    input.place = place;
    input.object = object;
    const Reader name = meta.get("name");
    input.name = name.string();
    input.ns = meta.get("namespace").string();
    const std::string prefix = meta.get("generateName").string();
    if (row != nullptr) {
      input.kind = row->value;
      if (!row->namespaced) input.ns.clear();
      if (row->namespaced && input.ns.empty()) input.ns = "default";
      if (input.name.empty() && prefix.empty()) name.fail_unwanted("a name");
      if (!is_sound_name(input.name) || !is_sound_name(prefix) || !is_sound_name(input.ns)) {
        meta.fail("got a name that no object can have");
      }
    }
    if (auto fine = errors.or_value(true); !fine) return fail(fine.error().with_context(place));
    if (row == nullptr) note_unread(api, kind_name, place);

    if (input.name.empty()) {
      if (row != nullptr) unnamed_.emplace_back(result_.objects.size(), prefix);
      result_.objects.push_back(std::move(input));
      return {};
    }
    const Identity identity{std::string(split_api_version(api).first), kind_name, input.ns,
                            input.name};
    const auto [known, is_new] = known_.emplace(identity, result_.objects.size());
    if (!is_new) {
      const InputObject& former = result_.objects[known->second];
      if (former.object == object) return {};
      return fail(ErrorCode::kConflict,
                  fmt::format("{}: {} {}{}{} differs from the one in {}", place, kind_name,
                              input.ns, input.ns.empty() ? "" : "/", input.name, former.place));
    }
    result_.objects.push_back(std::move(input));
    return {};
  }

  void note_unread(const std::string& api, const std::string& kind, const std::string& place) {
    Unread& seen = unread_[{api.substr(0, 128), kind.substr(0, 128)}];
    if (seen.count++ == 0) seen.place = place;
  }

  void name_object(InputObject& input, const std::string& prefix) {
    const auto [group, version] = split_api_version(input.object.get("apiVersion").string_or(""));
    const std::string kind(input.object.get("kind").string_or(""));
    std::size_t& number = numbers_[{kind, input.ns, prefix}];
    Identity identity;
    do {
      input.name = fmt::format("{}{}", prefix.substr(0, kMaxPrefix), ++number);
      identity = {std::string(group), kind, input.ns, input.name};
    } while (!known_.emplace(identity, 0).second);
    input.object = input.object.with(
        "metadata", input.object.get("metadata").with("name", Json::string(input.name)));
  }

  Manifests result_;
  std::map<Identity, std::size_t> known_;
  std::vector<std::pair<std::size_t, std::string>> unnamed_;  ///< Position, generateName.
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> numbers_;
  std::map<std::pair<std::string, std::string>, Unread> unread_;
};

bool is_manifest_file(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

Result<std::vector<std::string>> expand_path(const std::string& path) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_directory(path, error)) {
    return std::vector<std::string>{path};
  }
  std::vector<std::string> files;
  std::filesystem::directory_iterator entries(path, error);
  const std::filesystem::directory_iterator end;
  for (; !error && entries != end; entries.increment(error)) {
    std::error_code ignored;
    if (is_manifest_file(entries->path()) && !entries->is_directory(ignored)) {
      files.push_back(entries->path().string());
    }
  }
  if (error) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, error.message()));
  }
  if (files.empty()) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{}: no .yaml, .yml or .json file in this directory", path));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool is_sound_name(std::string_view name) {
  return name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
           return c != '/' && static_cast<unsigned char>(c) > 0x20 && c != 0x7F;
         });
}

Result<Manifests> parse_manifests(const std::vector<NamedText>& texts) {
  Collector collector;
  for (const NamedText& text : texts) {
    if (auto added = collector.add_text(text); !added) return fail(added.error());
  }
  return collector.finish();
}

Result<Manifests> read_manifests(const std::vector<std::string>& paths) {
  Collector collector;
  for (const std::string& path : paths) {
    const auto files = expand_path(path);
    if (!files) return fail(files.error());
    for (const std::string& file : *files) {
      auto text = read_text(file);
      if (!text) return fail(text.error());
      if (auto added = collector.add_text({file, *std::move(text)}); !added) {
        return fail(added.error());
      }
    }
  }
  return collector.finish();
}

}  // namespace muster::cli

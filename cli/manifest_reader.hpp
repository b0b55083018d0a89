#pragma once
// Manifests taken apart into objects: files, directories, standard input; YAML or JSON; several
// documents; lists. Design 4.2.

#include "base/result.hpp"
#include "kube/codec/json.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

/// The kinds that decide reads, in every API version it reads them in.
enum class ManifestKind {
  kNode,
  kNamespace,
  kPod,
  kPriorityClass,
  kLimitRange,
  kRuntimeClass,
  kResourceFlavor,
  kClusterQueue,
  kCohort,
  kLocalQueue,
  kWorkloadPriorityClass,
  kTopology,
  kAdmissionCheck,
  kWorkload,
  kJob,
};

struct InputObject {
  std::optional<ManifestKind> kind;  ///< Absent: passed through, not read.
  std::string ns;     ///< `default` where a namespaced object has none; empty: cluster-scoped.
  std::string name;   ///< Given by us where there is only generateName (metadata.name is set, too).
  std::string place;  ///< `queues.yaml: document 2: items[3]`.
  kube::Json object;
};

struct Manifests {
  std::vector<InputObject> objects;   ///< In the order they were given.
  std::vector<std::string> warnings;  ///< One line each: kinds that are not read.
};

/// Fit for `namespace/name` and for a terminal: at most 253 bytes, no slash, blank or control
/// character.
[[nodiscard]] bool is_sound_name(std::string_view name);

struct NamedText {
  std::string name;  ///< For messages: the file's path, or `-`.
  std::string text;
};

/// The objects of these texts. The same object twice: identical is left out, different is an error.
/// An object without a name but with generateName is a new one each time; it gets the first free
/// number as its suffix. An error names the file, the document and the field path.
[[nodiscard]] Result<Manifests> parse_manifests(const std::vector<NamedText>& texts);

/// The same from paths: files, `-`, and directories, of which the .yaml, .yml and .json files are
/// read in byte order, without descending. A directory without any is an error.
[[nodiscard]] Result<Manifests> read_manifests(const std::vector<std::string>& paths);

}  // namespace muster::cli

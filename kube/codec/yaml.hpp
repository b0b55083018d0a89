#pragma once
// YAML documents as JSON values, and back.

#include "kube/codec/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::kube {

/// All documents of a YAML (or JSON) stream; empty documents are left out. Plain scalars are typed
/// as in YAML 1.2 core with the Kubernetes habits (`true`, `null`, integers, floats; quoted scalars
/// are strings). Aliases that would blow up (over 16 MiB expanded) are refused. An error names the
/// document (from 1), line and column.
[[nodiscard]] Result<std::vector<Json>> parse_yaml(std::string_view text);

/// One document as block-style YAML; strings that would read as another type are quoted.
[[nodiscard]] std::string to_yaml(const Json& value);

}  // namespace muster::kube

#pragma once
// Edits of JSON values, and the smallest RFC 6902 patch that makes one out of another.

#include "kube/codec/json.hpp"

#include <span>
#include <string_view>

namespace muster::webhook {

/// The member at the end of `path`; absent as soon as one on the way is.
[[nodiscard]] kube::Json get_path(const kube::Json& root, std::span<const std::string_view> path);

/// `root` with the member at the end of `path` set; objects on the way are made. With an absent
/// value the member is removed, and nothing is made.
[[nodiscard]] kube::Json with_path(const kube::Json& root, std::span<const std::string_view> path,
                                   const kube::Json& value);

/// Operations (`add`, `remove`, `replace`) that turn `before` into `after`, an array; empty when
/// they are equal. Arrays change by elements added at their end, else as a whole.
[[nodiscard]] kube::Json make_patch(const kube::Json& before, const kube::Json& after);

}  // namespace muster::webhook

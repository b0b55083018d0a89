#pragma once
// What a list or watch answer says, taken from its JSON.

#include "kube/client/reflector_core.hpp"

#include <string_view>

namespace muster::kube {

[[nodiscard]] Result<WatchLine> parse_watch_line(std::string_view line);
/// An item that cannot be read costs only itself: it is counted and left out.
[[nodiscard]] Result<ListPage> parse_list_page(std::string_view body);

}  // namespace muster::kube

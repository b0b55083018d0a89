#pragma once
// RFC 4648 base64: standard alphabet, padded.

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace muster::kube {

[[nodiscard]] std::string base64_encode(std::string_view bytes);

/// Line breaks are skipped, as Go's decoder does; any other foreign character or wrong padding is
/// an error.
[[nodiscard]] Result<std::string> base64_decode(std::string_view text);

}  // namespace muster::kube

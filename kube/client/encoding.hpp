#pragma once
// Small pure helpers of this folder: percent encoding and a seeded generator for jitter.

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::kube {

/// RFC 3986: everything but unreserved characters as %XX.
[[nodiscard]] std::string percent_encode(std::string_view text);

/// splitmix64: advances `state` and returns the next number. Jitter only, nothing secret.
[[nodiscard]] std::uint64_t next_random(std::uint64_t& state);

}  // namespace muster::kube

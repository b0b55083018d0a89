#pragma once
// What every fuzz target shares: bytes as text, and a check that stays on without asserts.

#include <cstdint>
#include <cstdlib>
#include <string_view>

/// The entry point that libFuzzer and the replay program call.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace muster::fuzz {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return std::string_view(reinterpret_cast<const char*>(data), size);
}

/// A broken promise is a crash, which both libFuzzer and ctest see.
inline void require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace muster::fuzz

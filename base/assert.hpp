#pragma once
// Programmer errors only. Nothing that bytes from the network can cause may reach an assert.

#include <fmt/format.h>

#include <source_location>
#include <string>

namespace muster {

/// Logs the broken invariant and aborts; a restart rebuilds the state from the API objects.
[[noreturn]] void assertion_failed(const char* condition, const std::string& message,
                                   std::source_location where);

}  // namespace muster

/// Stays on in release builds. The message prints both sides of what was compared.
#define MUSTER_ASSERT(condition, ...)                                  \
  do {                                                                 \
    if (!(condition)) [[unlikely]] {                                   \
      ::muster::assertion_failed(#condition, fmt::format(__VA_ARGS__), \
                                 std::source_location::current());     \
    }                                                                  \
  } while (false)

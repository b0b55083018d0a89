#pragma once
// Structured log lines. The sink is set once by the composition root; without one, lines go to
// stderr.

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace muster::log {

enum class Level { kDebug, kInfo, kWarning, kError };

[[nodiscard]] std::string_view to_string(Level level);

using Sink = std::function<void(Level, const std::string& message)>;

/// Sets where lines go and the lowest level kept. Call before threads start.
void configure(Sink sink, Level lowest);

[[nodiscard]] bool enabled(Level level);
void write(Level level, const std::string& message);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug))
    write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarning))
    write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kError))
    write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace muster::log

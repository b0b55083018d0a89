#include "base/log.hpp"

#include <cstdio>

namespace muster::log {
namespace {

// One sink for the process, set before any thread starts and never changed after: reads need no
// lock.
struct Configuration {
  Sink sink;
  Level lowest = Level::kInfo;
};

Configuration& configuration() {
  static Configuration instance;
  return instance;
}

}  // namespace

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "unknown";
}

void configure(Sink sink, Level lowest) {
  configuration() = Configuration{std::move(sink), lowest};
}

bool enabled(Level level) {
  return level >= configuration().lowest;
}

void write(Level level, const std::string& message) {
  if (configuration().sink) {
    configuration().sink(level, message);
    return;
  }
  fmt::print(stderr, "{}: {}\n", to_string(level), message);
}

}  // namespace muster::log

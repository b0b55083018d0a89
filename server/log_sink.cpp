#include "server/log_sink.hpp"

#include "kube/codec/json.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace muster::server {
namespace {

spdlog::level::level_enum to_spdlog(log::Level level) {
  switch (level) {
    case log::Level::kDebug:
      return spdlog::level::debug;
    case log::Level::kInfo:
      return spdlog::level::info;
    case log::Level::kWarning:
      return spdlog::level::warn;
    case log::Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void log_to_stderr(log::Level lowest) {
  auto logger = spdlog::stderr_logger_mt("muster");
  logger->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})",
                      spdlog::pattern_time_type::utc);
  logger->set_level(to_spdlog(lowest));
  logger->flush_on(spdlog::level::info);
  log::configure(
      [logger](log::Level level, const std::string& message) {
        logger->log(to_spdlog(level), "\"message\":" + kube::Json::string(message).dump());
      },
      lowest);
}

}  // namespace muster::server

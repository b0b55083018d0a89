#include "controller/event_log.hpp"

#include <fmt/format.h>

namespace muster::controller {
namespace {

constexpr std::size_t kMaxMessage = 1024;  // of core/v1 Event
constexpr std::size_t kMaxNamePrefix = 220;

}  // namespace

std::optional<kube::Json> EventLog::make(const EventSubject& subject, bool warning,
                                         const std::string& reason, const std::string& message,
                                         Instant now) {
  if (!pace_.free(now)) return std::nullopt;
  pace_.spend(now);

  using kube::Json;
  // Unique among our own events: time, then a counter for those of one microsecond.
  const std::string name = fmt::format("{}.{:x}", subject.name.substr(0, kMaxNamePrefix),
                                       static_cast<std::uint64_t>(now.us) + sequence_++);
  const Json time = Json::string(format_rfc3339(now));
  return Json::object(
      {{"apiVersion", Json::string("v1")},
       {"kind", Json::string("Event")},
       {"metadata", Json::object({{"name", Json::string(name)},
                                  {"namespace", Json::string(subject.ns.value())}})},
       {"involvedObject", Json::object({{"apiVersion", Json::string(subject.api_version)},
                                        {"kind", Json::string(subject.kind)},
                                        {"namespace", Json::string(subject.ns.value())},
                                        {"name", Json::string(subject.name)},
                                        {"uid", Json::string(subject.uid.value())}})},
       {"reason", Json::string(reason)},
       {"message", Json::string(message.substr(0, kMaxMessage))},
       {"type", Json::string(warning ? "Warning" : "Normal")},
       {"source", Json::object({{"component", Json::string(source_)}})},
       {"reportingComponent", Json::string(source_)},
       {"reportingInstance", Json::string(source_)},
       {"firstTimestamp", time},
       {"lastTimestamp", time},
       {"count", Json::number(std::int64_t{1})}});
}

}  // namespace muster::controller

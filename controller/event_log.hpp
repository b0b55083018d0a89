#pragma once
// Kubernetes Events about our objects: few, rate limited, never retried.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "controller/pace.hpp"
#include "kube/codec/json.hpp"
#include "kube/codec/objects.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::controller {

struct EventSubject {
  std::string api_version;
  std::string kind;
  Namespace ns;
  std::string name;
  Uid uid;
};

class EventLog {
 public:
  explicit EventLog(std::string source) : source_(std::move(source)) {}

  /// A core/v1 Event to POST; nothing when the bucket is empty (20 at once, then 5 per second).
  [[nodiscard]] std::optional<kube::Json> make(const EventSubject& subject, bool warning,
                                               const std::string& reason,
                                               const std::string& message, Instant now);

 private:
  std::string source_;
  Pace pace_{std::chrono::milliseconds(200), 20};
  std::uint64_t sequence_ = 0;
};

}  // namespace muster::controller

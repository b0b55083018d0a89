#pragma once
// Drives a ReflectorCore over an ApiClient: one resource, one stream of object events.

#include "kube/client/api_client.hpp"
#include "kube/client/reflector_core.hpp"

#include <functional>
#include <memory>
#include <string>

namespace muster::kube {

struct ReflectorConfig {
  std::string name;  ///< For log lines: `pods`.
  /// Collection path, with a selector if wanted: `/api/v1/pods?labelSelector=a%3Db`.
  std::string path;
  ReflectorOptions options;
  Duration list_timeout = std::chrono::seconds(60);  ///< Per page.
  Duration watch_idle_timeout = std::chrono::minutes(3);
};

/// Called on the client's strand, in the order the server told it. The next line waits until it
/// returns, so a slow consumer slows the server's stream, not our memory.
using ObjectEventHandler = std::function<void(ObjectEvent)>;

/// Starts at once; runs until destroyed. Destroy it before its ApiClient.
class Reflector {
 public:
  Reflector(ApiClient& client, ReflectorConfig config, ObjectEventHandler handler);
  /// From the client's strand: no event after it. From another thread: at most the one running now.
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  /// True after the first complete list. Safe from any thread.
  [[nodiscard]] bool synced() const;
  /// Safe from any thread.
  [[nodiscard]] ReflectorCounters counters() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::kube

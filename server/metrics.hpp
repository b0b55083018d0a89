#pragma once
// What /metrics says. Queue gauges keep the names and labels that dashboards know
// (queueing semantics j); what is ours begins with muster_.

#include "base/time.hpp"
#include "engine/effect.hpp"
#include "engine/fragmentation.hpp"
#include "engine/snapshot.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Collectable;
class Registry;
}  // namespace prometheus

namespace muster::server {

/// Values read at the moment of a scrape: name -> value (gauges; a name may carry labels in the
/// Prometheus text form, `muster_queue{kind="x"}` is not allowed here: plain names only).
using Reading = std::map<std::string, double>;

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// One answered call of kube-scheduler. `nodes`: in the request; the series is labelled with the
  /// power of ten that they do not exceed.
  void observe_extender_call(const std::string& verb, std::size_t nodes, double seconds);
  /// One answered call of the API server.
  void observe_webhook_call(const std::string& path, double seconds);
  void count_effect(const engine::Effect& effect);
  /// Called at each scrape, on a network thread.
  void set_sources(std::function<std::shared_ptr<const engine::Snapshot>()> snapshot,
                   std::function<Reading()> reading,
                   std::function<std::vector<engine::LargestGang>()> largest_gangs);

  /// The Prometheus text format.
  [[nodiscard]] std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::server

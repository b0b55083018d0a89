#pragma once
// The watches that keep the strand's picture of the API server's objects.

#include "controller/controller.hpp"
#include "kube/client/reflector.hpp"
#include "server/engine_strand.hpp"

#include <array>
#include <memory>
#include <mutex>

namespace muster::server {

/// One reflector for each ResourceKind, each told to the strand. The kinds with very many objects
/// are listed one after the other, when all kinds before them were: the controller takes their
/// objects as they come then, instead of keeping them until it may.
class Watches {
 public:
  /// Starts at once. Both outlive it, and it outlives the client's threads.
  Watches(kube::ApiClient& client, EngineStrand& strand);
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;
  ~Watches() = default;

  /// Ends all. An event may still be on its way to the strand.
  void stop();

 private:
  static constexpr std::size_t kCount = controller::kResourceKinds.size();

  /// Begins what may begin now.
  void begin();
  void on_event(std::size_t index, const kube::ObjectEvent& event);
  [[nodiscard]] std::unique_ptr<kube::Reflector> watch(std::size_t index);

  kube::ApiClient& client_;
  EngineStrand& strand_;
  std::mutex mutex_;  ///< Guards all below.
  bool stopped_ = false;
  std::array<bool, kCount> synced_{};
  std::array<std::unique_ptr<kube::Reflector>, kCount> reflectors_;
};

}  // namespace muster::server

#pragma once
// Leader election on a coordination.k8s.io/v1 Lease, by the rules of client-go's leaderelection:
// whoever wrote last holds it until `lease duration` after *we* saw that write, by our clock.

#include "kube/client/api_client.hpp"
#include "kube/client/lease_core.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace muster::kube {

struct LeaseConfig {
  std::string ns;
  std::string name;
  LeaseOptions options;
};

struct LeaseCallbacks {
  std::function<void()> on_started_leading;
  /// Also called when leadership ends by release(). By then no write may be sent any more.
  std::function<void()> on_stopped_leading;
  /// The holder as last read or written; empty: nobody.
  std::function<void(const std::string& holder)> on_new_leader;
};

/// Runs for the lease until destroyed. Callbacks come on the client's strand. Give it an ApiClient
/// of its own, so that renewals never wait behind other writes. Destroy it before that client.
class LeaderElector {
 public:
  LeaderElector(ApiClient& client, LeaseConfig config, LeaseCallbacks callbacks);
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  /// Safe from any thread. False from the renew deadline on, even if no callback has run yet.
  [[nodiscard]] bool is_leader() const;

  /// Steps down if leading, gives the lease up on the server so that another may take it at once,
  /// and campaigns no more. `done` is called once, on the client's strand, success or not.
  void release(std::function<void()> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Reads a lease once; the callback gets nothing when it does not exist.
void read_lease(ApiClient& client, const std::string& ns, const std::string& name,
                std::function<void(Result<std::optional<LeaseRecord>>)> callback);

}  // namespace muster::kube

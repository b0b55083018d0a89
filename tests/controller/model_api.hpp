#pragma once
// A model of the API server and of the controllers around it, small enough to be read: objects with
// versions, merge patches with preconditions, watch events, and what the Job controller, the
// scheduler, kubelets and the garbage collector would do next. One thread, no clock.

#include "base/time.hpp"
#include "controller/controller.hpp"
#include "kube/codec/json.hpp"
#include "kube/codec/objects.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::controller::testing {

[[nodiscard]] kube::Json json(std::string_view text);

struct WatchEvent {
  ResourceKind kind;
  ChangeKind change;
  kube::Json object;
};

class ModelApi {
 public:
  /// Creates an object under the collection of its kind; fills in uid, version and time.
  kube::Json create(ResourceKind kind, const kube::Json& object);
  [[nodiscard]] kube::Json get(ResourceKind kind, const std::string& ns,
                               const std::string& name) const;
  /// In the order of their paths.
  [[nodiscard]] std::vector<kube::Json> list(ResourceKind kind) const;
  /// Stores a changed version of an object that exists.
  void store(ResourceKind kind, const kube::Json& object);
  void erase(ResourceKind kind, const std::string& ns, const std::string& name);
  /// Kubernetes Events that were posted.
  [[nodiscard]] const std::vector<kube::Json>& events() const { return events_; }

  /// What the server does with a write.
  [[nodiscard]] WriteResult apply(const Write& write);
  /// A write that this returns an error for is not applied.
  std::function<std::optional<Error>(const Write&)> fault;

  /// Everything that changed since the last call, in order.
  [[nodiscard]] std::vector<WatchEvent> take_watch_events();

  void set_time(Instant now) { now_ = now; }

  // The controllers around it. True: something changed.
  bool run_job_controller();
  bool run_scheduler();
  /// Binds happen at once; a deleted pod that was bound goes after `grace_steps` calls.
  bool run_kubelets();
  /// Of objects whose owner is gone, and of pods whose node is.
  bool run_garbage_collector();
  int grace_steps = 2;
  bool scheduler_on = true;
  /// What the extender leaves of the nodes for a pod; unset: all of them. A pod that gets none is
  /// looked at again only when it was changed, as kube-scheduler does.
  std::function<std::vector<std::string>(const kube::Json& pod)> extender;
  bool job_controller_on = true;
  /// As before Kubernetes 1.36: a stopped Job keeps its start time, and with one its template is
  /// fixed.
  bool started_templates_are_fixed = false;
  /// The pin webhook narrows pods of fixed rank to the node of their slot.
  bool pin_webhook_on = true;

  /// Every bound pod of the Job ends well.
  void finish_pods(const std::string& ns, const std::string& job);
  /// What kube-scheduler's preemption does to a pod.
  void preempt_pod(const std::string& ns, const std::string& name);

  /// A deleted pod is still shutting down.
  [[nodiscard]] bool any_dying() const { return !dying_.empty(); }
  [[nodiscard]] std::vector<kube::Json> pods_of(const std::string& job_uid) const;
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  struct Stored {
    ResourceKind kind;
    kube::Json object;
  };

  void remember(ResourceKind kind, const std::string& path, kube::Json object);
  void forget(const std::string& path);
  /// Gone at once, or, with finalizers, marked as going.
  void delete_object(const std::string& path);
  [[nodiscard]] WriteResult post(const std::string& collection, const kube::Json& object);
  [[nodiscard]] WriteResult patch(const std::string& path, bool status, const kube::Json& patch);
  [[nodiscard]] WriteResult remove(const std::string& path, const kube::Json& options);
  bool reconcile_job(const kube::Json& job);
  void create_pod(const kube::Json& job, std::int64_t index);
  void delete_pod(const kube::Json& pod);
  [[nodiscard]] kube::Json narrow(const kube::Json& pod, const kube::Json& job,
                                  std::int64_t index) const;
  [[nodiscard]] kube::Json workload_of(const std::string& owner_uid) const;

  std::map<std::string, Stored> objects_;         // by path
  std::map<std::string, int> dying_;              // pod path -> calls left
  std::map<std::string, std::string> refused_;    // pod uid -> its version then
  std::map<std::string, std::int64_t> failures_;  // job uid -> pods counted as failed
  std::vector<WatchEvent> changes_;
  std::vector<kube::Json> events_;
  std::uint64_t version_ = 1000;
  std::uint64_t next_uid_ = 1;
  std::uint64_t next_pod_ = 1;
  Instant now_{1'700'000'000'000'000};
};

}  // namespace muster::controller::testing

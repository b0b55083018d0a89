#pragma once
// Controller, engine and model API driven together, one batch per step, in an order of our choice.

#include "controller/controller.hpp"
#include "engine/engine.hpp"
#include "tests/controller/model_api.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::controller::testing {

/// How answers and watch events reach the controller.
struct Delivery {
  int watch_delay = 0;           ///< Steps that every watch event is late.
  int workload_watch_delay = 0;  ///< On top, those of Workloads.
  int answer_delay = 0;          ///< Steps that answers are late.
  bool duplicates = false;       ///< Every event twice, and the version before it once more.
  bool reversed_kinds = false;   ///< Within a step, pods first and nodes last.
};

class Cluster {
 public:
  Cluster();

  // Fixtures; amounts are nvidia.com/gpu, nodes have 8.
  void add_nodes(int count, const std::string& prefix = "n");
  void add_flavor(const std::string& name = "gpu");
  void add_queue(const std::string& name, int nominal, const std::string& cohort = "",
                 const std::string& preemption = "{}");
  /// `pods` pods of 8 GPUs in LocalQueue `queue` of namespace team.
  kube::Json add_job(const std::string& name, int pods, const std::string& queue,
                     const std::string& extra_spec = "");
  kube::Json add_gated_pod(const std::string& name, const std::string& queue);
  void add_priority_class(const std::string& name, int value);

  void step();
  /// Steps until nothing moves and nothing is due within two seconds. False: it never came to rest.
  [[nodiscard]] bool settle(int max_steps = 600);
  void pass_time(Duration by) { now_ = now_ + by; }
  /// A crash: controller and engine are gone, and every answer and event on its way to them. New
  /// ones list everything.
  void restart();

  // What is true now.
  [[nodiscard]] int bound_pods(const std::string& job) const;
  [[nodiscard]] int pods(const std::string& job) const;
  [[nodiscard]] kube::Workload workload_of(const std::string& owner) const;
  [[nodiscard]] bool has_workload(const std::string& owner) const;
  [[nodiscard]] bool is_true(const std::string& owner, std::string_view condition) const;
  [[nodiscard]] kube::Json job(const std::string& name) const;
  [[nodiscard]] bool suspended(const std::string& name) const;
  [[nodiscard]] int writes(WriteKind kind) const;
  [[nodiscard]] int workload_writes() const;
  /// One line for each violated promise: a gang of which only a part runs, a node that holds more
  /// than it has, quota that is not what runs, an engine that disagrees with the objects.
  [[nodiscard]] std::vector<std::string> broken_promises() const;

  ModelApi api;
  Delivery delivery;
  ControllerOptions options;
  engine::Options engine_options;  ///< From the next restart on.
  Barrier barrier = [](const BarrierQuery&) { return true; };
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<Controller> controller;
  std::vector<Write> log;  ///< Every write that was sent.
  /// After this many further writes were applied the controller is restarted, before it hears the
  /// answer of the last one.
  std::optional<int> crash_after;
  bool pods_run = true;  ///< Scheduler and Job controller act in each step.

  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct Late {
    int due = 0;
    WatchEvent event;
  };
  struct Answer {
    int due = 0;
    WriteId id = 0;
    WriteResult result;
  };

  void deliver();
  void collect_watch_events();
  bool send(const std::vector<Write>& writes);

  Instant now_{1'700'000'000'000'000};
  int step_ = 0;
  std::map<ResourceKind, std::deque<Late>> watch_;
  std::deque<Answer> answers_;
  std::map<std::string, kube::Json> previous_;  // by kind and name
};

}  // namespace muster::controller::testing

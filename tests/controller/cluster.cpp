#include "tests/controller/cluster.hpp"

#include "controller/workload_status.hpp"
#include "engine/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace muster::controller::testing {
namespace {

using kube::Json;

constexpr Duration kStep = std::chrono::milliseconds(10);

/// CONTROLLER_TEST_TRACE=1 prints every change of an object, every effect, and every write with its
/// answer.
bool traced() {
  static const bool kOn = std::getenv("CONTROLLER_TEST_TRACE") != nullptr;
  return kOn;
}

void trace(const engine::Effect& effect) {
  if (const auto* admit = std::get_if<engine::Admit>(&effect)) {
    fmt::print("      effect Admit {}\n", admit->workload);
  } else if (const auto* replan = std::get_if<engine::Replan>(&effect)) {
    fmt::print("      effect Replan {}\n", replan->workload);
  } else if (const auto* evict = std::get_if<engine::Evict>(&effect)) {
    fmt::print("      effect Evict {} {}\n", evict->workload, engine::describe(*evict));
  } else if (const auto* pending = std::get_if<engine::StillPending>(&effect)) {
    fmt::print("      effect StillPending {} {}\n", pending->workload,
               engine::describe(pending->explanation));
  }
}

void trace(int step, const WatchEvent& event) {
  if (!traced()) return;
  fmt::print("{:5} {} {} {}\n", step, to_string(event.kind),
             event.change == ChangeKind::kDelete ? "deleted" : "changed", event.object.dump());
}

void trace(int step, const Write& write, const WriteResult& result) {
  if (!traced()) return;
  fmt::print(
      "{:5} {} {} {}\n      -> {}\n", step, to_string(write.kind), write.path, write.body,
      result ? result->get("metadata", "resourceVersion").string_or("") : result.error().message);
}

std::string text(const Json& value) {
  return std::string(value.string_or(""));
}

std::string owner_name(const Json& object) {
  return text(object.get("metadata", "ownerReferences").at(0).get("name"));
}

bool ended(const Json& job) {
  const Json conditions = job.get("status", "conditions");
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const auto type = conditions.at(i).get("type").string_or("");
    if (type == "Failed" || type == "Complete") return true;
  }
  return false;
}

bool is_live(const Json& pod) {
  const std::string phase = text(pod.get("status", "phase"));
  return phase != "Succeeded" && phase != "Failed";
}

}  // namespace

Cluster::Cluster() {
  if (traced()) options.on_effect = [](const engine::Effect& effect, Instant) { trace(effect); };
  api.create(ResourceKind::kNamespace, json(R"({"metadata":{"name":"team"}})"));
  restart();
}

void Cluster::restart() {
  controller.reset();
  engine = std::make_unique<engine::Engine>(engine_options);
  controller = std::make_unique<Controller>(
      *engine, options, [this](const BarrierQuery& query) { return barrier(query); });
  watch_.clear();
  answers_.clear();
  (void)api.take_watch_events();
  auto kinds = kResourceKinds;
  if (delivery.reversed_kinds) std::reverse(kinds.begin(), kinds.end());
  for (const ResourceKind kind : kinds) {
    for (const Json& object : api.list(kind)) {
      controller->on_object(kind, ChangeKind::kUpsert, object, now_);
    }
    controller->on_synced(kind, now_);
  }
}

void Cluster::add_nodes(int count, const std::string& prefix) {
  for (int i = 0; i < count; ++i) {
    api.create(ResourceKind::kNode, json(fmt::format(R"({{
      "metadata": {{"name": "{0}{1}", "labels": {{"pool": "gpu",
                    "kubernetes.io/hostname": "host-{0}{1}"}}}},
      "spec": {{}},
      "status": {{"allocatable": {{"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi",
                                   "pods": "110"}},
                  "conditions": [{{"type": "Ready", "status": "True"}}]}}}})",
                                                     prefix, i)));
  }
}

void Cluster::add_flavor(const std::string& name) {
  api.create(ResourceKind::kResourceFlavor, json(fmt::format(R"({{
    "metadata": {{"name": "{}"}}, "spec": {{"nodeLabels": {{"pool": "gpu"}},
    "tolerations": [{{"key": "gpu", "operator": "Exists"}}]}}}})",
                                                             name)));
}

void Cluster::add_queue(const std::string& name, int nominal, const std::string& cohort,
                        const std::string& preemption) {
  api.create(ResourceKind::kClusterQueue, json(fmt::format(R"({{
    "metadata": {{"name": "{0}"}},
    "spec": {{"namespaceSelector": {{}}, "cohortName": "{2}", "preemption": {3},
      "resourceGroups": [{{"coveredResources": ["nvidia.com/gpu"], "flavors": [
        {{"name": "gpu", "resources": [{{"name": "nvidia.com/gpu",
                                         "nominalQuota": {1}}}]}}]}}]}}}})",
                                                           name, nominal, cohort, preemption)));
  api.create(ResourceKind::kLocalQueue,
             json(fmt::format(R"({{"metadata": {{"name": "{0}", "namespace": "team"}},
                                   "spec": {{"clusterQueue": "{0}"}}}})",
                              name)));
}

Json Cluster::add_job(const std::string& name, int pods, const std::string& queue,
                      const std::string& extra_spec) {
  return api.create(ResourceKind::kJob, json(fmt::format(R"({{
    "apiVersion": "batch/v1", "kind": "Job",
    "metadata": {{"name": "{0}", "namespace": "team",
                  "labels": {{"kueue.x-k8s.io/queue-name": "{2}"}}}},
    "spec": {{"suspend": true, "parallelism": {1}, "completions": {1},
      "completionMode": "Indexed", {3}
      "template": {{"metadata": {{"labels": {{"app": "{0}"}}}},
        "spec": {{"restartPolicy": "Never", "containers": [{{"name": "c", "image": "i",
          "resources": {{"requests": {{"nvidia.com/gpu": "8"}},
                         "limits": {{"nvidia.com/gpu": "8"}}}}}}]}}}}}}}})",
                                                         name, pods, queue, extra_spec)));
}

Json Cluster::add_gated_pod(const std::string& name, const std::string& queue) {
  return api.create(ResourceKind::kPod, json(fmt::format(R"({{
    "metadata": {{"name": "{0}", "namespace": "team",
      "labels": {{"kueue.x-k8s.io/queue-name": "{1}", "kueue.x-k8s.io/managed": "true"}}}},
    "spec": {{"schedulingGates": [{{"name": "example.com/other"}},
                                  {{"name": "kueue.x-k8s.io/admission"}}],
      "containers": [{{"name": "c", "image": "i",
        "resources": {{"requests": {{"nvidia.com/gpu": "8"}}}}}}]}},
    "status": {{"phase": "Pending"}}}})",
                                                         name, queue)));
}

void Cluster::add_priority_class(const std::string& name, int value) {
  api.create(ResourceKind::kWorkloadPriorityClass,
             json(fmt::format(R"({{"metadata": {{"name": "{}"}}, "value": {}}})", name, value)));
}

void Cluster::collect_watch_events() {
  for (WatchEvent& event : api.take_watch_events()) {
    trace(step_, event);
    int due = step_ + delivery.watch_delay;
    if (event.kind == ResourceKind::kWorkload) due += delivery.workload_watch_delay;
    std::deque<Late>& queue = watch_[event.kind];
    const std::string name = fmt::format("{}/{}/{}", to_string(event.kind),
                                         text(event.object.get("metadata", "namespace")),
                                         text(event.object.get("metadata", "name")));
    if (event.change == ChangeKind::kDelete) previous_.erase(name);
    if (delivery.duplicates && event.change == ChangeKind::kUpsert) {
      queue.push_back({due, event});
      queue.push_back({due, event});
      // A watch that was cut and goes on from an earlier place tells old versions again.
      const bool versioned = event.kind == ResourceKind::kWorkload ||
                             event.kind == ResourceKind::kJob || event.kind == ResourceKind::kPod;
      if (const auto known = previous_.find(name); versioned && known != previous_.end()) {
        queue.push_back({due, {event.kind, ChangeKind::kUpsert, known->second}});
        queue.push_back({due, event});
      }
      previous_[name] = event.object;
    } else {
      queue.push_back({due, std::move(event)});
    }
  }
}

void Cluster::deliver() {
  std::vector<ResourceKind> order(kResourceKinds.begin(), kResourceKinds.end());
  if (delivery.reversed_kinds) std::reverse(order.begin(), order.end());
  for (const ResourceKind kind : order) {
    std::deque<Late>& queue = watch_[kind];
    while (!queue.empty() && queue.front().due <= step_) {
      controller->on_object(kind, queue.front().event.change, queue.front().event.object, now_);
      queue.pop_front();
    }
  }
  while (!answers_.empty() && answers_.front().due <= step_) {
    const Answer answer = std::move(answers_.front());
    answers_.pop_front();
    controller->on_write_done(answer.id, answer.result, now_);
  }
}

bool Cluster::send(const std::vector<Write>& writes) {
  for (const Write& write : writes) {
    log.push_back(write);
    WriteResult result = api.apply(write);
    trace(step_, write, result);
    if (crash_after && (*crash_after)-- == 0) {
      crash_after.reset();
      restart();
      return true;
    }
    answers_.push_back({step_ + 1 + delivery.answer_delay, write.id, std::move(result)});
  }
  return !writes.empty();
}

void Cluster::step() {
  ++step_;
  now_ = now_ + kStep;
  api.set_time(now_);
  collect_watch_events();
  deliver();
  controller->on_tick(now_);
  controller->on_published(engine->publish(), now_);
  (void)send(controller->take_writes());
  if (pods_run) {
    (void)api.run_job_controller();
    (void)api.run_scheduler();
  }
  (void)api.run_kubelets();
  (void)api.run_garbage_collector();
}

bool Cluster::settle(int max_steps) {
  int quiet = 0;
  for (int i = 0; i < max_steps; ++i) {
    const std::uint64_t before = api.version();
    const std::size_t sent = log.size();
    step();
    const bool idle = std::all_of(watch_.begin(), watch_.end(),
                                  [](const auto& queue) { return queue.second.empty(); }) &&
                      answers_.empty() && api.version() == before && log.size() == sent &&
                      !api.any_dying();
    quiet = idle ? quiet + 1 : 0;
    if (quiet < 3) continue;
    const std::optional<Instant> next = controller->next_wakeup();
    if (!next || *next > now_ + std::chrono::seconds(2)) return true;
    if (*next > now_) now_ = *next;
  }
  return false;
}

int Cluster::pods(const std::string& name) const {
  int count = 0;
  for (const Json& pod : api.list(ResourceKind::kPod)) {
    if (owner_name(pod) == name && is_live(pod)) ++count;
  }
  return count;
}

int Cluster::bound_pods(const std::string& name) const {
  int count = 0;
  for (const Json& pod : api.list(ResourceKind::kPod)) {
    if (owner_name(pod) == name && pod.get("spec", "nodeName").is_string()) ++count;
  }
  return count;
}

bool Cluster::has_workload(const std::string& owner) const {
  for (const Json& object : api.list(ResourceKind::kWorkload)) {
    if (owner_name(object) == owner) return true;
  }
  return false;
}

kube::Workload Cluster::workload_of(const std::string& owner) const {
  for (const Json& object : api.list(ResourceKind::kWorkload)) {
    if (owner_name(object) == owner) {
      return kube::decode_workload(object).value_or(kube::Workload{});
    }
  }
  return {};
}

bool Cluster::is_true(const std::string& owner, std::string_view condition) const {
  return kube::is_true(workload_of(owner).conditions, condition);
}

Json Cluster::job(const std::string& name) const {
  return api.get(ResourceKind::kJob, "team", name);
}

bool Cluster::suspended(const std::string& name) const {
  return job(name).get("spec", "suspend").bool_or(false);
}

int Cluster::writes(WriteKind kind) const {
  return static_cast<int>(std::count_if(log.begin(), log.end(),
                                        [kind](const Write& write) { return write.kind == kind; }));
}

int Cluster::workload_writes() const {
  return static_cast<int>(log.size()) - writes(WriteKind::kClusterQueueStatus) -
         writes(WriteKind::kLocalQueueStatus) - writes(WriteKind::kCohortStatus);
}

std::vector<std::string> Cluster::broken_promises() const {
  std::vector<std::string> broken = engine->check_invariants();
  for (const Json& job : api.list(ResourceKind::kJob)) {
    const std::string name = text(job.get("metadata", "name"));
    const auto wanted = static_cast<int>(job.get("spec", "parallelism").int_or(1));
    if (ended(job)) continue;
    const bool running = !job.get("spec", "suspend").bool_or(false);
    // Pods that ended well count: they were a part of the gang when it ran.
    const int bound = bound_pods(name);
    if (running && bound != 0 && bound != wanted) {
      broken.push_back(fmt::format("{}: {} of {} pods are bound", name, bound, wanted));
    }
    if (!running && pods(name) != 0) {
      broken.push_back(fmt::format("{}: is suspended and has {} pods", name, pods(name)));
    }
    const bool finished = job.get("status", "succeeded").int_or(0) == wanted;
    const kube::Workload workload = workload_of(name);
    if (running && !finished && !is_reserved(workload)) {
      broken.push_back(name + ": runs without quota");
    }
    if (is_reserved(workload) && !running) broken.push_back(name + ": has quota and does not run");
    if (!running && job.get("spec", "template", "metadata", "annotations")
                        .get("kueue.x-k8s.io/workload")
                        .present()) {
      broken.push_back(name + ": waits with a pinned template");
    }
  }
  std::map<std::string, std::int64_t> used;
  for (const Json& pod : api.list(ResourceKind::kPod)) {
    const std::string node = text(pod.get("spec", "nodeName"));
    if (!node.empty() && is_live(pod)) used[node] += 8;
  }
  for (const auto& [node, gpus] : used) {
    if (gpus > 8) broken.push_back(fmt::format("{} holds {} of 8 GPUs", node, gpus));
  }
  // The engine's picture of usage is the sum of the stored reservations of unfinished workloads.
  std::map<std::string, std::int64_t> reserved;
  for (const Json& object : api.list(ResourceKind::kWorkload)) {
    const auto workload = kube::decode_workload(object);
    if (!workload || !is_reserved(*workload) || kube::is_true(workload->conditions, "Finished")) {
      continue;
    }
    for (const auto& assignment : workload->admission->pod_sets) {
      // Pods that ended well gave their part back.
      const auto ended = workload->reclaimable_pods.find(assignment.name);
      const std::int64_t admitted = assignment.count.value_or(1);
      std::int64_t left = workload->pod_sets.at(0).count;
      if (ended != workload->reclaimable_pods.end()) left -= ended->second;
      for (const auto& [resource, quantity] : assignment.resource_usage) {
        reserved[workload->admission->cluster_queue] +=
            quantity.units_ceil() / admitted * std::min(admitted, left);
      }
    }
  }
  for (const auto& [name, queue] : engine->publish()->queues->cluster_queues) {
    std::int64_t usage = 0;
    for (const auto& [key, amount] : queue.usage) usage += amount.value();
    if (usage != reserved[name.value()]) {
      broken.push_back(fmt::format("{}: the engine counts {}, the objects say {}", name, usage,
                                   reserved[name.value()]));
    }
  }
  return broken;
}

}  // namespace muster::controller::testing

#pragma once
// Small worlds for tests, built by hand: nodes of 8 GPUs, workloads with a plan, pods on them.

#include "engine/snapshot.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::testing {

class SnapshotBuilder {
 public:
  static constexpr const char* kGpu = "nvidia.com/gpu";

  SnapshotBuilder() { table_->intern(ResourceName(kGpu)); }

  [[nodiscard]] Resources gpus(std::int64_t count, std::int64_t milli_cpu = 0) {
    return Resources::from_list({{ResourceName(kGpu), Amount(count)},
                                 {ResourceName("cpu"), Amount(milli_cpu)},
                                 {ResourceName("pods"), Amount(1)}},
                                *table_);
  }

  /// 64 CPUs, 110 pods.
  SnapshotBuilder& node(const std::string& name, std::int64_t gpu_count = 8) {
    engine::NodeView view;
    view.name = NodeName(name);
    view.hostname = name;
    view.allocatable = Resources::from_list({{ResourceName(kGpu), Amount(gpu_count)},
                                             {ResourceName("cpu"), Amount(64000)},
                                             {ResourceName("pods"), Amount(110)}},
                                            *table_);
    order_.push_back(name);
    nodes_[name] = std::move(view);
    return *this;
  }

  /// The node offers this too, from now on.
  SnapshotBuilder& offers(const std::string& node, const std::string& name, std::int64_t count) {
    nodes_.at(node).allocatable +=
        Resources::from_list({{ResourceName(name), Amount(count)}}, *table_);
    return *this;
  }

  /// Not ready, or cordoned.
  SnapshotBuilder& unusable(const std::string& node) {
    nodes_.at(node).usable = false;
    return *this;
  }

  /// A pod outside every plan. `owner`: the workload it belongs to, if any.
  SnapshotBuilder& foreign(const std::string& node, const std::string& uid, std::int64_t count,
                           const std::string& owner = "") {
    add_pod(node, uid, count, owner, false);
    nodes_.at(node).foreign += gpus(count);
    return *this;
  }

  /// The same for one that is not bound, only nominated.
  SnapshotBuilder& nominated(const std::string& node, const std::string& uid, std::int64_t count) {
    add_pod(node, uid, count, "", false, true);
    nodes_.at(node).foreign += gpus(count);
    return *this;
  }

  /// An admitted workload `team/<owner>` with one slot of `per_pod` GPUs per entry of `slots`.
  SnapshotBuilder& gang(const std::string& owner, const std::vector<std::string>& slots,
                        std::int64_t per_pod = 8,
                        engine::WorkloadPhase phase = engine::WorkloadPhase::kAdmitted) {
    engine::WorkloadView& view =
        workload(owner, phase, static_cast<std::int64_t>(slots.size()), per_pod);
    for (const std::string& slot : slots) {
      view.pod_sets.front().slots.emplace_back(slot);
      nodes_.at(slot).planned += gpus(per_pod);
    }
    return *this;
  }

  /// A workload without a plan.
  engine::WorkloadView& workload(const std::string& owner, engine::WorkloadPhase phase,
                                 std::int64_t count, std::int64_t per_pod = 8) {
    engine::WorkloadView& view = workloads_[owner];
    view.key = WorkloadKey{Namespace("team"), owner};
    view.owner_uid = Uid(owner);
    view.queue_name = "main";
    view.phase = phase;
    view.total_pods = count;
    engine::PodSetView pod_set;
    pod_set.name = PodSetName("main");
    pod_set.count = count;
    pod_set.per_pod = gpus(per_pod);
    view.pod_sets = {pod_set};
    return view;
  }

  /// A member in its slot.
  SnapshotBuilder& bound(const std::string& owner, const std::string& uid, const std::string& node,
                         std::optional<std::int64_t> rank, std::int64_t count = 8) {
    engine::PodSetView& pod_set = workloads_.at(owner).pod_sets.front();
    if (rank)
      pod_set.bound_ranks.emplace(*rank, NodeName(node));
    else
      ++pod_set.bound_rankless[NodeName(node)];
    add_pod(node, uid, count, owner, true);
    return *this;
  }

  SnapshotBuilder& local_queue(const std::string& ns, const std::string& name,
                               const std::string& cluster_queue, std::int64_t potential_gpus) {
    engine::LocalQueueView view;
    view.cluster_queue = ClusterQueueName(cluster_queue);
    view.active = true;
    view.potential = {{ResourceName(kGpu), Amount(potential_gpus)},
                      {ResourceName("cpu"), Amount(64000)}};
    queues_.local_queues[LocalQueueKey{Namespace(ns), name}] = view;
    queues_.cluster_queues[view.cluster_queue].name = view.cluster_queue;
    return *this;
  }
  SnapshotBuilder& ns(const std::string& name, LabelMap labels) {
    queues_.namespaces[Namespace(name)] = std::move(labels);
    return *this;
  }
  [[nodiscard]] engine::QueuesView& queues() { return queues_; }

  [[nodiscard]] engine::Snapshot build(std::uint64_t generation = 1) const {
    engine::Snapshot snapshot;
    snapshot.generation = generation;
    snapshot.holds_gangs = std::any_of(workloads_.begin(), workloads_.end(),
                                       [](const auto& entry) { return entry.second.held; });
    snapshot.resources = std::make_shared<const ResourceTable>(*table_);
    std::unordered_map<std::string, std::size_t> positions;
    std::vector<std::vector<engine::NodeView>> chunks;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i % engine::Snapshot::kChunkNodes == 0) chunks.emplace_back();
      chunks.back().push_back(nodes_.at(order_[i]));
      positions.emplace(order_[i], i);
    }
    snapshot.node_index = std::make_shared<const engine::NodeLookup>(positions);
    for (auto& chunk : chunks) {
      snapshot.node_chunks.push_back(std::make_shared<const engine::NodeChunk>(std::move(chunk)));
    }
    std::map<std::size_t, engine::Snapshot::WorkloadShard> shards;
    for (const auto& [owner, view] : workloads_) {
      shards[engine::Snapshot::shard_of(Uid(owner))].emplace(
          Uid(owner), std::make_shared<const engine::WorkloadView>(view));
    }
    for (auto& [shard, content] : shards) {
      snapshot.workloads[shard] =
          std::make_shared<const engine::Snapshot::WorkloadShard>(std::move(content));
    }
    snapshot.queues = std::make_shared<const engine::QueuesView>(queues_);
    return snapshot;
  }

 private:
  void add_pod(const std::string& node, const std::string& uid, std::int64_t count,
               const std::string& owner, bool planned, bool nominated = false) {
    engine::PodUse use;
    use.uid = Uid(uid);
    use.key = PodKey{Namespace("team"), uid};
    use.owner_uid = Uid(owner);
    use.nominated = nominated;
    nodes_.at(node).pods.push_back(engine::PodView{std::move(use), gpus(count), planned});
  }

  std::shared_ptr<ResourceTable> table_ = std::make_shared<ResourceTable>();
  std::vector<std::string> order_;
  std::map<std::string, engine::NodeView> nodes_;
  std::map<std::string, engine::WorkloadView> workloads_;
  engine::QueuesView queues_;
};

}  // namespace muster::testing

#include "cli/world.hpp"

#include "cli/owner_index.hpp"
#include "cli/unqueued.hpp"
#include "controller/workload_object.hpp"
#include "controller/workload_status.hpp"
#include "kube/codec/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace muster::cli {
namespace {

using kube::Json;
using kube::kNamespaceNameLabel;

constexpr std::int64_t kUsualPods = 110;  // The kubelet's own default.

/// Classes that every cluster has.
constexpr std::pair<const char*, std::int64_t> kSystemClasses[] = {
    {"system-cluster-critical", 2'000'000'000}, {"system-node-critical", 2'000'001'000}};

class Builder {
 public:
  Builder(Input input, const Configuration& configuration) : configuration_(configuration) {
    world_.input = std::move(input);
    world_.directory.request_defaults = std::move(world_.input.request_defaults);
    world_.directory.resource_rules = configuration.resource_rules;
  }

  Result<World> run() {
    add_nodes();
    add_namespaces();
    add_queues();
    read_priorities();
    index_owner_metas();
    const OwnerIndex owners(world_.input);
    if (auto done = add_workloads(owners); !done) return fail(done.error());
    name_preemptors();
    add_pods(owners);
    std::stable_sort(world_.entries.begin(), world_.entries.end(),
                     [](const Entry& a, const Entry& b) { return a.position < b.position; });
    return std::move(world_);
  }

 private:
  template <class Event>
  void tell(Event event) {
    world_.events.emplace_back(std::move(event));
  }

  void add_nodes() {
    for (const Item<kube::Node>& item : world_.input.nodes) {
      const kube::Node& node = item.object;
      engine::NodeSpec spec = controller::to_node(node);
      if (kube::find_condition(ready_conditions(item.position), "Ready") == nullptr) {
        spec.ready = true;
      }
      spec.allocatable.emplace(ResourceName("pods"), Amount(kUsualPods));
      const std::string hostname =
          spec.labels.emplace(kHostnameLabel, node.meta.name).first->second;
      world_.directory.hostname_by_node.emplace(spec.name, hostname);
      const auto [known, is_new] = world_.directory.node_by_hostname.emplace(hostname, spec.name);
      if (!is_new) known->second = std::min(known->second, spec.name);
      tell(engine::NodeUpserted{std::move(spec)});
    }
  }

  /// kube::Node keeps only whether it is ready, not whether it says.
  [[nodiscard]] std::vector<kube::Condition> ready_conditions(std::size_t position) const {
    const Json conditions = world_.input.objects[position].object.get("status", "conditions");
    std::vector<kube::Condition> result;
    for (std::size_t i = 0; i < conditions.size(); ++i) {
      result.emplace_back().type = conditions.at(i).get("type").string_or("");
    }
    return result;
  }

  void add_namespaces() {
    std::map<Namespace, LabelMap> labels;
    for (const InputObject& object : world_.input.objects) {
      if (object.kind && !object.ns.empty()) labels[Namespace(object.ns)];
    }
    for (const Item<kube::Namespace_>& item : world_.input.namespaces) {
      labels[Namespace(item.object.meta.name)] = item.object.meta.labels;
    }
    for (auto& [name, of_name] : labels) {
      // The API server sets this label on every namespace.
      of_name.emplace(kNamespaceNameLabel, name.value());
      tell(engine::NamespaceUpserted{{name, std::move(of_name)}});
    }
  }

  void add_queues() {
    const engine::Capacity fallback =
        world_.input.nodes.empty() ? engine::Capacity::kElastic : engine::Capacity::kFixed;
    for (const Item<kube::Topology>& item : world_.input.topologies) {
      tell(engine::TopologyUpserted{controller::to_topology(item.object)});
    }
    for (const Item<kube::ResourceFlavor>& item : world_.input.flavors) {
      engine::FlavorSpec spec = controller::to_flavor(item.object, fallback);
      world_.directory.flavor_has_topology.emplace(spec.name, spec.topology.has_value());
      tell(engine::FlavorUpserted{std::move(spec)});
    }
    for (const Item<kube::Cohort>& item : world_.input.cohorts) {
      tell(engine::CohortUpserted{controller::to_cohort(item.object)});
    }
    for (const Item<kube::ClusterQueue>& item : world_.input.cluster_queues) {
      tell(engine::ClusterQueueUpserted{controller::to_cluster_queue(item.object)});
    }
    for (const Item<kube::LocalQueue>& item : world_.input.local_queues) {
      tell(engine::LocalQueueUpserted{controller::to_local_queue(item.object)});
    }
  }

  void read_priorities() {
    for (const auto& [name, value] : kSystemClasses) {
      kube::PriorityClass system;
      system.meta.name = name;
      system.value = value;
      priorities_.upsert(system);
    }
    for (const auto& item : world_.input.priority_classes) priorities_.upsert(item.object);
    for (const auto& item : world_.input.workload_priority_classes) {
      priorities_.upsert(item.object);
    }
  }

  Result<void> add_workloads(const OwnerIndex& owners) {
    for (const Item<kube::Workload>& item : world_.input.workloads) {
      Entry entry;
      entry.key = {item.object.meta.ns, item.object.meta.name};
      entry.position = item.position;
      entry.object = world_.input.objects[item.position].object;
      fill_spec(item.object, entry);
      entry_of_workload_.push_back(world_.entries.size());
      world_.entries.push_back(std::move(entry));
    }
    UnqueuedWork work = find_unqueued(world_.input, owners, configuration_, priorities_);
    world_.warnings = std::move(work.warnings);
    world_.notes = std::move(work.notes);
    for (Unqueued& unqueued : work.list) {
      if (auto done = add_unqueued(std::move(unqueued)); !done) return done;
    }
    std::map<WorkloadKey, std::size_t> known;
    for (const Entry& entry : world_.entries) {
      const auto [former, is_new] = known.emplace(entry.key, entry.position);
      if (is_new) continue;
      return fail(ErrorCode::kConflict,
                  fmt::format("{}: {} would be reported under the same name as the object in {}",
                              world_.input.objects[entry.position].place, entry.key,
                              world_.input.objects[former->second].place));
    }
    number_entries();
    return {};
  }

  /// Every tie ends at the uid: it follows age, then the order of the input (design section 4.2).
  void number_entries() {
    std::vector<Entry*> by_age;
    for (Entry& entry : world_.entries) by_age.push_back(&entry);
    const auto age = [](const Entry* entry) {
      const bool unknown = !entry->spec.created;
      return std::tuple(unknown, entry->spec.created.value_or(Instant{}), entry->position);
    };
    std::sort(by_age.begin(), by_age.end(),
              [&](const Entry* a, const Entry* b) { return age(a) < age(b); });
    for (std::size_t i = 0; i < by_age.size(); ++i) {
      by_age[i]->spec.uid = uid_at(i);
      by_age[i]->spec.owner_uid = Uid("members of " + by_age[i]->spec.uid.value());
    }
  }

  Result<void> add_unqueued(Unqueued unqueued) {
    Entry entry;
    entry.key = unqueued.key;
    entry.position = unqueued.position;
    entry.generated = true;
    entry.spec.key = entry.key;
    entry.unfit = unqueued.incomplete;
    if (unqueued.workload.present()) {
      auto workload = kube::decode_workload(unqueued.workload);
      if (!workload) {
        return fail(workload.error().with_context(world_.input.objects[entry.position].place));
      }
      entry.object = std::move(unqueued.workload);
      if (unqueued.finished) {
        const Json patch = controller::finish_patch(*workload, unqueued.succeeded, "Job finished",
                                                    world_.input.latest.value_or(Instant{}));
        entry.object =
            kube::merge_patch(entry.object, Json::object({{"status", patch.get("status")}}));
        workload = kube::decode_workload(entry.object);
        if (!workload) return fail(workload.error());
      }
      fill_spec(*workload, entry);
    }
    world_.entries.push_back(std::move(entry));
    return {};
  }

  void fill_spec(const kube::Workload& read, Entry& entry) {
    kube::Workload workload = read;
    const bool priority_given = workload.priority.has_value();
    if (!priority_given) workload.priority = priority_of(workload);
    entry.spec = controller::to_workload(workload, lookup_in(world_.directory));
    controller::add_protection(entry.spec, owner_meta(workload.meta),
                               priorities_.protection_of(workload));
    entry.spec.key = entry.key;
    // Where no nodes are known, nothing can be said about plans.
    if (world_.input.nodes.empty() && entry.spec.admission) {
      for (auto& pod_set : entry.spec.admission->pod_sets) pod_set.nodes.clear();
    }
    if (entry.spec.evicted) leave(entry);
    if (entry.spec.admission || entry.spec.finished) return;
    if (entry.spec.queue_name.empty()) {
      entry.unfit = without_queue(entry);
    } else if (!priority_given && lacks_class(workload)) {
      entry.unfit = missing_class(workload.priority_class_name);
    }
  }

  [[nodiscard]] engine::Explanation without_queue(const Entry& entry) const {
    const bool left_alone = entry.generated && !configuration_.manage_jobs_without_queue_name;
    return {engine::PendingReason::kMisconfigured,
            {engine::QueueUnusable{
                fmt::format("it names no queue, and namespace {} has no LocalQueue default{}",
                            entry.key.ns, left_alone ? "; the server would leave it alone" : ""),
                "the name of a LocalQueue"}}};
  }

  [[nodiscard]] bool lacks_class(const kube::Workload& workload) const {
    return workload.priority_class_kind == "WorkloadPriorityClass" &&
           !priorities_.workload_classes.contains(workload.priority_class_name);
  }

  /// Of the Job or pod that the Workload belongs to; nullptr: not in the input.
  [[nodiscard]] const kube::ObjectMeta* owner_meta(const kube::ObjectMeta& workload) const {
    const kube::OwnerReference* owner = workload.controller_owner();
    if (owner == nullptr) return nullptr;
    const auto found = owner_metas_.find({owner->kind, workload.ns, owner->name});
    return found == owner_metas_.end() ? nullptr : found->second;
  }

  void index_owner_metas() {
    for (const auto& item : world_.input.jobs) {
      const kube::ObjectMeta& meta = item.object.meta;
      owner_metas_.emplace(std::tuple("Job", meta.ns, meta.name), &meta);
    }
    for (const auto& item : world_.input.pods) {
      const kube::ObjectMeta& meta = item.object.meta;
      owner_metas_.emplace(std::tuple("Pod", meta.ns, meta.name), &meta);
    }
  }

  /// The engine knows the preemptors by their places in the input.
  void name_preemptors() {
    std::map<Uid, Uid> by_uid;
    for (const Entry& entry : world_.entries) {
      const Uid uid(entry.object.get("metadata", "uid").string_or(""));
      if (!uid.empty()) by_uid.emplace(uid, entry.spec.uid);
    }
    for (Entry& entry : world_.entries) {
      if (entry.spec.preempted_for.empty()) continue;
      const auto found = by_uid.find(entry.spec.preempted_for);
      entry.spec.preempted_for = found == by_uid.end() ? Uid() : found->second;
    }
  }

  /// On its way out in the input: it leaves at once and queues again.
  static void leave(Entry& entry) {
    entry.leaving = true;
    entry.spec.admission.reset();
    entry.spec.admitted = false;
    entry.spec.evicted = false;
    entry.spec.quota_reserved_at.reset();
  }

  [[nodiscard]] std::int64_t priority_of(const kube::Workload& workload) const {
    const auto& table = workload.priority_class_kind == "PriorityClass"
                            ? priorities_.pod_classes
                            : priorities_.workload_classes;
    const auto found = table.find(workload.priority_class_name);
    return found == table.end() ? 0 : found->second;
  }

  void add_pods(const OwnerIndex& owners) {
    for (const Item<kube::Pod>& item : world_.input.pods) {
      Entry* entry = running_entry_of(item.object, owners);
      if (entry != nullptr && !item.object.terminal()) entry->pods.push_back(item.position);
      if (entry != nullptr && entry->leaving) continue;
      auto use = controller::to_pod_use(item.object);
      if (!use) continue;
      use->uid = uid_at(item.position);
      use->owner_uid = use->uid;
      if (entry != nullptr) {
        use->owner_uid = entry->spec.owner_uid;
        if (!takes_room_of_its_own(*use, *entry)) continue;
      }
      world_.pods.push_back(*std::move(use));
    }
  }

  [[nodiscard]] Entry* running_entry_of(const kube::Pod& pod, const OwnerIndex& owners) {
    for (const std::size_t index : owners.workloads_of(pod)) {
      Entry& entry = world_.entries[entry_of_workload_[index]];
      if (!entry.spec.finished && (entry.spec.admission || entry.leaving)) return &entry;
    }
    return nullptr;
  }

  /// False for a pod of a planned pod set that is in none of its slots: the plan is the pod set's
  /// use, and nothing is counted twice.
  bool takes_room_of_its_own(const engine::PodUse& use, const Entry& entry) {
    const engine::Admission& admission = *entry.spec.admission;
    bool planned = false;
    for (const engine::PodSetAssignment& pod_set : admission.pod_sets) {
      if (!use.pod_set.empty() && use.pod_set != pod_set.name.value()) continue;
      if (pod_set.nodes.empty()) return true;
      planned = true;
      for (const engine::NodeCount& slots : pod_set.nodes) {
        if (slots.node != use.node || use.nominated) continue;
        std::int64_t& taken = taken_[{entry.position, pod_set.name.value(), use.node}];
        if (taken < slots.count) {
          ++taken;
          return true;
        }
      }
    }
    return !planned;
  }

  const Configuration& configuration_;
  World world_;
  controller::PriorityTable priorities_;
  std::map<std::tuple<std::string, Namespace, std::string>, const kube::ObjectMeta*> owner_metas_;
  std::vector<std::size_t> entry_of_workload_;  ///< By index into Input::workloads.
  std::map<std::tuple<std::size_t, std::string, NodeName>, std::int64_t> taken_;
};

}  // namespace

controller::ObjectLookup lookup_in(const Directory& directory) {
  controller::ObjectLookup lookup;
  lookup.node_of_hostname = [&directory](const std::string& hostname) -> std::optional<NodeName> {
    const auto found = directory.node_by_hostname.find(hostname);
    if (found == directory.node_by_hostname.end()) return std::nullopt;
    return found->second;
  };
  lookup.hostname_of_node = [&directory](const NodeName& node) {
    const auto found = directory.hostname_by_node.find(node);
    if (found == directory.hostname_by_node.end()) return node.value();
    // Where nodes share a hostname, all but the first are written by their names.
    return directory.node_by_hostname.at(found->second) == node ? found->second : node.value();
  };
  lookup.flavor_has_topology = [&directory](const FlavorName& flavor) {
    const auto found = directory.flavor_has_topology.find(flavor);
    return found != directory.flavor_has_topology.end() && found->second;
  };
  lookup.request_defaults = &directory.request_defaults;
  lookup.resource_rules = &directory.resource_rules;
  return lookup;
}

Uid uid_at(std::size_t place) {
  return Uid(fmt::format("{:010}", place));
}

Result<World> build_world(Input input, const Configuration& configuration) {
  return Builder(std::move(input), configuration).run();
}

}  // namespace muster::cli

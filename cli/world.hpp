#pragma once
// The input as the engine is told of it: events for what exists, and one Entry for each thing that
// queues. Design 4.2.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cli/config.hpp"
#include "cli/input.hpp"
#include "controller/translate.hpp"
#include "engine/event.hpp"
#include "engine/reason.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

/// A Workload, or work that has none yet.
struct Entry {
  WorkloadKey key;           ///< Of the Workload, or of the Job, pod or group without one.
  std::size_t position = 0;  ///< In Input::objects; also its place among equals in the queue.
  bool generated = false;    ///< No Workload in the input: `object` is the one it would get.
  kube::Json object;         ///< The Workload; absent for an incomplete pod group.
  engine::WorkloadSpec spec;
  bool leaving = false;  ///< Evicted in the input already: it has left, and queues again.
  /// Its pods that are there: they go when it is evicted. Indices into Input::objects.
  std::vector<std::size_t> pods;
  /// Why it cannot be queued at all; the engine is not told of it then.
  std::optional<engine::Explanation> unfit;
};

/// What Workloads depend on: values of kubernetes.io/hostname and names of nodes, both ways;
/// flavors with a topology; what pods ask for and what of it counts.
struct Directory {
  std::map<std::string, NodeName> node_by_hostname;
  std::map<NodeName, std::string> hostname_by_node;
  std::map<FlavorName, bool> flavor_has_topology;
  controller::RequestDefaults request_defaults;
  kube::ResourceRules resource_rules;
};
/// Answers from `directory`, which outlives it.
[[nodiscard]] controller::ObjectLookup lookup_in(const Directory& directory);

struct World {
  Input input;
  Directory directory;
  /// What exists besides workloads and pods, in an order that the engine can be told it in.
  std::vector<engine::Event> events;
  std::vector<Entry> entries;        ///< In input order.
  std::vector<engine::PodUse> pods;  ///< Room taken by pods, none of it twice.
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  ///< What is as it should be, and yet good to know.
};

/// The uid that the engine knows an object by, in the order of `place`: of a pod its position in the
/// input, of a workload its rank by age and position. Objects without metadata.uid work, too.
[[nodiscard]] Uid uid_at(std::size_t place);

/// What a file leaves out of a Node because the kubelet would fill it in is taken as usual: Ready
/// unless a condition says otherwise, a hostname label like its name, room for 110 pods. Flavors
/// without the annotation muster.dev/capacity are fixed when the input has a Node, else elastic.
/// Two entries of one key are an error.
[[nodiscard]] Result<World> build_world(Input input, const Configuration& configuration);

}  // namespace muster::cli

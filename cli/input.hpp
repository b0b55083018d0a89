#pragma once
// Manifests decoded: one list per kind, each object with its place in the input.

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/manifest_reader.hpp"
#include "controller/request_defaults.hpp"
#include "kube/codec/objects.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace muster::cli {

template <class T>
struct Item {
  std::size_t position = 0;  ///< Index into Input::objects.
  T object;
};

/// Namespaced objects have their namespace set, also where the document left it out.
struct Input {
  std::vector<InputObject> objects;  ///< All, in input order.

  std::vector<Item<kube::Node>> nodes;
  std::vector<Item<kube::Namespace_>> namespaces;
  std::vector<Item<kube::Pod>> pods;
  std::vector<Item<kube::PriorityClass>> priority_classes;
  std::vector<Item<kube::WorkloadPriorityClass>> workload_priority_classes;
  std::vector<Item<kube::ResourceFlavor>> flavors;
  std::vector<Item<kube::Topology>> topologies;
  std::vector<Item<kube::Cohort>> cohorts;
  std::vector<Item<kube::ClusterQueue>> cluster_queues;
  std::vector<Item<kube::LocalQueue>> local_queues;
  std::vector<Item<kube::Workload>> workloads;
  std::vector<Item<kube::Job>> jobs;
  controller::RequestDefaults request_defaults;

  /// The latest time that an object says something happened at: every member named `…Timestamp` or
  /// `…Time`. Absent: no object says any.
  std::optional<Instant> latest;
};

/// An error names the object's place and the field path. Besides what does not decode, quantities
/// below zero are refused where they would count.
[[nodiscard]] Result<Input> decode_input(std::vector<InputObject> objects);

}  // namespace muster::cli

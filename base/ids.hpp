#pragma once
// Names at the edge, dense indices inside. Names are Kubernetes object names unless said otherwise.

#include "base/strong.hpp"

#include <cstdint>
#include <string>

namespace muster {

using ClusterQueueName = Strong<struct ClusterQueueNameTag, std::string>;
using CohortName = Strong<struct CohortNameTag, std::string>;
using FlavorName = Strong<struct FlavorNameTag, std::string>;
using ResourceName = Strong<struct ResourceNameTag, std::string>;  ///< `cpu`, `nvidia.com/gpu`.
using NodeName = Strong<struct NodeNameTag, std::string>;
using Namespace = Strong<struct NamespaceTag, std::string>;
using TopologyName = Strong<struct TopologyNameTag, std::string>;
using PodSetName = Strong<struct PodSetNameTag, std::string>;
using Uid = SharedStrong<struct UidTag>;  ///< metadata.uid.

/// Dense index of a resource name in one ResourceTable.
using ResourceId = Strong<struct ResourceIdTag, std::uint16_t>;

/// `namespace/name` of a namespaced object.
template <class Tag>
struct NamespacedName {
  Namespace ns;
  std::string name;

  auto operator<=>(const NamespacedName&) const = default;
  bool operator==(const NamespacedName&) const = default;
  [[nodiscard]] std::string to_string() const { return ns.value() + "/" + name; }
};

using WorkloadKey = NamespacedName<struct WorkloadKeyTag>;
using LocalQueueKey = NamespacedName<struct LocalQueueKeyTag>;
using PodKey = NamespacedName<struct PodKeyTag>;

}  // namespace muster

template <class Tag>
struct std::hash<muster::NamespacedName<Tag>> {
  std::size_t operator()(const muster::NamespacedName<Tag>& key) const noexcept {
    return std::hash<std::string>{}(key.ns.value()) * 31 + std::hash<std::string>{}(key.name);
  }
};

template <class Tag>
struct fmt::formatter<muster::NamespacedName<Tag>> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const muster::NamespacedName<Tag>& key, Context& context) const {
    return fmt::format_to(context.out(), "{}/{}", key.ns, key.name);
  }
};

#pragma once
// Which Workload an owner or a pod belongs to: joined by the kind and name of ownerReferences,
// since manifests from files need not have uids. Design 4.2.

#include "base/ids.hpp"
#include "cli/input.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace muster::cli {

class OwnerIndex {
 public:
  /// `input` outlives the index.
  explicit OwnerIndex(const Input& input);

  /// Indices into Input::workloads; empty: the owner has none.
  [[nodiscard]] const std::vector<std::size_t>& workloads_of(const Namespace& ns,
                                                             const std::string& kind,
                                                             const std::string& name) const;
  /// Its own Workloads, or those of what controls it.
  [[nodiscard]] std::vector<std::size_t> workloads_of(const kube::Job& job) const;
  /// Its own Workloads, its group's, or those of what owns it, over Jobs upwards.
  [[nodiscard]] std::vector<std::size_t> workloads_of(const kube::Pod& pod) const;

 private:
  using Key = std::tuple<Namespace, std::string, std::string>;

  void collect(const kube::ObjectMeta& meta, std::size_t depth,
               std::vector<std::size_t>& into) const;

  std::map<Key, std::vector<std::size_t>> by_owner_;
  std::map<std::pair<Namespace, std::string>, std::size_t> by_name_;
  std::map<std::pair<Namespace, std::string>, const kube::Job*> jobs_;
};

/// The group of plain pods that this one belongs to, by label or annotation; empty: none.
[[nodiscard]] std::string pod_group_of(const kube::Pod& pod);

}  // namespace muster::cli

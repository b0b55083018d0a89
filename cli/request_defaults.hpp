#pragma once
// What the API server adds to a pod's requests when it is created: overhead of its RuntimeClass and
// the defaults of its namespace's LimitRanges. Rules: queueing semantics section 0, steps 1 and 2.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "kube/codec/objects.hpp"

#include <map>
#include <string>

namespace muster::cli {

class RequestDefaults {
 public:
  [[nodiscard]] Result<void> add_limit_range(const Namespace& ns, const kube::Json& object);
  [[nodiscard]] Result<void> add_runtime_class(const std::string& name, const kube::Json& object);

  /// Fills in what the spec leaves out; nothing that is written there changes.
  void apply(const Namespace& ns, kube::PodSpec& spec) const;

 private:
  struct Defaults {
    kube::QuantityMap requests;
    kube::QuantityMap limits;
  };
  struct NamespaceDefaults {
    Defaults container;
    Defaults pod;  ///< Only for pods that have resources of their own, as a whole.
  };

  std::map<Namespace, NamespaceDefaults> namespaces_;
  std::map<std::string, kube::QuantityMap> overheads_;
};

}  // namespace muster::cli

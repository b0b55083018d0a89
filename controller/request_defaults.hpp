#pragma once
// What the API server adds to a pod's requests when it is created: overhead of its RuntimeClass and
// the defaults of its namespace's LimitRanges. Rules: queueing semantics section 0, steps 1 to 3,
// with 3 before 2 where a container has limits of its own, as the API server does it.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "kube/codec/objects.hpp"

#include <map>
#include <optional>
#include <string>

namespace muster::controller {

/// The LimitRanges and RuntimeClasses known now. Of several LimitRanges of a namespace the first by
/// name that says something about a resource counts.
class RequestDefaults {
 public:
  /// Adds the object or replaces what is known of it; what does not decode changes nothing.
  [[nodiscard]] Result<void> upsert_limit_range(const Namespace& ns, const std::string& name,
                                                const kube::Json& object);
  void erase_limit_range(const Namespace& ns, const std::string& name);
  [[nodiscard]] Result<void> upsert_runtime_class(const std::string& name,
                                                  const kube::Json& object);
  void erase_runtime_class(const std::string& name);

  /// Fills in what the spec leaves out; nothing that is written there changes.
  void apply(const Namespace& ns, kube::PodSpec& spec) const;

  /// Why the API server would refuse a pod of this spec, to which apply() was done: a request above
  /// its limit, or what a LimitRange forbids. Nothing: it would not. Semantics (c), step 3.
  [[nodiscard]] std::optional<std::string> violation(const Namespace& ns,
                                                     const kube::PodSpec& spec) const;

 private:
  /// What a LimitRange says about one type.
  struct Defaults {
    kube::QuantityMap requests;
    kube::QuantityMap limits;
    kube::QuantityMap max;
    kube::QuantityMap min;
  };
  struct LimitRange {
    Defaults container;
    Defaults pod;  ///< Defaults only for pods that have resources of their own, as a whole.
  };

  std::map<Namespace, std::map<std::string, LimitRange>> limit_ranges_;
  std::map<std::string, kube::QuantityMap> overheads_;
};

}  // namespace muster::controller

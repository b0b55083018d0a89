// What a pod asks for in all, by the rules of KEP-753 (sidecars) and KEP-2837 (pod-level
// resources), as the scheduler and the kubelet count it.

#include "kube/codec/objects.hpp"

#include <algorithm>

namespace muster::kube {
namespace {

void add(QuantityMap& total, const QuantityMap& more) {
  for (const auto& [name, quantity] : more) total[name] = total[name] + quantity;
}

void raise_to(QuantityMap& total, const QuantityMap& floor) {
  for (const auto& [name, quantity] : floor) {
    const auto [at, added] = total.emplace(name, quantity);
    if (!added && quantity.compare(at->second) > 0) at->second = quantity;
  }
}

/// A container's requests; what it limits but does not request counts as requested.
QuantityMap requests_of(const Container& container) {
  QuantityMap requests = container.requests;
  requests.insert(container.limits.begin(), container.limits.end());
  return requests;
}

QuantityMap sum_containers(const PodSpec& spec) {
  QuantityMap running;
  for (const Container& container : spec.containers) add(running, requests_of(container));
  QuantityMap sidecars;  // Those started so far: they run beside every later init container.
  QuantityMap starting;
  for (const Container& container : spec.init_containers) {
    const QuantityMap requests = requests_of(container);
    if (container.restart_always) {
      add(running, requests);
      add(sidecars, requests);
      raise_to(starting, sidecars);
    } else {
      QuantityMap together = sidecars;
      add(together, requests);
      raise_to(starting, together);
    }
  }
  raise_to(running, starting);
  return running;
}

bool is_huge_pages(const ResourceName& name) {
  return name.value().starts_with("hugepages-");
}

/// The resources that may be given for the pod as a whole.
bool is_pod_level(const ResourceName& name) {
  return name.value() == "cpu" || name.value() == "memory" || is_huge_pages(name);
}

}  // namespace

QuantityMap effective_requests(const PodSpec& spec) {
  QuantityMap total = sum_containers(spec);
  for (const auto& [name, limit] : spec.pod_limits.value_or(QuantityMap())) {
    // The API server's defaulting: without a pod-level request the containers' sum counts, and the
    // pod-level limit where they ask for nothing. Huge pages cannot be overcommitted: the limit.
    if (!is_pod_level(name)) continue;
    if (is_huge_pages(name) || !total.contains(name)) total[name] = limit;
  }
  for (const auto& [name, request] : spec.pod_requests.value_or(QuantityMap())) {
    if (is_pod_level(name)) total[name] = request;
  }
  add(total, spec.overhead);
  return total;
}

ResourceList node_charge(const PodSpec& spec) {
  ResourceList charge;
  for (const auto& [name, quantity] : effective_requests(spec)) {
    // The API server accepts no negative request; one that gets here must not make room.
    charge[name] = std::max(request_amount(name, quantity), Amount());
  }
  charge[ResourceName("pods")] = Amount(1);
  return charge;
}

}  // namespace muster::kube

#include "cli/request_defaults.hpp"

#include "kube/codec/object_parts.hpp"

namespace muster::cli {
namespace {

using kube::QuantityMap;
using kube::Reader;

/// Keeps what is there.
void fill_in(QuantityMap& target, const QuantityMap& defaults) {
  target.insert(defaults.begin(), defaults.end());
}

}  // namespace

Result<void> RequestDefaults::add_limit_range(const Namespace& ns, const kube::Json& object) {
  NamespaceDefaults read;
  const auto done = kube::decode_with(object, [&](const Reader& root) {
    const Reader spec = root.get("spec");
    const Reader limits = spec.get("limits");
    limits.each([&](const Reader& item) {
      const std::string type = item.get("type").string();
      if (type != "Container" && type != "Pod") return;
      // The API server's defaulting of the LimitRange itself: max stands in for default, default
      // and then min for defaultRequest.
      QuantityMap limit = item.get("default").quantities();
      if (type == "Container") fill_in(limit, item.get("max").quantities());
      QuantityMap request = item.get("defaultRequest").quantities();
      if (type == "Container") {
        fill_in(request, limit);
        fill_in(request, item.get("min").quantities());
      }
      Defaults& defaults = type == "Container" ? read.container : read.pod;
      fill_in(defaults.limits, limit);
      fill_in(defaults.requests, request);
    });
    return true;
  });
  if (!done) return fail(done.error());
  NamespaceDefaults& known = namespaces_[ns];
  for (const auto& [target, source] :
       {std::pair{&known.container, &read.container}, std::pair{&known.pod, &read.pod}}) {
    fill_in(target->limits, source->limits);
    fill_in(target->requests, source->requests);
  }
  return {};
}

Result<void> RequestDefaults::add_runtime_class(const std::string& name, const kube::Json& object) {
  const auto overhead = kube::decode_with(object, [](const Reader& root) {
    const Reader field = root.get("overhead");
    return field.get("podFixed").quantities();
  });
  if (!overhead) return fail(overhead.error());
  overheads_.emplace(name, *overhead);
  return {};
}

void RequestDefaults::apply(const Namespace& ns, kube::PodSpec& spec) const {
  if (spec.overhead.empty() && !spec.runtime_class_name.empty()) {
    const auto overhead = overheads_.find(spec.runtime_class_name);
    if (overhead != overheads_.end()) spec.overhead = overhead->second;
  }
  const auto found = namespaces_.find(ns);
  if (found == namespaces_.end()) return;
  const NamespaceDefaults& defaults = found->second;
  for (auto* containers : {&spec.containers, &spec.init_containers}) {
    for (kube::Container& container : *containers) {
      fill_in(container.limits, defaults.container.limits);
      fill_in(container.requests, defaults.container.requests);
    }
  }
  if (spec.pod_limits) fill_in(*spec.pod_limits, defaults.pod.limits);
  if (spec.pod_requests) fill_in(*spec.pod_requests, defaults.pod.requests);
}

}  // namespace muster::cli

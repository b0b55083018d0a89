#include "controller/request_defaults.hpp"

#include "kube/codec/object_parts.hpp"

#include <fmt/format.h>

namespace muster::controller {
namespace {

using kube::QuantityMap;
using kube::Reader;

/// The first resource of which `asked` has more than `bound`; of resources that are in both.
std::optional<ResourceName> first_above(const QuantityMap& asked, const QuantityMap& bound) {
  for (const auto& [resource, quantity] : asked) {
    const auto found = bound.find(resource);
    if (found != bound.end() && quantity.compare(found->second) > 0) return resource;
  }
  return std::nullopt;
}

/// What `bounds` say against requests and limits of `what`.
std::optional<std::string> outside(const std::string& what, const QuantityMap& requests,
                                   const QuantityMap& limits, const QuantityMap& max,
                                   const QuantityMap& min) {
  for (const QuantityMap* asked : {&requests, &limits}) {
    if (const auto resource = first_above(*asked, max)) {
      return fmt::format("{} has {} {}, and a LimitRange allows at most {}", what,
                         asked->at(*resource).to_string(), *resource,
                         max.at(*resource).to_string());
    }
    if (const auto resource = first_above(min, *asked)) {
      return fmt::format("{} has {} {}, and a LimitRange wants at least {}", what,
                         asked->at(*resource).to_string(), *resource,
                         min.at(*resource).to_string());
    }
  }
  return std::nullopt;
}

/// Keeps what is there.
void fill_in(QuantityMap& target, const QuantityMap& defaults) {
  target.insert(defaults.begin(), defaults.end());
}

}  // namespace

Result<void> RequestDefaults::upsert_limit_range(const Namespace& ns, const std::string& name,
                                                 const kube::Json& object) {
  const auto read = kube::decode_with(object, [](const Reader& root) {
    LimitRange result;
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
      Defaults& defaults = type == "Container" ? result.container : result.pod;
      fill_in(defaults.limits, limit);
      fill_in(defaults.requests, request);
      fill_in(defaults.max, item.get("max").quantities());
      fill_in(defaults.min, item.get("min").quantities());
    });
    return result;
  });
  if (!read) return fail(read.error());
  limit_ranges_[ns].insert_or_assign(name, *read);
  return {};
}

void RequestDefaults::erase_limit_range(const Namespace& ns, const std::string& name) {
  const auto found = limit_ranges_.find(ns);
  if (found == limit_ranges_.end()) return;
  found->second.erase(name);
  if (found->second.empty()) limit_ranges_.erase(found);
}

Result<void> RequestDefaults::upsert_runtime_class(const std::string& name,
                                                   const kube::Json& object) {
  const auto overhead = kube::decode_with(object, [](const Reader& root) {
    const Reader field = root.get("overhead");
    return field.get("podFixed").quantities();
  });
  if (!overhead) return fail(overhead.error());
  overheads_.insert_or_assign(name, *overhead);
  return {};
}

void RequestDefaults::erase_runtime_class(const std::string& name) {
  overheads_.erase(name);
}

void RequestDefaults::apply(const Namespace& ns, kube::PodSpec& spec) const {
  if (spec.overhead.empty() && !spec.runtime_class_name.empty()) {
    const auto overhead = overheads_.find(spec.runtime_class_name);
    if (overhead != overheads_.end()) spec.overhead = overhead->second;
  }
  const auto found = limit_ranges_.find(ns);
  if (found == limit_ranges_.end()) return;
  // A pod's own limits stand in for its requests before any LimitRange is looked at: that is
  // defaulting of the pod, which comes before admission.
  for (auto* containers : {&spec.containers, &spec.init_containers}) {
    for (kube::Container& container : *containers) fill_in(container.requests, container.limits);
  }
  for (const auto& [name, defaults] : found->second) {
    for (auto* containers : {&spec.containers, &spec.init_containers}) {
      for (kube::Container& container : *containers) {
        fill_in(container.limits, defaults.container.limits);
        fill_in(container.requests, defaults.container.requests);
      }
    }
    if (spec.pod_limits) fill_in(*spec.pod_limits, defaults.pod.limits);
    if (spec.pod_requests) fill_in(*spec.pod_requests, defaults.pod.requests);
  }
}

std::optional<std::string> RequestDefaults::violation(const Namespace& ns,
                                                      const kube::PodSpec& spec) const {
  const auto found = limit_ranges_.find(ns);
  for (const auto* containers : {&spec.init_containers, &spec.containers}) {
    for (const kube::Container& container : *containers) {
      const std::string what = fmt::format("container {}", container.name);
      if (const auto resource = first_above(container.requests, container.limits)) {
        return fmt::format("{} asks for {} {}, above its limit of {}", what,
                           container.requests.at(*resource).to_string(), *resource,
                           container.limits.at(*resource).to_string());
      }
      if (found == limit_ranges_.end()) continue;
      for (const auto& [name, range] : found->second) {
        const Defaults& bounds = range.container;
        auto why = outside(what, container.requests, container.limits, bounds.max, bounds.min);
        if (why) return why;
      }
    }
  }
  if (found == limit_ranges_.end()) return std::nullopt;
  const QuantityMap total = kube::effective_requests(spec);
  for (const auto& [name, range] : found->second) {
    if (auto why = outside("a pod", total, {}, range.pod.max, range.pod.min)) return why;
  }
  return std::nullopt;
}

}  // namespace muster::controller

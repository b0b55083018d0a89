#pragma once
// Which resources are accelerators, by name: what a second of work counts and when a host is whole.

#include "base/ids.hpp"

namespace muster::engine {

/// `nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`, `google.com/tpu`.
[[nodiscard]] bool is_accelerator(const ResourceName& name);

}  // namespace muster::engine

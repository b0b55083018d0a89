#include "engine/accelerators.hpp"

#include <string>
#include <string_view>

namespace muster::engine {

bool is_accelerator(const ResourceName& name) {
  const std::size_t slash = name.value().find('/');
  if (slash == std::string::npos) return false;
  const std::string_view word = std::string_view(name.value()).substr(slash + 1);
  return word.starts_with("gpu") || word.starts_with("mig-") || word.starts_with("tpu");
}

}  // namespace muster::engine

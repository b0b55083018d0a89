// YAML manifests: any text is read or refused, and what is read survives being written.

#include "kube/codec/yaml.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::fuzz::require;
  const auto documents = muster::kube::parse_yaml(muster::fuzz::as_text(data, size));
  if (!documents) {
    require(!documents.error().message.empty());
    return 0;
  }
  for (const muster::kube::Json& document : *documents) {
    const auto again = muster::kube::parse_yaml(muster::kube::to_yaml(document));
    require(again.has_value() && again->size() == 1 && again->front() == document);
  }
  return 0;
}

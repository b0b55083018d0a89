// AdmissionReview bodies to the webhook as it is served: both paths, a world with queues in it.

#include "kube/codec/json.hpp"
#include "tests/extender/snapshot_builder.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "webhook/webhook.hpp"

namespace {

const muster::engine::Snapshot& world() {
  static const muster::engine::Snapshot snapshot =
      muster::testing::SnapshotBuilder()
          .node("n1")
          .node("n2")
          .gang("g", {"n1", "n2"})
          .bound("g", "g-0", "n1", 0)
          .local_queue("team", "main", "q", 16)
          .ns("team", {{"kubernetes.io/metadata.name", "team"}})
          .build();
  return snapshot;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::fuzz::require;
  static const muster::webhook::WebhookOptions options;
  for (const char* path : {"/mutate", "/validate"}) {
    const auto answer =
        muster::webhook::answer(path, muster::fuzz::as_text(data, size), world(), options);
    require(answer.status == 200 || answer.status == 400 || answer.status == 413);
    require(muster::kube::Json::parse(answer.body).has_value());
  }
  return 0;
}

// ExtenderArgs and ExtenderPreemptionArgs to the extender as it is served: all verbs, a world with
// a gang half bound and a foreign pod in it.

#include "extender/extender.hpp"
#include "kube/codec/json.hpp"
#include "tests/extender/snapshot_builder.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

const muster::engine::Snapshot& world() {
  static const muster::engine::Snapshot snapshot = muster::testing::SnapshotBuilder()
                                                       .node("node-a")
                                                       .node("node-b")
                                                       .gang("g", {"node-a", "node-b"})
                                                       .bound("g", "g-0", "node-a", 0)
                                                       .foreign("node-b", "f", 2)
                                                       .build();
  return snapshot;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::fuzz::require;
  muster::extender::Ledger ledger;
  for (const char* verb : {"filter", "prioritize", "preempt"}) {
    const auto answer = muster::extender::answer(verb, muster::fuzz::as_text(data, size), world(),
                                                 ledger, muster::Instant{});
    require(answer.status == 200 || answer.status == 400 || answer.status == 413);
    require(answer.body.empty() || muster::kube::Json::parse(answer.body).has_value());
  }
  return 0;
}

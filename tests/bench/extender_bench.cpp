// What a scheduler call costs from the bytes of the request to the bytes of the answer, on a fleet
// of 1,250 nodes of which two thirds carry plans. Targets at -O2: filter with 1, 500 and 1,250
// names within 0.1, 0.2 and 0.3 ms.

#include "extender/extender.hpp"
#include "tests/extender/snapshot_builder.hpp"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace muster::extender {
namespace {

constexpr int kNodes = 1250;

std::string node_name(int i) {
  std::string digits = std::to_string(i);
  return "gpu-pool-a-node-" + std::string(4 - digits.size(), '0') + digits + ".example.internal";
}

engine::Snapshot make_fleet() {
  testing::SnapshotBuilder world;
  // The scheduler's order is not that in which nodes came.
  for (int i = 0; i < kNodes; ++i) world.node(node_name((i * 7) % kNodes));
  for (int gang = 0; (gang * 3) + 2 < kNodes; ++gang) {
    const std::string first = node_name(gang * 3);
    const std::string second = node_name((gang * 3) + 1);
    const std::string owner = "gang-" + std::to_string(gang);
    world.gang(owner, {first, second}, gang % 2 == 0 ? 8 : 4);
    world.foreign(node_name((gang * 3) + (gang % 3)), "foreign-" + owner, 2);
  }
  return world.build();
}

/// About what kube-scheduler sends: a kilobyte of pod, then the names.
std::string make_args(int names, const std::string& gpus) {
  std::string body =
      R"({"Pod":{"metadata":{"name":"debug-7f9c","namespace":"team-a","uid":"5f1c9a0e-77b1",)"
      R"("resourceVersion":"812","generation":1,"creationTimestamp":"2026-11-29T16:00:00Z",)"
      R"("labels":{"app":"debug","team":"a"},"annotations":{"note":"a shell"}},"spec":{)"
      R"("volumes":[{"name":"token","projected":{"sources":[{"serviceAccountToken":{)"
      R"("expirationSeconds":3607,"path":"token"}}],"defaultMode":420}}],"containers":[{)"
      R"("name":"main","image":"registry.example/debug:1","resources":{"limits":{)"
      R"("nvidia.com/gpu":")" +
      gpus + R"("},"requests":{"cpu":"4","memory":"32Gi","nvidia.com/gpu":")" + gpus +
      R"("}},"volumeMounts":[{"name":"token","readOnly":true,"mountPath":"/var/run/secrets"}],)"
      R"("terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}],)"
      R"("restartPolicy":"Never","serviceAccountName":"default","schedulerName":)"
      R"("default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":)"
      R"("Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,)"
      R"("preemptionPolicy":"PreemptLowerPriority"},"status":{"phase":"Pending","conditions":[{)"
      R"("type":"PodScheduled","status":"False","lastProbeTime":null,"lastTransitionTime":)"
      R"("2026-11-29T16:00:01Z","reason":"Unschedulable","message":"0/3 nodes"}],)"
      R"("qosClass":"Burstable"}},"Nodes":null,"NodeNames":[)";
  for (int i = 0; i < names; ++i) {
    if (i > 0) body += ',';
    body += '"' + node_name(i) + '"';
  }
  return body + "]}";
}

void run(benchmark::State& state, const char* verb, const std::string& gpus) {
  const engine::Snapshot fleet = make_fleet();
  const std::string body = make_args(static_cast<int>(state.range(0)), gpus);
  Ledger ledger;
  for (auto _ : state) {
    benchmark::DoNotOptimize(answer(verb, body, fleet, ledger, Instant{}));
  }
}

void filter_small(benchmark::State& state) {
  run(state, "filter", "1");
}
void filter_whole_node(benchmark::State& state) {
  run(state, "filter", "8");
}
void prioritize_small(benchmark::State& state) {
  run(state, "prioritize", "1");
}

BENCHMARK(filter_small)->Arg(1)->Arg(500)->Arg(1250)->Unit(benchmark::kMicrosecond);
BENCHMARK(filter_whole_node)->Arg(1)->Arg(500)->Arg(1250)->Unit(benchmark::kMicrosecond);
BENCHMARK(prioritize_small)->Arg(1)->Arg(500)->Arg(1250)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace muster::extender

BENCHMARK_MAIN();

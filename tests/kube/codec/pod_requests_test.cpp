#include "kube/codec/objects.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace muster::kube {
namespace {

QuantityMap cpu(const char* quantity) {
  return {{ResourceName("cpu"), Quantity::parse(quantity).value()}};
}

Container container(const char* request) {
  Container result;
  if (*request != '\0') result.requests = cpu(request);
  return result;
}
Container sidecar(const char* request) {
  Container result = container(request);
  result.restart_always = true;
  return result;
}

std::string total_cpu(const PodSpec& spec) {
  const QuantityMap total = effective_requests(spec);
  const auto found = total.find(ResourceName("cpu"));
  return found == total.end() ? "none" : found->second.to_string();
}

TEST(EffectiveRequests, FollowTheSidecarFormula) {
  const struct {
    const char* sentence;
    std::vector<Container> init;
    std::vector<Container> main;
    const char* cpu;
  } cases[] = {
      {"nothing asked", {}, {container("")}, "none"},
      {"containers add up", {}, {container("1"), container("500m")}, "1500m"},
      {"an init container below the sum does not count", {container("1")}, {container("2")}, "2"},
      {"an init container above the sum is the floor", {container("3")}, {container("2")}, "3"},
      {"init containers run one after the other",
       {container("3"), container("2")},
       {container("1")},
       "3"},
      // Sidecars run all the while: 1 + 2.
      {"a sidecar adds to the containers", {sidecar("1")}, {container("2")}, "3"},
      // While the init container runs, the sidecar started before it does: 1 + 5 > 1 + 2.
      {"an init container beside an earlier sidecar",
       {sidecar("1"), container("5")},
       {container("2")},
       "6"},
      // The sidecar starts after the init container: max(5, 1 + 2).
      {"an init container before the sidecar",
       {container("5"), sidecar("1")},
       {container("2")},
       "5"},
      // KEP-753: sidecars 1 + 2 + 3 with init containers 4 (beside 1) and 7 (beside 1 + 2):
      // max(4 + 1, 7 + 3, 6 + 1 from the containers) = 10.
      {"several of each",
       {sidecar("1"), container("4"), sidecar("2"), container("7"), sidecar("3")},
       {container("1")},
       "10"},
  };
  for (const auto& each : cases) {
    PodSpec spec;
    spec.init_containers = each.init;
    spec.containers = each.main;
    EXPECT_EQ(total_cpu(spec), each.cpu) << each.sentence;
  }
}

TEST(EffectiveRequests, TakesAMissingRequestFromTheLimit) {
  Container limited;
  limited.limits = cpu("2");
  limited.limits.emplace(ResourceName("memory"), Quantity::parse("1Gi").value());
  limited.requests = cpu("500m");
  PodSpec spec;
  spec.containers = {limited};
  const QuantityMap total = effective_requests(spec);
  EXPECT_EQ(total.at(ResourceName("cpu")).to_string(), "500m");
  EXPECT_EQ(total.at(ResourceName("memory")).to_string(), "1Gi");
}

TEST(EffectiveRequests, LetsPodLevelResourcesWin) {
  PodSpec spec;
  spec.containers = {container("1"), container("1")};
  spec.pod_requests = cpu("5");
  EXPECT_EQ(total_cpu(spec), "5");

  // A pod-level limit alone: the containers' sum where they ask, the limit where they do not.
  spec.pod_requests.reset();
  spec.pod_limits = cpu("8");
  EXPECT_EQ(total_cpu(spec), "2");
  spec.containers = {container("")};
  EXPECT_EQ(total_cpu(spec), "8");

  // Only cpu, memory and huge pages can be given for the pod as a whole.
  spec = PodSpec();
  spec.pod_requests = QuantityMap{{ResourceName("nvidia.com/gpu"), Quantity::from_units(8)},
                                  {ResourceName("hugepages-2Mi"), Quantity::from_units(4)}};
  const QuantityMap total = effective_requests(spec);
  EXPECT_FALSE(total.contains(ResourceName("nvidia.com/gpu")));
  EXPECT_EQ(total.at(ResourceName("hugepages-2Mi")).units_ceil(), 4);
}

TEST(EffectiveRequests, AddsOverheadLast) {
  PodSpec spec;
  spec.containers = {container("1")};
  spec.init_containers = {container("3")};
  spec.overhead = cpu("250m");
  EXPECT_EQ(total_cpu(spec), "3250m");
  spec.pod_requests = cpu("5");
  EXPECT_EQ(total_cpu(spec), "5250m");
}

TEST(EffectiveRequests, AreExactUntilTheEnd) {
  // Three times a third of a thousandth: 999999n, rounded up once and not three times.
  PodSpec spec;
  spec.containers = {container("333333n"), container("333333n"), container("333333n")};
  EXPECT_EQ(total_cpu(spec), "999999n");
  EXPECT_EQ(node_charge(spec).at(ResourceName("cpu")), Amount(1));
}

TEST(NodeCharge, RoundsUpCountsThePodAndMakesNoRoom) {
  PodSpec spec;
  spec.containers = {container("100500u")};
  spec.containers[0].requests.emplace(ResourceName("nvidia.com/gpu"), Quantity::from_millis(1500));
  spec.containers[0].requests.emplace(ResourceName("memory"), Quantity::from_units(-5));
  const ResourceList charge = node_charge(spec);
  EXPECT_EQ(charge.at(ResourceName("cpu")), Amount(101));
  EXPECT_EQ(charge.at(ResourceName("nvidia.com/gpu")), Amount(2));
  EXPECT_EQ(charge.at(ResourceName("memory")), Amount(0));
  EXPECT_EQ(charge.at(ResourceName("pods")), Amount(1));
  EXPECT_EQ(node_charge(PodSpec()), (ResourceList{{ResourceName("pods"), Amount(1)}}));
}

/// The formula as KEP-753 states it, in plain numbers: the most that runs at any moment.
std::int64_t most_at_once(const std::vector<std::pair<bool, std::int64_t>>& init,
                          const std::vector<std::int64_t>& main) {
  std::int64_t most = 0;
  std::int64_t sidecars = 0;
  for (const auto& [is_sidecar, amount] : init) {
    most = std::max(most, sidecars + amount);
    if (is_sidecar) sidecars += amount;
  }
  std::int64_t running = sidecars;
  for (const std::int64_t amount : main) running += amount;
  return std::max(most, running);
}

TEST(EffectiveRequestsProperty, AreTheMostThatRunsAtAnyMoment) {
  EXPECT_TRUE(rc::check([] {
    const auto amount = rc::gen::inRange<std::int64_t>(0, 100);
    const auto init = *rc::gen::container<std::vector<std::pair<bool, std::int64_t>>>(
        rc::gen::pair(rc::gen::arbitrary<bool>(), amount));
    const auto main = *rc::gen::container<std::vector<std::int64_t>>(amount);
    PodSpec spec;
    for (const auto& [is_sidecar, cores] : init) {
      const std::string text = fmt::format("{}", cores);
      spec.init_containers.push_back(is_sidecar ? sidecar(text.c_str()) : container(text.c_str()));
    }
    for (const std::int64_t cores : main)
      spec.containers.push_back(container(fmt::format("{}", cores).c_str()));
    const QuantityMap total = effective_requests(spec);
    const auto found = total.find(ResourceName("cpu"));
    const std::int64_t cores = found == total.end() ? 0 : found->second.units_ceil();
    RC_ASSERT(cores == most_at_once(init, main));
  }));
}

}  // namespace
}  // namespace muster::kube

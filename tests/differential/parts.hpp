#pragma once
// What the generators of worlds share: a source of chance that is the same everywhere, and the
// pieces of objects that both kinds of world have.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace muster::differential {

/// splitmix64: the standard's distributions differ between libraries, this does not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }
  /// 0 to `count` - 1 in some order.
  std::vector<int> order_of(int count);

 private:
  std::uint64_t state_;
};

inline constexpr const char* kApi = R"("apiVersion":"kueue.x-k8s.io/v1beta2")";
inline constexpr const char* kGpu = "nvidia.com/gpu";
inline constexpr const char* kStart = "2026-03-01T00:00:";

/// With commas between.
[[nodiscard]] std::string joined(const std::vector<std::string>& parts);

[[nodiscard]] std::string list_of_objects(const std::vector<std::string>& objects);

/// preemptionStrategies, one of those that are allowed.
[[nodiscard]] std::vector<std::string> some_strategies(Random& random);

/// `,"preemption":{…}` of a ClusterQueue.
[[nodiscard]] std::string some_preemption(Random& random);

/// `,"flavorFungibility":{…}` of a ClusterQueue.
[[nodiscard]] std::string some_fungibility(Random& random);

[[nodiscard]] std::string local_queue(const std::string& cluster_queue);

/// The inside of a pod's spec: one container with these requests, and whether it tolerates taints
/// of spot nodes. To be added to.
[[nodiscard]] std::string pod_spec(const std::map<std::string, int>& requests, bool tolerates);

/// Of `w<index>` in namespace `team`.
struct WorkloadParts {
  int index = 0;
  int created = 0;  ///< Second.
  std::string queue;
  int priority = 0;
  std::vector<std::string> pod_sets;
  std::string status;  ///< `,"status":{…}`; empty: pending.
};
[[nodiscard]] std::string workload(const WorkloadParts& parts);

/// `,"status":{…}` of a workload that runs since a minute's `second`.
[[nodiscard]] std::string running_since(int second, const std::string& cluster_queue,
                                        const std::vector<std::string>& assignments);

}  // namespace muster::differential

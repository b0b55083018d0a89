// What decisions cost, in one process on one core: the engine alone, driven by events, the API
// played by writes that succeed at once. Prints one line per measurement.
//
//   engine_bench [settle|arrival|preemption|fair|drain|curve|memory]...      (default: all)
//
// Only worth reading from an optimised build. Targets are in docs/performance.md.

#include "engine/engine.hpp"
#include "tests/bench/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <malloc.h>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

/// What is allocated and not freed while it is counted, as large as the allocator made it.
std::size_t live_bytes = 0;
bool counting = false;

}  // namespace

void* operator new(std::size_t size) {
  void* const block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  if (counting) live_bytes += malloc_usable_size(block);
  return block;
}
void operator delete(void* block) noexcept {
  if (counting && block != nullptr) live_bytes -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}

namespace muster::engine {
namespace {

using bench::milliseconds_since;
using bench::quantile;

const ResourceName kGpu("nvidia.com/gpu");
const FlavorName kFlavor("h100");
const Namespace kTeam("team");

struct QueueOptions {
  std::string cohort{};
  std::int64_t nominal = 0;
  PreemptionPolicy within = PreemptionPolicy::kNever;
  PreemptionPolicy reclaim = PreemptionPolicy::kNever;
};

struct JobOptions {
  std::string queue;
  std::int64_t gpus = 1;
  std::int64_t pods = 1;
  std::int64_t priority = 0;
};

struct Settled {
  std::size_t admitted = 0;
  std::size_t evicted = 0;
  double total_ms = 0;
  double longest_slice_ms = 0;
};

/// A fleet without nodes: quota decides alone.
class World {
 public:
  explicit World(const Options& options = {}) : engine_(options) {
    send(NamespaceUpserted{NamespaceSpec{kTeam, {}}});
    FlavorSpec flavor;
    flavor.name = kFlavor;
    flavor.capacity = Capacity::kElastic;
    send(FlavorUpserted{flavor});
  }

  void send(const Event& event) { (void)engine_.step(event, now_); }

  void cohort(const std::string& name, const std::string& parent, std::int64_t gpus) {
    quota::CohortSpec spec;
    spec.name = CohortName(name);
    if (!parent.empty()) spec.parent = CohortName(parent);
    if (gpus > 0) spec.resource_groups = groups(gpus);
    send(CohortUpserted{spec});
  }

  void queue(const std::string& name, const QueueOptions& options) {
    ClusterQueueSpec spec;
    spec.quota.name = ClusterQueueName(name);
    if (!options.cohort.empty()) spec.quota.cohort = CohortName(options.cohort);
    spec.quota.resource_groups = groups(options.nominal);
    spec.namespace_selector = LabelSelector{};
    spec.preemption.within_cluster_queue = options.within;
    spec.preemption.reclaim_within_cohort = options.reclaim;
    send(ClusterQueueUpserted{spec});
    send(LocalQueueUpserted{
        LocalQueueSpec{{kTeam, name}, ClusterQueueName(name), StopPolicy::kNone}});
  }

  WorkloadSpec job(const JobOptions& options) {
    const std::size_t number = jobs_++;
    WorkloadSpec spec;
    spec.key = {kTeam, fmt::format("job-{:07}", number)};
    spec.uid = Uid(fmt::format("5f1c9a0e-77b1-4b7a-9d3e-{:012}", number));
    spec.owner_uid = Uid(fmt::format("8c0f53f2-1c1d-4a55-b2a8-{:012}", number));
    spec.queue_name = options.queue;
    spec.priority = options.priority;
    spec.created = Instant{static_cast<std::int64_t>(number) * 1'000};
    PodSetSpec pod_set;
    pod_set.name = PodSetName("main");
    pod_set.count = options.pods;
    pod_set.quota_requests = {{kGpu, Amount(options.gpus)}};
    pod_set.node_requests = {{kGpu, Amount(options.gpus)}, {ResourceName("pods"), Amount(1)}};
    spec.pod_sets = {pod_set};
    return spec;
  }

  WorkloadKey submit(const JobOptions& options) {
    const WorkloadSpec spec = job(options);
    send(WorkloadUpserted{spec});
    return spec.key;
  }

  /// Holds quota from the start, as after a restart.
  WorkloadKey run(const JobOptions& options) {
    WorkloadSpec spec = job(options);
    Admission admission;
    admission.cluster_queue = ClusterQueueName(options.queue);
    PodSetAssignment assignment;
    assignment.name = PodSetName("main");
    assignment.count = options.pods;
    assignment.flavors = {{kGpu, kFlavor}};
    assignment.usage = {{kGpu, Amount(options.gpus * options.pods)}};
    admission.pod_sets = {assignment};
    spec.admission = admission;
    spec.admitted = true;
    spec.quota_reserved_at = spec.created;
    send(WorkloadUpserted{spec});
    return spec.key;
  }

  void publish() { snapshot_ = engine_.publish(); }

  void finish(const WorkloadKey& key) { send(WorkloadDeleted{key}); }

  Settled settle() {
    now_.us += 1'000'000;
    Settled result;
    bool more = true;
    while (more) {
      const auto begin = std::chrono::steady_clock::now();
      const Effects effects = engine_.step(Settle{}, now_);
      const double took = milliseconds_since(begin);
      more = effects.more;
      result.total_ms += took;
      result.longest_slice_ms = std::max(result.longest_slice_ms, took);
      for (const Effect& effect : effects.list) {
        if (std::holds_alternative<Admit>(effect)) ++result.admitted;
        if (const auto* evict = std::get_if<Evict>(&effect)) {
          ++result.evicted;
          leaving_.push_back(evict->workload);
        }
      }
    }
    return result;
  }

  /// Everybody evicted is gone, and does not come back.
  void let_leave() {
    for (const WorkloadKey& key : std::exchange(leaving_, {})) finish(key);
  }

 private:
  static std::vector<quota::ResourceGroup> groups(std::int64_t gpus) {
    return {{{kGpu}, {{kFlavor, {{kGpu, quota::Quota{Amount(gpus), {}, {}}}}}}}};
  }

  Engine engine_;
  std::shared_ptr<const Snapshot> snapshot_;
  Instant now_{1'000'000'000};
  std::size_t jobs_ = 0;
  std::vector<WorkloadKey> leaving_;
};

constexpr int kQueues = 200;
constexpr int kRunning = 8'000;
constexpr int kLent = 400;  ///< Of them, on quota that is taken back.
constexpr int kMoreForAll = 2 * (kRunning - kLent) + 20'000;
constexpr int kPending = 20'000;

std::string queue_name(int number) {
  return fmt::format("team-{:03}", number % kQueues);
}

/// 60 shapes: 12 sizes at 5 priorities.
JobOptions shaped(int number, const std::string& queue) {
  constexpr std::array<std::int64_t, 4> kGpus{1, 2, 4, 8};
  constexpr std::array<std::int64_t, 3> kPods{1, 2, 4};
  const int shape = number % 60;
  return JobOptions{.queue = queue,
                    .gpus = kGpus[static_cast<std::size_t>(shape % 4)],
                    .pods = kPods[static_cast<std::size_t>((shape / 4) % 3)],
                    .priority = shape / 12};
}

/// 200 queues, 160 of them in 3 cohort levels, all running on what a root lends. Of the other 40,
/// in a cohort of their own, 20 run on all that is there; the other 20 own nothing yet and wait.
void fill(World& world) {
  world.cohort("root", "", 2 * (kRunning - kLent));
  for (int i = 0; i < 10; ++i) world.cohort(fmt::format("org-{}", i), "root", 0);
  for (int i = 0; i < 40; ++i) {
    world.cohort(fmt::format("group-{}", i), fmt::format("org-{}", i % 10), 0);
  }
  world.cohort("lent", "", 2 * kLent);
  for (int i = 0; i < kQueues; ++i) {
    world.queue(queue_name(i),
                QueueOptions{.cohort = i < 40 ? "lent" : fmt::format("group-{}", i % 40),
                             .within = PreemptionPolicy::kLowerPriority,
                             .reclaim = PreemptionPolicy::kAny});
  }
  for (int i = 0; i < kRunning; ++i) {
    const int queue = i < kLent ? 20 + (i % 20) : 40 + (i % 160);
    world.run(JobOptions{.queue = queue_name(queue), .gpus = 2, .priority = 10});
  }
  for (int i = 0; i < kPending; ++i) world.submit(shaped(i, queue_name(i / 100)));
}

void bench_settle() {
  World world;
  fill(world);
  const Settled idle = world.settle();
  fmt::print(
      "settle: first look at 20,000 pending in 200 queues, nothing fits: {:.1f} ms, slice {:.1f} "
      "ms, "
      "{} admitted\n",
      idle.total_ms, idle.longest_slice_ms, idle.admitted);
  // What was lent becomes the waiting 20's own, who take it back, and the root gets as much as the
  // others need for 2,000 more.
  for (int i = 0; i < 20; ++i) {
    world.queue(queue_name(i), QueueOptions{.cohort = "lent",
                                            .nominal = 2 * kLent / 20,
                                            .within = PreemptionPolicy::kLowerPriority,
                                            .reclaim = PreemptionPolicy::kAny});
  }
  world.cohort("lent", "", 0);
  world.cohort("root", "", kMoreForAll);
  const Settled changed = world.settle();
  fmt::print(
      "settle: after a quota change: {} admitted, {} evicted, {:.1f} ms, longest slice {:.1f} ms\n",
      changed.admitted, changed.evicted, changed.total_ms, changed.longest_slice_ms);
}

void bench_arrival() {
  World world;
  fill(world);
  (void)world.settle();
  std::vector<double> took;
  for (int i = 0; i < 1'000; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    world.submit(shaped(i * 7, queue_name(i)));
    (void)world.settle();
    took.push_back(milliseconds_since(begin));
  }
  fmt::print("arrival: one more behind 20,000 pending: p50 {:.3f} ms, p99 {:.3f} ms\n",
             quantile(took, 0.5), quantile(took, 0.99));
}

/// 2,200 workloads run in the queues `borrower-0` to `borrower-19`; 200 times `preemptor`, with 1
/// to 8 GPUs, takes the room of some, leaves, and they come back.
void search_among_borrowers(World& world, const char* name, JobOptions preemptor) {
  for (int i = 0; i < 2'200; ++i) {
    world.run(JobOptions{.queue = fmt::format("borrower-{}", i % 20), .priority = i % 7});
  }
  std::vector<double> took;
  std::size_t evicted = 0;
  for (int i = 0; i < 200; ++i) {
    preemptor.gpus = 1 + (i % 8);
    const WorkloadKey key = world.submit(preemptor);
    const Settled settled = world.settle();
    took.push_back(settled.total_ms);
    evicted += settled.evicted;
    world.let_leave();
    (void)world.settle();
    world.finish(key);
    for (int back = 0; back <= i % 8; ++back) {
      world.run(JobOptions{.queue = fmt::format("borrower-{}", back), .priority = back % 7});
    }
  }
  fmt::print("{}: search among 2,200 running: p50 {:.2f} ms, p99 {:.2f} ms, {} evicted\n", name,
             quantile(took, 0.5), quantile(took, 0.99), evicted);
}

void bench_preemption() {
  World world;
  world.cohort("root", "", 0);
  world.queue("owner", QueueOptions{.cohort = "root",
                                    .nominal = 2'000,
                                    .within = PreemptionPolicy::kLowerPriority,
                                    .reclaim = PreemptionPolicy::kAny});
  for (int i = 0; i < 20; ++i) {
    world.queue(fmt::format("borrower-{}", i), QueueOptions{.cohort = "root", .nominal = 10});
  }
  search_among_borrowers(world, "preemption", {.queue = "owner", .priority = 50});
}

Options fair_options() {
  Options options;
  options.fair_sharing.emplace();
  return options;
}

/// Nobody owns anything: every start of the newcomer evens out what 20 others borrow.
void bench_fair() {
  {
    World world(fair_options());
    world.cohort("root", "", 2'200);
    const QueueOptions any{.cohort = "root", .reclaim = PreemptionPolicy::kAny};
    world.queue("newcomer", any);
    for (int i = 0; i < 20; ++i) world.queue(fmt::format("borrower-{}", i), any);
    search_among_borrowers(world, "fair", {.queue = "newcomer"});
  }
  World world(fair_options());
  fill(world);
  const Settled idle = world.settle();
  world.cohort("root", "", kMoreForAll);
  const Settled changed = world.settle();
  fmt::print(
      "fair: first look at 20,000 pending {:.1f} ms, {} evicted; 20,000 GPUs more: {} admitted, {} "
      "evicted, {:.1f} ms, longest slice {:.1f} ms\n",
      idle.total_ms, idle.evicted, changed.admitted, changed.evicted, changed.total_ms,
      changed.longest_slice_ms);
}

void bench_drain() {
  World world;
  world.queue("a", QueueOptions{.nominal = 536 * 8});
  for (int i = 0; i < 536; ++i) world.submit({.queue = "a", .gpus = 8});
  const Settled settled = world.settle();
  fmt::print("drain: {} of 536 admitted in {:.1f} ms\n", settled.admitted, settled.total_ms);
}

void bench_curve() {
  for (const int pending : {1'000, 10'000, 100'000, 1'000'000}) {
    World world;
    for (int i = 0; i < 50; ++i) {
      world.queue(queue_name(i), QueueOptions{.nominal = 100});
    }
    std::vector<WorkloadKey> running;
    for (int i = 0; i < 50 * 100; ++i) {
      running.push_back(world.run(JobOptions{.queue = queue_name(i % 50)}));
    }
    for (int i = 0; i < pending; ++i) {
      world.submit(JobOptions{.queue = queue_name(i % 50), .priority = i % 3});
    }
    (void)world.settle();
    const int decisions = 500;
    std::size_t admitted = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < decisions; ++i) {
      world.finish(running[static_cast<std::size_t>(i)]);
      admitted += world.settle().admitted;
    }
    fmt::print("curve: {:>9} pending: {:.1f} us a decision ({} admitted)\n", pending,
               milliseconds_since(begin) * 1e3 / decisions, admitted);
  }
}

void bench_memory() {
  counting = true;
  World world;
  for (int i = 0; i < 50; ++i) world.queue(queue_name(i), QueueOptions{});
  const auto submit = [&](int count) {
    for (int i = 0; i < count; ++i) world.submit(shaped(i, queue_name(i % 50)));
    (void)world.settle();
  };
  submit(3'000);
  world.publish();
  const std::size_t before = live_bytes;
  const int more = 100'000;
  submit(more);
  fmt::print("memory: {} bytes per pending workload of a known shape\n",
             (live_bytes - before) / static_cast<std::size_t>(more));
}

int run_all(const std::vector<std::string>& chosen) {
  const std::map<std::string, std::function<void()>> benches{
      {"settle", bench_settle}, {"arrival", bench_arrival}, {"preemption", bench_preemption},
      {"fair", bench_fair},     {"drain", bench_drain},     {"curve", bench_curve},
      {"memory", bench_memory}};
  for (const std::string& name : chosen) {
    if (!benches.contains(name)) {
      fmt::print(stderr, "unknown benchmark {}\n", name);
      return 2;
    }
  }
  for (const char* name : {"settle", "arrival", "preemption", "fair", "drain", "curve", "memory"}) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), name) == chosen.end()) continue;
    benches.at(name)();
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace muster::engine

int main(int count, char** words) {
  return muster::engine::run_all({words + 1, words + count});
}

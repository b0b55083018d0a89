#include "server/metrics.hpp"

#include "base/quantity.hpp"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>
#include <variant>
#include <vector>

namespace muster::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// From 10 µs (an echo of one name) to 5 s (the scheduler's own time-out).
const prometheus::Histogram::BucketBoundaries kCallBuckets = {
    0.00001, 0.000025, 0.00005, 0.0001, 0.00015, 0.0002, 0.0003, 0.0005, 0.00075,
    0.001,   0.0025,   0.005,   0.01,   0.05,    0.1,    0.5,    1,      5};

MetricFamily gauge_family(const std::string& name, const std::string& help) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = MetricType::Gauge;
  return family;
}

void add(MetricFamily& family, double value,
         const std::vector<std::pair<std::string, std::string>>& labels) {
  ClientMetric metric;
  for (const auto& [name, label] : labels) metric.label.push_back({name, label});
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

/// Quota in the unit people read: cores for cpu, else as it is.
double in_units(const ResourceName& resource, Amount amount) {
  const auto value = static_cast<double>(amount.value());
  return resource.value() == "cpu" ? value / 1000.0 : value;
}

void add_amounts(MetricFamily& family, const engine::ClusterQueueView& queue,
                 const quota::FlavorAmounts& amounts) {
  for (const auto& [what, amount] : amounts) {
    add(family, in_units(what.resource, amount),
        {{"cohort", queue.cohort ? queue.cohort->value() : std::string()},
         {"cluster_queue", queue.name.value()},
         {"flavor", what.flavor.value()},
         {"resource", what.resource.value()}});
  }
}

std::vector<MetricFamily> queue_families(const engine::QueuesView& queues) {
  MetricFamily pending = gauge_family("kueue_pending_workloads", "Workloads without quota.");
  MetricFamily reserving =
      gauge_family("kueue_reserving_active_workloads", "Workloads that hold quota.");
  MetricFamily admitted =
      gauge_family("kueue_admitted_active_workloads", "Admitted workloads that have not ended.");
  MetricFamily status = gauge_family("kueue_cluster_queue_status", "1 for the status it is in.");
  MetricFamily share =
      gauge_family("kueue_cluster_queue_weighted_share", "Dominant share of what is borrowed.");
  MetricFamily cohort_share =
      gauge_family("kueue_cohort_weighted_share", "Dominant share of what is borrowed.");
  MetricFamily nominal =
      gauge_family("kueue_cluster_queue_nominal_quota", "Quota of the ClusterQueue's own.");
  MetricFamily usage =
      gauge_family("kueue_cluster_queue_resource_reservation", "Quota that workloads hold.");
  MetricFamily borrowed =
      gauge_family("muster_cluster_queue_borrowed", "Quota held above the nominal.");
  MetricFamily local =
      gauge_family("kueue_local_queue_pending_workloads", "Workloads without quota.");
  for (const auto& [name, queue] : queues.cluster_queues) {
    const std::string queue_name = name.value();
    const auto waiting = static_cast<double>(queue.pending);
    add(pending, queue.active ? waiting : 0, {{"cluster_queue", queue_name}, {"status", "active"}});
    add(pending, queue.active ? 0 : waiting,
        {{"cluster_queue", queue_name}, {"status", "inadmissible"}});
    add(reserving, static_cast<double>(queue.reserving), {{"cluster_queue", queue_name}});
    add(admitted, static_cast<double>(queue.admitted), {{"cluster_queue", queue_name}});
    add(status, queue.active ? 1 : 0, {{"cluster_queue", queue_name}, {"status", "active"}});
    add(status, queue.active ? 0 : 1, {{"cluster_queue", queue_name}, {"status", "pending"}});
    add(share, static_cast<double>(queue.weighted_share),
        {{"cluster_queue", queue_name},
         {"cohort", queue.cohort ? queue.cohort->value() : std::string()}});
    add_amounts(nominal, queue, queue.nominal);
    add_amounts(usage, queue, queue.usage);
    add_amounts(borrowed, queue, queue.borrowed);
  }
  for (const auto& [name, weighted_share] : queues.cohort_shares) {
    add(cohort_share, static_cast<double>(weighted_share), {{"cohort", name.value()}});
  }
  for (const auto& [key, counts] : queues.local_queue_counts) {
    add(local, static_cast<double>(counts.pending),
        {{"name", key.name}, {"namespace", key.ns.value()}, {"status", "active"}});
  }
  return {pending,      reserving, admitted, status,   share,
          cohort_share, nominal,   usage,    borrowed, local};
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Histogram>* extender_calls = nullptr;
  prometheus::Family<prometheus::Histogram>* webhook_calls = nullptr;
  prometheus::Family<prometheus::Counter>* admitted = nullptr;
  prometheus::Family<prometheus::Counter>* evicted = nullptr;
  prometheus::Family<prometheus::Counter>* preempted = nullptr;
  prometheus::Counter* replans = nullptr;
  std::mutex mutex;  ///< Guards the sources.
  std::function<std::shared_ptr<const engine::Snapshot>()> snapshot;
  std::function<Reading()> reading;
  std::function<std::vector<engine::LargestGang>()> largest_gangs;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  Impl& m = *impl_;
  m.extender_calls = &prometheus::BuildHistogram()
                          .Name("muster_extender_call_seconds")
                          .Help("From the whole request to the whole answer, without the network.")
                          .Register(m.registry);
  m.webhook_calls = &prometheus::BuildHistogram()
                         .Name("muster_webhook_call_seconds")
                         .Help("From the whole request to the whole answer, without the network.")
                         .Register(m.registry);
  m.admitted = &prometheus::BuildCounter()
                    .Name("kueue_admitted_workloads_total")
                    .Help("Workloads admitted.")
                    .Register(m.registry);
  m.evicted = &prometheus::BuildCounter()
                   .Name("kueue_evicted_workloads_total")
                   .Help("Workloads evicted, by reason.")
                   .Register(m.registry);
  m.preempted = &prometheus::BuildCounter()
                     .Name("kueue_preempted_workloads_total")
                     .Help("Workloads preempted, by the queue that took their place and the rule.")
                     .Register(m.registry);
  m.replans = &prometheus::BuildCounter()
                   .Name("muster_replans_total")
                   .Help("Plans changed after a node was lost or room was taken.")
                   .Register(m.registry)
                   .Add({});
}

Metrics::~Metrics() = default;

void Metrics::observe_extender_call(const std::string& verb, std::size_t nodes, double seconds) {
  std::size_t up_to = 1;
  while (up_to < nodes) up_to *= 10;  // A body is at most 16 MiB, so this stays small.
  impl_->extender_calls->Add({{"verb", verb}, {"nodes_up_to", std::to_string(up_to)}}, kCallBuckets)
      .Observe(seconds);
}

void Metrics::observe_webhook_call(const std::string& path, double seconds) {
  impl_->webhook_calls->Add({{"path", path}}, kCallBuckets).Observe(seconds);
}

void Metrics::count_effect(const engine::Effect& effect) {
  if (const auto* admit = std::get_if<engine::Admit>(&effect)) {
    impl_->admitted->Add({{"cluster_queue", admit->admission.cluster_queue.value()}}).Increment();
  } else if (std::holds_alternative<engine::Replan>(effect)) {
    impl_->replans->Increment();
  } else if (const auto* evict = std::get_if<engine::Evict>(&effect)) {
    impl_->evicted
        ->Add({{"cluster_queue", evict->cluster_queue.value()},
               {"reason", std::string(engine::to_string(evict->reason))}})
        .Increment();
    if (!evict->rule) return;
    impl_->preempted
        ->Add({{"preempting_cluster_queue", evict->preemptor_queue.value()},
               {"reason", std::string(engine::to_string(*evict->rule))}})
        .Increment();
  }
}

void Metrics::set_sources(std::function<std::shared_ptr<const engine::Snapshot>()> snapshot,
                          std::function<Reading()> reading,
                          std::function<std::vector<engine::LargestGang>()> largest_gangs) {
  const std::lock_guard lock(impl_->mutex);
  impl_->largest_gangs = std::move(largest_gangs);
  impl_->snapshot = std::move(snapshot);
  impl_->reading = std::move(reading);
}

std::string Metrics::text() const {
  std::vector<MetricFamily> families = impl_->registry.Collect();
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->snapshot) {
      if (const auto snapshot = impl_->snapshot(); snapshot && snapshot->queues) {
        for (MetricFamily& family : queue_families(*snapshot->queues)) {
          if (!family.metric.empty()) families.push_back(std::move(family));
        }
      }
    }
    if (impl_->largest_gangs) {
      MetricFamily family = gauge_family(
          "muster_largest_gang_hosts",
          "Whole free hosts of a flavor, in the best domain of a level of its topology "
          "(level empty: in all).");
      for (const engine::LargestGang& gang : impl_->largest_gangs()) {
        add(family, static_cast<double>(gang.hosts),
            {{"flavor", gang.flavor.value()}, {"level", gang.level}});
      }
      if (!family.metric.empty()) families.push_back(std::move(family));
    }
    if (impl_->reading) {
      for (const auto& [name, value] : impl_->reading()) {
        MetricFamily family = gauge_family(name, "See docs/operations.md.");
        add(family, value, {});
        families.push_back(std::move(family));
      }
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace muster::server

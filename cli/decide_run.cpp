#include "cli/decide_run.hpp"

#include "base/overloaded.hpp"
#include "controller/workload_status.hpp"
#include "engine/engine.hpp"
#include "engine/explain.hpp"
#include "engine/publisher.hpp"
#include "engine/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

namespace muster::cli {
namespace {

using kube::Json;

ReportedAmounts reported(const quota::FlavorAmounts& amounts) {
  ReportedAmounts result;
  for (const auto& [what, amount] : amounts) {
    if (amount.is_zero()) continue;
    result[what.flavor.value()].emplace(what.resource.value(),
                                        format_amount(what.resource, amount));
  }
  return result;
}

/// v1beta1 lists the domains one by one where v1beta2 has slices.
Json in_version_of(const Json& workload, Json admission_json,
                   const kube::WorkloadAdmission& admission) {
  if (!workload.get("apiVersion").string_or("").ends_with("/v1beta1")) return admission_json;
  const Json encoded = admission_json.get("podSetAssignments");
  std::vector<Json> assignments;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    Json assignment = encoded.at(i);
    if (const auto& topology = admission.pod_sets[i].topology) {
      std::vector<Json> domains;
      for (const kube::TopologyDomain& domain : topology->domains) {
        std::vector<Json> values;
        for (const std::string& value : domain.values) values.push_back(Json::string(value));
        domains.push_back(
            Json::object({{"values", Json::array(values)}, {"count", Json::number(domain.count)}}));
      }
      assignment =
          assignment.with("topologyAssignment",
                          Json::object({{"levels", assignment.get("topologyAssignment", "levels")},
                                        {"domains", Json::array(domains)}}));
    }
    assignments.push_back(assignment);
  }
  return admission_json.with("podSetAssignments", Json::array(assignments));
}

/// Passes are whole: a cycle is one.
engine::Options unbounded(engine::Options options) {
  options.settle_budget = 0;
  return options;
}

class Run {
 public:
  Run(World& world, const engine::Options& options, Instant now, const RunOptions& run)
      : world_(world),
        run_(run),
        lookup_(lookup_in(world.directory)),
        start_(now),
        now_(now),
        engine_(unbounded(options)) {
    for (std::size_t i = 0; i < world.entries.size(); ++i) index_.emplace(world.entries[i].key, i);
  }

  Result<Outcome> run() {
    tell_all();
    const std::int64_t limit = 100 + 10 * std::ssize(world_.entries);
    std::int64_t cycles = 1;
    for (std::int64_t cycle = 1;; ++cycle) {
      if (cycle > limit) {
        return fail(ErrorCode::kInternal, endless(limit));
      }
      cycle_ = cycle;
      now_ = start_ + std::chrono::seconds(cycle);
      const Pass pass = settle();
      // What left in this pass queues again in the next one; after a pass that only admitted, one
      // more is made to see that nothing is left to decide, and does not count.
      if (pass.decided) cycles = cycle;
      if (pass.evicted) cycles = cycle + 1;
      if (!pass.decided && !engine_.wants_settle(now_)) break;
    }
    cycle_ = outcome_.report.cycles = cycles;
    report_workloads();
    report_queues();
    return std::move(outcome_);
  }

 private:
  struct Pass {
    bool decided = false;
    bool evicted = false;
  };

  /// Who is still going round, from the last eviction.
  [[nodiscard]] std::string endless(std::int64_t cycles) const {
    std::string last;
    for (const Decision& decision : outcome_.report.decisions) {
      if (decision.type == DecisionType::kAdmitted) continue;
      last = fmt::format(": {} was last {}", decision.workload, decision.message);
    }
    return fmt::format("the decisions do not settle in {} cycles{}", cycles, last);
  }

  void tell(const engine::Event& event) { (void)engine_.step(event, now_); }

  void tell_all() {
    for (const engine::Event& event : world_.events) tell(event);
    for (Entry& entry : world_.entries) {
      if (entry.leaving) release(entry);
      if (!entry.unfit) tell(engine::WorkloadUpserted{entry.spec});
    }
    for (const engine::PodUse& pod : world_.pods) tell(engine::PodPlaced{pod});
  }

  Pass settle() {
    const engine::Effects effects = engine_.step(engine::Settle{}, now_);
    Pass pass;
    std::vector<Entry*> leaving;
    for (const engine::Effect& effect : effects.list) {
      std::visit(Overloaded{
                     [&](const engine::Admit& admit) {
                       pass.decided = true;
                       take(admit);
                     },
                     [&](const engine::Replan& replan) {
                       pass.decided = true;
                       take(replan);
                     },
                     [&](const engine::Evict& evict) {
                       pass.decided = pass.evicted = true;
                       leaving.push_back(&take(evict));
                     },
                     [](const engine::StillPending&) {},
                 },
                 effect);
    }
    for (Entry* entry : leaving) leave(*entry);
    if (run_.check_invariants) check_invariants();
    return pass;
  }

  void check_invariants() {
    for (const std::string& violation : engine_.check_invariants()) {
      outcome_.violations.push_back(fmt::format("cycle {}: {}", cycle_, violation));
    }
  }

  [[nodiscard]] Entry& entry_of(const WorkloadKey& key) { return world_.entries[index_.at(key)]; }

  [[nodiscard]] static kube::Workload decoded(const Entry& entry) {
    // It was decoded before, and what was changed since was written by us.
    return kube::decode_workload(entry.object).value_or(kube::Workload());
  }

  static void apply(Entry& entry, const Json& patch) {
    if (patch.missing()) return;
    entry.object = kube::merge_patch(entry.object, Json::object({{"status", patch.get("status")}}));
  }

  void write_admission(Entry& entry, const Json& patch, const kube::WorkloadAdmission& admission) {
    const Json status = patch.get("status");
    apply(entry,
          patch.with("status",
                     status.with("admission",
                                 in_version_of(entry.object, status.get("admission"), admission))));
  }

  void take(const engine::Admit& admit) {
    Entry& entry = entry_of(admit.workload);
    Decision& decision = outcome_.report.decisions.emplace_back();
    decision.cycle = cycle_;
    decision.type = DecisionType::kAdmitted;
    decision.workload = admit.workload.to_string();
    decision.cluster_queue = admit.admission.cluster_queue.value();
    decision.message = engine::describe(admit) + in_the_place(decision.workload);
    decision.borrowing = !admit.borrowed.empty();
    for (const engine::PodSetAssignment& pod_set : admit.admission.pod_sets) {
      decision.pod_sets.push_back(reported(pod_set));
    }
    const kube::WorkloadAdmission admission = controller::to_admission(admit.admission, lookup_);
    write_admission(entry,
                    controller::admit_patch(decoded(entry), admission, decision.message,
                                            engine_.is_held(admit.workload), now_),
                    admission);
    entry.spec.admission = admit.admission;
    entry.spec.admitted = true;
    entry.spec.quota_reserved_at = now_;
    tell(engine::WorkloadUpserted{entry.spec});
  }

  /// `; in the place of team/x (InClusterQueue)`: who had to go for this one, and by which rule.
  [[nodiscard]] std::string in_the_place(const std::string& workload) {
    constexpr std::size_t kShown = 3;
    const auto found = victims_of_.find(workload);
    if (found == victims_of_.end()) return "";
    const std::vector<std::string> victims = std::move(found->second);
    victims_of_.erase(found);
    const std::size_t shown = victims.size() <= kShown + 1 ? victims.size() : kShown;
    std::string text = fmt::format(
        "; in the place of {}",
        fmt::join(victims.begin(), victims.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < victims.size()) text += fmt::format(" and {} more", victims.size() - shown);
    return text;
  }

  void take(const engine::Replan& replan) {
    Entry& entry = entry_of(replan.workload);
    const kube::WorkloadAdmission admission = controller::to_admission(replan.admission, lookup_);
    write_admission(
        entry,
        controller::replan_patch(decoded(entry), admission, engine_.is_held(replan.workload), now_),
        admission);
    entry.spec.admission = replan.admission;
    tell(engine::WorkloadUpserted{entry.spec});
  }

  Entry& take(const engine::Evict& evict) {
    Entry& entry = entry_of(evict.workload);
    Decision& decision = outcome_.report.decisions.emplace_back();
    decision.cycle = cycle_;
    decision.workload = evict.workload.to_string();
    decision.cluster_queue = evict.cluster_queue.value();
    // The engine knows it by its place in the input; people know it by its own uid, if it has one.
    engine::Evict by_uid = evict;
    if (evict.preemptor) {
      const Json& preemptor = entry_of(*evict.preemptor).object;
      by_uid.preemptor_uid = Uid(preemptor.get("metadata", "uid").string_or(""));
    }
    decision.message = engine::describe(by_uid);
    const bool preempted = evict.reason == engine::EvictionReason::kPreempted;
    decision.type = preempted ? DecisionType::kPreempted : DecisionType::kEvicted;
    const std::string reason(engine::to_string(evict.reason));
    const std::string rule(evict.rule ? engine::to_string(*evict.rule) : std::string_view());
    decision.reason = preempted ? rule : reason;
    if (evict.preemptor) {
      decision.by = evict.preemptor->to_string();
      victims_of_[decision.by].push_back(fmt::format("{} ({})", decision.workload, rule));
    }
    apply(entry, controller::evict_patch(decoded(entry), {reason, rule, decision.message}, now_));
    return entry;
  }

  /// Gone at once, with its pods, and back in its queue.
  void leave(Entry& entry) {
    release(entry);
    tell(engine::QuotaReleased{entry.key});
    entry.spec.admission.reset();
    entry.spec.admitted = false;
    entry.spec.quota_reserved_at.reset();
    tell(engine::WorkloadUpserted{entry.spec});
  }

  void release(Entry& entry) {
    const kube::Workload workload = decoded(entry);
    const kube::Condition* evicted = kube::find_condition(workload.conditions, "Evicted");
    for (const std::size_t pod : entry.pods) {
      tell(engine::PodGone{uid_at(pod)});
      outcome_.pods_gone[pod] = evicted != nullptr ? evicted->reason : "Preempted";
    }
    entry.pods.clear();
    apply(entry, controller::release_patch(workload, std::nullopt, now_));
  }

  [[nodiscard]] ReportedPodSet reported(const engine::PodSetAssignment& assignment) const {
    ReportedPodSet result;
    result.name = assignment.name.value();
    result.count = assignment.count;
    const std::vector<std::string>* levels = nullptr;
    for (const auto& [resource, flavor] : assignment.flavors) {
      result.flavors.emplace(resource.value(), flavor.value());
      if (const auto* of_flavor = levels_of(flavor)) levels = of_flavor;
    }
    for (const engine::NodeCount& slots : assignment.nodes) {
      result.nodes[slots.node.value()] += slots.count;
    }
    if (levels != nullptr && !levels->empty() && !assignment.nodes.empty()) {
      add_domains(assignment, *levels, result);
    }
    return result;
  }

  [[nodiscard]] const std::vector<std::string>* levels_of(const FlavorName& name) const {
    const engine::State& state = engine_.state();
    const auto flavor = state.flavors.find(name);
    if (flavor == state.flavors.end() || !flavor->second.topology) return nullptr;
    const auto topology = state.topologies.find(*flavor->second.topology);
    return topology == state.topologies.end() ? nullptr : &topology->second.levels;
  }

  /// Where the lowest level is the node itself, its hostname says it all.
  void add_domains(const engine::PodSetAssignment& assignment,
                   const std::vector<std::string>& levels, ReportedPodSet& result) const {
    const bool by_hostname = levels.back() == kHostnameLabel;
    result.levels = by_hostname ? std::vector<std::string>{levels.back()} : levels;
    const engine::State& state = engine_.state();
    for (const engine::NodeCount& slots : assignment.nodes) {
      std::vector<std::string> values;
      if (by_hostname) {
        values.push_back(lookup_.hostname_of_node(slots.node));
      } else if (const auto node = state.fleet.find(slots.node)) {
        const LabelMap& labels = state.fleet.facts(*node).labels;
        for (const std::string& level : levels) {
          const auto label = labels.find(level);
          values.push_back(label == labels.end() ? std::string() : label->second);
        }
      }
      const auto known =
          std::find_if(result.domains.begin(), result.domains.end(),
                       [&](const ReportedDomain& domain) { return domain.values == values; });
      if (known == result.domains.end()) {
        result.domains.push_back({std::move(values), slots.count});
      } else {
        known->count += slots.count;
      }
    }
  }

  [[nodiscard]] Waiting waiting(const Entry& entry) const {
    if (entry.unfit) return in_words(*entry.unfit);
    if (entry.spec.requeue_at && *entry.spec.requeue_at > now_) {
      return {"PendingEvaluation",
              fmt::format("held back until {} after an eviction",
                          format_rfc3339(*entry.spec.requeue_at)),
              fmt::format("to wait until {}", format_rfc3339(*entry.spec.requeue_at))};
    }
    return in_words(engine_.full_explanation(entry.key).value_or(engine::Explanation()));
  }

  static Waiting in_words(const engine::Explanation& explanation) {
    return {std::string(engine::to_string(explanation.reason)), engine::describe(explanation),
            engine::needs(explanation)};
  }

  void report_workloads() {
    std::vector<Entry*> pending;
    for (Entry& entry : world_.entries) {
      ReportedWorkload& reported = outcome_.report.workloads[entry.key.to_string()];
      if (entry.spec.finished) {
        reported.state = WorkloadState::kFinished;
      } else if (entry.spec.admission) {
        reported.state =
            entry.spec.admitted ? WorkloadState::kAdmitted : WorkloadState::kQuotaReserved;
      } else {
        reported.state = WorkloadState::kPending;
        reported.waiting = waiting(entry);
        pending.push_back(&entry);
      }
    }
    std::stable_sort(pending.begin(), pending.end(), [](const Entry* a, const Entry* b) {
      return engine::queue_order(a->spec, b->spec) < 0;
    });
    for (Entry* entry : pending) {
      const Waiting& why = outcome_.report.workloads[entry->key.to_string()].waiting;
      Decision& decision = outcome_.report.decisions.emplace_back();
      decision.cycle = cycle_;
      decision.type = DecisionType::kPending;
      decision.workload = entry->key.to_string();
      const engine::WorkloadRecord* record = engine_.state().find(entry->key);
      if (record != nullptr) decision.cluster_queue = record->queue.value();
      decision.reason = why.reason;
      decision.message = why.message;
      decision.needs = why.needs;
      if (!entry->object.present()) continue;
      apply(*entry, controller::pending_patch(decoded(*entry), why.reason, why.message, now_));
    }
  }

  void report_queues() {
    if (!engine_.state().fleet.by_name().empty()) {
      outcome_.report.largest_gangs = engine_.largest_gangs();
    }
    const auto queues = engine::view_of_queues(engine_.state());
    for (const auto& [name, view] : queues->cluster_queues) {
      outcome_.report.cluster_queues[name.value()] = {reported(view.usage), reported(view.borrowed),
                                                      view.weighted_share};
    }
  }

  ReportedAmounts reported(const quota::FlavorAmounts& amounts) const {
    return cli::reported(amounts);
  }

  World& world_;
  RunOptions run_;
  controller::ObjectLookup lookup_;
  Instant start_;
  Instant now_;
  std::int64_t cycle_ = 0;
  engine::Engine engine_;
  std::map<WorkloadKey, std::size_t> index_;
  std::map<std::string, std::vector<std::string>> victims_of_;  ///< By preemptor not yet admitted.
  Outcome outcome_;
};

}  // namespace

Result<Outcome> run_decide(World& world, const engine::Options& options, Instant now,
                           const RunOptions& run) {
  return Run(world, options, now, run).run();
}

}  // namespace muster::cli

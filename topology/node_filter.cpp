#include "topology/node_filter.hpp"

#include <algorithm>
#include <utility>

namespace muster::topology {
namespace {

bool has_labels(const LabelMap& wanted, const LabelMap& labels) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

/// find_untolerated over the union of both lists, without building it.
bool tolerated(const NodeQuery& query, const Taint& taint) {
  const auto by = [&taint](const Toleration& toleration) { return tolerates(toleration, taint); };
  return taint.effect == TaintEffect::kPreferNoSchedule ||
         std::any_of(query.constraints.tolerations.begin(), query.constraints.tolerations.end(),
                     by) ||
         std::any_of(query.flavor_tolerations.begin(), query.flavor_tolerations.end(), by);
}

/// An eligible node and its label values, widest level first.
struct Located {
  NodeIndex node;
  std::vector<const std::string*> path;
};

/// How many levels, from the widest, the two have in common.
std::size_t common_levels(const Located& a, const Located& b) {
  std::size_t common = 0;
  while (common < a.path.size() && *a.path[common] == *b.path[common]) ++common;
  return common;
}

/// `located` is sorted by path, so each domain is a run of neighbours.
std::vector<std::vector<Domain>> group(const std::vector<Located>& located, std::size_t levels) {
  std::vector<std::vector<Domain>> domains(levels);
  for (std::size_t i = 0; i < located.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(i);
    const std::size_t common = i == 0 ? 0 : common_levels(located[i - 1], located[i]);
    for (std::size_t level = 0; level < levels; ++level) {
      if (level >= common) {
        const auto first_child =
            static_cast<std::uint32_t>(level + 1 < levels ? domains[level + 1].size() : 0);
        domains[level].push_back(Domain{at, at, first_child, first_child});
        if (level > 0) ++domains[level - 1].back().children_end;
      }
      domains[level].back().nodes_end = at + 1;
    }
  }
  return domains;
}

void append_text(std::string& key, std::string_view text) {
  key += std::to_string(text.size());
  key += ':';
  key += text;
}

void append(std::string& key, const LabelMap& labels) {
  key += std::to_string(labels.size());
  key += 'm';
  for (const auto& [name, value] : labels) {
    append_text(key, name);
    append_text(key, value);
  }
}

void append(std::string& key, const std::vector<Toleration>& tolerations) {
  key += std::to_string(tolerations.size());
  key += 't';
  for (const Toleration& toleration : tolerations) {
    append_text(key, toleration.key);
    append_text(key, toleration.value);
    key += toleration.op == Toleration::Operator::kExists ? 'x' : 'e';
    key += toleration.effect ? std::to_string(static_cast<int>(*toleration.effect)) : "-";
    // How long a NoExecute taint is tolerated does not decide whether the pod may start.
  }
}

void append(std::string& key, const std::vector<SelectorRequirement>& requirements) {
  key += std::to_string(requirements.size());
  key += 'r';
  for (const SelectorRequirement& requirement : requirements) {
    append_text(key, requirement.key);
    key += std::to_string(static_cast<int>(requirement.op));
    key += '/';
    key += std::to_string(requirement.values.size());
    key += 'v';
    for (const std::string& value : requirement.values) append_text(key, value);
  }
}

/// Equal texts mean the same candidates: every list says its length and every text its size.
std::string canonical(const NodeQuery& query) {
  std::string key;
  append(key, query.flavor_labels);
  append(key, query.flavor_tolerations);
  append(key, query.constraints.node_selector);
  append(key, query.constraints.tolerations);
  if (const auto& terms = query.constraints.required_affinity) {
    key += std::to_string(terms->size());
    key += 'a';
    for (const NodeSelectorTerm& term : *terms) {
      append(key, term.match_expressions);
      append(key, term.match_fields);
    }
  }
  for (const std::string& level : query.levels) append_text(key, level);
  return key;
}

}  // namespace

std::string_view to_string(Exclusion exclusion) {
  switch (exclusion) {
    case Exclusion::kFlavorLabels:
      return "not of the flavor";
    case Exclusion::kNotReady:
      return "not ready";
    case Exclusion::kUnschedulable:
      return "unschedulable";
    case Exclusion::kTaint:
      return "taint";
    case Exclusion::kSelector:
      return "selector";
    case Exclusion::kHostnameMissing:
      return "hostname label missing";
    case Exclusion::kLevelMissing:
      return "topology label missing";
  }
  return "unknown";
}

std::optional<Exclusion> judge(const NodeQuery& query, const NodeFacts& node) {
  if (!has_labels(query.flavor_labels, node.labels)) return Exclusion::kFlavorLabels;
  if (!node.ready) return Exclusion::kNotReady;
  if (node.unschedulable) return Exclusion::kUnschedulable;
  const auto refused = [&query](const Taint& taint) { return !tolerated(query, taint); };
  if (std::any_of(node.taints.begin(), node.taints.end(), refused)) return Exclusion::kTaint;
  if (!selects(query.constraints, node.name, node.labels)) return Exclusion::kSelector;
  for (const std::string& level : query.levels) {
    if (node.labels.contains(level)) continue;
    return level == kHostnameLabel ? Exclusion::kHostnameMissing : Exclusion::kLevelMissing;
  }
  return std::nullopt;
}

Candidates find_candidates(const NodeQuery& query, const Fleet& fleet) {
  Candidates found;
  found.generation = fleet.generation();
  found.levels = query.levels;
  std::vector<Located> located;
  for (const NodeIndex node : fleet.by_name()) {
    const NodeFacts& facts = fleet.facts(node);
    const auto against = judge(query, facts);
    if (against != Exclusion::kFlavorLabels) ++found.flavor_nodes;
    if (against) {
      ++found.excluded[static_cast<std::size_t>(*against)];
      continue;
    }
    Located eligible{node, {}};
    eligible.path.reserve(query.levels.size());
    for (const std::string& level : query.levels) {
      eligible.path.push_back(&facts.labels.find(level)->second);
    }
    located.push_back(std::move(eligible));
  }
  // Stable: nodes of one domain stay in order of name.
  std::stable_sort(located.begin(), located.end(), [](const Located& a, const Located& b) {
    const std::size_t common = common_levels(a, b);
    return common < a.path.size() && *a.path[common] < *b.path[common];
  });
  found.domains = group(located, query.levels.size());
  found.nodes.reserve(located.size());
  for (const Located& eligible : located) found.nodes.push_back(eligible.node);
  return found;
}

std::shared_ptr<const Candidates> CandidateCache::get(const NodeQuery& query, const Fleet& fleet) {
  if (generation_ != fleet.generation() || entries_.size() >= kEntriesMax) entries_.clear();
  generation_ = fleet.generation();
  std::shared_ptr<const Candidates>& entry = entries_[canonical(query)];
  if (entry == nullptr) entry = std::make_shared<const Candidates>(find_candidates(query, fleet));
  return entry;
}

}  // namespace muster::topology

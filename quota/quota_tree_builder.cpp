#include "base/assert.hpp"
#include "quota/quota_tree.hpp"
#include "quota/sorted_names.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace muster::quota {
namespace {

/// Where each name's ancestor chain ends: nothing at a root, or the name (the smallest on it) of
/// the cycle that it runs into. Parents are positions in the same list.
std::vector<std::optional<std::size_t>> find_cycles(
    const std::vector<std::optional<std::size_t>>& parents) {
  enum class Mark { kUnseen, kOnPath, kDone };
  std::vector<Mark> marks(parents.size(), Mark::kUnseen);
  std::vector<std::optional<std::size_t>> cycle_of(parents.size());
  for (std::size_t start = 0; start < parents.size(); ++start) {
    std::vector<std::size_t> path;
    std::optional<std::size_t> at = start;
    while (at && marks[*at] == Mark::kUnseen) {
      marks[*at] = Mark::kOnPath;
      path.push_back(*at);
      at = parents[*at];
    }
    std::optional<std::size_t> cycle;
    if (at && marks[*at] == Mark::kOnPath) {
      cycle = *std::min_element(std::find(path.begin(), path.end(), *at), path.end());
    } else if (at) {
      cycle = cycle_of[*at];
    }
    for (const std::size_t seen : path) {
      marks[seen] = Mark::kDone;
      cycle_of[seen] = cycle;
    }
  }
  return cycle_of;
}

template <class Spec>
auto sorted_by_name(const std::vector<Spec>& specs) {
  std::vector<const Spec*> sorted;
  sorted.reserve(specs.size());
  for (const Spec& spec : specs) sorted.push_back(&spec);
  std::sort(sorted.begin(), sorted.end(),
            [](const Spec* a, const Spec* b) { return a->name < b->name; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    MUSTER_ASSERT(sorted[i - 1]->name != sorted[i]->name, "two specs are named {}",
                  sorted[i]->name);
  }
  return sorted;
}

NodeIndex to_index(std::size_t position) {
  return NodeIndex(static_cast<std::uint32_t>(position));
}

}  // namespace

/// One build, step by step; every step needs those before it.
class QuotaTree::Builder {
 public:
  Builder(const std::vector<CohortSpec>& cohorts, const std::vector<QueueQuotaSpec>& queues)
      : cohorts_(sorted_by_name(cohorts)), queues_(sorted_by_name(queues)) {}

  QuotaTree run(const std::vector<FlavorResource>& also_track) {
    name_cohorts();
    add_queues();
    link_children();
    order_top_down();
    measure();
    intern_flavor_resources(also_track);
    fill_quota();
    return std::move(tree_);
  }

 private:
  /// Every cohort that is defined or referred to and not in or below a cycle becomes a node.
  void name_cohorts() {
    std::set<CohortName> all;
    for (const CohortSpec* cohort : cohorts_) {
      all.insert(cohort->name);
      if (cohort->parent) all.insert(*cohort->parent);
    }
    for (const QueueQuotaSpec* queue : queues_) {
      if (queue->cohort) all.insert(*queue->cohort);
    }
    const std::vector<CohortName> names(all.begin(), all.end());
    std::vector<std::optional<std::size_t>> parents(names.size());
    for (const CohortSpec* cohort : cohorts_) {
      if (cohort->parent)
        parents[*position(names, cohort->name)] = position(names, *cohort->parent);
    }
    const auto cycle_of = find_cycles(parents);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!cycle_of[i]) {
        tree_.cohort_names_.push_back(names[i]);
        continue;
      }
      tree_.problems_.push_back(TreeProblem{
          names[i],
          fmt::format("its ancestors run into a cycle at cohort {}", names[*cycle_of[i]])});
    }
    tree_.nodes_.resize(tree_.cohort_names_.size());
    for (const CohortSpec* cohort : cohorts_) {
      const auto at = tree_.find_cohort(cohort->name);
      if (!at) continue;
      Node& node = tree_.nodes_[at->value()];
      node.fair_weight = cohort->fair_weight;
      if (cohort->parent) node.parent = tree_.find_cohort(*cohort->parent);
    }
  }

  void add_queues() {
    for (const QueueQuotaSpec* queue : queues_) {
      Node node;
      node.fair_weight = queue->fair_weight;
      if (queue->cohort) {
        node.parent = tree_.find_cohort(*queue->cohort);
        node.in_cycle = !node.parent.has_value();
      }
      tree_.queues_.push_back(to_index(tree_.nodes_.size()));
      tree_.nodes_.push_back(node);
      tree_.queue_names_.push_back(queue->name);
    }
  }

  /// Groups children by parent; ascending indices make them ordered by kind and name.
  void link_children() {
    std::vector<std::uint32_t> counts(tree_.nodes_.size());
    for (const Node& node : tree_.nodes_) {
      if (node.parent) ++counts[node.parent->value()];
    }
    std::uint32_t begin = 0;
    for (std::size_t i = 0; i < tree_.nodes_.size(); ++i) {
      tree_.nodes_[i].children_begin = tree_.nodes_[i].children_end = begin;
      begin += counts[i];
    }
    tree_.children_.resize(begin);
    for (std::size_t i = 0; i < tree_.nodes_.size(); ++i) {
      if (!tree_.nodes_[i].parent) continue;
      Node& parent = tree_.nodes_[tree_.nodes_[i].parent->value()];
      tree_.children_[parent.children_end++] = to_index(i);
    }
  }

  /// Parents before children, without recursion: a chain of cohorts may be as long as its owner
  /// likes.
  void order_top_down() {
    for (std::size_t i = 0; i < tree_.nodes_.size(); ++i) {
      if (tree_.nodes_[i].parent) continue;
      tree_.nodes_[i].root = to_index(i);
      top_down_.push_back(to_index(i));
    }
    for (std::size_t next = 0; next < top_down_.size(); ++next) {
      const NodeIndex parent = top_down_[next];
      for (const NodeIndex child : tree_.children(parent)) {
        Node& node = tree_.nodes_[child.value()];
        node.root = tree_.nodes_[parent.value()].root;
        node.depth = tree_.nodes_[parent.value()].depth + 1;
        top_down_.push_back(child);
      }
    }
  }

  /// Heights, and the run of queues below each node.
  void measure() {
    std::vector<std::uint32_t> queues_below(tree_.nodes_.size());
    for (auto at = top_down_.rbegin(); at != top_down_.rend(); ++at) {
      Node& node = tree_.nodes_[at->value()];
      if (tree_.is_queue(*at)) queues_below[at->value()] = 1;
      if (!node.parent) continue;
      Node& parent = tree_.nodes_[node.parent->value()];
      parent.height = std::max(parent.height, node.height + 1);
      queues_below[node.parent->value()] += queues_below[at->value()];
    }
    tree_.queues_by_tree_.resize(tree_.queues_.size());
    std::uint32_t next_tree = 0;
    for (const NodeIndex at : top_down_) {
      Node& node = tree_.nodes_[at.value()];
      if (!node.parent) {
        node.queues_begin = next_tree;
        next_tree += queues_below[at.value()];
      }
      node.queues_end = node.queues_begin + queues_below[at.value()];
      if (tree_.is_queue(at)) tree_.queues_by_tree_[node.queues_begin] = at;
      std::uint32_t begin = node.queues_begin;
      for (const NodeIndex child : tree_.children(at)) {
        tree_.nodes_[child.value()].queues_begin = begin;
        begin += queues_below[child.value()];
      }
    }
  }

  void intern_flavor_resources(const std::vector<FlavorResource>& also_track) {
    std::vector<FlavorResource> all = also_track;
    const auto collect = [&all](const std::vector<ResourceGroup>& groups) {
      for (const ResourceGroup& group : groups) {
        for (const FlavorQuotas& flavor : group.flavors) {
          for (const auto& [resource, quota] : flavor.resources) {
            all.push_back(FlavorResource{flavor.flavor, resource});
          }
        }
      }
    };
    for (const CohortSpec* cohort : cohorts_) collect(cohort->resource_groups);
    for (const QueueQuotaSpec* queue : queues_) collect(queue->resource_groups);
    std::sort(all.begin(), all.end(), [](const FlavorResource& a, const FlavorResource& b) {
      return std::tie(a.resource, a.flavor) < std::tie(b.resource, b.flavor);
    });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    tree_.frs_ = std::move(all);
    std::uint32_t resource = 0;
    for (std::size_t i = 0; i < tree_.frs_.size(); ++i) {
      if (i > 0 && tree_.frs_[i].resource != tree_.frs_[i - 1].resource) ++resource;
      tree_.fr_resources_.push_back(resource);
      tree_.fr_ids_.emplace(tree_.frs_[i], FrId(static_cast<std::uint32_t>(i)));
    }
  }

  void fill_quota() {
    tree_.quota_.resize(tree_.nodes_.size() * tree_.frs_.size());
    tree_.usage_.resize(tree_.quota_.size());
    lending_limits_.resize(tree_.quota_.size());
    for (const CohortSpec* cohort : cohorts_) {
      if (const auto at = tree_.find_cohort(cohort->name)) {
        fill_own(*at, cohort->resource_groups);
      }
    }
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      fill_own(tree_.queues_[i], queues_[i]->resource_groups);
    }
    for (auto at = top_down_.rbegin(); at != top_down_.rend(); ++at) sum_up(*at);
    for (const NodeIndex at : top_down_) fill_potential(at);
  }

  void fill_own(NodeIndex node, const std::vector<ResourceGroup>& groups) {
    for (const ResourceGroup& group : groups) {
      for (const FlavorQuotas& flavor : group.flavors) {
        for (const auto& [resource, quota] : flavor.resources) {
          const FrId fr = *tree_.find_fr(FlavorResource{flavor.flavor, resource});
          QuotaCell& cell = tree_.quota_[tree_.cell(node, fr)];
          cell.nominal = quota.nominal;
          cell.borrowing_limit = quota.borrowing_limit;
          cell.covered = true;
          lending_limits_[tree_.cell(node, fr)] = quota.lending_limit;
        }
      }
    }
  }

  /// T and G. All children are done and have added their lent part to `subtree`.
  void sum_up(NodeIndex at) {
    const auto parent = tree_.parent(at);
    for (std::size_t i = 0; i < tree_.frs_.size(); ++i) {
      const FrId fr(static_cast<std::uint32_t>(i));
      QuotaCell& cell = tree_.quota_[tree_.cell(at, fr)];
      cell.subtree += cell.nominal;
      if (const auto& limit = lending_limits_[tree_.cell(at, fr)]) {
        cell.guaranteed = std::max(Amount(), cell.subtree - *limit);
      }
      if (!parent) continue;
      QuotaCell& above = tree_.quota_[tree_.cell(*parent, fr)];
      above.subtree += cell.subtree - cell.guaranteed;
      above.covered = above.covered || cell.covered;
    }
  }

  /// The parent's potential is known.
  void fill_potential(NodeIndex at) {
    const auto parent = tree_.parent(at);
    for (std::size_t i = 0; i < tree_.frs_.size(); ++i) {
      const FrId fr(static_cast<std::uint32_t>(i));
      QuotaCell& cell = tree_.quota_[tree_.cell(at, fr)];
      if (!parent) {
        cell.potential = cell.subtree;
        continue;
      }
      cell.potential = cell.guaranteed + tree_.potential(*parent, fr);
      if (cell.borrowing_limit) {
        cell.potential = std::min(cell.potential, cell.subtree + *cell.borrowing_limit);
      }
    }
  }

  std::vector<const CohortSpec*> cohorts_;
  std::vector<const QueueQuotaSpec*> queues_;
  QuotaTree tree_;
  std::vector<NodeIndex> top_down_;
  std::vector<std::optional<Amount>> lending_limits_;  ///< Shaped like quota_.
};

QuotaTree QuotaTree::build(const std::vector<CohortSpec>& cohorts,
                           const std::vector<QueueQuotaSpec>& queues,
                           const std::vector<FlavorResource>& also_track) {
  return Builder(cohorts, queues).run(also_track);
}

}  // namespace muster::quota

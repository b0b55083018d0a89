#include "extender/prioritize.hpp"

#include "extender/room.hpp"

#include <algorithm>
#include <string>

namespace muster::extender {
namespace {

using engine::Snapshot;

/// `nvidia.com/gpu` and the like; not `hugepages-2Mi`, `ephemeral-storage` or kubernetes.io/….
bool is_extended(const ResourceName& resource) {
  const std::string& name = resource.value();
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return false;
  constexpr std::string_view kNative = "kubernetes.io";
  const std::string_view domain = std::string_view(name).substr(0, slash);
  return domain != kNative && !domain.ends_with(".kubernetes.io");
}

std::vector<ResourceId> extended_resources(const Snapshot& snapshot) {
  std::vector<ResourceId> ids;
  if (!snapshot.resources) return ids;
  for (std::size_t i = 0; i < snapshot.resources->size(); ++i) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    if (is_extended(snapshot.resources->name(id))) ids.push_back(id);
  }
  return ids;
}

/// Tenths of `whole`, rounded down, 0 to 10.
std::int64_t tenths(Amount part, Amount whole) {
  if (whole <= Amount() || part <= Amount()) return 0;
  if (part >= whole) return kHighestScore;
  return static_cast<std::int64_t>(static_cast<__int128>(part.value()) * kHighestScore /
                                   whole.value());
}

std::int64_t score_with_accelerators(const FoundNode& node, const Resources& request,
                                     const std::vector<ResourceId>& asked) {
  std::int64_t score = 0;
  for (const ResourceId id : asked) {
    const Amount used = node.table->used(node.row, id);
    if (used <= Amount()) continue;
    score = std::max(score, tenths(used + request[id], node.table->allocatable(node.row, id)));
  }
  return score;
}

std::int64_t score_without_accelerators(const FoundNode& node,
                                        const std::vector<ResourceId>& extended) {
  bool has_any = false;
  std::int64_t score = 0;
  for (const ResourceId id : extended) {
    const Amount allocatable = node.table->allocatable(node.row, id);
    if (allocatable <= Amount()) continue;
    has_any = true;
    score = std::max(score, tenths(node.table->used(node.row, id), allocatable));
  }
  return has_any ? std::min(score, kHighestScore - 1) : kHighestScore;
}

}  // namespace

std::vector<std::int64_t> prioritize(const kube::Pod& pod, std::span<const std::string_view> nodes,
                                     const Snapshot& snapshot) {
  const Resources request = request_of(pod, snapshot);
  const std::vector<ResourceId> extended = extended_resources(snapshot);
  std::vector<ResourceId> asked;
  std::copy_if(extended.begin(), extended.end(), std::back_inserter(asked),
               [&](ResourceId id) { return request[id] > Amount(); });
  NodeFinder finder(snapshot);
  std::vector<std::int64_t> scores;
  scores.reserve(nodes.size());
  for (const std::string_view name : nodes) {
    const FoundNode node = finder.find(name);
    if (node.node == nullptr)
      scores.push_back(0);
    else if (asked.empty())
      scores.push_back(score_without_accelerators(node, extended));
    else
      scores.push_back(score_with_accelerators(node, request, asked));
  }
  return scores;
}

}  // namespace muster::extender

#include "extender/room.hpp"

#include <algorithm>

namespace muster::extender {
namespace {

using engine::NodeView;
using engine::PodView;
using engine::Snapshot;

/// request.fits_in(unplanned_room() + more) without making vectors: this is asked of every node of
/// every call. Names that are unknown here are left out: no plan counts on them, and whether the
/// node has enough of them the scheduler's own NodeResourcesFit has seen.
bool fits_unplanned(const Resources& request, const FoundNode& found, const Resources& more) {
  for (std::size_t i = 0; i < request.extent(); ++i) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    const Amount asked = request[id];
    if (asked <= Amount() || id == ResourceTable::kUnoffered) continue;
    const Amount free = found.table->allocatable(found.row, id) - found.table->used(found.row, id);
    if (asked > free + more[id]) return false;
  }
  return true;
}

const PodView* find_pod(const NodeView& node, const Uid& uid) {
  const auto found = std::find_if(node.pods.begin(), node.pods.end(),
                                  [&](const PodView& pod) { return pod.use->uid == uid; });
  return found == node.pods.end() ? nullptr : &*found;
}

}  // namespace

RoomCheck::RoomCheck(const kube::Pod& pod, const Snapshot& snapshot,
                     std::vector<std::shared_ptr<const ForeignAnswer>> open)
    : snapshot_(snapshot),
      pod_(pod.meta.uid),
      request_(request_of(pod, snapshot)),
      open_(std::move(open)) {}

bool RoomCheck::fits(const FoundNode& found, const Resources& freed) const {
  if (found.node == nullptr) return !snapshot_.holds_gangs;
  const NodeView& node = *found.node;
  if (snapshot_.holds_gangs) {
    if (!node.usable || request_[ResourceTable::kUnoffered] > Amount()) return false;
  } else if (!found.table->has_plan(found.row)) {
    return true;
  }
  // Nominated here, the pod is counted as foreign already: not twice.
  const PodView* const self =
      found.table->has_nominated(found.row) ? find_pod(node, pod_) : nullptr;
  const bool counted = self != nullptr && !self->planned;
  if (open_.empty() && !counted) return fits_unplanned(request_, found, freed);
  Resources more = freed;
  if (counted) more += self->requests;
  if (!fits_unplanned(request_, found, more)) return false;
  for (const auto& answer : open_) {
    if (!answer->nodes.contains(snapshot_, found.position, node.name)) continue;
    if (find_pod(node, answer->uid) != nullptr) continue;  // Counted as foreign by now.
    more -= answer->requests;
  }
  return fits_unplanned(request_, found, more);
}

Resources request_of(const kube::Pod& pod, const Snapshot& snapshot) {
  if (!snapshot.resources) return {};
  return Resources::from_request(kube::node_charge(pod.spec), *snapshot.resources);
}

}  // namespace muster::extender

#include "extender/room.hpp"

#include <algorithm>

namespace muster::extender {
namespace {

using engine::NodeView;
using engine::PodView;
using engine::Snapshot;

/// request.fits_in(node.unplanned_room()) without making vectors.
bool fits_unplanned(const Resources& request, const NodeView& node) {
  for (std::size_t i = 0; i < request.extent(); ++i) {
    const ResourceId id(static_cast<std::uint16_t>(i));
    const Amount asked = request[id];
    if (asked <= Amount()) continue;
    if (asked > node.allocatable[id] - node.foreign[id] - node.planned[id]) return false;
  }
  return true;
}

const PodView* find_pod(const NodeView& node, const Uid& uid) {
  const auto found = std::find_if(node.pods.begin(), node.pods.end(),
                                  [&](const PodView& pod) { return pod.uid == uid; });
  return found == node.pods.end() ? nullptr : &*found;
}

}  // namespace

NodeFinder::Found NodeFinder::find(std::string_view name) {
  if (!snapshot_.node_index) return {};
  key_.assign(name);
  const auto found = snapshot_.node_index->find(key_);
  if (found == snapshot_.node_index->end()) return {};
  const std::size_t chunk = found->second / Snapshot::kChunkNodes;
  const std::size_t offset = found->second % Snapshot::kChunkNodes;
  if (chunk >= snapshot_.node_chunks.size() || !snapshot_.node_chunks[chunk] ||
      offset >= snapshot_.node_chunks[chunk]->size()) {
    return {};
  }
  return Found{&(*snapshot_.node_chunks[chunk])[offset], found->second};
}

RoomCheck::RoomCheck(Uid pod, Resources request,
                     std::vector<std::shared_ptr<const ForeignAnswer>> open)
    : pod_(std::move(pod)), request_(std::move(request)), open_(std::move(open)) {}

bool RoomCheck::fits(const NodeView& node, const Resources& freed) const {
  if (node.planned.is_zero()) return true;
  if (open_.empty() && fits_unplanned(request_, node)) return true;
  return fits_exactly(node, freed);
}

bool RoomCheck::fits_exactly(const NodeView& node, const Resources& freed) const {
  Resources room = node.unplanned_room();
  room += freed;
  // Nominated here, the pod is counted as foreign already: not twice.
  if (const PodView* const self = find_pod(node, pod_); self != nullptr && !self->planned) {
    room += self->requests;
  }
  if (!request_.fits_in(room)) return false;
  for (const auto& answer : open_) {
    if (!answer->nodes.contains(node.name.value())) continue;
    if (find_pod(node, answer->uid) != nullptr) continue;  // Counted as foreign by now.
    room -= answer->requests;
  }
  return request_.fits_in(room);
}

Resources request_of(const kube::Pod& pod, const Snapshot& snapshot) {
  if (!snapshot.resources) return {};
  return Resources::from_list_known(kube::node_charge(pod.spec), *snapshot.resources);
}

}  // namespace muster::extender

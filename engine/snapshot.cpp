#include "engine/snapshot.hpp"

namespace muster::engine {

std::size_t Snapshot::shard_of(const Uid& owner_uid) {
  // FNV-1a: the same on every machine and in every run, unlike std::hash.
  std::uint32_t hash = 2166136261U;
  for (const char c : owner_uid.value()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return hash % kShards;
}

const NodeView* Snapshot::find_node(std::string_view name) const {
  if (!node_index) return nullptr;
  const auto found = node_index->find(name);
  if (!found) return nullptr;
  const std::size_t chunk = *found / kChunkNodes;
  const std::size_t offset = *found % kChunkNodes;
  if (chunk >= node_chunks.size() || offset >= node_chunks[chunk]->nodes.size()) return nullptr;
  return &node_chunks[chunk]->nodes[offset];
}

std::shared_ptr<const WorkloadView> Snapshot::find_workload(const Uid& owner_uid) const {
  const auto& shard = workloads[shard_of(owner_uid)];
  if (!shard) return nullptr;
  const auto found = shard->find(owner_uid);
  return found == shard->end() ? nullptr : found->second;
}

}  // namespace muster::engine

#include "server/watches.hpp"

#include <algorithm>
#include <utility>

namespace muster::server {
namespace {

using controller::ChangeKind;
using controller::kResourceKinds;
using controller::ResourceKind;

/// A fleet has a hundred thousand of them.
bool has_many(ResourceKind kind) {
  return kind == ResourceKind::kWorkload || kind == ResourceKind::kJob ||
         kind == ResourceKind::kPod;
}

/// The object that a deletion found by listing again stands for.
kube::Json tombstone(const kube::ObjectIdentity& meta) {
  return kube::Json::object(
      {{"metadata", kube::Json::object({{"namespace", kube::Json::string(meta.ns)},
                                        {"name", kube::Json::string(meta.name)},
                                        {"uid", kube::Json::string(meta.uid)}})}});
}

}  // namespace

Watches::Watches(kube::ApiClient& client, EngineStrand& strand) : client_(client), strand_(strand) {
  begin();
}

void Watches::stop() {
  std::array<std::unique_ptr<kube::Reflector>, kCount> all;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    all = std::move(reflectors_);
  }
}

void Watches::begin() {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  bool all_before = true;
  for (std::size_t i = 0; i < kCount; ++i) {
    const bool may_begin = all_before || !has_many(kResourceKinds[i]);
    if (!reflectors_[i] && may_begin) reflectors_[i] = watch(i);
    all_before = all_before && synced_[i];
  }
}

std::unique_ptr<kube::Reflector> Watches::watch(std::size_t index) {
  kube::ReflectorConfig config;
  config.name = std::string(controller::to_string(kResourceKinds[index]));
  config.path = std::string(controller::collection_path(kResourceKinds[index]));
  return std::make_unique<kube::Reflector>(
      client_, std::move(config),
      [this, index](const kube::ObjectEvent& event) { on_event(index, event); });
}

void Watches::on_event(std::size_t index, const kube::ObjectEvent& event) {
  const ResourceKind kind = kResourceKinds[index];
  switch (event.type) {
    case kube::ObjectEvent::Type::kUpsert:
      strand_.on_object(kind, ChangeKind::kUpsert, event.object);
      return;
    case kube::ObjectEvent::Type::kDelete:
      strand_.on_object(kind, ChangeKind::kDelete,
                        event.object.present() ? event.object : tombstone(event.meta));
      return;
    case kube::ObjectEvent::Type::kSynced: {
      strand_.on_synced(kind);
      {
        const std::lock_guard lock(mutex_);
        if (std::exchange(synced_[index], true)) return;
      }
      begin();
      return;
    }
  }
}

}  // namespace muster::server

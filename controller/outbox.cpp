#include "controller/outbox.hpp"

#include <utility>

namespace muster::controller {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";

bool brings_forward(const InFlight& what) {
  return !what.workload.name.empty() && what.kind != WriteKind::kPending;
}

}  // namespace

WriteId Outbox::post(WriteKind kind, std::string path, const kube::Json& body, InFlight what) {
  Write write;
  write.kind = kind;
  write.method = WriteMethod::kPost;
  write.path = std::move(path);
  write.content_type = kJson;
  write.body = body.dump();
  return add(std::move(write), std::move(what));
}

WriteId Outbox::patch(WriteKind kind, std::string path, const kube::Json& body, InFlight what) {
  return add_patch(kind, std::move(path), kMergePatch, body, std::move(what));
}

WriteId Outbox::strategic_patch(WriteKind kind, std::string path, const kube::Json& body,
                                InFlight what) {
  return add_patch(kind, std::move(path), kStrategicPatch, body, std::move(what));
}

WriteId Outbox::add_patch(WriteKind kind, std::string path, const char* type,
                          const kube::Json& body, InFlight what) {
  what.version = body.get("metadata", "resourceVersion").string_or("");
  Write write;
  write.kind = kind;
  write.method = WriteMethod::kPatch;
  write.path = std::move(path);
  write.content_type = type;
  write.body = body.dump();
  return add(std::move(write), std::move(what));
}

WriteId Outbox::remove(WriteKind kind, std::string path, const Uid& uid, InFlight what) {
  using kube::Json;
  Write write;
  write.kind = kind;
  write.method = WriteMethod::kDelete;
  write.path = std::move(path);
  write.content_type = kJson;
  write.body = Json::object({{"apiVersion", Json::string("v1")},
                             {"kind", Json::string("DeleteOptions")},
                             {"preconditions", Json::object({{"uid", Json::string(uid.value())}})}})
                   .dump();
  return add(std::move(write), std::move(what));
}

WriteId Outbox::add(Write write, InFlight what) {
  write.id = next_id_++;
  what.kind = write.kind;
  write.subject = what.workload.name.empty() ? what.queue_name : what.workload.to_string();
  ++counts_[static_cast<std::size_t>(write.kind)];
  if (brings_forward(what)) ++workload_writes_;
  const WriteId id = write.id;
  in_flight_.emplace(id, std::move(what));
  ready_.push_back(std::move(write));
  return id;
}

std::optional<InFlight> Outbox::answered(WriteId id) {
  auto node = in_flight_.extract(id);
  if (node.empty()) return std::nullopt;
  if (brings_forward(node.mapped())) --workload_writes_;
  return std::move(node.mapped());
}

std::vector<Write> Outbox::take() {
  return std::exchange(ready_, {});
}

}  // namespace muster::controller

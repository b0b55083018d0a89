#pragma once
// Writes on their way: made, handed out, answered.

#include "controller/controller.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::controller {

/// What a write's answer is about.
struct InFlight {
  WriteKind kind = WriteKind::kEvent;
  WorkloadKey workload;  ///< Empty for writes that belong to none.
  Uid object;            ///< The pod of a pod write.
  std::string version;   ///< The version it was made from; empty: it names none.
  Namespace queue_ns;    ///< Queue status writes.
  std::string queue_name;
};

class Outbox {
 public:
  WriteId post(WriteKind kind, std::string path, const kube::Json& body, InFlight what);
  /// A merge patch; `what.version` is taken from its metadata.resourceVersion.
  WriteId patch(WriteKind kind, std::string path, const kube::Json& body, InFlight what);
  /// A strategic merge patch: lists with keys are merged.
  WriteId strategic_patch(WriteKind kind, std::string path, const kube::Json& body, InFlight what);
  /// Deletes the object with this uid, no other of its name.
  WriteId remove(WriteKind kind, std::string path, const Uid& uid, InFlight what);

  /// The record of an answered write; nothing for an unknown one.
  [[nodiscard]] std::optional<InFlight> answered(WriteId id);
  [[nodiscard]] std::vector<Write> take();
  /// Writes that bring workloads forward are without an answer yet (why one waits is none of them).
  [[nodiscard]] bool busy() const { return workload_writes_ > 0; }
  [[nodiscard]] const std::array<std::uint64_t, kWriteKinds>& counts() const { return counts_; }

 private:
  WriteId add_patch(WriteKind kind, std::string path, const char* type, const kube::Json& body,
                    InFlight what);
  WriteId add(Write write, InFlight what);

  WriteId next_id_ = 1;
  std::vector<Write> ready_;
  std::map<WriteId, InFlight> in_flight_;
  std::size_t workload_writes_ = 0;
  std::array<std::uint64_t, kWriteKinds> counts_{};
};

}  // namespace muster::controller

#pragma once
// The thread that engine and controller live on, and the queue in front of it.
//
//   reflectors ──┐                       ┌──▶ snapshot slot  (before any write is sent)
//   answers to ──┼──▶ bounded queue ──▶ batch: controller, engine, publish
//   writes       ┘                       └──▶ writes, sent by the API client's threads

#include "base/time.hpp"
#include "controller/controller.hpp"
#include "engine/engine.hpp"
#include "extender/ledger.hpp"
#include "server/snapshot_slot.hpp"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <variant>
#include <vector>

namespace muster::server {

struct StrandStats {
  std::size_t queued = 0;    ///< Inputs waiting now.
  std::uint64_t inputs = 0;  ///< Handled so far.
  std::uint64_t batches = 0;
  std::uint64_t full_waits = 0;  ///< Times a producer had to wait for room.
  double longest_batch_seconds = 0;
  controller::ControllerStats controller;
  bool synced = false;
  std::vector<engine::LargestGang> largest_gangs;  ///< At most 10 s old; empty: not looked at yet.
};

class EngineStrand {
 public:
  struct Config {
    engine::Options engine;
    controller::ControllerOptions controller;
    /// Objects beyond this wait at the producer, which slows the API server's streams, not us.
    std::size_t queue_limit = 4096;
    /// Sends one write; the answer comes back through on_write_done. Called on the strand.
    std::function<void(controller::Write)> send;
    /// Wakes a pod that the extender had refused (see extender/wake.hpp). Called on the strand.
    std::function<void(const PodKey&, const Uid&)> wake_pod;
    /// False: watch and publish only, decide and write nothing (a follower, or --controller=off).
    bool leading = true;
  };

  EngineStrand(Config config, SnapshotSlot& slot, extender::Ledger& ledger);
  /// stop().
  ~EngineStrand();
  EngineStrand(const EngineStrand&) = delete;
  EngineStrand& operator=(const EngineStrand&) = delete;

  void start();
  /// Handles what is queued, then ends the thread. No write is sent after it returns.
  void stop();

  // Inputs, from any thread but the strand's own. on_object waits while the queue is full.
  void on_object(controller::ResourceKind kind, controller::ChangeKind change, kube::Json object);
  void on_synced(controller::ResourceKind kind);
  void on_write_done(controller::WriteId id, controller::WriteResult result);
  void on_leading(bool leading);

  [[nodiscard]] StrandStats stats() const;

 private:
  struct ObjectInput {
    controller::ResourceKind kind;
    controller::ChangeKind change;
    kube::Json object;
  };
  struct SyncedInput {
    controller::ResourceKind kind;
  };
  struct WriteInput {
    controller::WriteId id;
    controller::WriteResult result;
  };
  struct LeadingInput {
    bool leading;
  };
  using Input = std::variant<ObjectInput, SyncedInput, WriteInput, LeadingInput>;

  void push(Input input, bool wait_for_room);
  void run();
  [[nodiscard]] std::vector<Input> next_batch();
  void handle(const Input& input, Instant now);
  void finish_batch(Instant now);
  void tell_ledger(std::uint64_t generation);
  void note_pod(const ObjectInput& input);
  void assume_answers(Instant now);
  void presume_landed(Instant now);

  Config config_;
  SnapshotSlot& slot_;
  extender::Ledger& ledger_;
  engine::Engine engine_;
  controller::Controller controller_;

  // On the strand only.
  bool leading_ = true;
  bool assumed_ = false;              ///< The pods of a former leader's answers were noted.
  std::vector<kube::Pod> seen_pods_;  ///< Of this batch, for the ledger.
  std::vector<Uid> gone_pods_;
  std::map<Uid, kube::Pod> unbound_pods_;  ///< Until leadership: see assume_answers.
  /// Pods that seem to be on their way to a node that was planned after they were answered.
  std::map<Uid, std::shared_ptr<const extender::ForeignAnswer>> presumed_;
  std::shared_ptr<const engine::Snapshot> published_;
  std::vector<NodeName> doubt_;
  Instant next_wake_;
  Instant next_room_look_;

  mutable std::mutex mutex_;
  std::condition_variable has_input_;
  std::condition_variable has_room_;
  std::deque<Input> queue_;  ///< Guarded by mutex_, as all below.
  bool stopping_ = false;
  StrandStats stats_;
  std::optional<Instant> wakeup_;

  std::thread thread_;
};

}  // namespace muster::server

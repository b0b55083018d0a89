#pragma once
// The rules of leader election as a state machine. PURE: `now` is an argument, the lease is a
// value.

#include "base/result.hpp"
#include "base/time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::kube {

/// spec of a coordination.k8s.io/v1 Lease and its resourceVersion.
struct LeaseRecord {
  std::string holder;  ///< Empty: nobody.
  Duration duration{0};
  std::optional<Instant> acquired;
  std::optional<Instant> renewed;
  std::int64_t transitions = 0;
  std::string resource_version;
  bool operator==(const LeaseRecord&) const = default;
};

/// Held by somebody whose last renewal is at most its duration before `now` (by the holder's clock;
/// for a look from outside, such as "does another controller run?").
[[nodiscard]] bool is_held(const LeaseRecord& record, Instant now);

struct LeaseOptions {
  std::string identity;  ///< Unique among replicas.
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  std::uint64_t seed = 0;  ///< Of the jitter while campaigning.
};

/// What the driver does next.
struct LeaseAction {
  enum class Type {
    kRead,    ///< GET the lease, then on_read().
    kCreate,  ///< POST `record`, then on_written().
    kUpdate,  ///< Write `record` on condition of its resource_version, then on_written().
    kWait,    ///< Call on_wait_over() after `wait`.
    kNone,    ///< Go on with the request that is out.
    kDone,    ///< Released; nothing more to do.
  };
  Type type = Type::kRead;
  LeaseRecord record;
  Duration wait{0};
};

class LeaseCore {
 public:
  explicit LeaseCore(LeaseOptions options);

  [[nodiscard]] LeaseAction start();
  /// Nothing: the lease does not exist.
  [[nodiscard]] LeaseAction on_read(Result<std::optional<LeaseRecord>> read, Instant now);
  [[nodiscard]] LeaseAction on_written(Result<LeaseRecord> written, Instant now);
  [[nodiscard]] LeaseAction on_wait_over(Instant now);
  /// Stops leading at once and gives the lease up where we hold it; the last action is kDone.
  [[nodiscard]] LeaseAction release(Instant now);

  /// Leading at `now`: the last renewal that the server confirmed was sent less than the renew
  /// deadline ago.
  [[nodiscard]] bool leads(Instant now) const;
  /// From here on leads() is false unless renewed before; absent while not leading.
  [[nodiscard]] std::optional<Instant> leads_until() const;
  [[nodiscard]] const std::string& holder() const { return observed_.holder; }

 private:
  [[nodiscard]] LeaseAction read();
  [[nodiscard]] LeaseAction wait(bool jitter);
  [[nodiscard]] LeaseAction acquire_or_renew(Instant now);
  [[nodiscard]] LeaseAction send(LeaseRecord record, Instant now);
  [[nodiscard]] LeaseAction give_up(Instant now);
  void observe(const LeaseRecord& record, Instant now);

  LeaseOptions options_;
  bool request_out_ = false;  // a read or write whose answer has not come
  bool releasing_ = false;
  bool gave_up_ = false;
  bool observed_any_ = false;
  LeaseRecord observed_;               // as last read or written
  Instant observed_at_;                // our clock when `observed_` last changed
  Instant write_sent_at_;              // of the last write
  std::optional<Instant> renewed_at_;  // our clock when the last confirmed write was sent
  std::uint64_t random_state_;
};

}  // namespace muster::kube

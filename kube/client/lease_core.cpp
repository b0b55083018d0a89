#include "kube/client/lease_core.hpp"

#include "kube/client/encoding.hpp"

namespace muster::kube {

bool is_held(const LeaseRecord& record, Instant now) {
  return !record.holder.empty() && record.renewed && now <= *record.renewed + record.duration;
}

LeaseCore::LeaseCore(LeaseOptions options)
    : options_(std::move(options)), random_state_(options_.seed) {}

LeaseAction LeaseCore::start() {
  return read();
}

LeaseAction LeaseCore::read() {
  request_out_ = true;
  return {.type = LeaseAction::Type::kRead, .record = {}};
}

// Candidates spread their tries (as client-go does, by up to 1.2 periods); a leader is on time.
LeaseAction LeaseCore::wait(bool jitter) {
  Duration pause = options_.retry_period;
  if (jitter) {
    const auto span = static_cast<std::uint64_t>(pause.count()) * 6 / 5 + 1;
    pause += Duration(static_cast<std::int64_t>(next_random(random_state_) % span));
  }
  return {.type = LeaseAction::Type::kWait, .record = {}, .wait = pause};
}

LeaseAction LeaseCore::send(LeaseRecord record, Instant now) {
  request_out_ = true;
  write_sent_at_ = now;
  const bool exists = !record.resource_version.empty();
  return {.type = exists ? LeaseAction::Type::kUpdate : LeaseAction::Type::kCreate,
          .record = std::move(record)};
}

// A renewal keeps what the acquisition set.
LeaseAction LeaseCore::acquire_or_renew(Instant now) {
  LeaseRecord record = observed_;
  if (record.holder != options_.identity) {
    if (record.acquired) ++record.transitions;
    record.holder = options_.identity;
    record.acquired = now;
  }
  record.duration = options_.lease_duration;
  record.renewed = now;
  return send(std::move(record), now);
}

LeaseAction LeaseCore::give_up(Instant now) {
  if (gave_up_ || observed_.holder != options_.identity)
    return {.type = LeaseAction::Type::kDone, .record = {}};
  gave_up_ = true;
  LeaseRecord record = observed_;
  record.holder.clear();
  record.duration = std::chrono::seconds(1);  // The API wants a positive number.
  record.renewed = now;
  return send(std::move(record), now);
}

void LeaseCore::observe(const LeaseRecord& record, Instant now) {
  if (observed_any_ && record == observed_) return;
  observed_any_ = true;
  observed_ = record;
  observed_at_ = now;
}

LeaseAction LeaseCore::on_read(Result<std::optional<LeaseRecord>> found, Instant now) {
  request_out_ = false;
  if (found) observe(found->value_or(LeaseRecord{}), now);
  if (releasing_) return give_up(now);
  if (!found) return wait(!leads(now));
  const bool ours = observed_.holder == options_.identity;
  if (!ours) renewed_at_.reset();
  // Another's lease runs from when we saw it written: its clock and ours may differ.
  if (!ours && !observed_.holder.empty() && now < observed_at_ + observed_.duration)
    return wait(true);
  return acquire_or_renew(now);
}

LeaseAction LeaseCore::on_written(Result<LeaseRecord> written, Instant now) {
  request_out_ = false;
  if (written) {
    observe(*written, now);
    if (observed_.holder == options_.identity) renewed_at_ = write_sent_at_;
  }
  if (releasing_) return give_up(now);
  if (written) return wait(false);
  // A leader whose version is stale looks again at once: there may be time left to renew.
  if (written.error().code == ErrorCode::kConflict && leads(now)) return read();
  return wait(!leads(now));
}

// A leader knows the version from its own last write: one request per renewal.
LeaseAction LeaseCore::on_wait_over(Instant now) {
  if (releasing_) return give_up(now);
  return leads(now) ? acquire_or_renew(now) : read();
}

LeaseAction LeaseCore::release(Instant now) {
  releasing_ = true;
  if (request_out_) return {.type = LeaseAction::Type::kNone, .record = {}};
  return give_up(now);
}

bool LeaseCore::leads(Instant now) const {
  const std::optional<Instant> end = leads_until();
  return end && now < *end;
}

std::optional<Instant> LeaseCore::leads_until() const {
  if (!renewed_at_ || releasing_) return std::nullopt;
  return *renewed_at_ + options_.renew_deadline;
}

}  // namespace muster::kube

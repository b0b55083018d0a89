#include "kube/client/lease.hpp"

#include "base/log.hpp"
#include "kube/codec/json.hpp"

#include <atomic>
#include <limits>
#include <utility>

namespace muster::kube {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

// The wall clock at start, carried on by the steady clock: it never jumps, and is near enough to
// the time that other replicas read in renewTime.
class SteadyWallClock {
 public:
  [[nodiscard]] Instant now() const {
    return start_ +
           std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - steady_start_);
  }

 private:
  std::chrono::steady_clock::time_point steady_start_ = std::chrono::steady_clock::now();
  Instant start_{std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()};
};

std::string lease_path(const std::string& ns, const std::string& name) {
  return "/apis/coordination.k8s.io/v1/namespaces/" + ns + "/leases" +
         (name.empty() ? "" : "/" + name);
}

Result<std::optional<Instant>> read_time(const Json& spec, std::string_view key) {
  const Json field = spec.get(key);
  if (field.missing()) return std::optional<Instant>();
  const Result<Instant> at = parse_rfc3339(field.string_or(""));
  if (!at) return fail(at.error().with_context(key));
  return std::optional<Instant>(*at);
}

Result<LeaseRecord> decode_lease(std::string_view body) {
  const Result<Json> object = Json::parse(body);
  if (!object) return fail(object.error());
  const Json spec = object->get("spec");
  const Result<std::optional<Instant>> acquired = read_time(spec, "acquireTime");
  if (!acquired) return fail(acquired.error());
  const Result<std::optional<Instant>> renewed = read_time(spec, "renewTime");
  if (!renewed) return fail(renewed.error());
  LeaseRecord record;
  record.holder = spec.get("holderIdentity").string_or("");
  record.duration = std::chrono::seconds(spec.get("leaseDurationSeconds").int_or(0));
  record.acquired = *acquired;
  record.renewed = *renewed;
  record.transitions = spec.get("leaseTransitions").int_or(0);
  record.resource_version = object->get("metadata", "resourceVersion").string_or("");
  if (record.resource_version.empty())
    return fail(invalid_argument("lease: metadata.resourceVersion is missing"));
  return record;
}

Json time_field(const std::optional<Instant>& at) {
  return at ? Json::string(format_rfc3339_micro(*at)) : Json();
}

Json encode_spec(const LeaseRecord& record) {
  const std::int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(record.duration).count();
  return Json::object({{"holderIdentity", Json::string(record.holder)},
                       {"leaseDurationSeconds", Json::number(seconds)},
                       {"acquireTime", time_field(record.acquired)},
                       {"renewTime", time_field(record.renewed)},
                       {"leaseTransitions", Json::number(record.transitions)}});
}

HttpCall create_call(const LeaseConfig& config, const LeaseRecord& record) {
  HttpCall call;
  call.method = HttpMethod::kPost;
  call.path_and_query = lease_path(config.ns, "");
  call.body = Json::object({{"apiVersion", Json::string("coordination.k8s.io/v1")},
                            {"kind", Json::string("Lease")},
                            {"metadata", Json::object({{"name", Json::string(config.name)},
                                                       {"namespace", Json::string(config.ns)}})},
                            {"spec", encode_spec(record)}})
                  .dump();
  return call;
}

// A merge patch keeps labels and fields that are not ours; the version makes it conditional.
HttpCall update_call(const LeaseConfig& config, const LeaseRecord& record) {
  HttpCall call;
  call.method = HttpMethod::kPatch;
  call.path_and_query = lease_path(config.ns, config.name);
  call.content_type = kMergePatch;
  call.body =
      Json::object(
          {{"metadata", Json::object({{"resourceVersion", Json::string(record.resource_version)}})},
           {"spec", encode_spec(record)}})
          .dump();
  return call;
}

}  // namespace

struct LeaderElector::Impl : std::enable_shared_from_this<LeaderElector::Impl> {
  Impl(ApiClient& api_client, LeaseConfig lease_config, LeaseCallbacks lease_callbacks)
      : client(api_client),
        config(std::move(lease_config)),
        callbacks(std::move(lease_callbacks)),
        core(config.options) {}

  // All on the client's strand.
  void apply(const LeaseAction& action);
  void read();
  void write(HttpCall call);
  void notice_changes();
  [[nodiscard]] Duration request_timeout() const {
    // Two tries fit before the deadline.
    return config.options.renew_deadline / 2;
  }

  ApiClient& client;
  const LeaseConfig config;
  const LeaseCallbacks callbacks;
  const SteadyWallClock clock;
  LeaseCore core;
  std::unique_ptr<TimerHandle> timer;
  std::unique_ptr<TimerHandle> deadline_timer;
  std::function<void()> released;
  bool leading = false;  // as last told by a callback
  std::string told_holder;

  std::atomic<bool> closed{false};
  std::atomic<std::int64_t> leads_until_us{kNever};
};

// Tells what has changed since the last call, and wakes at the deadline to notice its passing.
void LeaderElector::Impl::notice_changes() {
  const Instant now = clock.now();
  const std::optional<Instant> until = core.leads_until();
  leads_until_us = until ? until->us : kNever;
  deadline_timer.reset();
  if (until && now < *until) {
    deadline_timer = client.run_after(*until - now, [self = shared_from_this()] {
      if (!self->closed) self->notice_changes();
    });
  }
  if (core.holder() != told_holder) {
    told_holder = core.holder();
    if (callbacks.on_new_leader) callbacks.on_new_leader(told_holder);
  }
  const bool leads = core.leads(now);
  if (leads == leading) return;
  leading = leads;
  const std::function<void()>& callback =
      leads ? callbacks.on_started_leading : callbacks.on_stopped_leading;
  if (callback) callback();
}

void LeaderElector::Impl::apply(const LeaseAction& action) {
  if (closed) return;
  notice_changes();
  if (closed) return;
  switch (action.type) {
    case LeaseAction::Type::kRead:
      read();
      break;
    case LeaseAction::Type::kCreate:
      write(create_call(config, action.record));
      break;
    case LeaseAction::Type::kUpdate:
      write(update_call(config, action.record));
      break;
    case LeaseAction::Type::kWait:
      timer = client.run_after(action.wait, [self = shared_from_this()] {
        if (!self->closed) self->apply(self->core.on_wait_over(self->clock.now()));
      });
      break;
    case LeaseAction::Type::kNone:
      break;
    case LeaseAction::Type::kDone:
      timer.reset();
      if (const std::function<void()> done = std::exchange(released, nullptr)) done();
      break;
  }
}

void LeaderElector::Impl::read() {
  HttpCall call;
  call.path_and_query = lease_path(config.ns, config.name);
  call.timeout = request_timeout();
  client.request(std::move(call), [self = shared_from_this()](Result<HttpReply> reply) {
    if (self->closed) return;
    const Instant now = self->clock.now();
    if (!reply && reply.error().code == ErrorCode::kNotFound) {
      self->apply(self->core.on_read(std::optional<LeaseRecord>(), now));
      return;
    }
    const Result<LeaseRecord> record = reply ? decode_lease(reply->body) : fail(reply.error());
    if (!record) log::warning("lease {}: {}", self->config.name, record.error().message);
    self->apply(record ? self->core.on_read(std::optional<LeaseRecord>(*record), now)
                       : self->core.on_read(fail(record.error()), now));
  });
}

void LeaderElector::Impl::write(HttpCall call) {
  call.timeout = request_timeout();
  client.request(std::move(call), [self = shared_from_this()](Result<HttpReply> reply) {
    if (self->closed) return;
    const Result<LeaseRecord> record = reply ? decode_lease(reply->body) : fail(reply.error());
    if (!record && record.error().code != ErrorCode::kConflict)
      log::warning("lease {}: {}", self->config.name, record.error().message);
    self->apply(self->core.on_written(record, self->clock.now()));
  });
}

LeaderElector::LeaderElector(ApiClient& client, LeaseConfig config, LeaseCallbacks callbacks)
    : impl_(std::make_shared<Impl>(client, std::move(config), std::move(callbacks))) {
  std::shared_ptr<Impl> impl = impl_;
  client.post([impl] {
    if (!impl->closed) impl->apply(impl->core.start());
  });
}

LeaderElector::~LeaderElector() {
  impl_->closed = true;
  std::shared_ptr<Impl> impl = impl_;
  impl->client.post([impl] {
    impl->timer.reset();
    impl->deadline_timer.reset();
  });
}

bool LeaderElector::is_leader() const {
  return impl_->clock.now().us < impl_->leads_until_us && !impl_->closed;
}

void LeaderElector::release(std::function<void()> done) {
  std::shared_ptr<Impl> impl = impl_;
  impl->client.post([impl, done = std::move(done)]() mutable {
    impl->released = std::move(done);
    impl->timer.reset();
    impl->apply(impl->core.release(impl->clock.now()));
  });
}

void read_lease(ApiClient& client, const std::string& ns, const std::string& name,
                std::function<void(Result<std::optional<LeaseRecord>>)> callback) {
  HttpCall call;
  call.path_and_query = lease_path(ns, name);
  client.request(std::move(call), [callback = std::move(callback)](Result<HttpReply> reply) {
    if (!reply && reply.error().code == ErrorCode::kNotFound) {
      callback(std::optional<LeaseRecord>());
      return;
    }
    const Result<LeaseRecord> record = reply ? decode_lease(reply->body) : fail(reply.error());
    if (!record) {
      callback(fail(record.error()));
      return;
    }
    callback(std::optional<LeaseRecord>(*record));
  });
}

}  // namespace muster::kube

#include "kube/client/reflector.hpp"

#include "base/log.hpp"
#include "kube/client/watch_line.hpp"

#include <atomic>

namespace muster::kube {

struct Reflector::Impl : std::enable_shared_from_this<Reflector::Impl> {
  Impl(ApiClient& api_client, ReflectorConfig reflector_config, ObjectEventHandler event_handler)
      : client(api_client),
        config(std::move(reflector_config)),
        handler(std::move(event_handler)),
        core(config.options) {}

  // All on the client's strand.
  void apply(ReflectorStep step);
  void list(const std::string& query);
  void watch(const std::string& query);
  void on_line(std::string_view text);
  void on_end(const Result<void>& end);
  void publish_counters();

  [[nodiscard]] std::string url(const std::string& query) const {
    const bool has_query = config.path.find('?') != std::string::npos;
    return config.path + (has_query ? "&" : "?") + query;
  }
  [[nodiscard]] Duration watch_age() const {
    return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - watch_started);
  }

  ApiClient& client;
  const ReflectorConfig config;
  const ObjectEventHandler handler;
  ReflectorCore core;
  std::unique_ptr<WatchHandle> running_watch;
  std::chrono::steady_clock::time_point watch_started;
  std::unique_ptr<TimerHandle> timer;

  std::atomic<bool> closed{false};
  std::atomic<bool> synced{false};
  std::atomic<std::uint64_t> lists{0};
  std::atomic<std::uint64_t> watch_cuts{0};
  std::atomic<std::uint64_t> gone{0};
};

void Reflector::Impl::publish_counters() {
  lists = core.counters().lists;
  watch_cuts = core.counters().watch_cuts;
  gone = core.counters().gone;
}

void Reflector::Impl::apply(ReflectorStep step) {
  publish_counters();
  for (ObjectEvent& event : step.events) {
    if (closed) return;
    handler(std::move(event));
  }
  synced = core.synced();
  if (closed || step.next.type == ReflectorAction::Type::kNone) return;
  running_watch.reset();
  timer.reset();
  switch (step.next.type) {
    case ReflectorAction::Type::kNone:
      break;
    case ReflectorAction::Type::kListPage:
      list(step.next.query);
      break;
    case ReflectorAction::Type::kWatch:
      watch(step.next.query);
      break;
    case ReflectorAction::Type::kPause:
      timer = client.run_after(step.next.pause, [self = shared_from_this()] {
        if (!self->closed) self->apply(self->core.on_pause_over());
      });
      break;
  }
}

void Reflector::Impl::list(const std::string& query) {
  HttpCall call;
  call.path_and_query = url(query);
  call.timeout = config.list_timeout;
  client.request(std::move(call), [self = shared_from_this()](Result<HttpReply> reply) {
    if (self->closed) return;
    Result<ListPage> page = reply ? parse_list_page(reply->body) : fail(reply.error());
    if (!page) log::warning("{}: list: {}", self->config.name, page.error().message);
    if (page && page->unreadable > 0) {
      log::warning("{}: list: items without metadata.name, left out: {}", self->config.name,
                   page->unreadable);
    }
    self->apply(self->core.on_list_page(std::move(page)));
  });
}

void Reflector::Impl::watch(const std::string& query) {
  watch_started = std::chrono::steady_clock::now();
  WatchCall call;
  call.path_and_query = url(query);
  call.idle_timeout = config.watch_idle_timeout;
  WatchHandlers handlers;
  // Weak: the watch that holds these is held by us.
  const std::weak_ptr<Impl> weak = weak_from_this();
  handlers.on_line = [weak](std::string_view line) {
    if (const std::shared_ptr<Impl> self = weak.lock()) self->on_line(line);
  };
  handlers.on_end = [weak](const Result<void>& end) {
    if (const std::shared_ptr<Impl> self = weak.lock()) self->on_end(end);
  };
  running_watch = client.watch(std::move(call), std::move(handlers));
}

void Reflector::Impl::on_line(std::string_view text) {
  if (closed) return;
  Result<WatchLine> line = parse_watch_line(text);
  if (!line) {
    log::warning("{}: {}", config.name, line.error().message);
    apply(core.on_unreadable_line());
    return;
  }
  if (line->type == WatchLine::Type::kError) {
    log::info("{}: watch: server says {} {}", config.name, line->error_code, line->error_message);
  }
  apply(core.on_watch_line(std::move(*line)));
}

void Reflector::Impl::on_end(const Result<void>& end) {
  if (closed) return;
  if (!end) log::info("{}: {}", config.name, end.error().message);
  apply(core.on_watch_end(end, watch_age()));
}

Reflector::Reflector(ApiClient& client, ReflectorConfig config, ObjectEventHandler handler)
    : impl_(std::make_shared<Impl>(client, std::move(config), std::move(handler))) {
  std::shared_ptr<Impl> impl = impl_;
  client.post([impl] {
    if (!impl->closed) impl->apply(impl->core.start());
  });
}

Reflector::~Reflector() {
  impl_->closed = true;
  std::shared_ptr<Impl> impl = impl_;
  impl->client.post([impl] {
    impl->running_watch.reset();
    impl->timer.reset();
  });
}

bool Reflector::synced() const {
  return impl_->synced;
}

ReflectorCounters Reflector::counters() const {
  return {.lists = impl_->lists, .watch_cuts = impl_->watch_cuts, .gone = impl_->gone};
}

}  // namespace muster::kube

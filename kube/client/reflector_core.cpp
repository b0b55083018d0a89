#include "kube/client/reflector_core.hpp"

#include "kube/client/encoding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::kube {
namespace {

// A watch asks the server to end it after 5 to 10 minutes, so that the watches of many clients do
// not all begin again together (client-go does the same).
constexpr std::uint64_t kWatchSeconds = 300;
// A watch that lived this long was of use even if nothing happened; one that did not may be refused
// over and over.
constexpr Duration kUsefulWatch = std::chrono::seconds(5);
constexpr int kHttpGone = 410;

}  // namespace

ReflectorCore::ReflectorCore(ReflectorOptions options)
    : options_(options), random_state_(options.seed) {}

std::uint64_t ReflectorCore::random() {
  return next_random(random_state_);
}

ReflectorStep ReflectorCore::start() {
  return {.events = {}, .next = begin_list()};
}

ReflectorAction ReflectorCore::begin_list() {
  state_ = State::kListing;
  seen_.clear();
  streaming_ = options_.streaming_list && !streaming_refused_ && !page_next_;
  page_next_ = false;
  if (!streaming_) return next_page("");
  progress_ = false;
  return {.type = ReflectorAction::Type::kWatch,
          .query = fmt::format("watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                               "&allowWatchBookmarks=true&timeoutSeconds={}",
                               kWatchSeconds + random() % kWatchSeconds)};
}

ReflectorAction ReflectorCore::next_page(const std::string& continue_token) {
  ReflectorAction action{.type = ReflectorAction::Type::kListPage,
                         .query = fmt::format("limit={}", options_.page_size)};
  if (!continue_token.empty()) action.query += "&continue=" + percent_encode(continue_token);
  return action;
}

ReflectorAction ReflectorCore::begin_watch() {
  state_ = State::kWatching;
  progress_ = false;
  return {.type = ReflectorAction::Type::kWatch,
          .query = fmt::format("watch=true&allowWatchBookmarks=true&resourceVersion={}"
                               "&timeoutSeconds={}",
                               percent_encode(resource_version_),
                               kWatchSeconds + random() % kWatchSeconds)};
}

// Doubles with every failure in a row; between half and all of it is waited.
ReflectorAction ReflectorCore::pause(State state) {
  state_ = state;
  Duration base = options_.first_pause;
  for (std::uint32_t i = 0; i < failures_ && base < options_.max_pause; ++i) base *= 2;
  base = std::min(base, options_.max_pause);
  ++failures_;
  const auto half = static_cast<std::uint64_t>(std::max<std::int64_t>(base.count() / 2, 1));
  return {.type = ReflectorAction::Type::kPause,
          .query = {},
          .pause = Duration(static_cast<std::int64_t>(half + random() % half))};
}

ReflectorAction ReflectorCore::relist() {
  if (failures_ > 0) return pause(State::kListPause);
  ++failures_;
  return begin_list();
}

ReflectorAction ReflectorCore::relist_after_gone() {
  ++counters_.gone;
  return relist();
}

ReflectorStep ReflectorCore::on_pause_over() {
  if (state_ == State::kListPause) return {.events = {}, .next = begin_list()};
  if (state_ == State::kWatchPause) return {.events = {}, .next = begin_watch()};
  return {};
}

ReflectorStep ReflectorCore::on_list_failure() {
  page_next_ = streaming_;
  return {.events = {}, .next = pause(State::kListPause)};
}

ReflectorStep ReflectorCore::on_list_page(Result<ListPage> page) {
  if (state_ != State::kListing || streaming_) return {};
  if (!page) return on_list_failure();
  ReflectorStep step;
  for (ListItem& item : page->items) {
    seen_.emplace(item.meta.ns, item.meta.name);
    upsert(std::move(item.meta), std::move(item.object), step.events);
  }
  if (!page->continue_token.empty()) {
    step.next = next_page(page->continue_token);
    return step;
  }
  finish_list(page->resource_version, step.events);
  step.next = begin_watch();
  return step;
}

ReflectorStep ReflectorCore::on_list_line(WatchLine line) {
  ReflectorStep step;
  switch (line.type) {
    case WatchLine::Type::kAdded:
    case WatchLine::Type::kModified:
      seen_.emplace(line.meta.ns, line.meta.name);
      upsert(std::move(line.meta), std::move(line.object), step.events);
      break;
    case WatchLine::Type::kDeleted:
      seen_.erase(Key(line.meta.ns, line.meta.name));
      remove(line.meta, std::move(line.object), step.events);
      break;
    case WatchLine::Type::kBookmark:
      if (!line.initial_events_end) break;
      finish_list(line.meta.resource_version, step.events);
      state_ = State::kWatching;  // The same stream goes on as the watch.
      break;
    case WatchLine::Type::kError:
      return on_list_failure();
    case WatchLine::Type::kUnknown:
      break;
  }
  return step;
}

ReflectorStep ReflectorCore::on_watch_line(WatchLine line) {
  if (state_ == State::kListing && streaming_) return on_list_line(std::move(line));
  if (state_ != State::kWatching) return {};
  ReflectorStep step;
  if (line.type == WatchLine::Type::kUnknown) return step;
  if (line.type == WatchLine::Type::kError) {
    if (line.error_code == kHttpGone) {
      step.next = relist_after_gone();
      return step;
    }
    ++counters_.watch_cuts;
    step.next = progress_ ? begin_watch() : pause(State::kWatchPause);
    return step;
  }
  progress_ = true;
  failures_ = 0;
  if (!line.meta.resource_version.empty()) resource_version_ = line.meta.resource_version;
  if (line.type == WatchLine::Type::kDeleted) {
    remove(line.meta, std::move(line.object), step.events);
  } else if (line.type != WatchLine::Type::kBookmark) {
    upsert(std::move(line.meta), std::move(line.object), step.events);
  }
  return step;
}

ReflectorStep ReflectorCore::on_unreadable_line() {
  if (state_ == State::kListing && streaming_) return on_list_failure();
  if (state_ != State::kWatching) return {};
  ++counters_.watch_cuts;
  page_next_ = true;
  return {.events = {}, .next = relist()};
}

ReflectorStep ReflectorCore::on_watch_end(const Result<void>& end, Duration lasted) {
  if (state_ == State::kListing && streaming_) {
    if (!end && end.error().code == ErrorCode::kInvalidArgument && !progress_) {
      streaming_refused_ = true;
      return {.events = {}, .next = begin_list()};
    }
    return on_list_failure();
  }
  if (state_ != State::kWatching) return {};
  if (!end && end.error().code == ErrorCode::kGone)
    return {.events = {}, .next = relist_after_gone()};
  if (!end && end.error().code == ErrorCode::kTooLarge) return on_unreadable_line();
  if (!end) ++counters_.watch_cuts;
  if (lasted >= kUsefulWatch) failures_ = 0;
  if (progress_ || lasted >= kUsefulWatch) return {.events = {}, .next = begin_watch()};
  return {.events = {}, .next = pause(State::kWatchPause)};
}

void ReflectorCore::finish_list(const std::string& resource_version,
                                std::vector<ObjectEvent>& events) {
  for (auto it = known_.begin(); it != known_.end();) {
    if (seen_.contains(it->first)) {
      ++it;
      continue;
    }
    events.push_back({.type = ObjectEvent::Type::kDelete,
                      .meta = {.ns = it->first.first,
                               .name = it->first.second,
                               .uid = it->second.uid,
                               .resource_version = it->second.resource_version},
                      .object = {}});
    it = known_.erase(it);
  }
  seen_.clear();
  resource_version_ = resource_version;
  synced_ = true;
  ++counters_.lists;
  events.push_back({.type = ObjectEvent::Type::kSynced, .meta = {}, .object = {}});
}

// An object made anew under the same name is another object: the old one is deleted first.
void ReflectorCore::upsert(ObjectIdentity meta, Json object, std::vector<ObjectEvent>& events) {
  const Key key(meta.ns, meta.name);
  const auto it = known_.find(key);
  if (it != known_.end() && it->second.uid == meta.uid &&
      it->second.resource_version == meta.resource_version)
    return;
  if (it != known_.end() && it->second.uid != meta.uid) {
    ObjectIdentity old = meta;
    old.uid = it->second.uid;
    old.resource_version = it->second.resource_version;
    events.push_back({.type = ObjectEvent::Type::kDelete, .meta = std::move(old), .object = {}});
  }
  known_.insert_or_assign(key, Known{.uid = meta.uid, .resource_version = meta.resource_version});
  events.push_back(
      {.type = ObjectEvent::Type::kUpsert, .meta = std::move(meta), .object = std::move(object)});
}

void ReflectorCore::remove(const ObjectIdentity& meta, Json object,
                           std::vector<ObjectEvent>& events) {
  const auto it = known_.find(Key(meta.ns, meta.name));
  if (it == known_.end()) return;
  known_.erase(it);
  events.push_back({.type = ObjectEvent::Type::kDelete, .meta = meta, .object = std::move(object)});
}

}  // namespace muster::kube

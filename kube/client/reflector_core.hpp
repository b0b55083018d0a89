#pragma once
// Keeps a consumer's view of one resource equal to the API server's: list, then watch, over and
// over. PURE: no socket, clock or thread; reflector.hpp drives it, tests and the simulator call it
// directly.
//
//            start                 list complete                410 / ERROR 410
//   kIdle ----------> kListing ------------------> kWatching -----------------> kListing
//                       ^  | failure                ^   | cut or clean end
//                       |  v                        |   v
//                     kListPause                  kWatchPause (from the last version seen)
//
// A list is streamed (`sendInitialEvents`); paged where the server refuses that, and once after a
// streamed list that was cut. A line that cannot be read, or is too long, is as 410, for a watch
// from the same version would meet it again; that list is paged, which leaves out what cannot be
// read. A watch that brought a line, or lasted, is resumed at once; otherwise the pause doubles
// from failure to failure.
//
// Invariants:
//  1. `known_` is exactly the set of objects the consumer holds: upserted and not yet deleted.
//  2. kSynced follows every complete list and nothing else; objects that vanished while nobody
//     looked were deleted before it.
//  3. A watch starts from the version of the last list, event or bookmark, never from an older one.

#include "base/result.hpp"
#include "base/time.hpp"
#include "kube/codec/json.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::kube {

/// What the state machine needs of one object.
struct ObjectIdentity {
  std::string ns;  ///< Empty for cluster-scoped kinds.
  std::string name;
  std::string uid;
  std::string resource_version;
};

/// One line of a watch, taken apart just far enough.
struct WatchLine {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError, kUnknown };
  Type type = Type::kUnknown;
  ObjectIdentity meta;  ///< Of a bookmark only the version is set.
  Json object;
  bool initial_events_end = false;  ///< A bookmark annotated `k8s.io/initial-events-end: "true"`.
  int error_code = 0;               ///< kError: `code` of the Status object.
  std::string error_message;
};

struct ListItem {
  ObjectIdentity meta;
  Json object;  ///< As in the list: without apiVersion and kind. Shares the page's memory.
};

struct ListPage {
  std::string resource_version;
  std::string continue_token;  ///< Empty on the last page.
  std::vector<ListItem> items;
  std::size_t unreadable = 0;  ///< Items that had no name and are not in `items`.
};

/// What the consumer is told.
struct ObjectEvent {
  enum class Type { kUpsert, kDelete, kSynced };
  Type type = Type::kSynced;
  ObjectIdentity meta;
  /// Absent with kSynced, and with kDelete when the deletion was found by listing again. An object
  /// from a list shares the memory of its whole page: decode it, do not keep it.
  Json object;
};

struct ReflectorOptions {
  std::uint32_t page_size = 500;
  bool streaming_list = true;
  Duration first_pause = std::chrono::milliseconds(100);
  Duration max_pause = std::chrono::seconds(30);
  std::uint64_t seed = 0;  ///< Of the jitter.
};

/// What the driver does next. Exactly one action is outstanding at any time.
struct ReflectorAction {
  enum class Type { kNone, kListPage, kWatch, kPause };
  Type type = Type::kNone;
  std::string query;  ///< kListPage, kWatch: appended to the resource's path after `?` or `&`.
  Duration pause{0};  ///< kPause: then call on_pause_over().
};

struct ReflectorStep {
  std::vector<ObjectEvent> events;
  ReflectorAction next;  ///< kNone: go on with what is running.
};

struct ReflectorCounters {
  std::uint64_t lists = 0;       ///< Completed.
  std::uint64_t watch_cuts = 0;  ///< Watches that ended with an error.
  std::uint64_t gone = 0;        ///< 410: positions that had become too old.
};

class ReflectorCore {
 public:
  explicit ReflectorCore(ReflectorOptions options);

  [[nodiscard]] ReflectorStep start();
  [[nodiscard]] ReflectorStep on_list_page(Result<ListPage> page);
  /// A kError line is terminal: the driver ends that watch and acts on `next`.
  [[nodiscard]] ReflectorStep on_watch_line(WatchLine line);
  /// A line that is no WatchLine. Terminal, as a kError line is.
  [[nodiscard]] ReflectorStep on_unreadable_line();
  /// A value: the server ended the watch by itself. `lasted` is how long the watch had run.
  [[nodiscard]] ReflectorStep on_watch_end(const Result<void>& end, Duration lasted);
  [[nodiscard]] ReflectorStep on_pause_over();

  [[nodiscard]] bool synced() const { return synced_; }
  [[nodiscard]] std::size_t object_count() const { return known_.size(); }
  [[nodiscard]] const ReflectorCounters& counters() const { return counters_; }

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  struct Known {
    std::string uid;
    std::string resource_version;
  };
  enum class State { kIdle, kListing, kListPause, kWatching, kWatchPause };

  ReflectorStep on_list_line(WatchLine line);
  ReflectorStep on_list_failure();
  ReflectorAction begin_list();
  ReflectorAction next_page(const std::string& continue_token);
  ReflectorAction begin_watch();
  ReflectorAction pause(State state);
  ReflectorAction relist();
  ReflectorAction relist_after_gone();
  void finish_list(const std::string& resource_version, std::vector<ObjectEvent>& events);
  void upsert(ObjectIdentity meta, Json object, std::vector<ObjectEvent>& events);
  void remove(const ObjectIdentity& meta, Json object, std::vector<ObjectEvent>& events);
  std::uint64_t random();

  ReflectorOptions options_;
  State state_ = State::kIdle;
  bool synced_ = false;
  bool streaming_refused_ = false;  // by this server, so it is not asked again
  bool page_next_ = false;          // streaming failed: by load, or by a line nobody can read
  bool streaming_ = false;          // the list running now is a streamed one
  std::map<Key, Known> known_;
  std::set<Key> seen_;            // in the list running now
  std::string resource_version_;  // where the next watch starts
  bool progress_ = false;         // the watch running now has brought a line
  std::uint32_t failures_ = 0;    // in a row, without a watch that was of use
  std::uint64_t random_state_;
  ReflectorCounters counters_;
};

}  // namespace muster::kube

#pragma once
// Whose turn it is to have written down why it waits.
//
// Of thousands of workloads that come at once most start before anybody asks, and a status write
// costs the API server as much as an admission. So these writes are paced: a burst goes at once,
// then one each interval. Namespaces take turns, so that one tenant's flood does not keep another
// one's workload silent; within a namespace who has a new reason goes before who has only new
// words for it, and otherwise who asked first.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "controller/pace.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace muster::controller {

class PendingTurns {
 public:
  explicit PendingTurns(Pace pace) : pace_(pace) {}

  /// Who asks again keeps the place, or gets the better one with a new reason.
  void ask(const WorkloadKey& key, bool new_reason);
  /// Who is next, if there may be a write at `now`; does not wait any more then.
  [[nodiscard]] std::optional<WorkloadKey> take(Instant now);
  /// A write was made. `busy`: others that matter more are under way, the next comes later.
  void wrote(bool busy, Instant now);
  /// When take() has somebody; nothing: not before somebody asks.
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

 private:
  struct Place {
    bool new_words_only = false;
    std::uint64_t ticket = 0;
    auto operator<=>(const Place&) const = default;
  };

  Pace pace_;
  std::uint64_t next_ticket_ = 0;
  std::map<Namespace, std::map<Place, std::string>> lines_;  ///< None of them empty.
  std::map<WorkloadKey, Place> places_;
  Namespace last_served_;
};

}  // namespace muster::controller

#pragma once
// The extender's three verbs, from the bytes of a request to the bytes of its answer.

#include "base/time.hpp"
#include "engine/snapshot.hpp"
#include "extender/ledger.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::extender {

/// An HTTP answer in `application/json`. kube-scheduler takes nothing but 200 for an answer.
struct Answer {
  int status = 200;
  std::string body;
  std::size_t nodes = 0;  ///< In the request; the time an answer takes grows with it.
};

/// `verb` is `filter`, `prioritize` or `preempt`; any other is 404. A body that is no such request
/// is 400 with the reason in `Error`; nothing in it can do harm. A pod whose spec we cannot read is
/// left alone (all nodes pass, no scores, all candidates stay) unless it is a member of a workload.
[[nodiscard]] Answer answer(std::string_view verb, std::string_view body,
                            const engine::Snapshot& snapshot, Ledger& ledger, Instant now);

}  // namespace muster::extender

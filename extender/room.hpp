#pragma once
// Whether a pod outside every plan fits beside the plans: one rule for filter and preempt, so that
// what preempt promises filter keeps.

#include "base/resources.hpp"
#include "base/time.hpp"
#include "engine/snapshot.hpp"
#include "extender/ledger.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::extender {

/// One pod's question, asked of many nodes of one snapshot, which must outlive it.
class RoomCheck {
 public:
  /// `open` are the answers to other pods that may have taken room which the snapshot does not
  /// show yet.
  RoomCheck(const kube::Pod& pod, const engine::Snapshot& snapshot,
            std::vector<std::shared_ptr<const ForeignAnswer>> open);

  /// True where the request fits into allocatable − foreign − planned − open answers + freed. On a
  /// node that no plan touches there is nothing to protect: kube-scheduler has checked the room
  /// itself, with newer knowledge than ours. But while a gang is held, what it knows of and we do
  /// not (a new node, a pod that ended) may be what is to be kept for that gang: then only the room
  /// counts that the snapshot shows.
  [[nodiscard]] bool fits(const FoundNode& found, const Resources& freed = {}) const;

  [[nodiscard]] const Resources& request() const { return request_; }

 private:
  const engine::Snapshot& snapshot_;
  Uid pod_;
  Resources request_;
  std::vector<std::shared_ptr<const ForeignAnswer>> open_;
};

/// The pod's request in the snapshot's resources. A name that the snapshot does not know makes it
/// ask for kUnoffered, which RoomCheck leaves out and the commit barrier does not: a plan made once
/// the name is known cannot tell whether it and this pod fit together, and waits for the pod.
[[nodiscard]] Resources request_of(const kube::Pod& pod, const engine::Snapshot& snapshot);

}  // namespace muster::extender

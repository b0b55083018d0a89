#pragma once
// The webhook, from the bytes of a request to the bytes of its answer.

#include "engine/snapshot.hpp"
#include "webhook/options.hpp"

#include <string>
#include <string_view>

namespace muster::webhook {

/// An HTTP answer in `application/json`.
struct Answer {
  int status = 200;
  std::string body;
};

/// `path` is `/mutate` or `/validate`; any other is 404. A body that is no AdmissionReview is 400
/// with the reason in `error`; one that has a request uid but cannot be read otherwise is answered
/// by `allowed: false` with the reason. Nothing in it can do harm, and nothing is remembered.
[[nodiscard]] Answer answer(std::string_view path, std::string_view body,
                            const engine::Snapshot& snapshot, const WebhookOptions& options);

}  // namespace muster::webhook

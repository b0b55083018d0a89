#pragma once
// A call of the API client that the caller waits for: start-up only, never on the client's strand.

#include "kube/client/api_client.hpp"
#include "kube/codec/json.hpp"

namespace muster::server {

/// The decoded body of a 2xx answer; absent for an empty one.
[[nodiscard]] Result<kube::Json> call_and_wait(kube::ApiClient& client, kube::HttpCall call);

}  // namespace muster::server

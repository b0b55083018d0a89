#include "server/blocking_call.hpp"

#include <future>
#include <memory>

namespace muster::server {

Result<kube::Json> call_and_wait(kube::ApiClient& client, kube::HttpCall call) {
  auto promise = std::make_shared<std::promise<Result<kube::HttpReply>>>();
  std::future<Result<kube::HttpReply>> answer = promise->get_future();
  client.request(std::move(call), [promise](Result<kube::HttpReply> reply) {
    promise->set_value(std::move(reply));
  });
  Result<kube::HttpReply> reply = answer.get();
  if (!reply) return fail(reply.error());
  if (reply->body.empty()) return kube::Json();
  return kube::Json::parse(reply->body);
}

}  // namespace muster::server

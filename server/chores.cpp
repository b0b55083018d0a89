#include "server/chores.hpp"

#include "base/log.hpp"
#include "kube/codec/base64.hpp"

#include <fmt/format.h>

namespace muster::server {
namespace {

constexpr const char* kLeaderLabel = "muster.dev/leader";

}  // namespace

std::string ca_bundle_patch(const kube::Json& configuration, const std::string& ca_pem) {
  const std::string wanted = kube::base64_encode(ca_pem);
  const kube::Json webhooks = configuration.get("webhooks");
  std::vector<kube::Json> operations;
  for (std::size_t i = 0; i < webhooks.size(); ++i) {
    const kube::Json webhook = webhooks.at(i);
    if (webhook.get("clientConfig").get("caBundle").string_or("") == wanted) continue;
    operations.push_back(
        kube::Json::object({{"op", kube::Json::string("test")},
                            {"path", kube::Json::string(fmt::format("/webhooks/{}/name", i))},
                            {"value", kube::Json::string(webhook.get("name").string_or(""))}}));
    operations.push_back(kube::Json::object(
        {{"op", kube::Json::string("add")},
         {"path", kube::Json::string(fmt::format("/webhooks/{}/clientConfig/caBundle", i))},
         {"value", kube::Json::string(wanted)}}));
  }
  if (operations.empty()) return "";
  return kube::Json::array(operations).dump();
}

struct CaBundleKeeper::Impl : std::enable_shared_from_this<Impl> {
  Impl(kube::ApiClient& api, std::string ca, Duration interval)
      : client(api), ca_pem(std::move(ca)), period(interval) {}

  void round() {
    for (const char* kind : {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}) {
      check(fmt::format("/apis/admissionregistration.k8s.io/v1/{}/muster", kind));
    }
    timer = client.run_after(period, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->round();
    });
  }

  void check(const std::string& path) {
    kube::HttpCall call;
    call.path_and_query = path;
    client.request(std::move(call), [weak = weak_from_this(), path](Result<kube::HttpReply> reply) {
      const auto self = weak.lock();
      if (!self) return;
      if (!reply) {
        if (reply.error().code != ErrorCode::kNotFound) {
          log::warning("caBundle: {}", reply.error().message);
        }
        return;
      }
      const auto configuration = kube::Json::parse(reply->body);
      if (configuration) self->mend(path, *configuration);
    });
  }

  void mend(const std::string& path, const kube::Json& configuration) {
    kube::HttpCall call;
    call.body = ca_bundle_patch(configuration, ca_pem);
    if (call.body.empty()) return;
    call.method = kube::HttpMethod::kPatch;
    call.path_and_query = path;
    call.content_type = kube::kJsonPatch;
    client.request(std::move(call), [path](const Result<kube::HttpReply>& reply) {
      if (reply) {
        log::info("caBundle written into {}", path);
      } else {
        log::warning("caBundle: {}", reply.error().message);
      }
    });
  }

  kube::ApiClient& client;
  std::string ca_pem;
  Duration period;
  std::unique_ptr<kube::TimerHandle> timer;
};

CaBundleKeeper::CaBundleKeeper(kube::ApiClient& client, std::string ca_pem, Duration period)
    : impl_(std::make_shared<Impl>(client, std::move(ca_pem), period)) {
  client.post([impl = impl_] { impl->round(); });
}

CaBundleKeeper::~CaBundleKeeper() = default;

void label_leader(kube::ApiClient& client, const std::string& ns, const std::string& pod) {
  const std::string pods = fmt::format("/api/v1/namespaces/{}/pods", ns);
  const auto patch = [&client, pods](const std::string& name, const char* value) {
    kube::HttpCall call;
    call.method = kube::HttpMethod::kPatch;
    call.path_and_query = pods + "/" + name;
    call.content_type = kube::kMergePatch;
    call.body = fmt::format(R"({{"metadata":{{"labels":{{"{}":{}}}}}}})", kLeaderLabel, value);
    client.request(std::move(call), [name](const Result<kube::HttpReply>& reply) {
      if (!reply) log::warning("leader label of {}: {}", name, reply.error().message);
    });
  };
  patch(pod, R"("true")");
  kube::HttpCall list;
  list.path_and_query = pods + "?labelSelector=muster.dev%2Fleader%3Dtrue";
  client.request(std::move(list), [patch, pod](const Result<kube::HttpReply>& reply) {
    if (!reply) return;
    const auto found = kube::Json::parse(reply->body);
    if (!found) return;
    const kube::Json items = found->get("items");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string name(items.at(i).get("metadata").get("name").string_or(""));
      if (!name.empty() && name != pod) patch(name, "null");
    }
  });
}

}  // namespace muster::server

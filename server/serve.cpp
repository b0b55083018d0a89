#include "server/serve.hpp"

#include "base/log.hpp"
#include "certs/tls_context.hpp"
#include "extender/extender.hpp"
#include "kube/client/api_client.hpp"
#include "kube/client/lease.hpp"
#include "server/blocking_call.hpp"
#include "server/certificates.hpp"
#include "server/chores.hpp"
#include "server/clock.hpp"
#include "server/engine_strand.hpp"
#include "server/http_server.hpp"
#include "server/io_threads.hpp"
#include "server/metrics.hpp"
#include "server/watches.hpp"
#include "webhook/webhook.hpp"

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>

namespace muster::server {
namespace {

constexpr Duration kCaBundlePeriod = std::chrono::seconds(5);
constexpr Duration kCertificatePeriod = std::chrono::seconds(10);
/// Below the httpTimeout of the shipped scheduler configuration (2 s): caches may fill meanwhile.
constexpr std::chrono::milliseconds kCacheWait{1500};
constexpr Duration kAskAgain = std::chrono::milliseconds(20);
constexpr Duration kDrain = std::chrono::seconds(5);
/// AdmissionReviews carry object and oldObject of up to 1.5 MiB each; extender calls a pod and a
/// name for each node.
constexpr std::size_t kWebhookBodyBytes = 8U << 20U;
constexpr std::size_t kExtenderBodyBytes = 16U << 20U;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string home_cert_dir() {
  const std::string state = environment("XDG_STATE_HOME");
  return (state.empty() ? environment("HOME") + "/.local/state" : state) + "/muster/certs";
}

kube::HttpMethod method_of(controller::WriteMethod method) {
  switch (method) {
    case controller::WriteMethod::kPost:
      return kube::HttpMethod::kPost;
    case controller::WriteMethod::kPatch:
      return kube::HttpMethod::kPatch;
    case controller::WriteMethod::kDelete:
      return kube::HttpMethod::kDelete;
  }
  return kube::HttpMethod::kPatch;
}

class Server {
 public:
  explicit Server(const Options& options)
      : options_(options),
        in_cluster_(options.kubeconfig.empty()),
        namespace_(environment("POD_NAMESPACE")),
        api_threads_(1),
        net_threads_(2) {
    if (namespace_.empty()) namespace_ = "muster-system";
  }

  int run() {
    boost::asio::signal_set signals(net_threads_.context(), SIGTERM, SIGINT);
    signals.async_wait([this, &signals](boost::system::error_code error, int) {
      if (error) return;
      end(0);
      // Whoever asks twice does not want to wait: what is written so far bears being completed.
      signals.async_wait([](boost::system::error_code again, int) {
        if (!again) std::_Exit(1);
      });
    });
    const Result<void> started = start();
    if (!started) {
      fmt::print(stderr, "muster: {}\n", started.error().message);
      shut_down();
      return 1;
    }
    log::info("muster serves");
    const int code = ended_.get_future().get();
    log::info("muster ends");
    shut_down();
    return code;
  }

 private:
  void end(int code) {
    if (!ending_.exchange(true)) ended_.set_value(code);
  }

  Result<void> start() {
    metrics_.set_sources([this] { return slot_.get(); }, [this] { return read_gauges(); },
                         [this] {
                           return strand_ ? strand_->stats().largest_gangs
                                          : std::vector<engine::LargestGang>();
                         });
    if (auto listening = listen_metrics(); !listening) return listening;
    if (auto connected = connect(); !connected) return connected;
    if (auto alone = check_peer(); !alone) return alone;
    if (auto loaded = load_certificates(); !loaded) return loaded;
    start_strand();
    if (auto listening = listen_extender(); !listening) return listening;
    if (auto listening = listen_webhook(); !listening) return listening;
    watches_ = std::make_unique<Watches>(*api_, *strand_);
    start_leading();
    watch_certificates();
    return {};
  }

  // ---------------------------------------------------------------- the API server

  Result<void> connect() {
    auto config = in_cluster_
                      ? kube::in_cluster_config({[](const char* n) { return std::getenv(n); }})
                      : kube::load_kubeconfig(options_.kubeconfig);
    if (!config && in_cluster_) {
      return fail(config.error().code,
                  config.error().message + "; a cluster can be named with --kubeconfig FILE");
    }
    if (!config) return fail(config.error());
    auto client = kube::ApiClient::create(api_threads_.context(), *config, {});
    if (!client) return fail(client.error());
    api_ = std::move(*client);
    kube::ApiClientOptions small;
    small.max_connections = 2;
    auto lease_client = kube::ApiClient::create(api_threads_.context(), *config, small);
    if (!lease_client) return fail(lease_client.error());
    lease_api_ = std::move(*lease_client);

    kube::HttpCall who;
    who.method = kube::HttpMethod::kPost;
    who.path_and_query = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    who.body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})";
    const auto answer = call_and_wait(*api_, std::move(who));
    if (!answer) return fail(answer.error().with_context("API server"));
    user_ = std::string(answer->get("status").get("userInfo").get("username").string_or(""));
    log::info("connected as {}", user_);
    return {};
  }

  /// Two controllers over the same objects would undo each other's work.
  Result<void> check_peer() {
    if (!options_.controller || options_.peer_lease_name.empty()) return {};
    std::promise<Result<std::optional<kube::LeaseRecord>>> promise;
    kube::read_lease(*api_, options_.peer_lease_namespace, options_.peer_lease_name,
                     [&](auto record) { promise.set_value(std::move(record)); });
    const auto record = promise.get_future().get();
    if (!record) {
      log::warning("lease of another controller: {}", record.error().message);
      return {};
    }
    if (!*record || !kube::is_held(**record, wall_clock_now())) return {};
    return fail(
        ErrorCode::kConflict,
        fmt::format("another controller of the same objects runs: lease {}/{} is held by {}",
                    options_.peer_lease_namespace, options_.peer_lease_name, (*record)->holder));
  }

  /// An autoscaler may bring nodes: flavors that do not say otherwise admit on quota alone.
  engine::Capacity default_capacity() {
    for (const char* path : {"/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status",
                             "/apis/karpenter.sh"}) {
      kube::HttpCall call;
      call.path_and_query = path;
      if (call_and_wait(*api_, std::move(call))) {
        log::info("{} found: flavors without muster.dev/capacity are elastic", path);
        return engine::Capacity::kElastic;
      }
    }
    return engine::Capacity::kFixed;
  }

  // ---------------------------------------------------------------- the engine

  void start_strand() {
    EngineStrand::Config config;
    config.engine = options_.engine;
    config.controller.default_capacity = default_capacity();
    config.controller.managed_namespaces = options_.managed_namespaces;
    config.controller.elastic_window = options_.elastic_window;
    config.controller.resource_rules = options_.resource_rules;
    config.controller.on_effect = [this](const engine::Effect& effect, Instant) {
      metrics_.count_effect(effect);
    };
    config.leading = options_.controller && !options_.leader_elect;
    leading_ = config.leading;
    config.send = [this](controller::Write write) { send(std::move(write)); };
    config.wake_pod = [this](const PodKey& key, const Uid& uid) { wake_pod(key, uid); };
    strand_ = std::make_unique<EngineStrand>(std::move(config), slot_, ledger_);
    strand_->start();
  }

  void send(controller::Write write) {
    kube::HttpCall call;
    call.method = method_of(write.method);
    call.path_and_query = std::move(write.path);
    call.content_type = std::move(write.content_type);
    call.body = std::move(write.body);
    api_->request(std::move(call), [this, id = write.id](Result<kube::HttpReply> reply) {
      if (!reply) {
        strand_->on_write_done(id, fail(reply.error()));
      } else if (reply->body.empty()) {
        strand_->on_write_done(id, kube::Json());
      } else {
        strand_->on_write_done(id, kube::Json::parse(reply->body, {.lenient = true}));
      }
    });
  }

  void wake_pod(const PodKey& key, const Uid& uid) {
    kube::HttpCall call;
    call.method = kube::HttpMethod::kPatch;
    call.path_and_query = fmt::format("/api/v1/namespaces/{}/pods/{}", key.ns, key.name);
    call.content_type = kube::kMergePatch;
    call.body =
        kube::Json::object(
            {{"metadata",
              kube::Json::object(
                  {{"uid", kube::Json::string(uid.value())},
                   {"annotations", kube::Json::object({{"muster.dev/woken-at",
                                                        kube::Json::string(format_rfc3339_micro(
                                                            wall_clock_now()))}})}})}})
            .dump();
    api_->request(std::move(call), [key](const Result<kube::HttpReply>& reply) {
      if (!reply && reply.error().code != ErrorCode::kNotFound) {
        log::warning("waking pod {}: {}", key, reply.error().message);
      }
    });
  }

  void start_leading() {
    if (!options_.controller) return;
    if (!options_.leader_elect) {
      on_started_leading();
      return;
    }
    kube::LeaseConfig config;
    config.ns = namespace_;
    config.name = "muster";
    config.options.identity = identity();
    config.options.seed = static_cast<std::uint64_t>(wall_clock_now().us);
    kube::LeaseCallbacks callbacks;
    callbacks.on_started_leading = [this] { on_started_leading(); };
    callbacks.on_stopped_leading = [this] {
      leading_ = false;
      if (extender_) extender_->close_after_call();
      if (ending_) return;
      // The state may be ahead of what the next leader sees: begin again from the API objects.
      log::error("the lease was lost: ending, so that a restart begins from what is written");
      strand_->on_leading(false);
      end(1);
    };
    callbacks.on_new_leader = [](const std::string& holder) {
      log::info("leader: {}", holder.empty() ? "nobody" : holder);
    };
    elector_ = std::make_unique<kube::LeaderElector>(*lease_api_, config, std::move(callbacks));
  }

  void on_started_leading() {
    log::info("leading");
    leading_ = true;
    strand_->on_leading(true);
    if (options_.webhook) {
      const std::lock_guard lock(certificate_mutex_);
      ca_bundle_ = std::make_unique<CaBundleKeeper>(*api_, certificates_.ca_pem, kCaBundlePeriod);
    }
    const std::string pod = environment("POD_NAME");
    if (in_cluster_ && !pod.empty()) label_leader(*api_, namespace_, pod);
  }

  [[nodiscard]] std::string identity() const {
    const std::string pod = environment("POD_NAME");
    const std::string name = pod.empty() ? environment("HOSTNAME") : pod;
    return fmt::format("{}_{}", name.empty() ? "muster" : name, wall_clock_now().us);
  }

  // ---------------------------------------------------------------- certificates

  [[nodiscard]] Result<Certificates> read_certificates() {
    std::vector<std::string> hosts;
    for (const auto& endpoint : {options_.extender, options_.webhook}) {
      if (endpoint) hosts.push_back(endpoint->host);
    }
    const CertificateNames names = server_names(namespace_, hosts);
    if (in_cluster_ && options_.cert_dir.empty()) {
      return certificates_from_secrets(*api_, namespace_, names, wall_clock_now());
    }
    const std::string folder = options_.cert_dir.empty() ? home_cert_dir() : options_.cert_dir;
    return certificates_from_folder(folder, names, wall_clock_now());
  }

  Result<void> load_certificates() {
    if (!options_.extender && !options_.webhook) return {};
    auto read = read_certificates();
    if (!read) return fail(read.error().with_context("certificates"));
    return use(*read);
  }

  Result<void> use(const Certificates& certificates) {
    auto webhook = certs::make_server_context({certificates.server});
    if (!webhook) return fail(webhook.error());
    auto extender =
        certs::make_server_context({certificates.server, certificates.client_ca_pem, true});
    if (!extender) return fail(extender.error());
    if (!webhook_tls_) {
      webhook_tls_ = std::make_shared<certs::TlsSlot>(*webhook);
      extender_tls_ = std::make_shared<certs::TlsSlot>(*extender);
    } else {
      webhook_tls_->set(*webhook);
      extender_tls_->set(*extender);
    }
    certificates_ = certificates;
    return {};
  }

  /// Files that somebody replaced and certificates of ours that grow old, looked at now and then on
  /// a thread of their own: reading Secrets waits for answers.
  void watch_certificates() {
    if (!options_.extender && !options_.webhook) return;
    certificate_thread_ = std::thread([this] {
      std::unique_lock lock(certificate_mutex_);
      while (!certificate_stop_.wait_for(lock, kCertificatePeriod,
                                         [this] { return ending_.load(); })) {
        const auto read = read_certificates();
        if (!read) {
          log::warning("certificates: {}; the old ones stay in use", read.error().message);
        } else if (*read != certificates_) {
          const std::string former_ca = certificates_.ca_pem;
          const auto used = use(*read);
          log::info("certificates {}", used ? "replaced" : "not replaced: " + used.error().message);
          if (used && former_ca != certificates_.ca_pem && ca_bundle_) {
            ca_bundle_ =
                std::make_unique<CaBundleKeeper>(*api_, certificates_.ca_pem, kCaBundlePeriod);
          }
        }
      }
    });
  }

  // ---------------------------------------------------------------- listeners

  Result<void> listen(std::unique_ptr<HttpServer>& server, HttpServerConfig config,
                      const Endpoint& endpoint, HttpHandler handler) {
    config.address = endpoint.host;
    config.port = endpoint.port;
    const std::string name = config.name;
    auto listening =
        HttpServer::listen(net_threads_.context(), std::move(config), std::move(handler));
    if (!listening) return fail(listening.error().with_context(name));
    server = std::move(*listening);
    log::info("{} listens on {}:{}", name, endpoint.host, server->port());
    return {};
  }

  Result<void> listen_metrics() {
    if (!options_.metrics) return {};
    HttpServerConfig config;
    config.name = "metrics";
    return listen(metrics_server_, config, *options_.metrics,
                  [this](const HttpRequest& request) { return answer_plain(request); });
  }

  Result<void> listen_extender() {
    if (!options_.extender) return {};
    HttpServerConfig config;
    config.name = "extender";
    config.tls = extender_tls_;
    config.max_body_bytes = kExtenderBodyBytes;
    return listen(extender_, config, *options_.extender,
                  [this](const HttpRequest& request) { return answer_extender(request); });
  }

  Result<void> listen_webhook() {
    if (!options_.webhook) return {};
    webhook_options_.manage_jobs_without_queue_name = options_.manage_jobs_without_queue_name;
    webhook_options_.managed_namespaces = options_.managed_namespaces;
    webhook_options_.protect_priority = options_.protect_priority;
    webhook_options_.second_scheduler = options_.second_scheduler;
    webhook_options_.managed_resources = options_.managed_resources;
    webhook_options_.resource_rules = options_.resource_rules;
    webhook_options_.ignore_undeclared_resources = options_.engine.ignore_undeclared_resources;
    if (!options_.second_scheduler.empty()) {
      webhook_options_.scheduler_names.insert(options_.second_scheduler);
    }
    if (!user_.empty()) webhook_options_.own_identities.insert(user_);
    HttpServerConfig config;
    config.name = "webhook";
    config.tls = webhook_tls_;
    config.max_body_bytes = kWebhookBodyBytes;
    return listen(webhook_, config, *options_.webhook,
                  [this](const HttpRequest& request) { return answer_webhook(request); });
  }

  HttpResponse answer_plain(const HttpRequest& request) {
    HttpResponse response;
    response.content_type = "text/plain; charset=utf-8";
    if (request.method != "GET") {
      response.status = 405;
    } else if (request.path == "/metrics") {
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      response.body = metrics_.text();
    } else if (request.path == "/livez") {
      response.body = "ok\n";
    } else if (request.path == "/readyz") {
      const bool ready = slot_.get() != nullptr && !ending_;
      response.status = ready ? 200 : 503;
      response.body = ready ? "ok\n" : "caches are not complete\n";
    } else {
      response.status = 404;
    }
    return response;
  }

  /// Nothing is answered from half a picture: the call waits for the caches, within its time-out.
  HttpResponse not_ready(const HttpRequest& request) {
    HttpResponse response;
    if (std::chrono::steady_clock::now() - request.received < kCacheWait) {
      response.ask_again_after = kAskAgain;
    } else {
      // No body: kube-scheduler throws it away and would drop the connection over it.
      response.status = 503;
    }
    return response;
  }

  HttpResponse answer_extender(const HttpRequest& request) {
    const auto begin = std::chrono::steady_clock::now();
    if (!leading_) return HttpResponse{.status = 503, .body = {}, .close = true};
    const std::string prefix = "/v1/";
    if (request.method != "POST" || request.path.rfind(prefix, 0) != 0) {
      return HttpResponse{.status = 404, .body = {}};
    }
    const auto snapshot = slot_.get();
    if (!snapshot) return not_ready(request);
    const std::string verb = request.path.substr(prefix.size());
    extender::Answer answer =
        extender::answer(verb, request.body, *snapshot, ledger_, wall_clock_now());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (answer.status == 200) metrics_.observe_extender_call(verb, answer.nodes, took.count());
    return HttpResponse{.status = answer.status, .body = std::move(answer.body)};
  }

  HttpResponse answer_webhook(const HttpRequest& request) {
    const auto begin = std::chrono::steady_clock::now();
    if (request.method != "POST") return HttpResponse{.status = 405, .body = {}};
    const auto snapshot = slot_.get();
    if (!snapshot) return not_ready(request);
    webhook::Answer answer =
        webhook::answer(request.path, request.body, *snapshot, webhook_options_);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (answer.status == 200) metrics_.observe_webhook_call(request.path, took.count());
    return HttpResponse{.status = answer.status, .body = std::move(answer.body)};
  }

  Reading read_gauges() {
    Reading reading;
    if (!strand_) return reading;
    const StrandStats strand = strand_->stats();
    reading["muster_strand_queue_depth"] = static_cast<double>(strand.queued);
    reading["muster_strand_inputs"] = static_cast<double>(strand.inputs);
    reading["muster_strand_full_waits"] = static_cast<double>(strand.full_waits);
    reading["muster_strand_longest_batch_seconds"] = strand.longest_batch_seconds;
    const controller::ControllerStats& stats = strand.controller;
    for (std::size_t i = 0; i < controller::kWriteKinds; ++i) {
      const auto kind = controller::to_string(static_cast<controller::WriteKind>(i));
      std::string name = "muster_writes_" + std::string(kind);
      for (char& c : name) c = c == '-' || c == ' ' ? '_' : c;
      reading[name] = static_cast<double>(stats.writes[i]);
    }
    reading["muster_write_conflicts"] = static_cast<double>(stats.write_conflicts);
    reading["muster_write_retries"] = static_cast<double>(stats.write_retries);
    reading["muster_writes_refused"] = static_cast<double>(stats.writes_refused);
    reading["muster_barrier_waits"] = static_cast<double>(stats.barrier_waits);
    reading["muster_barrier_timeouts"] = static_cast<double>(stats.barrier_timeouts);
    reading["muster_gangs_held"] = static_cast<double>(stats.gangs_held);
    reading["muster_gangs_waiting_to_be_held"] = static_cast<double>(stats.gangs_waiting);
    reading["muster_gangs_torn"] = static_cast<double>(stats.gangs_torn);
    reading["muster_pods_replaced"] = static_cast<double>(stats.pods_replaced);
    const extender::LedgerStats ledger = ledger_.stats();
    reading["muster_ledger_answers"] = static_cast<double>(ledger.answers);
    reading["muster_ledger_reservations"] = static_cast<double>(ledger.reservations);
    reading["muster_ledger_refusals"] = static_cast<double>(ledger.refusals);
    reading["muster_ledger_dropped"] = static_cast<double>(ledger.dropped);
    reading["muster_leader"] = leading_ ? 1 : 0;
    return reading;
  }

  // ---------------------------------------------------------------- the end

  void shut_down() {
    ending_ = true;
    certificate_stop_.notify_all();
    if (certificate_thread_.joinable()) certificate_thread_.join();
    drain(extender_);
    drain(webhook_);
    ca_bundle_.reset();
    if (watches_) watches_->stop();
    if (strand_) strand_->stop();
    if (elector_) {
      std::promise<void> released;
      elector_->release([&] { released.set_value(); });
      released.get_future().wait();
    }
    elector_.reset();
    drain(metrics_server_);
    if (api_) api_->stop();
    if (lease_api_) lease_api_->stop();
    net_threads_.stop();
    api_threads_.stop();
  }

  static void drain(std::unique_ptr<HttpServer>& server) {
    if (!server) return;
    auto drained = std::make_shared<std::promise<void>>();
    server->drain(kDrain, [drained] { drained->set_value(); });
    drained->get_future().wait();
  }

  const Options options_;
  const bool in_cluster_;
  std::string namespace_;
  std::string user_;

  SnapshotSlot slot_;
  extender::Ledger ledger_;
  Metrics metrics_;
  std::atomic<bool> leading_{false};
  std::atomic<bool> ending_{false};
  std::promise<int> ended_;

  Certificates certificates_;
  std::shared_ptr<certs::TlsSlot> webhook_tls_;
  std::shared_ptr<certs::TlsSlot> extender_tls_;
  webhook::WebhookOptions webhook_options_;

  std::mutex certificate_mutex_;  ///< Guards certificates_ and ca_bundle_ once threads run.
  std::condition_variable certificate_stop_;
  std::thread certificate_thread_;

  // Last to first is the order in which they go: threads outlive what runs on them.
  IoThreads api_threads_;
  IoThreads net_threads_;
  std::unique_ptr<kube::ApiClient> api_;
  std::unique_ptr<kube::ApiClient> lease_api_;
  std::unique_ptr<EngineStrand> strand_;
  std::unique_ptr<Watches> watches_;
  std::unique_ptr<kube::LeaderElector> elector_;
  std::unique_ptr<CaBundleKeeper> ca_bundle_;
  std::unique_ptr<HttpServer> metrics_server_;
  std::unique_ptr<HttpServer> extender_;
  std::unique_ptr<HttpServer> webhook_;
};

}  // namespace

int serve(const Options& options) {
  return Server(options).run();
}

}  // namespace muster::server

#pragma once
// An io_context on a thread, and an ApiClient to a test server on it.

#include "kube/client/api_client.hpp"
#include "tests/server/tls_fixture.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>

namespace muster::testing {

class ClientFixture : public ::testing::Test {
 protected:
  ClientFixture() : guard_(boost::asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
  ~ClientFixture() override { stop_io(); }

  void stop_io() {
    client_.reset();
    guard_.reset();
    if (thread_.joinable()) thread_.join();
  }

  static kube::ClusterConfig cluster(std::uint16_t port) {
    kube::ClusterConfig config;
    config.host = "127.0.0.1";
    config.port = port;
    config.ca_pem = test_pki().ca.certificate_pem;
    return config;
  }

  void connect(kube::ClusterConfig config, kube::ApiClientOptions options = {}) {
    Result<std::unique_ptr<kube::ApiClient>> client =
        kube::ApiClient::create(io_, std::move(config), options);
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
  }

  std::future<Result<kube::HttpReply>> send(kube::HttpCall call) {
    auto promise = std::make_shared<std::promise<Result<kube::HttpReply>>>();
    client_->request(std::move(call), [promise](Result<kube::HttpReply> reply) {
      promise->set_value(std::move(reply));
    });
    return promise->get_future();
  }
  Result<kube::HttpReply> call(kube::HttpMethod method, const std::string& path,
                               const std::string& body = "",
                               Duration timeout = std::chrono::seconds(5)) {
    kube::HttpCall call;
    call.method = method;
    call.path_and_query = path;
    call.body = body;
    call.timeout = timeout;
    return send(std::move(call)).get();
  }
  Result<kube::HttpReply> get(const std::string& path) {
    return call(kube::HttpMethod::kGet, path);
  }

  /// Runs on the client's strand and waits for it.
  void on_strand(const std::function<void()>& task) {
    std::promise<void> done;
    client_->post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  [[nodiscard]] static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::thread thread_;
  std::unique_ptr<kube::ApiClient> client_;
};

}  // namespace muster::testing

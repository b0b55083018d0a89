#include "kube/client/lease.hpp"

#include "kube/codec/json.hpp"
#include "server/http_server.hpp"
#include "tests/kube/client/client_fixture.hpp"

#include <gtest/gtest.h>

#include <mutex>

namespace muster::kube {
namespace {

using std::chrono::milliseconds;

// An API server that knows one Lease.
class LeaseServer {
 public:
  server::HttpResponse handle(const server::HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    server::HttpResponse response;
    if (down_) {
      response.status = 500;
      return response;
    }
    const Result<Json> body = Json::parse(request.body);
    if (request.method == "POST" && request.path == kCollection && !lease_.present()) {
      return store(*body);
    }
    if (request.path == std::string(kCollection) + "/muster" && lease_.present()) {
      if (request.method == "GET") {
        response.body = lease_.dump();
        return response;
      }
      const auto sent = body->get("metadata", "resourceVersion").string_or("");
      if (request.method == "PATCH" && sent == std::to_string(version_))
        return store(merge_patch(lease_, *body));
    }
    response.status = lease_.present() ? 409 : 404;
    return response;
  }
  void set_down(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  std::string holder() {
    const std::lock_guard lock(mutex_);
    return std::string(lease_.get("spec", "holderIdentity").string_or("?"));
  }
  std::string label() {
    const std::lock_guard lock(mutex_);
    return std::string(lease_.get("metadata", "labels", "kept").string_or(""));
  }
  void take(const std::string& holder) {
    const std::lock_guard lock(mutex_);
    (void)store(*Json::parse(R"({"metadata":{"labels":{"kept":"yes"}},"spec":{"holderIdentity":")" +
                             holder + R"(","leaseDurationSeconds":1,"leaseTransitions":2,)" +
                             R"("acquireTime":"2026-01-01T00:00:00.000000Z",)" +
                             R"("renewTime":"2026-01-01T00:00:00.000000Z"}})"));
  }

 private:
  static constexpr const char* kCollection =
      "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases";

  server::HttpResponse store(const Json& lease) {
    ++version_;
    const Json metadata =
        lease.get("metadata").with("resourceVersion", Json::string(std::to_string(version_)));
    lease_ = lease.with("metadata", metadata);
    server::HttpResponse response;
    response.body = lease_.dump();
    return response;
  }

  std::mutex mutex_;
  Json lease_;
  int version_ = 0;
  bool down_ = false;
};

class LeaderElectorTest : public testing::ClientFixture {
 protected:
  LeaderElectorTest() {
    server::HttpServerConfig config;
    config.name = "api";
    config.tls = testing::server_slot(testing::ClientAuth::kNone);
    server_ = server::HttpServer::listen(
                  io_, std::move(config),
                  [this](const server::HttpRequest& request) { return leases_.handle(request); })
                  .value();
    connect(cluster(server_->port()));
  }
  ~LeaderElectorTest() override {
    on_strand([this] { electors_.clear(); });
    server_.reset();
    stop_io();
  }

  LeaderElector& campaign(const std::string& identity) {
    LeaseConfig config{.ns = "muster-system", .name = "muster", .options = {}};
    config.options = {.identity = identity,
                      .lease_duration = milliseconds(1000),
                      .renew_deadline = milliseconds(100),
                      .retry_period = milliseconds(20)};
    LeaseCallbacks callbacks;
    callbacks.on_started_leading = [this, identity] { note("start " + identity); };
    callbacks.on_stopped_leading = [this, identity] { note("stop " + identity); };
    electors_.push_back(std::make_unique<LeaderElector>(*client_, config, callbacks));
    return *electors_.back();
  }
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_ += (notes_.empty() ? "" : ", ") + what;
  }
  std::string notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

  LeaseServer leases_;
  std::unique_ptr<server::HttpServer> server_;
  std::vector<std::unique_ptr<LeaderElector>> electors_;
  std::mutex mutex_;
  std::string notes_;
};

TEST_F(LeaderElectorTest, OneLeadsTheOtherWaitsAndTakesOverWhenItIsReleased) {
  LeaderElector& first = campaign("first");
  ASSERT_TRUE(eventually([&] { return first.is_leader(); }));
  LeaderElector& second = campaign("second");
  std::this_thread::sleep_for(milliseconds(150));  // Beyond the deadline: renewals are made.
  EXPECT_TRUE(first.is_leader());
  EXPECT_FALSE(second.is_leader());
  std::promise<void> released;
  first.release([&released] { released.set_value(); });
  released.get_future().wait();
  EXPECT_FALSE(first.is_leader());
  ASSERT_TRUE(eventually([&] { return second.is_leader(); }));
  EXPECT_TRUE(eventually([&] { return notes() == "start first, stop first, start second"; }))
      << notes();
}

TEST_F(LeaderElectorTest, ALeaderCutOffStopsAtItsDeadlineAndComesBackLater) {
  LeaderElector& elector = campaign("me");
  ASSERT_TRUE(eventually([&] { return elector.is_leader(); }));
  leases_.set_down(true);
  ASSERT_TRUE(eventually([&] { return !elector.is_leader(); }));
  EXPECT_TRUE(eventually([&] { return notes() == "start me, stop me"; })) << notes();
  leases_.set_down(false);
  ASSERT_TRUE(eventually([&] { return elector.is_leader(); }));
}

TEST_F(LeaderElectorTest, AnExpiredLeaseOfAnotherIsTakenAndItsLabelsKept) {
  leases_.take("gone");
  std::promise<Result<std::optional<LeaseRecord>>> found;
  read_lease(*client_, "muster-system", "muster", [&](Result<std::optional<LeaseRecord>> record) {
    found.set_value(std::move(record));
  });
  const Result<std::optional<LeaseRecord>> record = found.get_future().get();
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->holder, "gone");
  EXPECT_FALSE(is_held(**record, testing::wall_now()));
  LeaderElector& elector = campaign("me");
  ASSERT_TRUE(eventually([&] { return elector.is_leader(); }));  // One second after it was seen.
  EXPECT_EQ(leases_.holder(), "me");
  EXPECT_EQ(leases_.label(), "yes");
}

TEST_F(LeaderElectorTest, ReadingALeaseThatIsNotThereGivesNothing) {
  std::promise<Result<std::optional<LeaseRecord>>> found;
  read_lease(*client_, "muster-system", "muster", [&](Result<std::optional<LeaseRecord>> record) {
    found.set_value(std::move(record));
  });
  const Result<std::optional<LeaseRecord>> record = found.get_future().get();
  ASSERT_TRUE(record);
  EXPECT_FALSE(record->has_value());
}

}  // namespace
}  // namespace muster::kube

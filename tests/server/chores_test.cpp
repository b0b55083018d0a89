// The caBundle patch, addresses, certificates in a folder.

#include "server/chores.hpp"

#include "certs/pem_files.hpp"
#include "kube/codec/base64.hpp"
#include "server/certificates.hpp"
#include "server/options.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace muster::server {
namespace {

kube::Json configuration(const std::string& text) {
  return *kube::Json::parse(text);
}

TEST(CaBundle, EveryEntryWithoutItGetsItGuardedByItsName) {
  const auto patch = kube::Json::parse(
      ca_bundle_patch(configuration(R"({"webhooks":[{"name":"a","clientConfig":{"url":"x"}},
                                    {"name":"b","clientConfig":{"caBundle":"b2xk"}}]})"),
                      "PEM"));
  ASSERT_TRUE(patch.has_value());
  ASSERT_EQ(patch->size(), 4U);
  EXPECT_EQ(patch->at(0).get("op").string_or(""), "test");
  EXPECT_EQ(patch->at(0).get("value").string_or(""), "a");
  EXPECT_EQ(patch->at(3).get("path").string_or(""), "/webhooks/1/clientConfig/caBundle");
  EXPECT_EQ(patch->at(3).get("value").string_or(""), kube::base64_encode("PEM"));
}

TEST(CaBundle, NothingIsWrittenWhereItIsThereAlready) {
  const std::string have = kube::base64_encode("PEM");
  EXPECT_EQ(
      ca_bundle_patch(configuration(R"({"webhooks":[{"name":"a","clientConfig":{"caBundle":")" +
                                    have + R"("}}]})"),
                      "PEM"),
      "");
  EXPECT_EQ(ca_bundle_patch(configuration("{}"), "PEM"), "");
}

TEST(Endpoints, AreHostAndPortOrNone) {
  const auto plain = parse_endpoint("127.0.0.1:9444");
  ASSERT_TRUE(plain && *plain);
  EXPECT_EQ((*plain)->host, "127.0.0.1");
  EXPECT_EQ((*plain)->port, 9444);
  const auto six = parse_endpoint("[::1]:0");
  ASSERT_TRUE(six && *six);
  EXPECT_EQ((*six)->host, "::1");
  const auto none = parse_endpoint("none");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  for (const char* bad : {"", ":1", "host", "host:", "host:x", "host:70000", "a:b:1", "host:1 "}) {
    EXPECT_FALSE(parse_endpoint(bad).has_value()) << bad;
  }
}

class Folder : public testing::Test {
 protected:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("muster-certs-" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "-" +
               std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

  const std::filesystem::path path_;
  const CertificateNames names_ = server_names("muster-system", {"127.0.0.1"});
  const Instant now_{1'800'000'000'000'000};
};

TEST_F(Folder, CertificatesAreMadeOnceAndKept) {
  const auto first = certificates_from_folder(path_.string(), names_, now_);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const auto info = certs::inspect(first->server.certificate_pem);
  ASSERT_TRUE(info.has_value());
  EXPECT_NE(std::find(info->dns_names.begin(), info->dns_names.end(),
                      "muster-extender.muster-system.svc"),
            info->dns_names.end());
  EXPECT_TRUE(certs::load_pair(file("client.crt"), file("client.key")).has_value());
  EXPECT_EQ(std::filesystem::status(file("ca.key")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const auto second = certificates_from_folder(path_.string(), names_, now_);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(*first, *second);
}

TEST_F(Folder, ALeafIsRenewedAfterTwoThirdsOfItsLifeAndTheCaStays) {
  const auto first = certificates_from_folder(path_.string(), names_, now_);
  const auto later =
      certificates_from_folder(path_.string(), names_, now_ + std::chrono::hours(24 * 300));
  ASSERT_TRUE(first && later);
  EXPECT_EQ(first->ca_pem, later->ca_pem);
  EXPECT_NE(first->server, later->server);
}

TEST_F(Folder, ABrokenPairIsMadeAnew) {
  ASSERT_TRUE(certificates_from_folder(path_.string(), names_, now_).has_value());
  std::ofstream(file("server.key")) << "garbage";
  const auto again = certificates_from_folder(path_.string(), names_, now_);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_TRUE(certs::check_pair(again->server).has_value());
}

TEST_F(Folder, FilesThatSomebodyPutThereAreUsedAndNeverReplaced) {
  ASSERT_TRUE(certificates_from_folder(path_.string(), names_, now_).has_value());
  std::filesystem::copy_file(file("server.crt"), file("tls.crt"));
  std::filesystem::copy_file(file("server.key"), file("tls.key"));
  const auto given =
      certificates_from_folder(path_.string(), names_, now_ + std::chrono::hours(24 * 300));
  ASSERT_TRUE(given.has_value()) << given.error().message;
  EXPECT_EQ(given->server.certificate_pem, *certs::read_pem_file(file("server.crt")));
  std::filesystem::remove(file("ca.crt"));
  const auto without_ca = certificates_from_folder(path_.string(), names_, now_);
  ASSERT_FALSE(without_ca.has_value());
  EXPECT_NE(without_ca.error().message.find("ca.crt"), std::string::npos);
}

}  // namespace
}  // namespace muster::server

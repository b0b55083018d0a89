#include "certs/certs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

namespace muster::certs {
namespace {

using std::chrono::hours;

constexpr Instant kStart{1'700'000'000'000'000};
const Validity kYear{kStart, kStart + hours(24 * 365)};

KeyPair make_ca(const std::string& name = "test-ca") {
  Result<KeyPair> ca = issue_ca({.common_name = name, .validity = kYear});
  EXPECT_TRUE(ca) << ca.error().message;
  return ca.value_or(KeyPair{});
}

LeafRequest leaf_request() {
  return {.common_name = "muster",
          .organizations = {"system:masters"},
          .dns_names = {"muster.muster-system.svc", "localhost"},
          .ip_addresses = {"127.0.0.1", "::1"},
          .usage = Usage::kServer,
          .validity = kYear};
}

TEST(Issue, ACaIsMarkedAsOneAndItsKeyBelongsToIt) {
  const KeyPair ca = make_ca();
  EXPECT_TRUE(check_pair(ca));
  const Result<CertificateInfo> info = inspect(ca.certificate_pem);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_TRUE(info->is_ca);
  EXPECT_EQ(info->common_name, "test-ca");
  EXPECT_EQ(info->not_before, kStart);
  EXPECT_EQ(info->not_after, kStart + hours(24 * 365));
  EXPECT_TRUE(check_issued_by(ca.certificate_pem, ca.certificate_pem));
}

TEST(Issue, ALeafCarriesItsNamesAndItsCasSignature) {
  const KeyPair ca = make_ca();
  const Result<KeyPair> leaf = issue_leaf(ca, leaf_request());
  ASSERT_TRUE(leaf) << leaf.error().message;
  EXPECT_TRUE(check_pair(*leaf));
  EXPECT_TRUE(check_issued_by(leaf->certificate_pem, ca.certificate_pem));
  const Result<CertificateInfo> info = inspect(leaf->certificate_pem);
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->is_ca);
  EXPECT_EQ(info->dns_names, (std::vector<std::string>{"muster.muster-system.svc", "localhost"}));
  EXPECT_EQ(info->ip_addresses, (std::vector<std::string>{"127.0.0.1", "::1"}));
}

TEST(Issue, AnotherCaOfTheSameNameIsNotTheIssuer) {
  const Result<KeyPair> leaf = issue_leaf(make_ca(), leaf_request());
  ASSERT_TRUE(leaf);
  const Result<void> issued = check_issued_by(leaf->certificate_pem, make_ca().certificate_pem);
  ASSERT_FALSE(issued);
  EXPECT_EQ(issued.error().code, ErrorCode::kInvalidArgument);
}

TEST(Issue, SerialNumbersDiffer) {
  const KeyPair ca = make_ca();
  std::set<std::string> serials;
  for (int i = 0; i < 16; ++i) {
    const Result<KeyPair> leaf = issue_leaf(ca, leaf_request());
    ASSERT_TRUE(leaf);
    serials.insert(inspect(leaf->certificate_pem)->serial_hex);
  }
  EXPECT_EQ(serials.size(), 16U);
}

TEST(Issue, BadRequestsAreErrorsThatNameTheFault) {
  const KeyPair ca = make_ca();
  const KeyPair leaf = issue_leaf(ca, leaf_request()).value();
  struct Case {
    const char* sentence;
    KeyPair issuer;
    LeafRequest request;
    const char* want;
  };
  LeafRequest bad_ip = leaf_request();
  bad_ip.ip_addresses = {"10.0.0"};
  LeafRequest no_name = leaf_request();
  no_name.common_name = "";
  LeafRequest long_name = leaf_request();
  long_name.common_name = std::string(65, 'x');  // X.520 ub-common-name is 64.
  LeafRequest backwards = leaf_request();
  backwards.validity = {kStart, kStart};
  const KeyPair mixed{ca.certificate_pem, leaf.key_pem};
  for (const Case& c : {
           Case{"an IP address must be whole", ca, bad_ip, "bad IP address \"10.0.0\""},
           Case{"a name is needed", ca, no_name, "common name is empty"},
           Case{"a name has at most 64 characters", ca, long_name, "cannot set subject"},
           Case{"it must end after it begins", ca, backwards, "not_after must be later"},
           Case{"a leaf cannot sign", leaf, leaf_request(), "not one of a CA"},
           Case{"the CA's key must be its own", mixed, leaf_request(), "does not belong"},
           Case{"the CA must be there", KeyPair{}, leaf_request(), "CA: no PEM certificate"},
       }) {
    const Result<KeyPair> made = issue_leaf(c.issuer, c.request);
    ASSERT_FALSE(made) << c.sentence;
    EXPECT_NE(made.error().message.find(c.want), std::string::npos)
        << c.sentence << ": " << made.error().message;
  }
}

TEST(Inspect, GarbageIsAnError) {
  const std::string good = make_ca().certificate_pem;
  std::string flipped = good;
  flipped[good.size() / 2] = flipped[good.size() / 2] == 'A' ? 'B' : 'A';
  for (const std::string& pem :
       {std::string(), std::string("hello"), good.substr(0, good.size() / 2),
        std::string("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        std::string(100, '\0')}) {
    EXPECT_FALSE(inspect(pem)) << pem;
    EXPECT_FALSE(check_pair({pem, pem}));
  }
  // A flipped bit may still parse; it must not verify.
  EXPECT_FALSE(check_issued_by(flipped, good));
}

TEST(NeedsRenewal, FromTwoThirdsOfTheLifetimeOn) {
  const CertificateInfo info{.not_before = kStart, .not_after = kStart + hours(30)};
  EXPECT_FALSE(needs_renewal(info, kStart));
  EXPECT_FALSE(needs_renewal(info, kStart + hours(20) - Duration(1)));
  EXPECT_TRUE(needs_renewal(info, kStart + hours(20)));  // 30 h * 2/3
  EXPECT_TRUE(needs_renewal(info, kStart + hours(31)));
}

}  // namespace
}  // namespace muster::certs

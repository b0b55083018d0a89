#include "kube/codec/base64.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace muster::kube {
namespace {

TEST(Base64, AgreesWithTheVectorsOfRfc4648) {
  const struct {
    const char* bytes;
    const char* text;
  } cases[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"}};
  for (const auto& each : cases) {
    EXPECT_EQ(base64_encode(each.bytes), each.text);
    EXPECT_EQ(base64_decode(each.text).value(), each.bytes);
  }
  EXPECT_EQ(base64_decode("Zm9v\r\nYm\nFy\n").value(), "foobar");
}

TEST(Base64, RefusesWhatIsNot) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg== ", "Z===", "====", "Zm9v Zg==", "Zm-v", "Zg==Zg=="})
    EXPECT_FALSE(base64_decode(text)) << text;
}

TEST(Base64Property, AnyBytesSurvive) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const auto again = base64_decode(base64_encode(bytes));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == bytes);
  }));
}

}  // namespace
}  // namespace muster::kube

#include "kube/codec/list.hpp"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

Result<std::vector<ListedObject>> split(std::string_view text) {
  return split_list(Json::parse(text).value());
}

TEST(SplitList, LeavesASingleObjectAlone) {
  const auto objects = split(R"({"kind":"Pod","items":[1]})").value();
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(objects[0].place, "");
  EXPECT_EQ(objects[0].object.get("kind").string_or(""), "Pod");
  EXPECT_EQ(split(R"({"kind":"PriceList"})")->size(), 1U);
}

TEST(SplitList, TakesListsOfListsApart) {
  const auto objects = split(R"({"kind":"List","items":[{"kind":"A"},
      {"kind":"List","items":[{"kind":"B"},{"kind":"C"}]},{"kind":"List","items":[]}]})")
                           .value();
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(objects[0].place, "items[0]");
  EXPECT_EQ(objects[2].place, "items[1].items[1]");
  EXPECT_EQ(objects[2].object.get("kind").string_or(""), "C");
}

TEST(SplitList, GivesItemsOfATypedListTheirKind) {
  const auto objects =
      split(R"({"kind":"PodList","apiVersion":"v1","items":[{"metadata":{}},{"kind":"X"}]})")
          .value();
  EXPECT_EQ(objects[0].object.dump(), R"({"metadata":{},"kind":"Pod","apiVersion":"v1"})");
  EXPECT_EQ(objects[1].object.dump(), R"({"kind":"X"})");
  EXPECT_TRUE(split(R"({"kind":"PodList","items":null})")->empty());
}

TEST(SplitList, SaysWhereSomethingIsNoObject) {
  EXPECT_EQ(split("5").error().message, "got 5, want an object");
  EXPECT_EQ(split(R"({"kind":"List","items":[{"kind":"A"},null]})").error().message,
            "items[1]: got null, want an object");
  EXPECT_EQ(split(R"({"kind":"List","items":[{"kind":"List","items":{}}]})").error().message,
            "items[0]: items: got an object, want an array");
}

}  // namespace
}  // namespace muster::kube

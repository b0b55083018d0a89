#include "base/resources.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>

namespace muster {
namespace {

const ResourceName kGpu("nvidia.com/gpu");

Resources make(std::int64_t cpu, std::int64_t memory, std::int64_t pods) {
  Resources resources;
  resources.set(ResourceTable::kCpu, Amount(cpu));
  resources.set(ResourceTable::kMemory, Amount(memory));
  resources.set(ResourceTable::kPods, Amount(pods));
  return resources;
}

TEST(ResourceTable, KeepsIdsForEver) {
  ResourceTable table;
  EXPECT_EQ(table.name(ResourceTable::kCpu).value(), "cpu");
  EXPECT_EQ(table.name(ResourceTable::kMemory).value(), "memory");
  EXPECT_EQ(table.name(ResourceTable::kPods).value(), "pods");
  EXPECT_FALSE(table.find(kGpu));
  const auto gpu = table.intern(kGpu);
  table.intern(ResourceName("example.com/fpga"));
  EXPECT_EQ(table.intern(kGpu), gpu);
  EXPECT_EQ(table.find(kGpu), gpu);
  EXPECT_EQ(table.size(), 6U);
}

TEST(Resources, FitWhenEveryPositiveAmountDoes) {
  const Resources node = make(4000, 8, 10);
  EXPECT_TRUE(make(4000, 8, 10).fits_in(node));
  EXPECT_FALSE(make(4001, 1, 1).fits_in(node));
  EXPECT_TRUE(Resources().fits_in(Resources()));
  // What is not asked for does not matter, even where the node is overcommitted.
  EXPECT_TRUE(make(0, 1, 1).fits_in(make(-500, 8, 10)));
  EXPECT_FALSE(make(1, 0, 0).fits_in(make(-500, 8, 10)));
}

TEST(Resources, CountCopiesByTheScarcestResource) {
  // cpu 4000/1500 = 2, memory 8/3 = 2, pods 10/1 = 10.
  EXPECT_EQ(make(1500, 3, 1).copies_in(make(4000, 8, 10)), 2);
  EXPECT_EQ(make(1500, 3, 1).copies_in(make(4000, 2, 10)), 0);
  EXPECT_EQ(make(1500, 0, 0).copies_in(make(-1, 8, 10)), 0);
  EXPECT_EQ(Resources().copies_in(make(1, 1, 1)), std::numeric_limits<std::int64_t>::max());
}

TEST(Resources, AreEqualAsVectors) {
  Resources longer = make(1, 2, 3);
  longer.set(ResourceId(9), Amount(1));
  longer.add(ResourceId(9), Amount(-1));
  EXPECT_EQ(longer, make(1, 2, 3));
  EXPECT_TRUE(make(0, 0, 0).is_zero());
  EXPECT_EQ(make(1, 2, 3).times(3), make(3, 6, 9));
}

TEST(Resources, GoToListsAndBack) {
  ResourceTable table;
  const ResourceList list{{ResourceName("cpu"), Amount(500)}, {kGpu, Amount(8)}};
  EXPECT_EQ(Resources::from_list_known(list, table).to_list(table),
            (ResourceList{{ResourceName("cpu"), Amount(500)}}));
  EXPECT_EQ(Resources::from_list(list, table).to_list(table), list);
  EXPECT_EQ(Resources::from_list_known(list, table).to_list(table), list);
}

TEST(Resources, WhatFindsTheTableFullIsNotOffered) {
  ResourceTable table;
  ResourceList list;
  for (int i = 0; i < 5000; ++i) {
    list.emplace(ResourceName("example.com/x" + std::to_string(i)), Amount(1));
  }
  EXPECT_FALSE(table.full());
  const Resources all = Resources::from_list(list, table);
  EXPECT_TRUE(table.full());
  EXPECT_EQ(table.size(), 1024U);
  EXPECT_EQ(all.extent(), 1024U);
  // 4 ids were there, 1,020 names got one each; no two share one.
  const ResourceList back = all.to_list(table);
  EXPECT_EQ(back.size(), 1020U);
  for (const auto& [name, amount] : back) EXPECT_EQ(amount, Amount(1));
  EXPECT_EQ(table.intern(kGpu), std::nullopt);
  EXPECT_EQ(table.intern(ResourceName("cpu")), ResourceTable::kCpu);
}

TEST(Resources, ARequestForWhatIsUnknownFitsNowhere) {
  ResourceTable table;
  const Resources node = Resources::from_list(
      {{ResourceName("cpu"), Amount(500)}, {ResourceName("unoffered"), Amount(9)}}, table);
  const ResourceList asked{{ResourceName("cpu"), Amount(100)}, {kGpu, Amount(1)}};
  ASSERT_NE(table.first_unknown(asked), nullptr);
  EXPECT_EQ(*table.first_unknown(asked), kGpu);
  EXPECT_FALSE(Resources::from_request(asked, table).fits_in(node));
  EXPECT_EQ(Resources::from_request(asked, table).copies_in(node), 0);
  // None of it is no request for it.
  const ResourceList none{{ResourceName("cpu"), Amount(100)}, {kGpu, Amount()}};
  EXPECT_EQ(table.first_unknown(none), nullptr);
  EXPECT_EQ(Resources::from_request(none, table).copies_in(node), 5);
}

TEST(ResourcesProperty, AsManyCopiesAsCountedFitAndNoMore) {
  EXPECT_TRUE(rc::check([] {
    const auto amount = [] { return *rc::gen::inRange<std::int64_t>(0, 1000); };
    const Resources one = make(amount(), amount(), amount());
    const Resources room = make(amount(), amount(), amount());
    const std::int64_t copies = one.copies_in(room);
    if (one.is_zero()) return;
    RC_ASSERT(one.times(copies).fits_in(room));
    RC_ASSERT(!one.times(copies + 1).fits_in(room));
  }));
}

TEST(ResourcesProperty, WhatIsAddedCanBeTakenAway) {
  EXPECT_TRUE(rc::check([] {
    const auto amount = [] { return *rc::gen::inRange<std::int64_t>(-1000, 1000); };
    const Resources a = make(amount(), amount(), amount());
    Resources b = make(amount(), amount(), amount());
    const Resources before = b;
    b += a;
    b -= a;
    RC_ASSERT(b == before);
  }));
}

}  // namespace
}  // namespace muster

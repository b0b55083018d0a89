#include "kube/client/lease_core.hpp"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ActionType = LeaseAction::Type;

constexpr Instant kStart{1'700'000'000'000'000};

LeaseCore make_core() {
  return LeaseCore({.identity = "me", .seed = 1});
}

LeaseRecord held_by(const std::string& holder, const std::string& version,
                    Instant renewed = kStart) {
  return {.holder = holder,
          .duration = seconds(15),
          .acquired = kStart,
          .renewed = renewed,
          .transitions = 3,
          .resource_version = version};
}

std::optional<LeaseRecord> absent() {
  return std::nullopt;
}

LeaseRecord stored(const LeaseAction& action, const std::string& version) {
  LeaseRecord record = action.record;
  record.resource_version = version;
  return record;
}

// A core that acquired at kStart with version "1" and waits.
LeaseCore leading_core() {
  LeaseCore core = make_core();
  (void)core.start();
  const LeaseAction create = core.on_read(absent(), kStart);
  (void)core.on_written(stored(create, "1"), kStart);
  return core;
}

TEST(LeaseCore, CreatesTheLeaseWhereThereIsNoneAndLeads) {
  LeaseCore core = make_core();
  EXPECT_EQ(core.start().type, ActionType::kRead);
  const LeaseAction create = core.on_read(absent(), kStart);
  ASSERT_EQ(create.type, ActionType::kCreate);
  EXPECT_EQ(create.record.holder, "me");
  EXPECT_EQ(create.record.duration, seconds(15));
  EXPECT_EQ(create.record.acquired, kStart);
  EXPECT_EQ(create.record.transitions, 0);
  EXPECT_FALSE(core.leads(kStart));  // Not before the server says so.
  const LeaseAction next = core.on_written(stored(create, "1"), kStart + seconds(1));
  EXPECT_EQ(next.type, ActionType::kWait);
  EXPECT_EQ(next.wait, seconds(2));
  // Ten seconds from when the write was sent, not from when its answer came.
  EXPECT_TRUE(core.leads(kStart + seconds(10) - Duration(1)));
  EXPECT_FALSE(core.leads(kStart + seconds(10)));
}

TEST(LeaseCore, RenewsWithOneWriteAndKeepsWhenItAcquired) {
  LeaseCore core = leading_core();
  const LeaseAction renew = core.on_wait_over(kStart + seconds(2));
  ASSERT_EQ(renew.type, ActionType::kUpdate);
  EXPECT_EQ(renew.record.resource_version, "1");
  EXPECT_EQ(renew.record.acquired, kStart);
  EXPECT_EQ(renew.record.renewed, kStart + seconds(2));
  EXPECT_EQ(renew.record.transitions, 0);
  (void)core.on_written(stored(renew, "2"), kStart + seconds(2));
  EXPECT_EQ(core.leads_until(), kStart + seconds(12));
}

TEST(LeaseCore, AnothersLeaseIsRespectedUntilItsDurationAfterWeSawIt) {
  LeaseCore core = make_core();
  (void)core.start();
  // The holder's clock is an hour behind; only ours counts.
  const LeaseRecord other = held_by("other", "7", kStart - seconds(3600));
  EXPECT_EQ(core.on_read(std::optional(other), kStart).type, ActionType::kWait);
  EXPECT_EQ(core.on_wait_over(kStart + seconds(14)).type, ActionType::kRead);
  EXPECT_EQ(core.on_read(std::optional(other), kStart + seconds(14)).type, ActionType::kWait);
  (void)core.on_wait_over(kStart + seconds(15));
  const LeaseAction take = core.on_read(std::optional(other), kStart + seconds(15));
  ASSERT_EQ(take.type, ActionType::kUpdate);
  EXPECT_EQ(take.record.resource_version, "7");
  EXPECT_EQ(take.record.transitions, 4);
  EXPECT_EQ(take.record.acquired, kStart + seconds(15));
}

TEST(LeaseCore, ARenewalByTheOtherStartsItsTimeAnew) {
  LeaseCore core = make_core();
  (void)core.start();
  (void)core.on_read(std::optional(held_by("other", "7")), kStart);
  (void)core.on_wait_over(kStart + seconds(14));
  (void)core.on_read(std::optional(held_by("other", "8")), kStart + seconds(14));
  (void)core.on_wait_over(kStart + seconds(28));
  EXPECT_EQ(core.on_read(std::optional(held_by("other", "8")), kStart + seconds(28)).type,
            ActionType::kWait);  // 14 + 15 = 29.
  EXPECT_EQ(core.holder(), "other");
}

TEST(LeaseCore, AReleasedLeaseIsTakenAtOnce) {
  LeaseCore core = make_core();
  (void)core.start();
  const LeaseAction take = core.on_read(std::optional(held_by("", "7")), kStart);
  EXPECT_EQ(take.type, ActionType::kUpdate);
  EXPECT_EQ(take.record.transitions, 4);
}

TEST(LeaseCore, TheLoserOfARaceDoesNotLead) {
  LeaseCore core = make_core();
  (void)core.start();
  (void)core.on_read(absent(), kStart);
  EXPECT_EQ(core.on_written(fail(ErrorCode::kConflict, "exists"), kStart).type, ActionType::kWait);
  EXPECT_FALSE(core.leads(kStart));
}

TEST(LeaseCore, ALeaderWhoseVersionIsStaleLooksAndRenews) {
  LeaseCore core = leading_core();
  (void)core.on_wait_over(kStart + seconds(2));
  EXPECT_EQ(core.on_written(fail(ErrorCode::kConflict, "stale"), kStart + seconds(2)).type,
            ActionType::kRead);
  LeaseRecord touched = held_by("me", "5");  // Somebody added a label.
  const LeaseAction renew = core.on_read(std::optional(touched), kStart + seconds(3));
  EXPECT_EQ(renew.type, ActionType::kUpdate);
  EXPECT_EQ(renew.record.resource_version, "5");
}

TEST(LeaseCore, ALeaderThatFindsAnotherHolderStopsAtOnce) {
  LeaseCore core = leading_core();
  (void)core.on_wait_over(kStart + seconds(2));
  (void)core.on_written(fail(ErrorCode::kConflict, "stale"), kStart + seconds(2));
  (void)core.on_read(std::optional(held_by("other", "9")), kStart + seconds(2));
  EXPECT_FALSE(core.leads(kStart + seconds(2)));
}

TEST(LeaseCore, WithoutAnAnswerItLeadsUntilTheRenewDeadlineOnly) {
  LeaseCore core = leading_core();
  Instant now = kStart;
  for (int i = 0; i < 4; ++i) {  // At 2, 4, 6 and 8 s.
    now = now + seconds(2);
    EXPECT_EQ(core.on_wait_over(now).type, ActionType::kUpdate);
    const LeaseAction next = core.on_written(fail(ErrorCode::kUnavailable, "down"), now);
    EXPECT_EQ(next.type, ActionType::kWait);
    EXPECT_EQ(next.wait, seconds(2));
    EXPECT_TRUE(core.leads(now));
  }
  now = kStart + seconds(10);
  EXPECT_FALSE(core.leads(now));
  // Still its own lease on the server: it campaigns like anybody, reading first.
  EXPECT_EQ(core.on_wait_over(now).type, ActionType::kRead);
}

TEST(LeaseCore, CandidatesSpreadTheirTries) {
  LeaseCore core = make_core();
  (void)core.start();
  for (int i = 0; i < 20; ++i) {
    const LeaseAction next = core.on_read(std::optional(held_by("other", "7")), kStart);
    ASSERT_EQ(next.type, ActionType::kWait);
    EXPECT_GE(next.wait, seconds(2));
    EXPECT_LE(next.wait, milliseconds(4400));  // 2 s × (1 + 1.2).
    (void)core.on_wait_over(kStart);
  }
}

TEST(LeaseCore, ReleaseGivesUpWhatItHoldsOnceAndEnds) {
  LeaseCore core = leading_core();
  const LeaseAction give_up = core.release(kStart + seconds(3));
  ASSERT_EQ(give_up.type, ActionType::kUpdate);
  EXPECT_EQ(give_up.record.holder, "");
  EXPECT_EQ(give_up.record.duration, seconds(1));
  EXPECT_EQ(give_up.record.resource_version, "1");
  EXPECT_FALSE(core.leads(kStart + seconds(3)));
  EXPECT_EQ(core.on_written(stored(give_up, "2"), kStart + seconds(3)).type, ActionType::kDone);
}

TEST(LeaseCore, ReleaseEndsEvenIfTheServerDoesNotAnswer) {
  LeaseCore core = leading_core();
  (void)core.release(kStart + seconds(3));
  EXPECT_EQ(core.on_written(fail(ErrorCode::kDeadline, "slow"), kStart + seconds(8)).type,
            ActionType::kDone);
}

TEST(LeaseCore, ReleaseDuringARenewalWaitsForItAndGivesUpTheNewVersion) {
  LeaseCore core = leading_core();
  const LeaseAction renew = core.on_wait_over(kStart + seconds(2));
  EXPECT_EQ(core.release(kStart + seconds(2)).type, ActionType::kNone);
  const LeaseAction give_up = core.on_written(stored(renew, "2"), kStart + seconds(3));
  ASSERT_EQ(give_up.type, ActionType::kUpdate);
  EXPECT_EQ(give_up.record.resource_version, "2");
  EXPECT_EQ(give_up.record.holder, "");
}

TEST(LeaseCore, ReleaseOfACandidateWritesNothing) {
  LeaseCore core = make_core();
  (void)core.start();
  (void)core.on_read(std::optional(held_by("other", "7")), kStart);
  EXPECT_EQ(core.release(kStart).type, ActionType::kDone);
}

TEST(IsHeld, ByItsRenewalAndDuration) {
  EXPECT_TRUE(is_held(held_by("other", "1"), kStart + seconds(15)));
  EXPECT_FALSE(is_held(held_by("other", "1"), kStart + seconds(16)));
  EXPECT_FALSE(is_held(held_by("", "1"), kStart));
  LeaseRecord never = held_by("other", "1");
  never.renewed.reset();
  EXPECT_FALSE(is_held(never, kStart));
}

}  // namespace
}  // namespace muster::kube

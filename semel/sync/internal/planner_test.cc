#include "semel/sync/internal/planner.h"

#include <gtest/gtest.h>

#include "semel/sync/internal/budget.h"

namespace semel::sync_internal {
namespace {

PlanInputs known_of(std::uint64_t records, double differing) {
  PlanInputs known;
  known.initiator = {records, records * 100, {1, 2}};
  known.responder = {records, records * 100, {3, 4}};
  known.difference = estimate_of_total({differing, differing * 0.044}, records, records);
  known.slots = 88;
  known.slots_differing = static_cast<std::uint64_t>(std::min(88.0, std::max(1.0, differing / 2)));
  known.records_in_question = records * known.slots_differing / known.slots;
  known.containers = records / 29;
  return known;
}

TEST(PlanTest, EqualStoresNeedNothing) {
  PlanInputs known = known_of(1'000'000, 0);
  known.responder = known.initiator;
  const SyncPlan plan = make_plan(known, {});
  EXPECT_EQ(plan.best.way, SyncWay::nothing);
  EXPECT_EQ(plan.best.round_trips, 1);
}

TEST(PlanTest, MoreDifferencesMoreReading) {
  EXPECT_EQ(make_plan(known_of(1'000'000, 2), {}).best.way, SyncWay::walk);
  EXPECT_EQ(make_plan(known_of(1'000'000, 2000), {}).best.way, SyncWay::walk);
  EXPECT_EQ(make_plan(known_of(1'000'000, 20'000), {}).best.way, SyncWay::sketch);
  EXPECT_EQ(make_plan(known_of(1'000'000, 200'000), {}).best.way, SyncWay::sketch);
  EXPECT_EQ(make_plan(known_of(1'000'000, 1'000'000), {}).best.way, SyncWay::list);
  EXPECT_EQ(make_plan(known_of(1'000'000, 2'000'000), {}).best.way, SyncWay::copy);
}

TEST(PlanTest, WhereBytesAreCheapTheWalkGoesFurther) {
  const SyncLink fast{0.001, 5e6, 2e6};
  EXPECT_EQ(make_plan(known_of(1'000'000, 20'000), fast).best.way, SyncWay::walk);
}

TEST(PlanTest, WhatIsNotSureIsSaid) {
  PlanInputs known = known_of(1'000'000, 10'000);
  const SyncPlan sure = make_plan(known, {});
  known.difference.total.error *= 5;
  const SyncPlan unsure = make_plan(known, {});
  EXPECT_GT(unsure.best.bytes.error, 4 * sure.best.bytes.error);
  EXPECT_GT(sure.best.bytes.error, 0);
}

TEST(PlanTest, ACopyIsNoWayForThoseWhoFetchNothing) {
  PlanInputs known = known_of(1'000'000, 2'000'000);
  known.to_initiator = Travels::nothing;
  EXPECT_NE(make_plan(known, {}).best.way, SyncWay::copy);
}

TEST(PlanTest, KeysTravelWithTheirDigests) {
  PlanInputs known = known_of(1'000'000, 2'000'000);
  const SyncPlan records = make_plan(known, {});
  known.to_initiator = Travels::keys;
  const SyncPlan keys = make_plan(known, {});
  const auto more = [&](SyncWay way) {
    const auto at = static_cast<std::size_t>(way);
    return keys.all[at].bytes.value - records.all[at].bytes.value;
  };
  EXPECT_NEAR(more(SyncWay::copy), 16e6, 1);
  EXPECT_NEAR(more(SyncWay::list), 16e6, 1);
}

TEST(BudgetTest, SketchesOfAPartitionHoldMoreThanTheirShare) {
  for (const double expected : {1.0, 10.0, 100.0, 1e4, 1e6}) {
    const budget::Partition partition = budget::partition(expected);
    EXPECT_GT(double{1} * partition.partitions * partition.capacity, 1.5 * expected);
    EXPECT_LT(double{1} * partition.partitions * partition.capacity, 2.1 * expected + 10);
  }
}

TEST(BudgetTest, SlotsHoldWhatIsExpectedOfThem) {
  EXPECT_EQ(budget::slot_capacity(0, 0), 0U);
  EXPECT_GE(budget::slot_capacity(10, 10), 4U);
  EXPECT_GE(budget::slot_capacity(1000, 10), 200U);
  EXPECT_EQ(budget::slot_capacity(1'000'000, 1), 0U);  // no sketch is that large: a list
}

}  // namespace
}  // namespace semel::sync_internal

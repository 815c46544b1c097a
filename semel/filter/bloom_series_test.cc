#include "semel/filter/bloom_series.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <unordered_set>

#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel {
namespace {

BloomSeries series_of(std::uint64_t first, std::uint64_t last, double fpr,
                      std::uint64_t first_keys) {
  BloomSeries series = *BloomSeries::make({fpr, first_keys, kTestHash});
  const std::vector<Digest> all = keys(first, last);
  Answers added(all.size());
  EXPECT_TRUE(series.add(all, added.span()));
  return series;
}

// Small capacities force growth in the midst of batches.
RC_GTEST_PROP(BloomSeries, NeverSaysNewTwiceInWhateverPortions, ()) {
  BloomSeries series = *BloomSeries::make({1e-6, 3, kTestHash});
  std::unordered_set<int> twin;
  std::uint64_t said_new = 0;
  const auto batches = *rc::gen::container<std::vector<std::vector<int>>>(
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 200)));
  for (const std::vector<int>& batch : batches) {
    std::vector<Digest> digests;
    for (const int number : batch) digests.push_back(key(static_cast<std::uint64_t>(number)));
    Answers added(batch.size());
    RC_ASSERT(series.add(digests, added.span()));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool is_new = twin.insert(batch[i]).second;
      RC_ASSERT(!added[i] || is_new);
      said_new += added[i];
      RC_ASSERT(series.contains(digests[i]));
    }
  }
  RC_ASSERT(series.keys() == said_new);
  RC_ASSERT(said_new + 1 >=
            twin.size());  // at 1e-6, two wrong answers of 200 are out of the question
}

TEST(BloomSeries, AddsOneByOneAsInBatches) {
  BloomSeries series = *BloomSeries::make({1e-9, 10, kTestHash});
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t n = 0; n < 1000; ++n) {
      const Result<bool> added = series.add(key(n));
      ASSERT_TRUE(added);
      EXPECT_EQ(*added, round == 0);
    }
  }
  EXPECT_EQ(series.keys(), 1000u);
  EXPECT_EQ(series.filters(), 7u);  // 10 + 20 + ... + 640 = 1270
}

// From a hundred keys to a thousand times as many, and beyond what any filter was made for.
TEST(BloomSeries, KeepsItsErrorHoweverFarItGrows) {
  constexpr std::uint64_t kTrials = 1'000'000;
  const std::vector<Digest> absent = keys(10'000'000, 10'000'000 + kTrials);
  for (const double fpr : {0.05, 0.01, 0.001}) {
    const BloomSeries series = series_of(0, 100'000, fpr, 100);
    std::uint64_t hits = 0;
    for (const Digest& digest : absent) hits += series.contains(digest);
    const double live = series.live_fpr();
    EXPECT_LE(live, fpr);
    EXPECT_NEAR(static_cast<double>(hits), kTrials * live, five_deviations(kTrials, live));
  }
}

TEST(BloomSeries, ReportsALiveErrorHoweverSmall) {
  BloomSeries series = *BloomSeries::make({1e-6, 1 << 16, kTestHash});
  EXPECT_EQ(series.live_fpr(), 0);
  ASSERT_TRUE(series.add(key(1)));
  EXPECT_GT(series.live_fpr(), 0);
  EXPECT_LT(series.live_fpr(), 1e-20);
}

TEST(BloomSeries, TakesMemoryInProportionToItsKeys) {
  const double bits = 8.0 * static_cast<double>(series_of(0, 100'000, 0.01, 100).bytes());
  EXPECT_LT(bits / 100'000, 40);
  EXPECT_GT(bits / 100'000, 9.6);
}

TEST(BloomSeries, RefusesAnImpossibleGoal) {
  EXPECT_EQ(BloomSeries::make({.fpr = 0}).error().code, Errc::invalid);
  EXPECT_EQ(BloomSeries::make({.fpr = 1}).error().code, Errc::invalid);
  EXPECT_EQ(BloomSeries::make({.fpr = 0.01, .first_keys = 0}).error().code, Errc::invalid);
  EXPECT_EQ(BloomSeries::make({.fpr = 0.01, .first_keys = ~0ull}).error().code, Errc::limit);
}

}  // namespace
}  // namespace semel

#include "semel/filter/bloom_series.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <string>
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

// The capacities are small, so that the series grows in the middle of a batch.
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
  RC_ASSERT(said_new + 1 >= twin.size());  // at 1e-6, two errors in 200 do not happen
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

// Grows from a hundred keys to a thousand times as many, far beyond the first filters.
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

TEST(BloomSeries, AnswersABatchAsOneByOne) {
  const BloomSeries series = series_of(0, 3000, 0.05, 10);
  const std::vector<Digest> some = keys(2000, 6000);
  Answers found(some.size());
  series.contains(some, found.span());
  for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(found[i], series.contains(some[i]));
}

TEST(BloomSeries, GrowsForNewKeysOnly) {
  BloomSeries series = series_of(0, 100, 1e-9, 100);
  const BloomSeries full = series;
  const std::vector<Digest> known = keys(0, 100);
  Answers added(known.size());
  ASSERT_TRUE(series.add(known, added.span()));
  EXPECT_EQ(added.count(), 0u);
  EXPECT_EQ(series, full);
  ASSERT_TRUE(series.add(key(100)));
  EXPECT_EQ(series.filters(), 2u);
}

// The error is so low that the first filter is possible and the second is not.
TEST(BloomSeries, SaysHowManyItTookWhenItCanGrowNoMore) {
  BloomSeries series = *BloomSeries::make({1.7e-40, 10, kTestHash});
  std::vector<Digest> some = keys(0, 12);
  some.insert(some.begin() + 4, key(0));  // a duplicate takes no room
  Answers added(some.size());
  EXPECT_EQ(series.add_while_room(some, added.span()), 11u);
  EXPECT_EQ(added.count(), 10u);
  EXPECT_FALSE(added[4]);
  EXPECT_EQ(series.add(some, added.span()).error().code, Errc::limit);
  EXPECT_EQ(series.add(key(11)).error().code, Errc::limit);
  EXPECT_FALSE(*series.add(key(9)));
  EXPECT_EQ(series.keys(), 10u);
}

TEST(BloomSeries, RefusesBytesThatNoSeriesWrites) {
  const BloomSeries series = series_of(0, 30, 0.01, 10);  // two filters, both full
  ASSERT_EQ(series.filters(), 2u);
  Bytes bytes;
  series.encode(bytes);
  const auto refusal = [&](std::size_t at, std::uint64_t value) -> std::string {
    Bytes damaged = bytes;
    store_u64(damaged.data() + at, value);
    store_u64(damaged.data() + damaged.size() - 8,
              checksum(ByteView(damaged).first(damaged.size() - 8)));
    const Result<BloomSeries> read = BloomSeries::decode(damaged);
    return read ? "none" : read.error().what;
  };
  const std::size_t first = 40, second = first + 16 + load_u64(&bytes[first + 8]);
  EXPECT_EQ(refusal(8, std::bit_cast<std::uint64_t>(0.0)), "series: goal");
  EXPECT_EQ(refusal(8, std::bit_cast<std::uint64_t>(-0.01)), "series: goal");
  EXPECT_EQ(refusal(8, ~0ull), "series: goal");  // not a number
  EXPECT_EQ(refusal(8, std::bit_cast<std::uint64_t>(1e-6)),
            "series: a filter too small for its keys");
  EXPECT_EQ(refusal(8, std::bit_cast<std::uint64_t>(0.02)), "none");
  EXPECT_EQ(refusal(16, 0), "series: goal");
  EXPECT_EQ(refusal(16, 11), "series: keys of a filter");
  EXPECT_EQ(refusal(24, kTestSeed + 1), "series: hash of a filter");
  EXPECT_EQ(refusal(32, 0), "series: no filter");
  EXPECT_EQ(refusal(32, 1), "series: size");
  EXPECT_EQ(refusal(32, 3), "series: number of filters");
  EXPECT_EQ(refusal(first, 9), "series: keys of a filter");
  EXPECT_EQ(refusal(first, 11), "series: keys of a filter");
  EXPECT_EQ(refusal(first + 8, ~0ull), "series: size of a filter");
  EXPECT_EQ(refusal(second, 5), "none");
  EXPECT_EQ(refusal(second, 21), "series: keys of a filter");
}

TEST(BloomSeries, TakesTheBytesThatAreTold) {
  const BloomSeries::Goal goal{.fpr = 0.01, .first_keys = 100, .hash = {HashKind::fast, kTestSeed}};
  BloomSeries series = *BloomSeries::make(goal);
  EXPECT_EQ(*BloomSeries::bytes_for(goal, 0), series.bytes());
  for (std::uint64_t n = 0; n < 5000; ++n) {
    ASSERT_TRUE(series.add(key(n)));
    ASSERT_EQ(*BloomSeries::bytes_for(goal, series.keys()), series.bytes()) << n;
  }
  EXPECT_EQ(BloomSeries::bytes_for(goal, ~0ull).error().code, Errc::limit);
  EXPECT_EQ(BloomSeries::bytes_for({.fpr = 0}, 1).error().code, Errc::invalid);
}

TEST(BloomSeries, RefusesAnImpossibleGoal) {
  EXPECT_EQ(BloomSeries::make({.fpr = 0}).error().code, Errc::invalid);
  EXPECT_EQ(BloomSeries::make({.fpr = 1}).error().code, Errc::invalid);
  EXPECT_EQ(BloomSeries::make({.fpr = std::nan("")}).error().code, Errc::invalid);
  EXPECT_EQ(BloomSeries::make({.fpr = 0.01, .first_keys = 0}).error().code, Errc::invalid);
  EXPECT_EQ(BloomSeries::make({.fpr = 0.01, .first_keys = ~0ull}).error().code, Errc::limit);
}

}  // namespace
}  // namespace semel

// Series with chains that are apart: the error where the memory is, parts of links, and copies that
// continue in the middle of a history. series_test.cc has what holds for all series.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/series_parts.h"
#include "semel/crdt/series.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"
#include "tests/support/site_life.h"

namespace semel {

using crdt_internal::ObservedPart;
using crdt_internal::ObservedParts;
using crdt_internal::SeriesParts;

namespace {

SeriesGoal apart(double fpr, std::uint64_t first_keys, std::uint32_t growth = 2) {
  return {.fpr = fpr,
          .first_keys = first_keys,
          .sites = SeriesGoal::kMostSites,
          .chains = SeriesChains::apart,
          .growth = growth,
          .hash = kTestHash};
}

TEST(SeriesApart, SharesNoMoreThanItsErrorWhateverTheFirstCapacityAndTheGrowth) {
  Random random(1);
  std::vector<SeriesGoal> goals;
  for (const std::uint32_t growth : {0u, 1u, 2u, 3u, 4u, 32'768u, ~0u}) {
    for (int bits = 0; bits < 64; ++bits) goals.push_back(apart(0.01, 1ull << bits, growth));
  }
  for (int i = 0; i < 2000; ++i) {
    const auto growth = static_cast<std::uint32_t>(random.below(1ull << (1 + random.below(32))));
    goals.push_back(apart(random.unit() * 0.998 + 0.001, random() >> random.below(64), growth));
    if (goals.back().first_keys == 0) goals.pop_back();
  }
  for (const SeriesGoal& goal : goals) {
    ASSERT_TRUE(goal.check());
    double sum = 0, keys = 0;
    for (int link = 1; link <= SeriesGoal::kMostLinks; ++link) {
      const auto number = static_cast<std::uint8_t>(link);
      const Result<std::uint64_t> capacity = goal.capacity(number);
      if (!capacity) {
        ASSERT_EQ(capacity.error().code, goal.growth == 0 ? Errc::full : Errc::limit);
        break;
      }
      ASSERT_GE(*capacity, 1u);
      ASSERT_GT(goal.share(number), 0);
      sum += goal.share(number);
      keys += static_cast<double>(*capacity);
    }
    ASSERT_LE(sum, goal.fpr) << goal.first_keys << " " << goal.growth;
    ASSERT_GE(sum, 0.999 * goal.fpr);
    if (goal.growth > 0) {
      ASSERT_GE(keys, 0x1p60);  // room for all keys that can come
    }
  }
}

TEST(SeriesApart, GrowsAsToldWhileItIsSmallAndByHalvesWhenItIsLarge) {
  const auto capacities = [](std::uint64_t first_keys, std::uint32_t growth) {
    std::vector<std::uint64_t> all;
    for (std::uint8_t link = 1; link <= 5; ++link) {
      all.push_back(*apart(0.01, first_keys, growth).capacity(link));
    }
    return all;
  };
  using Keys = std::vector<std::uint64_t>;
  EXPECT_EQ(capacities(100, 3), (Keys{100, 300, 900, 2700, 8100}));
  EXPECT_EQ(capacities(100, 1), (Keys{100, 100, 100, 150, 225}));
  EXPECT_EQ(capacities(1 << 16, 2), (Keys{65'536, 131'072, 98'304, 147'456, 221'184}));
  EXPECT_EQ(capacities(1'000'000, 9),
            (Keys{1'000'000, 1'000'000, 1'000'000, 1'500'000, 2'250'000}));
  EXPECT_EQ(apart(0.01, 100, 0).share(1), 0.01 * (1 - 0x1p-40));
}

// docs/math/series.md states these figures.
TEST(SeriesApart, TakesThreeBytesForEachOfAMillionKeysFromAHundredOnAndKeepsItsError) {
  constexpr std::uint64_t kKeys = 1'000'000, kTrials = 1'000'000;
  GrowBloomSeries series = *GrowBloomSeries::make(apart(0.001, 100));
  const std::vector<Digest> inside = keys(0, kKeys);
  Answers added(inside.size());
  ASSERT_EQ(series.add(inside, 1, added.span()), kKeys);
  EXPECT_EQ(count_found(series, inside), kKeys);
  EXPECT_LE(series.bytes(), kKeys * 3);
  EXPECT_EQ(series.links().size(), 15u);
  const double live = series.live_fpr();
  EXPECT_LE(live, 0.001);
  const auto hits = static_cast<double>(count_found(series, keys(kKeys, kKeys + kTrials)));
  EXPECT_NEAR(hits, kTrials * live, five_deviations(kTrials, live));
}

TEST(SeriesApart, HasTheErrorOfEachChain) {
  const SeriesGoal goal = apart(0.01, 1000);
  GrowBloomSeries series = *GrowBloomSeries::make(goal);
  EXPECT_EQ(series.fpr(), 0.01);
  for (SiteId site = 0; site < 3; ++site) {
    for (const Digest key : keys(5000u * site, 5000u * (site + 1)))
      ASSERT_TRUE(series.add(key, site));
  }
  EXPECT_DOUBLE_EQ(series.fpr(), 0.03);
  EXPECT_LE(series.live_fpr(), series.fpr());
}

TEST(SeriesApart, WithoutGrowthHasOneLinkAndSaysWhenItIsFull) {
  const SeriesGoal goal = apart(0.01, 50, 0);
  GrowBloomSeries bloom = *GrowBloomSeries::make(goal);
  std::uint64_t next = 0;
  for (int added = 0; added < 50;) added += *bloom.add(key(next++), 4) ? 1 : 0;
  EXPECT_EQ(bloom.room(4), 0u);
  while (bloom.contains(key(next))) ++next;
  EXPECT_EQ(bloom.add(key(next), 4).error().code, Errc::full);
  EXPECT_EQ(bloom.next_shape(4).error().code, Errc::full);
  EXPECT_FALSE(*bloom.add(key(0), 4));
  EXPECT_EQ(bloom.links().size(), 1u);

  ObservedCuckooSeries cuckoo = *ObservedCuckooSeries::make(goal);
  for (std::uint64_t n = 0; n < 50; ++n) ASSERT_TRUE(cuckoo.add(key(n), at(4)));
  EXPECT_EQ(cuckoo.add(key(50), at(4)).error().code, Errc::full);
  ASSERT_TRUE(cuckoo.remove(key(7)));
  EXPECT_EQ(cuckoo.room(4), 1u);
  EXPECT_TRUE(cuckoo.add(key(50), at(4)));
  EXPECT_EQ(cuckoo.links().size(), 1u);
}

// A copy that is encoded and decoded at any point gives the same answers and stays equal to the
// original. Memory reserved beforehand makes no difference.
TEST(SeriesApart, BloomGoesOnFromTheMiddleOfItsHistory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    GrowBloomSeries series =
        *GrowBloomSeries::make(apart(0.05, 1 + random.below(20), 1 + random.below(3)));
    GrowBloomSeries copy = series;
    copy.reserve(2);
    for (int step = 0; step < 2000; ++step) {
      const Digest key = semel::key(random.below(3000));
      ASSERT_EQ(*series.add(key, 2), *copy.add(key, 2));
      if (random.below(50) != 0) continue;
      Bytes bytes;
      copy.encode_counted(bytes);
      copy = *GrowBloomSeries::decode_counted(bytes);
    }
    ASSERT_EQ(encoded(series), encoded(copy)) << seed;
    ASSERT_EQ(series.link_keys(), copy.link_keys()) << seed;
  }
}

TEST(SeriesApart, ObservedCuckooGoesOnFromTheMiddleOfItsHistory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const auto growth = static_cast<std::uint32_t>(random.below(3));
    ObservedCuckooSeries series =
        *ObservedCuckooSeries::make(apart(0.3, 1 + random.below(200), growth));
    ObservedCuckooSeries copy = series;
    copy.reserve(2);
    bool refused = false;
    for (int step = 0; step < 4000; ++step) {
      const Digest key = semel::key(random.below(1 + random.below(300)));
      if (random.below(100) < (step / 500 % 2 == 0 ? 70 : 30)) {
        const Result<LinkDot> one = series.add(key, at(2)), other = copy.add(key, at(2));
        ASSERT_EQ(one.has_value(), other.has_value());
        if (one) {
          ASSERT_EQ(*one, *other);
        }
        refused = refused || !one;
      } else {
        ASSERT_EQ(series.remove(key), copy.remove(key));
      }
      ASSERT_EQ(series.count(key), copy.count(key));
      if (random.below(50) == 0) copy = *ObservedCuckooSeries::decode(encoded(copy));
    }
    ASSERT_EQ(encoded(series), encoded(copy)) << seed;
    EXPECT_EQ(refused, growth == 0);
  }
}

template <class Series>
class SeriesReserved : public ::testing::Test {};
using ReservedTypes = ::testing::Types<GrowBloomSeries, GrowCuckooSeries, ObservedCuckooSeries>;
TYPED_TEST_SUITE(SeriesReserved, ReservedTypes);

TYPED_TEST(SeriesReserved, NeedsNoMemoryForItsFirstLink) {
  TypeParam series = *TypeParam::make(apart(0.01, 100'000));
  const TypeParam empty = series;
  series.reserve(2);
  const std::uint64_t taken = series.bytes();
  EXPECT_GT(taken, 100'000u);
  EXPECT_EQ(series.reserved_bytes(), taken);
  EXPECT_EQ(series, empty);
  EXPECT_EQ(encoded(series), encoded(empty));
  EXPECT_EQ(TypeParam(series).bytes(), 0u);  // a copy
  {
    const LargestAllocation largest;
    ASSERT_TRUE(series.add(key(1), by<TypeParam>(2)));
    EXPECT_LT(largest.bytes(), 10'000u);
  }
  EXPECT_EQ(series.reserved_bytes(), 0u);
  EXPECT_NEAR(static_cast<double>(series.bytes()), static_cast<double>(taken), 200);
}

TYPED_TEST(SeriesReserved, GivesUpWhatItHasWhenKeysComeFromElsewhere) {
  TypeParam series = *TypeParam::make(apart(0.01, 100'000)), other = series;
  ASSERT_TRUE(other.add(key(1), by<TypeParam>(3)));
  series.reserve(2);
  ASSERT_TRUE(*series.merge(other));
  EXPECT_EQ(series.reserved_bytes(), 0u);
  EXPECT_EQ(series.bytes(), other.bytes());
}

TEST(SeriesApart, ComesInPartsOfWordsInAnyOrder) {
  const SeriesGoal goal = apart(0.01, 10);
  GrowBloomSeries series = *GrowBloomSeries::make(goal), parts = series;
  for (const Digest key : keys(0, 500)) ASSERT_TRUE(series.add(key, 3));
  for (const std::size_t odd : {1u, 0u}) {
    for (const auto& [id, filter] : series.links()) {
      for (std::uint64_t word = odd; word < filter.words().size(); word += 2) {
        ASSERT_TRUE(
            SeriesParts::merge(parts, id, BloomPart{word, filter.words().subspan(word, 1)}));
      }
    }
  }
  EXPECT_EQ(parts, series);
  const auto& [id, filter] = *series.links().begin();
  EXPECT_FALSE(*SeriesParts::merge(parts, id, BloomPart{0, filter.words()}));
  const std::vector<std::uint64_t> nothing(4);
  EXPECT_FALSE(*SeriesParts::merge(parts, {9, 1}, BloomPart{0, nothing}));
  EXPECT_FALSE(*SeriesParts::merge(parts, {9, 1}, BloomPart{0, nothing, 17}));
  EXPECT_EQ(parts, series);  // a link in its initial state is absent
  EXPECT_FALSE(SeriesParts::merge(parts, {9, 200}, BloomPart{0, nothing}));

  // A part brings the number of keys of its origin.
  const std::uint64_t keys = parts.keys();
  EXPECT_TRUE(*SeriesParts::merge(parts, id, BloomPart{0, {}, 1000}));
  EXPECT_FALSE(*SeriesParts::merge(parts, id, BloomPart{0, filter.words(), 999}));
  EXPECT_EQ(parts.link_keys().at(id), 1000u);
  EXPECT_EQ(parts.keys(), keys + 1000 - series.link_keys().at(id));
}

// Parts of dots arrive under another id than at home. Entries that were removed at home go here
// too.
TEST(SeriesApart, ComesInPartsOfDotsInOrder) {
  const SeriesGoal goal = apart(0.001, 200'000);
  ObservedCuckooSeries series = *ObservedCuckooSeries::make(goal), parts = series;
  const std::vector<Digest> all = keys(0, 190'000);
  std::vector<LinkDot> dots(all.size());
  ASSERT_EQ(series.add(all, at(3), dots), all.size());
  for (std::size_t i = 0; i < all.size(); i += 3) ASSERT_TRUE(*series.remove(all[i], dots[i]));
  const auto load = [&](std::uint64_t most) {
    std::vector<ObservedPart> read;
    for (const auto& [id, filter] : series.links()) {
      for (std::uint64_t from = 0; from < filter.context().at(3); from = read.back().last) {
        read.push_back(ObservedParts::next(filter, 3, from, most));
        EXPECT_LE(read.back().entries.size(), 2 * most);
        EXPECT_TRUE(read.back().sound(filter.shape()));
      }
    }
    return read;
  };
  const std::vector<ObservedPart> read = load(1 << 16);
  ASSERT_GT(read.size(), 1u);
  EXPECT_EQ(load(1 << 20).size(), 1u);
  EXPECT_EQ(SeriesParts::merge(parts, {7, 1}, SiteId{7}, read[1]).error().code, Errc::gap);
  EXPECT_TRUE(parts.links().empty());
  for (const ObservedPart& part : read)
    ASSERT_TRUE(*SeriesParts::merge(parts, {7, 1}, SiteId{7}, part));
  for (const ObservedPart& part : read)
    ASSERT_FALSE(*SeriesParts::merge(parts, {7, 1}, SiteId{7}, part));
  EXPECT_EQ(parts.cardinality(), series.cardinality());
  EXPECT_EQ(count_found(parts, all), count_found(series, all));
  EXPECT_EQ(parts.links().begin()->second.context().at(7), 190'000u);

  // Entries removed at home later are removed here by the same parts, read again.
  for (std::size_t i = 1; i < 30'000; i += 3) ASSERT_TRUE(*series.remove(all[i], dots[i]));
  bool changed = false;
  for (const ObservedPart& part : load(1 << 16)) {
    changed |= *SeriesParts::merge(parts, {7, 1}, SiteId{7}, part);
  }
  EXPECT_TRUE(changed);
  EXPECT_EQ(parts.cardinality(), series.cardinality());

  // Two places that used one id: the merge is refused, and nothing is lost.
  ObservedPart other = read[0];
  std::swap(other.entries[0].pair, other.entries[1].pair);
  std::swap(other.entries[0].fingerprint, other.entries[1].fingerprint);
  ObservedCuckooSeries fresh = *ObservedCuckooSeries::make(goal);
  ASSERT_TRUE(SeriesParts::merge(fresh, {7, 1}, SiteId{7}, read[0]));
  const ObservedCuckooSeries before = fresh;
  EXPECT_EQ(SeriesParts::merge(fresh, {7, 1}, SiteId{7}, other).error().code, Errc::forked);
  EXPECT_EQ(fresh, before);
}

TEST(SeriesApart, CopiesLookIntoTheirOwnLinks) {
  GrowBloomSeries one = *GrowBloomSeries::make(apart(0.001, 10));
  for (const Digest key : keys(0, 100)) ASSERT_TRUE(one.add(key, 1));
  GrowBloomSeries other = one;
  const Digest key = semel::key(1'000'000);
  ASSERT_TRUE(*other.add(key, 1));
  EXPECT_FALSE(one.contains(key));
  EXPECT_TRUE(other.contains(key));
  one = other;
  EXPECT_TRUE(one.contains(key));
  EXPECT_EQ(one, other);
  const GrowBloomSeries moved = std::move(other);
  EXPECT_TRUE(moved.contains(key));
}

}  // namespace
}  // namespace semel

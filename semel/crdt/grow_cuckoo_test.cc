// GrowCuckoo and its deltas: merging beyond capacity, rates, and sound and hostile bytes.
// tests/laws has the laws over histories of several sites.
#include "semel/crdt/grow_cuckoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/laws/merge_laws.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel {
namespace {

constexpr CuckooShape kSmall = {4, 8, 0, 12, kTestHash};
// A pair and a fingerprint of this shape take more than 64 bits.
constexpr CuckooShape kLong = {8, 56, 0, 4000, kTestHash};

GrowCuckoo filter_of(const CuckooShape& shape, std::uint64_t first, std::uint64_t last) {
  GrowCuckoo filter(shape);
  for (std::uint64_t n = first; n < last; ++n) EXPECT_TRUE(filter.add(key(n)));
  return filter;
}

CuckooDelta delta_of(const CuckooShape& shape, std::uint64_t first, std::uint64_t last) {
  GrowCuckoo filter(shape);
  CuckooDelta delta(shape);
  for (std::uint64_t n = first; n < last; ++n) EXPECT_TRUE(filter.add(key(n), &delta));
  return delta;
}

struct StateCase {
  using Type = GrowCuckoo;
  static constexpr std::size_t kHeaderSize = 40;
  static constexpr std::size_t kMostGrowth = 24;  // one byte becomes 24 while entries are sorted
  static Type make(int replica) { return filter_of(kSmall, 40 * replica, 40 * replica + 40); }
  static bool holds(const Type& filter, int replica) {
    return count_found(filter, keys(40 * replica, 40 * replica + 40)) == 40;
  }
  static Type make() { return make(0); }
};
struct LongCase : StateCase {
  static Type make() { return filter_of(kLong, 0, 40); }
};
struct DeltaCase : StateCase {
  using Type = CuckooDelta;
  static Type make() { return delta_of(kSmall, 0, 30); }
};
struct EmptyCase : StateCase {
  static Type make() { return GrowCuckoo(kSmall); }
};
struct GoldenState : StateCase {
  static constexpr char kFile[] = "grow_cuckoo_v1.bin";
};
struct GoldenLong : LongCase {
  static constexpr char kFile[] = "grow_cuckoo_v1_56.bin";
};

using BytesCases = ::testing::Types<StateCase, LongCase, DeltaCase, EmptyCase>;
using GoldenCases = ::testing::Types<GoldenState, GoldenLong>;
INSTANTIATE_TYPED_TEST_SUITE_P(GrowCuckoo, MergeLaws, StateCase);
INSTANTIATE_TYPED_TEST_SUITE_P(GrowCuckoo, HostileBytes, BytesCases);
INSTANTIATE_TYPED_TEST_SUITE_P(GrowCuckoo, Golden, GoldenCases);

TEST(GrowCuckoo, AddsAKeyOnceAndFindsIt) {
  GrowCuckoo filter(kLong);
  for (std::uint64_t n = 0; n < 1000; ++n) {
    EXPECT_FALSE(filter.contains(key(n)));
    EXPECT_TRUE(*filter.add(key(n)));
    EXPECT_TRUE(filter.contains(key(n)));
    EXPECT_FALSE(*filter.add(key(n)));
  }
  EXPECT_EQ(filter.cardinality(), 1000u);
}

TEST(GrowCuckoo, RefusesAKeyWithoutRoomAndStaysAsItWas) {
  GrowCuckoo filter(kSmall);
  std::uint64_t n = 0;
  while (filter.add(key(n))) ++n;
  const GrowCuckoo before = filter;
  CuckooDelta delta(kSmall);
  EXPECT_EQ(filter.add(key(n), &delta).error().code, Errc::full);
  EXPECT_TRUE(delta.empty());
  EXPECT_EQ(filter, before);
  EXPECT_EQ(encoded(filter), encoded(before));

  Answers added(n + 20);
  GrowCuckoo batch(kSmall);
  EXPECT_EQ(batch.add(keys(0, n + 20), added.span()), n);
  EXPECT_EQ(batch, before);
}

TEST(GrowCuckoo, MergesFarBeyondItsRoomAndLosesNothing) {
  const CuckooShape shape = *GrowCuckoo::shape_for(1000, 0.001, kTestHash);
  GrowCuckoo all(shape);
  for (std::uint64_t site = 0; site < 10; ++site) {
    EXPECT_TRUE(*all.merge(filter_of(shape, 1000 * site, 1000 * site + 1000)));
  }
  EXPECT_EQ(count_found(all, keys(0, 10'000)), 10'000u);
  EXPECT_GT(all.load(), 8);
  EXPECT_GT(all.overflow(), 8000u);
  EXPECT_EQ(all.add(key(20'000)).error().code, Errc::full);
  const Result<GrowCuckoo> copy = GrowCuckoo::decode(encoded(all));
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, all);
}

TEST(GrowCuckoo, MergedToItsCapacityHardlyOverflows) {
  const CuckooShape shape = *GrowCuckoo::shape_for(100'000, 0.001, kTestHash);
  GrowCuckoo a = filter_of(shape, 0, 50'000);
  ASSERT_TRUE(a.merge(filter_of(shape, 50'000, 100'000)));
  EXPECT_EQ(a.overflow(), 0u);  // in the thesis, a sixth overflows
}

TEST(GrowCuckoo, ClaimsKeysItNeverSawAtTheRateItSays) {
  const CuckooShape shape = *GrowCuckoo::shape_for(50'000, 0.01, kTestHash);
  GrowCuckoo filter = filter_of(shape, 0, 30'000);
  ASSERT_TRUE(filter.merge(filter_of(shape, 30'000, 80'000)));  // beyond its capacity
  EXPECT_GT(filter.live_fpr(), 0.01);
  const double asked = 400'000;
  const auto found = static_cast<double>(count_found(filter, keys(1'000'000, 1'400'000)));
  EXPECT_NEAR(found, asked * filter.live_fpr(), five_deviations(asked, filter.live_fpr()));
}

TEST(GrowCuckoo, EqualStatesGiveEqualBytesAndDigestsWhateverLedThere) {
  std::vector<std::uint64_t> order(40);
  for (std::uint64_t n = 0; n < order.size(); ++n) order[n] = n;
  const GrowCuckoo first = filter_of(kSmall, 0, 40);
  std::mt19937_64 shuffle(1);
  for (int round = 0; round < 200; ++round) {
    std::shuffle(order.begin(), order.end(), shuffle);
    GrowCuckoo a(kSmall), b(kSmall);
    CuckooDelta delta(kSmall);
    for (std::size_t i = 0; i < order.size(); ++i) {
      GrowCuckoo& to = i % 3 == 0 ? a : b;
      ASSERT_TRUE(i % 2 == 0 ? to.add(key(order[i])) : to.add(key(order[i]), &delta));
    }
    ASSERT_TRUE(a.merge(b));
    ASSERT_TRUE(a.merge(delta));
    ASSERT_EQ(a, first);
    ASSERT_EQ(encoded(a), encoded(first));
    ASSERT_EQ(a.digest(Hasher::fast(5)), first.digest(Hasher::fast(5)));
  }
  EXPECT_NE(first.digest(Hasher::fast(5)), filter_of(kSmall, 0, 39).digest(Hasher::fast(5)));
  EXPECT_NE(first.digest(Hasher::fast(5)), first.digest(Hasher::fast(6)));
}

TEST(GrowCuckoo, CountsEntriesThatCollideOnceAtEverySite) {
  // Two keys with equal fingerprint and buckets are one entry.
  const Digest one = key(1);
  const Digest two = {one.lo + 1, one.hi + 1};
  GrowCuckoo a(kSmall), b(kSmall);
  EXPECT_TRUE(*a.add(one));
  EXPECT_FALSE(*a.add(two));
  EXPECT_TRUE(*b.add(two));
  EXPECT_EQ(a, b);
  EXPECT_FALSE(*a.merge(b));
}

TEST(GrowCuckoo, RefusesOtherShapesAndChangesNothing) {
  const GrowCuckoo before = filter_of(kSmall, 0, 10);
  constexpr CuckooShape kOthers[] = {{8, 8, 0, 12, kTestHash},
                                     {4, 9, 0, 12, kTestHash},
                                     {4, 8, 0, 13, kTestHash},
                                     {4, 8, 0, 12, {HashKind::keyed, kTestSeed}}};
  for (const CuckooShape& other : kOthers) {
    GrowCuckoo filter = before;
    CuckooDelta delta = delta_of(kSmall, 0, 3);
    EXPECT_EQ(filter.merge(GrowCuckoo(other)).error().code, Errc::mismatch);
    EXPECT_EQ(filter.merge(CuckooDelta(other)).error().code, Errc::mismatch);
    EXPECT_EQ(filter.compare(GrowCuckoo(other)).error().code, Errc::mismatch);
    EXPECT_EQ(delta.merge(CuckooDelta(other)).error().code, Errc::mismatch);
    EXPECT_EQ(filter, before);
    EXPECT_EQ(delta, delta_of(kSmall, 0, 3));
    EXPECT_FALSE(filter == GrowCuckoo(other));
  }
}

TEST(GrowCuckoo, ADeltaAndAStateOfTheSameEntriesAreTheSameBytes) {
  EXPECT_EQ(encoded(delta_of(kSmall, 0, 30)), encoded(filter_of(kSmall, 0, 30)));
  EXPECT_EQ(*GrowCuckoo::decode(encoded(delta_of(kSmall, 5, 9))), filter_of(kSmall, 5, 9));
}

TEST(GrowCuckoo, TakesFewBitsOnTheWire) {
  const CuckooShape shape = {4, 8, 0, 1 << 14, kTestHash};
  GrowCuckoo filter(shape);
  for (std::uint64_t n = 0; n < shape.slots() * 95 / 100; ++n) (void)filter.add(key(n));
  const auto bits = 8.0 * static_cast<double>(encoded(filter).size());
  EXPECT_LT(bits / static_cast<double>(filter.cardinality()), 7.2);  // a slot has 8
}

}  // namespace
}  // namespace semel

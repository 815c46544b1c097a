// GrowBloom and its deltas: the laws of merging, histories of several sites, counts, digests and
// bytes.
#include "semel/crdt/grow_bloom.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/laws/merge_laws.h"
#include "tests/support/bloom.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"
#include "tests/support/reseal.h"

namespace semel {
namespace {

using enum BloomLayout;

// Ten words: full after a few keys, and with a short last block in the plain layout.
const BloomShape kTiny = {plain, 2, 640, kTestHash};

GrowBloom filter_of(const BloomShape& shape, std::uint64_t first, std::uint64_t last) {
  GrowBloom filter(shape);
  for (std::uint64_t n = first; n < last; ++n) filter.add(key(n));
  return filter;
}

BloomDelta delta_of(const BloomShape& shape, std::uint64_t first, std::uint64_t last) {
  GrowBloom filter(shape);
  BloomDelta delta(shape);
  for (std::uint64_t n = first; n < last; ++n) filter.add(key(n), &delta);
  return delta;
}

template <BloomLayout kLayout>
struct StateCase {
  using Type = GrowBloom;
  static constexpr std::size_t kHeaderSize = 32;
  static Type make(int replica) {
    return filter_of(shape_for(10'000, 0.01, kLayout), 1000 * replica, 1000 * replica + 1500);
  }
  static bool holds(const Type& filter, int replica) {
    return count_found(filter, keys(1000 * replica, 1000 * replica + 1500)) == 1500;
  }
  static Type make() { return filter_of(shape_for(40, 0.05, kLayout), 0, 20); }
};

template <BloomLayout kLayout>
struct DeltaCase {
  using Type = BloomDelta;
  static constexpr std::size_t kHeaderSize = 40;
  static constexpr std::size_t kMostGrowth = 32;  // two bits become eight bytes
  static Type make(int replica) {
    return delta_of(shape_for(10'000, 0.01, kLayout), 1000 * replica, 1000 * replica + 1500);
  }
  static bool holds(const Type& delta, int replica) {
    GrowBloom filter(delta.shape());
    return filter.merge(delta) && StateCase<kLayout>::holds(filter, replica);
  }
  static Type make() { return delta_of(shape_for(40, 0.05, kLayout), 0, 20); }
};

struct GoldenDelta : DeltaCase<plain> {
  static constexpr char kFile[] = "bloom_delta_v1.bin";
};

using Cases = ::testing::Types<StateCase<plain>, StateCase<blocked>, StateCase<blocked3>,
                               DeltaCase<plain>, DeltaCase<blocked>, DeltaCase<blocked3>>;
INSTANTIATE_TYPED_TEST_SUITE_P(GrowBloom, MergeLaws, Cases);
INSTANTIATE_TYPED_TEST_SUITE_P(GrowBloom, HostileBytes, Cases);
INSTANTIATE_TYPED_TEST_SUITE_P(BloomDelta, Golden, GoldenDelta);

// Random histories. A message is the delta since the last message, or a state. Each message may
// arrive at any site, several times, in any order, or never. One site learns everything from
// states, another from deltas.
RC_GTEST_PROP(GrowBloom, AgreesWhereverDeltasOrStatesOfTheSameAddsArrive,
              (std::vector<std::pair<std::uint16_t, std::uint8_t>> steps)) {
  const auto site_count = *rc::gen::inRange<std::size_t>(2, 6);
  const BloomShape shape = *rc::gen::element(kTiny, BloomShape{blocked2, 6, 2048, kTestHash});
  std::vector<GrowBloom> sites(site_count, GrowBloom(shape));
  std::vector<BloomDelta> unsent(site_count, BloomDelta(shape));
  std::vector<BloomDelta> messages;
  GrowBloom by_adds(shape), by_states(shape), by_deltas(shape);
  BloomDelta all(shape);

  for (const auto& [number, step] : steps) {
    GrowBloom& site = sites[number % site_count];
    BloomDelta& fresh = unsent[number % site_count];
    const GrowBloom before = site;
    if (step % 4 < 2) {
      const bool known = site.contains(key(number));
      RC_ASSERT(site.add(key(number), &fresh) == !known);
      RC_ASSERT(site.contains(key(number)));
      by_adds.add(key(number));
    } else if (step % 4 == 2) {
      messages.push_back(fresh);
      fresh = BloomDelta(shape);
    } else if (step % 8 == 3 && !messages.empty()) {
      const bool changed = *site.merge(messages[step / 8 % messages.size()]);
      RC_ASSERT(changed == (site != before));
    } else {
      const bool changed = *site.merge(sites[step / 8 % site_count]);
      RC_ASSERT(changed == (site != before));
    }
    const std::partial_ordering order = *before.compare(site);  // updates inflate
    RC_ASSERT((site == before ? order == 0 : order < 0));
  }

  messages.insert(messages.begin(), unsent.begin(), unsent.end());
  for (const BloomDelta& message : messages) {
    RC_ASSERT(by_deltas.merge(message).has_value());
    RC_ASSERT(all.merge(message).has_value());
  }
  for (const GrowBloom& site : sites) RC_ASSERT(by_states.merge(site).has_value());
  GrowBloom by_one_delta(shape);
  RC_ASSERT(by_one_delta.merge(all).has_value());
  const Hasher hasher = Hasher::fast(1);
  for (const GrowBloom& other : {by_states, by_deltas, by_one_delta}) {
    RC_ASSERT(other == by_adds);
    RC_ASSERT(encoded(other) == encoded(by_adds));
    RC_ASSERT(other.digest(hasher) == by_adds.digest(hasher));
  }
}

// The join is the least upper bound of the order, checked over all sets of a few bits.
TEST(GrowBloom, MergesToTheLeastThatIsNotLessThanEither) {
  const BloomShape shape{plain, 1, 64, kTestHash};
  std::vector<GrowBloom> all;
  for (unsigned set = 0; set < 16; ++set) {
    GrowBloom filter(shape);
    for (unsigned n = 0; n < 4; ++n) {
      if (set >> n & 1) filter.add(key(n));
    }
    all.push_back(filter);
  }
  for (const GrowBloom& a : all) {
    for (const GrowBloom& b : all) {
      GrowBloom join = a;
      ASSERT_TRUE(join.merge(b));
      EXPECT_TRUE(*a.compare(join) <= 0 && *b.compare(join) <= 0);
      EXPECT_EQ(*a.compare(b) == 0, a == b);
      EXPECT_EQ(*a.compare(b) <= 0, join == b);
      EXPECT_EQ(*a.compare(b) >= 0, join == a);
      for (const GrowBloom& bound : all) {
        if (*a.compare(bound) <= 0 && *b.compare(bound) <= 0) {
          EXPECT_TRUE(*join.compare(bound) <= 0);
        }
      }
    }
  }
}

TEST(GrowBloom, ComparesFiltersOfManyWordsWhereverTheyDiffer) {
  const GrowBloom filter = filter_of(shape_for(10'000, 0.01, blocked), 0, 5000);
  const std::uint64_t bits = filter.shape().bits;
  for (std::uint64_t n = 0; n < 300; ++n) {
    GrowBloom more = filter;
    if (!more.add(key(5000 + n))) continue;
    EXPECT_TRUE(*filter.compare(more) < 0);
    EXPECT_TRUE(*more.compare(filter) > 0);
    GrowBloom other = filter;
    if (!other.add(key(6000 + n))) continue;
    EXPECT_EQ(*other.compare(more), std::partial_ordering::unordered);
  }
  EXPECT_EQ(filter.bytes(), bits / 8);
}

TEST(GrowBloom, IsWhatAPlainFilterWouldBeWithOrWithoutADelta) {
  for (const BloomLayout layout : kLayouts) {
    const BloomShape shape = shape_for(1000, 0.01, layout);
    const std::vector<Digest> some = keys(0, 1000);
    BloomFilter twin(shape);
    GrowBloom single(shape), single_delta(shape), batch(shape), batch_delta(shape);
    BloomDelta delta(shape), whole(shape);
    Answers added(some.size()), added_delta(some.size());
    batch.add(some, added.span());
    batch_delta.add(some, added_delta.span(), &whole);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const bool fresh = twin.add(some[i]);
      EXPECT_EQ(single.add(some[i]), fresh);
      EXPECT_EQ(single_delta.add(some[i], &delta), fresh);
      EXPECT_EQ(added[i], fresh);
      EXPECT_EQ(added_delta[i], fresh);
    }
    for (const GrowBloom& filter : {single, single_delta, batch, batch_delta}) {
      EXPECT_EQ(encoded(filter), encoded(twin));
    }
    EXPECT_EQ(delta, whole);
    EXPECT_EQ(encoded(delta), encoded(whole));
    EXPECT_EQ(count_found(single, some), some.size());
    EXPECT_EQ(single.live_fpr(), twin.live_fpr());
    EXPECT_EQ(single.cardinality(), twin.cardinality());
  }
}

TEST(GrowBloom, PutsIntoADeltaOnlyWhatWasNotThere) {
  GrowBloom filter = filter_of(kTiny, 0, 5);
  BloomDelta delta(kTiny);
  EXPECT_FALSE(filter.add(key(0), &delta));
  EXPECT_TRUE(delta.empty());
  EXPECT_TRUE(filter.add(key(5), &delta));
  EXPECT_FALSE(delta.empty());
  EXPECT_LE(delta.bytes(), 2 * sizeof(std::uint64_t));

  GrowBloom rest(kTiny);
  ASSERT_TRUE(rest.merge(delta));
  EXPECT_TRUE(*rest.compare(filter_of(kTiny, 0, 5)) == std::partial_ordering::unordered);
  ASSERT_TRUE(rest.merge(filter_of(kTiny, 0, 5)));
  EXPECT_EQ(rest, filter);
}

// One delta may collect from several filters. It holds each bit once, however often it was set.
TEST(BloomDelta, DoesNotGrowByWhatItHolds) {
  BloomDelta delta(kTiny);
  for (int round = 0; round < 50; ++round) {
    GrowBloom filter(kTiny);
    for (std::uint64_t n = 0; n < 30; ++n) filter.add(key(n), &delta);
  }
  EXPECT_LE(delta.bytes(), 3 * 64 * sizeof(std::uint64_t));
  const BloomDelta once = delta_of(kTiny, 0, 30);
  EXPECT_EQ(delta, once);
  EXPECT_EQ(encoded(delta), encoded(once));
  ASSERT_TRUE(delta.merge(delta));
  ASSERT_TRUE(delta.merge(once));
  EXPECT_EQ(delta, once);
  EXPECT_LE(delta.bytes(), 60 * sizeof(std::uint64_t));
}

TEST(BloomDelta, DiffersWhereItsBitsOrItsShapeDo) {
  EXPECT_NE(delta_of(kTiny, 0, 5), delta_of(kTiny, 0, 6));
  EXPECT_NE(BloomDelta(kTiny), BloomDelta(shape_for(40, 0.05, blocked)));
  EXPECT_NE(encoded(BloomDelta(kTiny)), encoded(delta_of(kTiny, 0, 1)));
}

// Naming a bit twice would be another encoding of the same delta.
TEST(BloomDelta, RefusesABitThatIsNamedTwice) {
  const BloomShape shape{plain, 1, 64, kTestHash};
  Bytes bytes = encoded(delta_of(shape, 0, 2));
  ASSERT_EQ(bytes[32], 2);
  ASSERT_EQ(bytes.size(), 40u + 2 + 1 + 8);  // k = 5
  bytes[40] = 0x63;                          // low parts 3 and 3
  bytes[41] = 0;
  bytes[42] = 0b0011;  // high parts 0 and 0
  EXPECT_EQ(BloomDelta::decode(resealed(bytes)).error().code, Errc::corrupt);
  bytes[40] = 0x83;  // 3 and 4
  EXPECT_TRUE(BloomDelta::decode(resealed(bytes)));
}

TEST(BloomDelta, DecodesToWhatMergesAsBefore) {
  const BloomShape shape = shape_for(10'000, 1e-5, blocked2);
  const BloomDelta delta = delta_of(shape, 0, 1000);
  GrowBloom filter(shape);
  ASSERT_TRUE(filter.merge(*BloomDelta::decode(encoded(delta))));
  EXPECT_EQ(filter, filter_of(shape, 0, 1000));
}

TEST(GrowBloom, RefusesAnotherShapeAndStaysAsItWas) {
  const GrowBloom before = filter_of(kTiny, 0, 10);
  GrowBloom filter = before;
  const BloomDelta delta_before = delta_of(kTiny, 0, 10);
  BloomDelta delta = delta_before;
  for (const BloomShape& other :
       {BloomShape{plain, 2, 704, kTestHash}, BloomShape{plain, 3, 640, kTestHash},
        BloomShape{plain, 2, 640, {HashKind::fast, kTestSeed + 1}}}) {
    EXPECT_EQ(filter.merge(GrowBloom(other)).error().code, Errc::mismatch);
    EXPECT_EQ(filter.merge(BloomDelta(other)).error().code, Errc::mismatch);
    EXPECT_EQ(filter.admits(BloomDelta(other)).error().code, Errc::mismatch);
    EXPECT_EQ(filter.compare(GrowBloom(other)).error().code, Errc::mismatch);
    EXPECT_EQ(delta.merge(BloomDelta(other)).error().code, Errc::mismatch);
    EXPECT_NE(filter.digest(Hasher::fast(1)), filter_of(other, 0, 10).digest(Hasher::fast(1)));
    EXPECT_NE(GrowBloom(kTiny).digest(Hasher::fast(1)), GrowBloom(other).digest(Hasher::fast(1)));
  }
  EXPECT_EQ(filter, before);
  EXPECT_EQ(delta, delta_before);
  EXPECT_TRUE(filter.admits(delta));
}

// Each block is hashed with its place: the same bits elsewhere are another state.
TEST(GrowBloom, DigestTellsEveryBitFromEveryOther) {
  const Secret secret(std::array<std::uint8_t, Secret::kSize>{1, 2, 3});
  for (const Hasher& hasher :
       {Hasher::fast(3), Hasher::keyed(DigestKey(secret, KeyPurpose::entry))}) {
    const BloomShape shape{plain, 1, 640, kTestHash};
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (std::uint64_t n = 0; n < 20'000; ++n) {
      const Digest digest = filter_of(shape, n, n + 1).digest(hasher);
      seen.emplace(digest.lo, digest.hi);
    }
    EXPECT_EQ(seen.size(), 640u);  // one for each bit
  }
}

// Digests of states without a common block combine by XOR. The last block is short here.
TEST(GrowBloom, DigestOfABlockDoesNotDependOnTheOthers) {
  const Hasher hasher = Hasher::fast(3);
  const Digest empty = GrowBloom(kTiny).digest(hasher);
  int apart = 0;
  for (std::uint64_t n = 0; n < 200; ++n) {
    const GrowBloom a = filter_of(kTiny, n, n + 1), b = filter_of(kTiny, n + 1, n + 2);
    const GrowBloom both = filter_of(kTiny, n, n + 2);
    const auto blocks = [](const GrowBloom& filter) {
      const Bytes bytes = encoded(filter);  // a header of 32, blocks of 64 and 16
      const auto holds = [&](std::size_t from, std::size_t size) {
        const ByteView block = ByteView(bytes).subspan(from, size);
        return std::any_of(block.begin(), block.end(), [](std::uint8_t byte) { return byte != 0; });
      };
      return std::pair(holds(32, 64), holds(96, 16));
    };
    if (blocks(a) != std::pair(true, false) || blocks(b) != std::pair(false, true)) continue;
    ++apart;
    const Digest x = a.digest(hasher), y = b.digest(hasher);
    EXPECT_EQ(both.digest(hasher), (Digest{x.lo ^ y.lo ^ empty.lo, x.hi ^ y.hi ^ empty.hi}));
  }
  EXPECT_GT(apart, 0);
}

TEST(GrowBloom, CountsItsKeysAsTheyAreAddedAndEstimatesWhatWasMerged) {
  const BloomShape shape = shape_for(10'000, 0.01, blocked);
  GrowBloom filter(shape);
  EXPECT_EQ(filter.keys(), 0u);
  std::uint64_t added = 0;
  for (std::uint64_t n = 0; n < 3000; ++n) added += filter.add(key(n));
  EXPECT_EQ(filter.keys(), added);
  filter.add(key(0));
  EXPECT_EQ(filter.keys(), added);
  EXPECT_FALSE(*filter.merge(filter_of(shape, 0, 100)));
  EXPECT_EQ(filter.keys(), added);  // no change, so no new count

  ASSERT_TRUE(*filter.merge(filter_of(shape, 2000, 6000)));
  EXPECT_EQ(filter.keys(), static_cast<std::uint64_t>(std::llround(filter.cardinality())));
  EXPECT_NEAR(static_cast<double>(filter.keys()), 6000, 100);
  const std::uint64_t counted = filter.keys();
  BloomDelta delta(shape);
  added = filter.add(key(7000), &delta) + filter.add(key(7001));
  EXPECT_EQ(filter.keys(), counted + added);

  GrowBloom other = *GrowBloom::decode(encoded(filter));
  EXPECT_EQ(other.keys(), static_cast<std::uint64_t>(std::llround(filter.cardinality())));
  GrowBloom third(shape);
  ASSERT_TRUE(third.merge(delta_of(shape, 0, 2000)));
  EXPECT_NEAR(static_cast<double>(third.keys()), 2000, 50);
}

TEST(GrowBloom, HasHalfOfItsBitsSetAtItsCapacity) {
  for (const BloomLayout layout : kLayouts) {
    for (const double fpr : {0.1, 0.01, 1e-4}) {
      GrowBloom filter(shape_for(20'000, fpr, layout));
      const std::vector<Digest> some = keys(0, filter.capacity());
      Answers added(some.size());
      filter.add(some, added.span());
      Result<BloomFilter> twin = BloomFilter::decode(encoded(filter));
      const auto bits = static_cast<double>(filter.shape().bits);
      // Bits of one filter repel each other, so they deviate less than independent bits.
      EXPECT_NEAR(twin->fill() * bits, bits / 2, five_deviations(bits, 0.5))
          << static_cast<int>(layout) << " " << fpr;
    }
  }
}

TEST(GrowBloom, TakesTheShapeOfItsGoalOrSaysWhyNot) {
  for (const double fpr : {0.5, 1e-2, 1e-5, 1e-9, 1e-20}) {
    const BloomShape shape = *GrowBloom::shape_for(10'000, fpr, kTestHash);
    EXPECT_LE(shape.expected_fpr(10'000), fpr * (1 + 1e-9));
    EXPECT_EQ(shape.layout, BloomShape::blocked_for(fpr));
    EXPECT_EQ(shape.hash, kTestHash);
  }
  for (const double fpr : {0.0, 1.0, -1.0, std::nan("")}) {
    EXPECT_EQ(GrowBloom::shape_for(10, fpr, {}).error().code, Errc::invalid);
  }
  EXPECT_EQ(GrowBloom::shape_for(0, 0.01, {}).error().code, Errc::invalid);
  EXPECT_EQ(GrowBloom::shape_for(~0ull, 0.01, {}).error().code, Errc::limit);
}

TEST(GrowBloomDeathTest, RefusesADeltaOfAnotherShape) {
  GrowBloom filter(kTiny);
  BloomDelta delta(shape_for(40, 0.05, blocked));
  EXPECT_DEATH(filter.add(key(0), &delta), "shape");
  EXPECT_DEATH(BloomDelta({plain, 3, 100, {}}), "shape.valid");
}

}  // namespace
}  // namespace semel

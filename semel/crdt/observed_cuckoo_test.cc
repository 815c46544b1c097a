// ObservedCuckoo and its deltas: what is removed and what is not, gaps, and sound and hostile
// bytes. tests/laws has the laws over histories of several sites.
#include "semel/crdt/observed_cuckoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "semel/crdt/internal/lives.h"
#include "semel/crdt/internal/observed_part.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/laws/merge_laws.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"
#include "tests/support/reseal.h"
#include "tests/support/site_life.h"

namespace semel {

using crdt_internal::ObservedPart;
using crdt_internal::ObservedParts;

namespace {

constexpr CuckooShape kSmall = {4, 8, 64, 12, kTestHash};

// A site adds these keys, twenty in each life, and removes every fifth again.
ObservedCuckoo filter_of(const CuckooShape& shape, SiteId site, std::uint64_t first,
                         std::uint64_t last) {
  ObservedCuckoo filter(shape);
  for (std::uint64_t n = first; n < last; ++n) {
    const Result<Dot> dot = filter.add(key(n), {site, 1 + n / 20});
    EXPECT_TRUE(dot);
    if (n % 5 == 4) {
      EXPECT_TRUE(*filter.remove(key(n), *dot));
    }
  }
  return filter;
}

ObservedCuckoo joined_in(ObservedCuckoo into, const ObservedCuckoo& from) {
  EXPECT_TRUE(into.merge(from));
  return into;
}

struct StateCase {
  using Type = ObservedCuckoo;
  static constexpr std::size_t kHeaderSize = 36;
  static constexpr std::size_t kMostGrowth = 32;  // 14 bits become 72 in a table an eighth full
  static Type make(int replica) {
    return filter_of(kSmall, static_cast<SiteId>(100 * replica), 30 * replica, 30 * replica + 30);
  }
  static bool holds(const Type& filter, int replica) {
    for (int n = 30 * replica; n < 30 * replica + 30; ++n) {
      if (n % 5 != 4 && !filter.contains(key(static_cast<std::uint64_t>(n)))) return false;
    }
    return true;
  }
  static Type make() {
    Type filter = make(0);
    EXPECT_TRUE(filter.merge(make(1)));
    return filter;
  }
};
struct EmptyCase : StateCase {
  static Type make() { return ObservedCuckoo(kSmall); }
};
struct DeltaCase : StateCase {
  using Type = ObservedDelta;
  static Type make() {
    ObservedCuckoo filter = StateCase::make(0);
    ObservedDelta delta(kSmall);
    for (std::uint64_t n = 0; n < 12; ++n) {
      EXPECT_TRUE(filter.add(key(200 + n), {100, 1 + n / 5}, &delta));
      if (n % 3 == 0) {
        EXPECT_TRUE(filter.remove(key(200 + n), &delta));
      }
    }
    for (std::uint64_t n = 0; n < 6; ++n) EXPECT_TRUE(filter.remove(key(5 * n), &delta));
    return delta;
  }
};
struct EmptyDeltaCase : DeltaCase {
  static Type make() { return ObservedDelta(kSmall); }
};
struct GoldenState : StateCase {
  static constexpr char kFile[] = "observed_cuckoo_v1.bin";
};
struct GoldenDelta : DeltaCase {
  static constexpr char kFile[] = "observed_delta_v1.bin";
};

using BytesCases = ::testing::Types<StateCase, EmptyCase, DeltaCase, EmptyDeltaCase>;
using GoldenCases = ::testing::Types<GoldenState, GoldenDelta>;
INSTANTIATE_TYPED_TEST_SUITE_P(ObservedCuckoo, MergeLaws, StateCase);
INSTANTIATE_TYPED_TEST_SUITE_P(ObservedCuckoo, HostileBytes, BytesCases);
INSTANTIATE_TYPED_TEST_SUITE_P(ObservedCuckoo, Golden, GoldenCases);

TEST(ObservedCuckoo, HoldsAKeyAsOftenAsItWasAddedAndNotRemoved) {
  ObservedCuckoo filter(kSmall);
  EXPECT_EQ(*filter.add(key(1), at(7)), (Dot{7, 1}));
  EXPECT_EQ(*filter.add(key(2), at(7)), (Dot{7, 2}));
  EXPECT_EQ(*filter.add(key(1), at(3)), (Dot{3, 1}));
  EXPECT_EQ(filter.dots(key(1)), (std::vector<Dot>{{3, 1}, {7, 1}}));
  EXPECT_EQ(filter.remove(key(1)), (Dot{3, 1}));  // the least
  EXPECT_TRUE(filter.contains(key(1)));
  EXPECT_EQ(filter.remove(key(1)), (Dot{7, 1}));
  EXPECT_FALSE(filter.contains(key(1)));
  EXPECT_EQ(filter.remove(key(1)), std::nullopt);
  EXPECT_TRUE(filter.contains(key(2)));
  EXPECT_EQ(filter.context().at(7), 2u);
  EXPECT_EQ(filter.context().at(3), 1u);
}

TEST(ObservedCuckoo, RemovesTheEntryOfTheNamedDotAndNoOther) {
  ObservedCuckoo filter(kSmall);
  const Dot first = *filter.add(key(1), at(1)), second = *filter.add(key(1), at(1));
  const Dot other = *filter.add(key(2), at(1));
  EXPECT_TRUE(*filter.remove(key(1), second));
  EXPECT_EQ(filter.dots(key(1)), std::vector<Dot>{first});
  EXPECT_FALSE(*filter.remove(key(1), second));  // already removed
  EXPECT_FALSE(*filter.remove(key(1), other));   // belongs to another key
  EXPECT_TRUE(filter.contains(key(2)));
  const ObservedCuckoo before = filter;
  EXPECT_EQ(filter.remove(key(1), {1, 4}).error().code, Errc::gap);
  EXPECT_EQ(filter.remove(key(1), {2, 1}).error().code, Errc::gap);
  EXPECT_EQ(filter.remove(key(1), {1, 0}).error().code, Errc::invalid);
  EXPECT_EQ(filter.remove(key(1), {1, Dot::kLastCounter + 1}).error().code, Errc::invalid);
  EXPECT_EQ(filter, before);
}

TEST(ObservedCuckoo, KeepsAnAddThatTheRemovalHadNotSeen) {
  ObservedCuckoo a(kSmall);
  ASSERT_TRUE(a.add(key(1), at(1)));
  ObservedCuckoo b = a;
  ASSERT_TRUE(a.remove(key(1)));
  ASSERT_TRUE(b.add(key(1), at(2)));
  EXPECT_TRUE(*a.merge(b));
  EXPECT_EQ(a.dots(key(1)), (std::vector<Dot>{{2, 1}}));
  EXPECT_TRUE(*b.merge(a));
  EXPECT_EQ(a, b);
}

TEST(ObservedCuckoo, WhatIsRemovedDoesNotComeBackFromAnOlderState) {
  ObservedCuckoo a(kSmall);
  for (std::uint64_t n = 0; n < 20; ++n) ASSERT_TRUE(a.add(key(n), at(1)));
  const ObservedCuckoo older = a;
  for (std::uint64_t n = 0; n < 20; ++n) ASSERT_TRUE(a.remove(key(n)));
  const ObservedCuckoo emptied = a;
  EXPECT_FALSE(*a.merge(older));
  EXPECT_EQ(a, emptied);
  EXPECT_EQ(a.cardinality(), 0u);
  ObservedCuckoo b = older;
  EXPECT_TRUE(*b.merge(emptied));
  EXPECT_EQ(b, emptied);
}

// Case 4 of the specification: an entry that lies in its other bucket there is the same entry.
TEST(ObservedCuckoo, DisplacedEntriesAreTheSameEntries) {
  std::mt19937_64 shuffle(3);
  for (int round = 0; round < 300; ++round) {
    ObservedCuckoo origin(kSmall);
    for (std::uint64_t n = 0; n < 20; ++n) ASSERT_TRUE(origin.add(key(n), at(1)));
    ObservedCuckoo a = origin, b = origin;
    for (std::uint64_t n = 0; n < 24; ++n) {  // moves entries differently in each
      if (shuffle() % 2 == 0) (void)a.add(key(100 + shuffle() % 50), at(2));
      if (shuffle() % 2 == 0) (void)b.add(key(200 + shuffle() % 50), at(3));
    }
    ObservedCuckoo ab = a, ba = b;
    ASSERT_TRUE(ab.merge(b));
    ASSERT_TRUE(ba.merge(a));
    ASSERT_EQ(ab, ba);
    ASSERT_EQ(encoded(ab), encoded(ba));
    for (std::uint64_t n = 0; n < 20; ++n) ASSERT_TRUE(ab.contains(key(n)));
    ASSERT_EQ(ab.cardinality(), a.cardinality() + b.cardinality() - 20);
  }
}

TEST(ObservedCuckoo, ANumberThatIsUsedUpIsAnErrorAndDoesNotWrap) {
  // A state whose site 9 is just before its last number.
  Bytes bytes = encoded(ObservedCuckoo(kSmall));
  bytes.resize(bytes.size() - 8 - 8 - 4);
  Writer w(bytes);
  w.u32(1);
  w.u64(Dot{9, Dot::kLastCounter - 1}.packed());
  w.u64(1);
  w.u64(Dot{9, 1}.packed());
  w.u64(at(9).life);
  w.u64(0);
  w.u64(0);
  Result<ObservedCuckoo> filter = ObservedCuckoo::decode(resealed(bytes));
  ASSERT_TRUE(filter) << filter.error().message();
  EXPECT_EQ(*filter->add(key(1), at(9)), (Dot{9, Dot::kLastCounter}));
  const ObservedCuckoo before = *filter;
  ObservedDelta delta(kSmall);
  EXPECT_EQ(filter->add(key(2), at(9), &delta).error().code, Errc::limit);
  EXPECT_EQ(filter->add(keys(2, 5), at(9)), 0u);
  EXPECT_TRUE(delta.empty());
  EXPECT_EQ(*filter, before);
  EXPECT_TRUE(filter->add(key(2), at(10)));
  EXPECT_TRUE(filter->remove(key(1)));
}

TEST(ObservedCuckoo, TakesADeltaOnlyAfterWhatCameBeforeIt) {
  ObservedCuckoo origin(kSmall);
  ObservedDelta first(kSmall), second(kSmall), third(kSmall);
  ASSERT_TRUE(origin.add(key(1), at(1), &first));
  ASSERT_TRUE(origin.add(key(2), at(1), &second));
  ASSERT_TRUE(origin.remove(key(1), &third));

  ObservedCuckoo late(kSmall);
  EXPECT_EQ(late.merge(second).error().code, Errc::gap);
  EXPECT_EQ(late.admits(second).error().code, Errc::gap);
  EXPECT_EQ(late, ObservedCuckoo(kSmall));
  EXPECT_TRUE(*late.merge(first));
  EXPECT_FALSE(*late.merge(first));
  EXPECT_TRUE(*late.merge(second));
  EXPECT_TRUE(*late.merge(third));
  EXPECT_FALSE(*late.merge(second));
  EXPECT_EQ(late, origin);

  // Joined deltas fill each other's gaps, in any order. A removal also carries the add that it
  // removes.
  ObservedDelta joined = third;
  ASSERT_TRUE(joined.merge(second));
  ObservedCuckoo other(kSmall);
  EXPECT_TRUE(*other.merge(joined));
  EXPECT_EQ(other, origin);
  ASSERT_TRUE(joined.merge(first));
  EXPECT_FALSE(*other.merge(joined));
}

TEST(ObservedCuckoo, ADeltaOfARemovalReachesAnEntryThatCameByAnotherWay) {
  ObservedCuckoo a(kSmall);
  ASSERT_TRUE(a.add(key(1), at(1)));
  ObservedCuckoo b = a;
  ObservedDelta removal(kSmall);
  ASSERT_TRUE(a.remove(key(1), &removal));
  EXPECT_TRUE(*b.merge(*ObservedDelta::decode(encoded(removal))));
  EXPECT_EQ(a, b);
}

TEST(ObservedCuckoo, RefusesDeltasInWhichOneDotIsOfTwoEntries) {
  ObservedCuckoo a(kSmall), b(kSmall);
  ObservedDelta of_a(kSmall), of_b(kSmall);
  ASSERT_TRUE(a.add(key(1), at(1), &of_a));
  ASSERT_TRUE(b.add(key(2), at(1), &of_b));  // the same site id at two places
  const ObservedDelta before = of_a;
  EXPECT_EQ(of_a.merge(of_b).error().code, Errc::forked);
  EXPECT_EQ(of_a, before);
}

// Site 1 was restored from a backup of three adds. It then added more than the four that were lost.
class Restored : public ::testing::Test {
 protected:
  ObservedCuckoo lost{kSmall}, restored{kSmall};
  void SetUp() override {
    ASSERT_EQ(lost.add(keys(0, 3), {1, 10}), 3u);
    restored = *ObservedCuckoo::decode(encoded(lost));
    ASSERT_EQ(lost.add(keys(10, 14), {1, 10}), 4u);
    ASSERT_EQ(restored.add(keys(20, 26), {1, 11}), 6u);
    ASSERT_EQ(lost.add(keys(30, 32), at(2)), 2u);
  }
  template <class Merge>
  void expect_refused(const ObservedCuckoo& by, Merge merge) {
    ObservedCuckoo state = by;
    const Result<bool> merged = merge(state);
    ASSERT_FALSE(merged);
    EXPECT_EQ(merged.error().code, Errc::forked);
    EXPECT_EQ(merged.error().site, 1u);
    EXPECT_EQ(state, by);
  }
};

TEST_F(Restored, IsFoundOutByStatesPartsAndDeltas) {
  expect_refused(lost, [&](auto& state) { return state.merge(restored); });
  expect_refused(restored, [&](auto& state) { return state.merge(lost); });
  for (const std::uint64_t from : {0u, 3u, 5u, 7u}) {
    const ObservedPart part = ObservedParts::between(restored, 1, from, 9);
    EXPECT_TRUE(part.sound(kSmall));
    expect_refused(lost, [&](auto& state) { return ObservedParts::merge(state, 1, part); });
  }
  ObservedCuckoo fewer = lost;
  EXPECT_FALSE(*ObservedParts::merge(fewer, 1, ObservedParts::between(restored, 1, 0, 3)));
  ObservedDelta delta(kSmall);
  ASSERT_TRUE(restored.add(key(26), {1, 12}, &delta));    // after another restart
  EXPECT_EQ(lost.admits(delta).error().code, Errc::gap);  // then the state is sent
  ASSERT_EQ(lost.add(keys(14, 16), {1, 10}), 2u);
  expect_refused(lost, [&](auto& state) { return state.merge(delta); });  // now there is no gap
  ObservedDelta removal(kSmall);
  ASSERT_TRUE(*restored.remove(key(21), {1, 5}, &removal));
  expect_refused(lost, [&](auto& state) { return state.merge(removal); });
}

TEST_F(Restored, GoesOnUnderANewId) {
  ASSERT_TRUE(*restored.remove(key(1), {1, 2}));
  ASSERT_TRUE(*restored.remove(key(22), {1, 6}));
  const ObservedCuckoo branch = *restored.renamed(lost, 1, 3);
  EXPECT_EQ(branch.context().at(1), 3u);
  EXPECT_EQ(branch.context().at(3), 6u);
  ObservedCuckoo both = lost;
  ASSERT_TRUE(*both.merge(branch));
  EXPECT_EQ(both.cardinality(), 3u + 4 + 6 + 2 - 2);
  for (const std::uint64_t n : {0, 2, 10, 11, 12, 13, 20, 21, 23, 24, 25, 30, 31}) {
    EXPECT_TRUE(both.contains(key(n))) << n;
  }
  EXPECT_EQ(both, joined_in(branch, lost));
  EXPECT_FALSE(*both.merge(*restored.renamed(lost, 1, 3)));  // the same dots again
  EXPECT_EQ(*both.add(key(40), {3, 11}), (Dot{3, 7}));       // its life goes on

  EXPECT_EQ(*branch.renamed(lost, 1, 4), branch);  // the fork is gone
  EXPECT_EQ(lost.renamed(restored, 1, 2).error().code, Errc::invalid);
  EXPECT_EQ(lost.renamed(restored, 1, 1).error().code, Errc::invalid);
  CuckooShape other = kSmall;
  other.hash.seed = 99;
  EXPECT_EQ(lost.renamed(ObservedCuckoo(other), 1, 3).error().code, Errc::mismatch);
}

TEST_F(Restored, TakesItsOwnDotsBackIfItHearsOfThemBeforeItAdds) {
  ObservedCuckoo back(kSmall);
  ASSERT_TRUE(ObservedParts::merge(back, 1, ObservedParts::between(lost, 1, 0, 3)));
  ASSERT_TRUE(*back.merge(lost));
  EXPECT_EQ(*back.add(key(50), {1, 12}), (Dot{1, 8}));
  EXPECT_TRUE(*lost.merge(back));
  EXPECT_EQ(lost, back);
}

TEST(ObservedCuckoo, RefusesOtherShapesAndChangesNothing) {
  const ObservedCuckoo before = filter_of(kSmall, 1, 0, 10);
  CuckooShape other = kSmall;
  other.hash.seed = 99;
  ObservedCuckoo filter = before;
  EXPECT_EQ(filter.merge(ObservedCuckoo(other)).error().code, Errc::mismatch);
  EXPECT_EQ(filter.merge(ObservedDelta(other)).error().code, Errc::mismatch);
  EXPECT_EQ(filter.compare(ObservedCuckoo(other)).error().code, Errc::mismatch);
  EXPECT_EQ(ObservedDelta(kSmall).merge(ObservedDelta(other)).error().code, Errc::mismatch);
  EXPECT_EQ(filter, before);
  EXPECT_FALSE(filter == ObservedCuckoo(other));
}

TEST(ObservedCuckoo, RefusesAVersionVectorOfTooManySites) {
  Bytes bytes = encoded(ObservedCuckoo(kSmall));
  bytes.resize(bytes.size() - 8 - 8 - 4);
  Writer w(bytes);
  w.u32(65'537);
  w.u64(0);
  EXPECT_EQ(ObservedCuckoo::decode(resealed(bytes)).error().code, Errc::limit);
}

TEST(ObservedCuckoo, MergesSitesByTheThousand) {
  ObservedCuckoo all(*ObservedCuckoo::shape_for(3000, 0.001, kTestHash));
  for (std::uint32_t site = 0; site < 3000; ++site) {
    ObservedCuckoo one(all.shape());
    ASSERT_TRUE(one.add(key(site), at(static_cast<SiteId>(65'535 - 21 * site))));
    ASSERT_TRUE(*all.merge(one));
  }
  EXPECT_EQ(count_found(all, keys(0, 3000)), 3000u);
  EXPECT_EQ(*ObservedCuckoo::decode(encoded(all)), all);
}

// Whichever allocation fails, the result is a sound state, and merging again completes it.
TEST(ObservedCuckoo, IsSoundWhenMemoryRunsOutInAMerge) {
  for (const std::uint64_t common : {5, 60}) {  // few entries, a table
    const CuckooShape shape = {4, 8, 64, 40, kTestHash};
    ObservedCuckoo a = filter_of(shape, 1, 0, common);
    ObservedCuckoo b = a;
    for (std::uint64_t n = 0; n < 70; ++n) ASSERT_TRUE(a.add(key(1000 + n), at(2)));
    for (std::uint64_t n = 0; n < 90; ++n) ASSERT_TRUE(b.add(key(2000 + n), at(3)));
    for (std::uint64_t n = 0; n < common; n += 2) (void)b.remove(key(n));
    ObservedCuckoo expected = a;
    ASSERT_TRUE(expected.merge(b));

    std::size_t failures = 0;
    for (bool failed = true; failed; ++failures) {
      ObservedCuckoo state = a;
      try {
        const FailingAllocation failing(failures);
        (void)state.merge(b);
        failed = false;
      } catch (const std::bad_alloc&) {
      }
      const Result<ObservedCuckoo> copy = ObservedCuckoo::decode(encoded(state));
      ASSERT_TRUE(copy) << failures;
      ASSERT_EQ(*copy, state) << failures;
      ASSERT_TRUE(state.merge(b));
      ASSERT_EQ(state, expected) << failures;
    }
    EXPECT_GT(failures, 5u);
  }
}

TEST(ObservedCuckoo, IsSoundWhenMemoryRunsOutInAnUpdate) {
  const CuckooShape shape = {4, 8, 64, 12, kTestHash};
  for (std::size_t good = 0; good < 16; ++good) {
    ObservedCuckoo state(shape);
    for (std::uint64_t n = 0; n < 40; ++n) {
      const auto site = static_cast<SiteId>(n % 7);
      const ObservedCuckoo before = state;
      try {
        const FailingAllocation failing(good);
        (void)state.add(key(n), at(site));
      } catch (const std::bad_alloc&) {
        ASSERT_EQ(state, before);
        ASSERT_TRUE(state.add(key(n), at(site)));
      }
    }
    ASSERT_EQ(*ObservedCuckoo::decode(encoded(state)), state);
    EXPECT_EQ(count_found(state, keys(0, 40)), 40u);
  }
}

TEST(ObservedCuckoo, AddsAndRemovesManyAtOnceAsOneByOne) {
  const CuckooShape shape = *ObservedCuckoo::shape_for(5000, 0.001, kTestHash);
  ObservedCuckoo one_by_one(shape), at_once(shape);
  ObservedDelta delta(shape);
  const std::vector<Digest> all = keys(0, 5000);
  for (const Digest& each : all) ASSERT_TRUE(one_by_one.add(each, at(4)));
  EXPECT_EQ(at_once.add(all, at(4), &delta), all.size());
  EXPECT_EQ(at_once, one_by_one);
  const std::vector<Digest> gone = keys(3000, 6000);
  Answers removed(gone.size());
  at_once.remove(gone, removed.span(), &delta);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    ASSERT_EQ(removed[i], one_by_one.remove(gone[i]).has_value());
  }
  EXPECT_EQ(at_once, one_by_one);
  ObservedCuckoo by_delta(shape);
  EXPECT_TRUE(*by_delta.merge(delta));
  EXPECT_EQ(by_delta, at_once);
}

TEST(ObservedCuckoo, ClaimsKeysItNeverSawAtTheRateItSays) {
  const CuckooShape shape = *ObservedCuckoo::shape_for(50'000, 0.01, kTestHash);
  ObservedCuckoo filter(shape);
  ASSERT_EQ(filter.add(keys(0, 50'000), at(1)), 50'000u);
  EXPECT_LE(filter.live_fpr(), 0.01);
  const double asked = 400'000;
  const auto found = static_cast<double>(count_found(filter, keys(1'000'000, 1'400'000)));
  EXPECT_NEAR(found, asked * filter.live_fpr(), five_deviations(asked, filter.live_fpr()));
}

TEST(ObservedCuckoo, TheDigestTellsStatesApart) {
  const Hasher hasher = Hasher::fast(5);
  ObservedCuckoo a(kSmall);
  const Digest empty = a.digest(hasher);
  ASSERT_TRUE(a.add(key(1), at(1)));
  const Digest added = a.digest(hasher);
  ASSERT_TRUE(a.remove(key(1)));
  const Digest removed = a.digest(hasher);
  EXPECT_FALSE(added == empty);
  EXPECT_FALSE(removed == empty);  // the context is part of the state
  EXPECT_FALSE(removed == added);
}

TEST(ObservedCuckoo, TakesFewBitsOnTheWire) {
  const CuckooShape shape = {4, 8, 64, 1 << 14, kTestHash};
  ObservedCuckoo filter(shape);
  ASSERT_EQ(filter.add(keys(0, 60'000), at(1)), 60'000u);
  // 14 bits for a pair, 8 for a fingerprint, 2 for a dot.
  EXPECT_LT(8.0 * static_cast<double>(encoded(filter).size()) / 60'000, 24.1);
  ObservedDelta delta(shape);
  ASSERT_EQ(filter.add(keys(60'000, 61'000), at(1), &delta), 1000u);
  EXPECT_LT(encoded(delta).size(), 3300u);
}

}  // namespace
}  // namespace semel

// The shared chain of the thesis: the properties that it has, and how it exceeds its error.
// tests/laws has the laws of its merges over histories.
#include "semel/papers/shared_series.h"

#include <gtest/gtest.h>

#include <vector>

#include "semel/core/internal/random.h"
#include "tests/laws/merge_laws.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"
#include "tests/support/site_life.h"

namespace semel::papers {
namespace {

constexpr double kFpr = 0.01;

SharedGoal goal_of(std::uint64_t first_keys, std::uint32_t growth = 2) {
  return {.fpr = kFpr, .first_keys = first_keys, .growth = growth, .hash = kTestHash};
}

template <class Type>
void add_all(Type& series, const std::vector<Digest>& keys, SiteId site,
             typename Type::Delta* delta = nullptr) {
  for (const Digest key : keys) ASSERT_TRUE(series.add(key, by<Type>(site), delta));
}

template <class Filter>
struct LawsCase {
  using Type = SharedSeries<Filter>;
  static std::vector<Digest> added(int replica) {
    const auto first = 1000 * static_cast<std::uint64_t>(replica);
    return keys(first, first + 300);
  }
  // The keys that it removes are different from those that it must hold.
  static Type make(int replica) {
    Type series = *Type::make(goal_of(10));
    const auto site = static_cast<SiteId>(replica);
    add_all(series, added(replica), site);
    const std::vector<Digest> gone = keys(5000 + 100u * site, 5060 + 100u * site);
    if constexpr (Type::kRemoves) {
      std::vector<LinkDot> places(gone.size());
      EXPECT_EQ(series.add(gone, at(site), places), gone.size());
      for (std::size_t i = 0; i < gone.size(); ++i) {
        EXPECT_TRUE(*series.remove(gone[i], places[i]));
      }
    }
    return series;
  }
  static bool holds(const Type& series, int replica) {
    return count_found(series, added(replica)) == 300;
  }
};

using Laws = ::testing::Types<LawsCase<GrowBloom>, LawsCase<GrowCuckoo>, LawsCase<ObservedCuckoo>>;
INSTANTIATE_TYPED_TEST_SUITE_P(SharedSeries, MergeLaws, Laws);

template <class Filter>
class AnyShared : public ::testing::Test {};
using Filters = ::testing::Types<GrowBloom, GrowCuckoo, ObservedCuckoo>;
TYPED_TEST_SUITE(AnyShared, Filters);

TEST(SharedGoal, SharesTheWholeErrorByHalves) {
  double sum = 0;
  for (int link = 1; link <= SeriesGoal::kMostLinks; ++link) {
    sum += goal_of(1).share(static_cast<std::uint8_t>(link));
  }
  EXPECT_NEAR(sum, kFpr, 1e-12);
  EXPECT_EQ(*goal_of(5, 3).capacity(4), 135u);
  EXPECT_EQ(goal_of(5, 3).capacity(255).error().code, Errc::limit);
}

TYPED_TEST(AnyShared, RefusesAnImpossibleGoal) {
  using Type = SharedSeries<TypeParam>;
  for (SharedGoal bad : {goal_of(0), goal_of(1, 0)}) {
    EXPECT_EQ(Type::make(bad).error().code, Errc::invalid);
  }
  SharedGoal bad = goal_of(1);
  bad.fpr = 1;
  EXPECT_EQ(Type::make(bad).error().code, Errc::invalid);
}

// Merged links hold more keys than they were made for, and report it.
TYPED_TEST(AnyShared, LosesItsErrorWithSeldomMerges) {
  using Type = SharedSeries<TypeParam>;
  constexpr std::uint64_t kKeys = 60'000, kTrials = 100'000;
  std::vector<Type> sites(4, *Type::make(goal_of(1000)));
  Random random(kKeys);
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    const auto site = static_cast<SiteId>(random.below(4));
    ASSERT_TRUE(sites[site].add(key(n), by<Type>(site)));
  }
  Type merged = sites[0];
  for (const Type& site : sites) {
    EXPECT_LE(site.live_fpr(), kFpr);
    ASSERT_TRUE(merged.merge(site));
  }
  EXPECT_EQ(count_found(merged, keys(0, kKeys)), kKeys);
  const auto hits = static_cast<double>(count_found(merged, keys(kKeys, kKeys + kTrials)));
  const double live = merged.live_fpr();
  EXPECT_NEAR(hits, kTrials * live, five_deviations(kTrials, live));
  if (std::is_same_v<TypeParam, GrowBloom>) {
    // A Bloom filter suffers most. Wide fingerprints have some reserve.
    EXPECT_GT(live, 10 * kFpr);
  }
}

TYPED_TEST(AnyShared, AddsInBatchesAsOneByOne) {
  using Type = SharedSeries<TypeParam>;
  const SharedGoal goal = goal_of(7);
  Type one = *Type::make(goal), many = one;
  typename Type::Delta one_delta(goal), many_delta(goal);
  std::vector<Digest> batch;
  Random random(1);
  for (int left = 3000; left > 0; --left) batch.push_back(key(random.below(2000)));
  if constexpr (Type::kRemoves) {
    std::vector<LinkDot> dots(batch.size());
    ASSERT_EQ(many.add(batch, at(1), dots, &many_delta), batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      ASSERT_EQ(*one.add(batch[i], at(1), &one_delta), dots[i]);
    }
  } else {
    Answers added(batch.size());
    ASSERT_EQ(many.add(batch, 1, added.span(), &many_delta), batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      ASSERT_EQ(*one.add(batch[i], 1, &one_delta), added[i]);
    }
  }
  EXPECT_EQ(one, many);
  EXPECT_EQ(one_delta, many_delta);
  EXPECT_GT(one.links().size(), 6u);
}

TYPED_TEST(AnyShared, MergesDeltasAsStates) {
  using Type = SharedSeries<TypeParam>;
  const SharedGoal goal = goal_of(10);
  const Type empty = *Type::make(goal);
  std::vector<Type> sites(3, empty);
  Type by_each = empty, by_join = empty, by_state = empty;
  typename Type::Delta join(goal);
  Random random(2);
  for (int step = 0; step < 600; ++step) {
    const auto site = static_cast<SiteId>(random.below(3));
    typename Type::Delta delta(goal);
    if constexpr (Type::kRemoves) {
      if (random.below(3) == 0) {
        (void)sites[site].remove(key(random.below(200)), &delta);
      } else {
        ASSERT_TRUE(sites[site].add(key(random.below(200)), at(site), &delta));
      }
    } else {
      ASSERT_TRUE(sites[site].add(key(random.below(1000)), site, &delta));
    }
    const auto sent = Type::Delta::decode(encoded(delta));
    ASSERT_TRUE(sent);
    ASSERT_TRUE(join.merge(*sent));
    ASSERT_TRUE(by_each.merge(*sent));
  }
  ASSERT_TRUE(by_join.merge(join));
  for (const Type& site : sites) ASSERT_TRUE(by_state.merge(site));
  EXPECT_EQ(by_each, by_state);
  EXPECT_EQ(by_join, by_state);
  EXPECT_EQ(*Type::decode(encoded(by_each)), by_state);
}

TYPED_TEST(AnyShared, EndsWithAnErrorAndNoChange) {
  using Type = SharedSeries<TypeParam>;
  SharedGoal goal = goal_of(1, 1);
  goal.fpr = 1e-3;
  Type series = *Type::make(goal);
  // The shares halve from link to link until no filter can keep them.
  std::uint64_t n = 0;
  while (series.add(key(n), by<Type>(0))) ++n;
  const Type before = series;
  EXPECT_EQ(series.add(key(n), by<Type>(0)).error().code, Errc::limit);
  EXPECT_EQ(series, before);
  EXPECT_GT(series.links().size(), 10u);
}

// Figure 3.4 of the thesis: the filter cannot tell the keys apart.
TEST(SharedObserved, LosesNoKeyWhenTwoSitesRemoveAnotherAtOnce) {
  using Type = SharedSeries<ObservedCuckoo>;
  const Digest e4 = key(4), e5 = {e4.lo + 1, e4.hi};
  Type a = *Type::make(goal_of(10)), b = a;
  ASSERT_TRUE(a.add(e4, at(0)));
  ASSERT_TRUE(b.add(e5, at(1)));
  ASSERT_TRUE(a.merge(b));
  ASSERT_TRUE(b.merge(a));
  EXPECT_EQ(a.remove(e4), b.remove(e4));
  ASSERT_TRUE(a.merge(b));
  EXPECT_TRUE(a.contains(e5));
}

TEST(SharedObserved, ReusesEmptiedLinksUnderChurn) {
  using Type = SharedSeries<ObservedCuckoo>;
  constexpr std::uint64_t kLive = 1000;
  Type series = *Type::make(goal_of(256));
  std::vector<LinkDot> places(20 * kLive);
  std::size_t links = 0;
  for (std::uint64_t n = 0; n < 20 * kLive; ++n) {
    if (n >= kLive) {
      ASSERT_TRUE(*series.remove(key(n - kLive), places[n - kLive]));
    } else {
      links = series.links().size();
    }
    places[n] = *series.add(key(n), at(0));
  }
  EXPECT_EQ(series.cardinality(), kLive);
  EXPECT_LE(series.links().size(), links + 1);  // a crowded bucket may open one more
  EXPECT_EQ(count_found(series, keys(19 * kLive, 20 * kLive)), kLive);
}

}  // namespace
}  // namespace semel::papers

#include "semel/crdt/series.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/crdt/internal/series_links.h"
#include "semel/hash/internal/checksum.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/laws/merge_laws.h"
#include "tests/laws/mergeable.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"
#include "tests/support/site_life.h"

namespace semel {

using crdt_internal::FilterKind;
using crdt_internal::kKindOf;
using crdt_internal::kSeriesDeltaFormat;
using crdt_internal::kSeriesFormat;

namespace {

static_assert(GrowOnlyFilter<GrowBloom>);
static_assert(GrowOnlyFilter<GrowCuckoo>);
static_assert(ObservedRemoveFilter<ObservedCuckoo>);
static_assert(Mergeable<GrowBloomSeries>);
static_assert(Mergeable<GrowCuckooSeries>);
static_assert(Mergeable<ObservedCuckooSeries>);

constexpr double kFpr = 0.01;
const Hasher kHasher = Hasher::fast(1);

SeriesGoal goal_of(std::uint64_t first_keys, std::uint32_t sites,
                   SeriesChains chains = SeriesChains::own) {
  return {.fpr = kFpr,
          .first_keys = first_keys,
          .sites = sites,
          .chains = chains,
          .growth = 2,
          .hash = kTestHash};
}

// Adds all keys and returns how many were new: all of them where each add counts.
template <class Type, class... Delta>
std::uint64_t add_all(Type& series, const std::vector<Digest>& keys, SiteId site, Delta*... delta) {
  if constexpr (Type::kRemoves) {
    std::vector<LinkDot> dots(keys.size());
    EXPECT_EQ(series.add(keys, at(site), dots, delta...), keys.size());
    return keys.size();
  } else {
    Answers added(keys.size());
    EXPECT_EQ(series.add(keys, site, added.span(), delta...), keys.size());
    return added.count();
  }
}

template <class Type>
Type series_of(const SeriesGoal& goal, const std::vector<Digest>& keys, SiteId site) {
  Type series = *Type::make(goal);
  add_all(series, keys, site);
  return series;
}

template <class Type>
class AnySeries : public ::testing::Test {};
using AllSeries = ::testing::Types<GrowBloomSeries, GrowCuckooSeries, ObservedCuckooSeries>;
TYPED_TEST_SUITE(AnySeries, AllSeries);

// Three sites that know a part of the history, add independently, and remove where they can.
template <class Series, SeriesChains kChains>
struct LawsCase {
  using Type = Series;
  static std::vector<Digest> added(int replica) {
    const auto first = 1000 * static_cast<std::uint64_t>(replica);
    return keys(first, first + 300);
  }
  static Type make(int replica) {
    const SeriesGoal goal = goal_of(10, 3, kChains);
    const auto site = static_cast<SiteId>(replica);
    const SiteId peer = (site + 1) % 3;
    Type series = *Type::make(goal), other = series;
    const std::vector<Digest> own = keys(5000 + 100u * site, 5100 + 100u * site);
    const std::vector<Digest> theirs = keys(5000 + 100u * peer, 5100 + 100u * peer);
    if constexpr (Type::kRemoves) {
      std::vector<LinkDot> places(own.size()), their_places(theirs.size());
      EXPECT_EQ(series.add(own, at(site), places), own.size());
      EXPECT_EQ(other.add(theirs, at(peer), their_places), theirs.size());
      EXPECT_TRUE(series.merge(other));
      for (std::size_t i = 20; i < 80; ++i) {
        EXPECT_TRUE(*series.remove(own[i], places[i]));
        EXPECT_TRUE(*series.remove(theirs[i - 20], their_places[i - 20]));
      }
    } else {
      add_all(series, own, site);
      add_all(other, theirs, peer);
      EXPECT_TRUE(series.merge(other));
    }
    add_all(series, added(replica), site);
    return series;
  }
  static bool holds(const Type& series, int replica) {
    return count_found(series, added(replica)) == 300;
  }
};

template <class Series, const char* kName>
struct StateCase {
  using Type = Series;
  static constexpr std::size_t kHeaderSize = 56;
  static constexpr std::size_t kMostGrowth = 8;
  static constexpr const char* kFile = kName;
  static Type make() {
    auto series = series_of<Type>(goal_of(4, 2), keys(0, 6), 7);
    EXPECT_TRUE(series.merge(series_of<Type>(goal_of(4, 2), keys(10, 13), 65'535)));
    if constexpr (Type::kRemoves) {
      EXPECT_TRUE(series.remove(key(1)));
    }
    return series;
  }
};

template <class Series, const char* kName>
struct DeltaCase {
  using Type = typename Series::Delta;
  static constexpr std::size_t kHeaderSize = 56;
  static constexpr std::size_t kMostGrowth = 8;
  static constexpr const char* kFile = kName;
  static Type make() {
    auto series = series_of<Series>(goal_of(4, 2), keys(10, 13), 65'535);
    Type delta(series.goal());
    add_all(series, keys(0, 6), 7, &delta);
    if constexpr (Series::kRemoves) {
      EXPECT_TRUE(series.remove(key(11), &delta));
      EXPECT_TRUE(series.remove(key(1), &delta));
    }
    return delta;
  }
};

constexpr char kBloomFile[] = "series_v1_bloom.bin";
constexpr char kCuckooFile[] = "series_v1_cuckoo.bin";
constexpr char kObservedFile[] = "series_v1_observed.bin";
constexpr char kBloomDeltaFile[] = "series_delta_v1_bloom.bin";
constexpr char kCuckooDeltaFile[] = "series_delta_v1_cuckoo.bin";
constexpr char kObservedDeltaFile[] = "series_delta_v1_observed.bin";
// A series that comes with the keys of each link.
struct CountedSeries : GrowBloomSeries {
  explicit CountedSeries(GrowBloomSeries series) : GrowBloomSeries(std::move(series)) {}
  void encode(Sink out) const { encode_counted(out); }
  static Result<CountedSeries> decode(ByteView in) {
    return CountedSeries(SEMEL_TRY(GrowBloomSeries::decode_counted(in)));
  }
  bool operator==(const CountedSeries& other) const {
    return GrowBloomSeries::operator==(other) && link_keys() == other.link_keys();
  }
};
struct CountedCase {
  using Type = CountedSeries;
  static constexpr std::size_t kHeaderSize = 56;
  static constexpr std::size_t kMostGrowth = 8;
  static constexpr char kFile[] = "series_v1_counted.bin";
  static Type make() { return Type(StateCase<GrowBloomSeries, kBloomFile>::make()); }
};

using Formats = ::testing::Types<
    StateCase<GrowBloomSeries, kBloomFile>, StateCase<GrowCuckooSeries, kCuckooFile>,
    StateCase<ObservedCuckooSeries, kObservedFile>, DeltaCase<GrowBloomSeries, kBloomDeltaFile>,
    DeltaCase<GrowCuckooSeries, kCuckooDeltaFile>,
    DeltaCase<ObservedCuckooSeries, kObservedDeltaFile>, CountedCase>;
using Laws = ::testing::Types<LawsCase<GrowBloomSeries, SeriesChains::own>,
                              LawsCase<GrowBloomSeries, SeriesChains::apart>,
                              LawsCase<GrowCuckooSeries, SeriesChains::own>,
                              LawsCase<ObservedCuckooSeries, SeriesChains::own>,
                              LawsCase<ObservedCuckooSeries, SeriesChains::apart>>;

INSTANTIATE_TYPED_TEST_SUITE_P(Series, HostileBytes, Formats);
INSTANTIATE_TYPED_TEST_SUITE_P(Series, Golden, Formats);
INSTANTIATE_TYPED_TEST_SUITE_P(Series, MergeLaws, Laws);

TEST(SeriesGoal, SharesTheWholeErrorAndNoMore) {
  for (const std::uint32_t sites : {1u, 2u, 65'536u}) {
    const SeriesGoal goal = goal_of(1, sites);
    double sum = 0;
    for (int link = 1; link <= SeriesGoal::kMostLinks; ++link) {
      sum += sites * goal.share(static_cast<std::uint8_t>(link));
    }
    EXPECT_LT(sum, kFpr);
    EXPECT_GT(sum, 0.99 * kFpr);  // the rest belongs to links beyond the last
  }
}

TEST(SeriesGoal, GrowsGeometricallyUpTo64Bits) {
  for (const std::uint32_t growth : {1u, 2u, 3u, 8u}) {
    SeriesGoal goal = goal_of(5, 1);
    goal.growth = growth;
    double exact = 5;
    for (int link = 1; link <= SeriesGoal::kMostLinks; ++link, exact *= growth) {
      const Result<std::uint64_t> capacity = goal.capacity(static_cast<std::uint8_t>(link));
      ASSERT_EQ(capacity.has_value(), exact < 0x1p64) << growth << " " << link;
      if (capacity) {
        ASSERT_DOUBLE_EQ(static_cast<double>(*capacity), exact);
      }
    }
  }
}

TYPED_TEST(AnySeries, RefusesAnImpossibleGoal) {
  const SeriesGoal good = goal_of(1, 1);
  EXPECT_TRUE(TypeParam::make(good));
  std::vector<SeriesGoal> bad(7, good);
  bad[0].fpr = 0;
  bad[1].fpr = std::nan("");
  bad[2].first_keys = 0;
  bad[3].sites = 65'537;
  bad[4].chains = static_cast<SeriesChains>(2);
  bad[5].growth = 0;
  bad[6].hash.kind = static_cast<HashKind>(2);
  for (const SeriesGoal& goal : bad) {
    EXPECT_EQ(TypeParam::make(goal).error().code, Errc::invalid);
  }
  EXPECT_EQ(TypeParam::make(goal_of(~0ull, 1)).error().code, Errc::limit);
}

TYPED_TEST(AnySeries, GrowsFromOneKeyToAMillionWithinItsError) {
  constexpr std::uint64_t kKeys = 1 << 20, kTrials = 200'000;
  const std::vector<Digest> inside = keys(0, kKeys);
  const auto series = series_of<TypeParam>(goal_of(1, 4), inside, 3);
  EXPECT_GE(series.links().size(), 20u);
  EXPECT_LE(series.links().size(), 22u);
  EXPECT_EQ(count_found(series, inside), kKeys);
  const auto hits = static_cast<double>(count_found(series, keys(kKeys, kKeys + kTrials)));
  const double live = series.live_fpr();
  EXPECT_LE(live, kFpr / 4);  // the share of one of four chains
  EXPECT_NEAR(hits, kTrials * live, five_deviations(kTrials, live));
  for (std::uint8_t link = 1; link <= 32; ++link) {
    const auto shape =
        crdt_internal::shape_of<std::remove_cvref_t<decltype(series.links().begin()->second)>>(
            goal_of(1, 64), link);
    EXPECT_TRUE(shape) << link;
  }
}

// Makes sites that add independently and merge after every `merge_every` keys, or never if 0. The
// last site adds the keys that the others do not.
template <class Type>
std::vector<Type> sites_that_added(const SeriesGoal& goal, std::uint64_t total,
                                   std::uint64_t merge_every, double share_of_first) {
  std::vector<Type> sites(goal.sites, *Type::make(goal));
  Random random(total + merge_every);
  std::vector<std::vector<Digest>> batch(goal.sites);
  for (std::uint64_t n = 0; n < total; ++n) {
    const bool first = random.unit() < share_of_first;
    batch[first ? 0 : 1 + random.below(goal.sites - 1)].push_back(key(n));
    const bool merges = merge_every > 0 && (n + 1) % merge_every == 0;
    if (!merges && n + 1 < total) continue;
    for (SiteId site = 0; site < goal.sites; ++site) {
      add_all(sites[site], batch[site], site);
      batch[site].clear();
    }
    if (!merges) continue;
    Type all = sites[0];
    for (const Type& site : sites) EXPECT_TRUE(all.merge(site));
    std::fill(sites.begin(), sites.end(), all);
  }
  return sites;
}

TYPED_TEST(AnySeries, KeepsItsErrorAtAnyFrequencyOfMergesAndAnySkew) {
  constexpr std::uint64_t kKeys = 50'000, kTrials = 100'000;
  const std::vector<Digest> inside = keys(0, kKeys), absent = keys(kKeys, kKeys + kTrials);
  for (const std::uint32_t count : {2u, 4u}) {
    for (const std::uint64_t every : {0u, 20'000u, 1000u}) {
      for (const double share : {1.0 / count, 0.99}) {
        SCOPED_TRACE(std::to_string(count) + " sites, merged every " + std::to_string(every) +
                     ", share of the first " + std::to_string(share));
        std::vector<TypeParam> sites =
            sites_that_added<TypeParam>(goal_of(1000, count), kKeys, every, share);
        TypeParam merged = sites[0];
        for (const TypeParam& site : sites) ASSERT_TRUE(merged.merge(site));
        EXPECT_EQ(count_found(merged, inside), kKeys);
        EXPECT_LE(merged.live_fpr(), kFpr);
        const auto hits = static_cast<double>(count_found(merged, absent));
        EXPECT_LE(hits, kTrials * kFpr + five_deviations(kTrials, kFpr));
      }
    }
  }
}

TYPED_TEST(AnySeries, AddsInBatchesAsOneByOne) {
  for (const SeriesChains chains : {SeriesChains::own, SeriesChains::apart}) {
    const SeriesGoal goal = goal_of(7, 2, chains);
    TypeParam one = *TypeParam::make(goal), many = one;
    typename TypeParam::Delta one_delta(goal), many_delta(goal);
    Random random(1);
    for (int round = 0; round < 30; ++round) {
      std::vector<Digest> batch;
      for (std::uint64_t left = random.below(700); left > 0; --left) {
        batch.push_back(key(random.below(6000)));
      }
      const auto site = static_cast<SiteId>(random.below(2));
      if constexpr (TypeParam::kRemoves) {
        std::vector<LinkDot> dots(batch.size());
        ASSERT_EQ(many.add(batch, at(site), dots, &many_delta), batch.size());
        for (std::size_t i = 0; i < batch.size(); ++i) {
          ASSERT_EQ(*one.add(batch[i], at(site), &one_delta), dots[i]);
        }
      } else {
        Answers added(batch.size());
        ASSERT_EQ(many.add(batch, site, added.span(), &many_delta), batch.size());
        for (std::size_t i = 0; i < batch.size(); ++i) {
          ASSERT_EQ(*one.add(batch[i], site, &one_delta), added[i]);
        }
      }
      ASSERT_EQ(one, many);
    }
    EXPECT_EQ(one_delta, many_delta);
    EXPECT_GT(one.links().size(), 8u);
    const std::vector<Digest> asked = keys(5000, 7000);
    Answers found(asked.size());
    one.contains(asked, found.span());
    for (std::size_t i = 0; i < asked.size(); ++i) ASSERT_EQ(one.contains(asked[i]), found[i]);
  }
}

TYPED_TEST(AnySeries, MergesDeltasAsStates) {
  for (const SeriesChains chains : {SeriesChains::own, SeriesChains::apart}) {
    const SeriesGoal goal = goal_of(10, 3, chains);
    const TypeParam empty = *TypeParam::make(goal);
    std::vector<TypeParam> sites(3, empty);
    TypeParam by_each = empty, by_join = empty, by_state = empty;
    typename TypeParam::Delta join(goal);
    Random random(2);
    for (int step = 0; step < 600; ++step) {
      const auto site = static_cast<SiteId>(random.below(3));
      typename TypeParam::Delta delta(goal);
      const TypeParam before = sites[site];
      if (random.below(4) == 0) {
        (void)*sites[site].merge(sites[random.below(3)]);
        continue;
      }
      if constexpr (TypeParam::kRemoves) {
        if (random.below(3) == 0) {
          (void)sites[site].remove(key(random.below(200)), &delta);
        } else {
          (void)*sites[site].add(key(random.below(200)), at(site), &delta);
        }
      } else {
        (void)*sites[site].add(key(random.below(1000)), site, &delta);
      }
      ASSERT_TRUE(std::is_lteq(*before.compare(sites[site])));
      ASSERT_EQ(before == sites[site], delta.empty());
      TypeParam after = before;
      ASSERT_EQ(*after.merge(delta), !delta.empty());
      ASSERT_EQ(after, sites[site]);
      const Result<typename TypeParam::Delta> sent = TypeParam::Delta::decode(encoded(delta));
      ASSERT_TRUE(sent) << sent.error().message();
      ASSERT_TRUE(join.merge(*sent));
      ASSERT_TRUE(by_each.merge(*sent));
    }
    ASSERT_TRUE(by_join.merge(join));
    for (const TypeParam& site : sites) ASSERT_TRUE(by_state.merge(site));
    EXPECT_EQ(by_each, by_state);
    EXPECT_EQ(by_join, by_state);
    EXPECT_EQ(encoded(by_each), encoded(by_state));
    EXPECT_EQ(by_each.digest(kHasher), by_state.digest(kHasher));
    EXPECT_EQ(*TypeParam::decode(encoded(by_each)), by_state);
    EXPECT_GT(by_state.links().size(), 6u);
  }
}

TYPED_TEST(AnySeries, ComparesLinkByLink) {
  const SeriesGoal goal = goal_of(10, 3);
  const TypeParam empty = *TypeParam::make(goal);
  const auto a = series_of<TypeParam>(goal, keys(0, 50), 0);
  const auto b = series_of<TypeParam>(goal, keys(50, 100), 2);
  TypeParam both = a;
  EXPECT_TRUE(*both.merge(b));
  EXPECT_FALSE(*both.merge(a));
  EXPECT_EQ(*a.compare(a), std::partial_ordering::equivalent);
  EXPECT_EQ(*empty.compare(a), std::partial_ordering::less);
  EXPECT_EQ(*a.compare(empty), std::partial_ordering::greater);
  EXPECT_EQ(*a.compare(b), std::partial_ordering::unordered);
  EXPECT_EQ(*a.compare(both), std::partial_ordering::less);
  EXPECT_EQ(*both.compare(b), std::partial_ordering::greater);
  TypeParam longer = a, other = a;
  add_all(longer, keys(200, 300), 0);
  add_all(other, keys(300, 301), 1);
  EXPECT_EQ(*longer.compare(a), std::partial_ordering::greater);
  EXPECT_EQ(*longer.compare(other), std::partial_ordering::unordered);
  EXPECT_NE(empty.digest(kHasher), TypeParam::make(goal_of(10, 4))->digest(kHasher));
  EXPECT_NE(a.digest(kHasher), both.digest(kHasher));
}

TYPED_TEST(AnySeries, MergesOnlySeriesOfOneGoal) {
  auto series = series_of<TypeParam>(goal_of(10, 2), keys(0, 50), 0);
  const TypeParam before = series;
  SeriesGoal goal = goal_of(10, 2);
  goal.fpr = 0.02;
  TypeParam other = *TypeParam::make(goal);
  typename TypeParam::Delta delta(goal);
  add_all(other, keys(0, 50), 0, &delta);
  EXPECT_EQ(series.merge(other).error().code, Errc::mismatch);
  EXPECT_EQ(series.merge(delta).error().code, Errc::mismatch);
  EXPECT_EQ(series.admits(delta).error().code, Errc::mismatch);
  EXPECT_EQ(series.compare(other).error().code, Errc::mismatch);
  EXPECT_EQ(typename TypeParam::Delta(series.goal()).merge(delta).error().code, Errc::mismatch);
  EXPECT_EQ(series, before);
}

TYPED_TEST(AnySeries, RefusesMoreSitesThanItsGoalAllows) {
  const SeriesGoal goal = goal_of(10, 2);
  auto series = series_of<TypeParam>(goal, keys(0, 50), 0);
  add_all(series, keys(50, 100), 9);
  const TypeParam before = series;
  TypeParam third = *TypeParam::make(goal);
  typename TypeParam::Delta delta(goal), own(goal);
  add_all(third, keys(100, 150), 1, &delta);
  EXPECT_EQ(series.add(key(200), by<TypeParam>(1)).error().code, Errc::limit);
  EXPECT_EQ(series.merge(third).error().code, Errc::limit);
  EXPECT_EQ(series.merge(delta).error().code, Errc::limit);
  EXPECT_EQ(series.admits(delta).error().code, Errc::limit);
  EXPECT_EQ(series, before);
  add_all(series, keys(200, 210), 0, &own);
  add_all(series, keys(210, 220), 9, &own);
  const typename TypeParam::Delta own_before = own;
  EXPECT_EQ(own.merge(delta).error().code, Errc::limit);
  EXPECT_EQ(own, own_before);

  // The bytes have two chains, and a goal for one.
  Bytes bytes = encoded(series);
  bytes[31] = 1;
  store_u64(bytes.data() + bytes.size() - 8, checksum(ByteView(bytes).first(bytes.size() - 8)));
  EXPECT_FALSE(TypeParam::decode(bytes));
}

TYPED_TEST(AnySeries, EndsWithAnErrorAndNoChange) {
  SeriesGoal goal = goal_of(1, 1);
  goal.growth = 1;
  goal.fpr = 1e-3;
  TypeParam series = *TypeParam::make(goal);
  std::vector<Digest> fill;
  for (std::uint64_t n = 0; fill.size() < 255; ++n) {
    if (!series.contains(key(n))) {
      fill.push_back(key(n));
      ASSERT_TRUE(series.add(key(n), by<TypeParam>(0)));
    }
  }
  EXPECT_EQ(series.links().size(), 255u);
  EXPECT_EQ(series.capacity(), 255u);
  const TypeParam before = series;
  std::uint64_t absent = 1'000'000;
  while (series.contains(key(absent))) ++absent;
  typename TypeParam::Delta delta(goal);
  EXPECT_EQ(series.add(key(absent), by<TypeParam>(0), &delta).error().code, Errc::limit);
  EXPECT_TRUE(delta.empty());
  std::vector<Digest> batch = {key(absent)};
  if constexpr (TypeParam::kRemoves) {
    std::vector<LinkDot> dots(1);
    EXPECT_EQ(series.add(batch, at(0), dots), 0u);
  } else {
    batch.insert(batch.begin(), fill[3]);
    Answers added(2);
    EXPECT_EQ(series.add(batch, 0, added.span()), 1u);
  }
  EXPECT_EQ(series, before);
}

TYPED_TEST(AnySeries, RefusesBytesThatNoSeriesWrites) {
  const SeriesGoal goal = goal_of(4, 2);
  auto series = series_of<TypeParam>(goal, keys(0, 6), 1);
  add_all(series, keys(10, 12), 2);
  ASSERT_EQ(series.links().size(), 3u);
  const Bytes bytes = encoded(series);
  const std::size_t first = 56, second = first + 3 + 20 + load_u64(&bytes[first + 3 + 4]);
  const auto refusal = [&](std::size_t at, std::uint8_t value) {
    Bytes damaged = bytes;
    damaged[at] = value;
    store_u64(damaged.data() + damaged.size() - 8,
              checksum(ByteView(damaged).first(damaged.size() - 8)));
    const Result<TypeParam> read = TypeParam::decode(damaged);
    return read ? std::pair(Errc::full, std::string("none"))
                : std::pair(read.error().code, read.error().message());
  };
  const auto refused = [](Errc code, const char* words) {
    return std::pair(code, "series of filters: " + std::string(words));
  };
  EXPECT_EQ(refusal(12, 0), refused(Errc::mismatch, "another kind of filter"));
  EXPECT_EQ(refusal(12, 4), refused(Errc::corrupt, "goal"));
  EXPECT_EQ(refusal(13, 2), refused(Errc::corrupt, "goal"));
  EXPECT_EQ(refusal(13, 1), refused(Errc::mismatch, "shape of a link"));
  EXPECT_EQ(refusal(14, 1), refused(Errc::corrupt, "keys of the links"));
  EXPECT_EQ(refusal(14, 2), refused(Errc::corrupt, "goal"));
  EXPECT_EQ(refusal(24, 9), refused(Errc::mismatch, "shape of a link"));
  EXPECT_EQ(refusal(31, 0), refused(Errc::corrupt, "goal"));
  EXPECT_EQ(refusal(35, 0), refused(Errc::corrupt, "goal"));
  EXPECT_EQ(refusal(39, 2), refused(Errc::corrupt, "goal"));
  EXPECT_EQ(refusal(39, 1), refused(Errc::mismatch, "shape of a link"));
  EXPECT_EQ(refusal(40, 1), refused(Errc::mismatch, "shape of a link"));
  EXPECT_EQ(refusal(48, 2), refused(Errc::corrupt, "size"));
  EXPECT_EQ(refusal(48, 4), refused(Errc::corrupt, "size of a link"));
  EXPECT_EQ(refusal(55, 1), refused(Errc::corrupt, "number of links"));
  EXPECT_EQ(refusal(first + 2, 0), refused(Errc::corrupt, "name of a link"));
  EXPECT_EQ(refusal(first + 2, 2), refused(Errc::corrupt, "name of a link"));
  EXPECT_EQ(refusal(first + 14, 1), refused(Errc::corrupt, "size of a link"));
  EXPECT_EQ(refusal(second + 2, 3), refused(Errc::mismatch, "shape of a link"));
  EXPECT_EQ(refusal(second + 2, 1), refused(Errc::corrupt, "name of a link"));
  if (TypeParam::kRemoves) {
    EXPECT_EQ(refusal(first, 0), refused(Errc::corrupt, "a dot of another site"));
  } else {
    EXPECT_EQ(refusal(first, 0),
              std::pair(Errc::limit, std::string("more sites than the goal of the series allows")));
  }
}

// A filter cannot have more keys than its bits and its estimate allow, nor a cuckoo filter other
// keys than its entries.
TEST(GrowSeries, RefusesKeysThatNoLinkHas) {
  const SeriesGoal goal = goal_of(4, 2);
  const auto refused = [](const auto& series, std::uint64_t keys) {
    using Type = std::remove_cvref_t<decltype(series)>;
    Bytes bytes;
    series.encode_counted(bytes);
    store_u64(bytes.data() + 56 + 3, keys);
    store_u64(bytes.data() + bytes.size() - 8, checksum(ByteView(bytes).first(bytes.size() - 8)));
    const auto read = Type::decode_counted(bytes);
    return read ? std::string() : read.error().message();
  };
  const auto bloom = series_of<GrowBloomSeries>(goal, keys(0, 6), 1);
  const auto cuckoo = series_of<GrowCuckooSeries>(goal, keys(0, 6), 1);
  EXPECT_EQ(refused(bloom, 3), "");
  EXPECT_EQ(refused(bloom, ~0ull), "series of filters: keys of a link");
  EXPECT_EQ(refused(cuckoo, 4), "");
  EXPECT_EQ(refused(cuckoo, 3), "series of filters: keys of a link");
}

// The capacities are small, so that the series grows in the middle of a batch.
RC_GTEST_PROP(GrowSeries, NeverSaysNewTwiceInWhateverPortions, ()) {
  SeriesGoal goal = goal_of(3, 1);
  goal.fpr = 1e-6;
  GrowBloomSeries series = *GrowBloomSeries::make(goal);
  std::unordered_set<int> twin;
  std::uint64_t said_new = 0;
  const auto batches = *rc::gen::container<std::vector<std::vector<int>>>(
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 200)));
  for (const std::vector<int>& batch : batches) {
    std::vector<Digest> digests;
    for (const int number : batch) digests.push_back(key(static_cast<std::uint64_t>(number)));
    Answers added(batch.size());
    RC_ASSERT(series.add(digests, 0, added.span()) == batch.size());
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

TEST(GrowSeries, GrowsForNewKeysOnly) {
  SeriesGoal goal = goal_of(100, 1);
  goal.fpr = 1e-9;
  auto series = series_of<GrowBloomSeries>(goal, keys(0, 100), 0);
  const GrowBloomSeries full = series;
  EXPECT_EQ(add_all(series, keys(0, 100), 0), 0u);
  EXPECT_EQ(series, full);
  ASSERT_TRUE(series.add(key(100), 0));
  EXPECT_EQ(series.links().size(), 2u);
}

TEST(GrowSeries, ReportsALiveErrorHoweverSmall) {
  SeriesGoal goal = goal_of(1 << 16, 1);
  goal.fpr = 1e-6;
  GrowBloomSeries series = *GrowBloomSeries::make(goal);
  EXPECT_EQ(series.live_fpr(), 0);
  ASSERT_TRUE(series.add(key(1), 0));
  EXPECT_GT(series.live_fpr(), 0);
  EXPECT_LT(series.live_fpr(), 1e-20);
}

TEST(GrowSeries, TakesMemoryInProportionToItsKeys) {
  const auto series = series_of<GrowBloomSeries>(goal_of(100, 1), keys(0, 100'000), 0);
  const double bits = 8.0 * static_cast<double>(series.bytes());
  EXPECT_LT(bits / 100'000, 40);
  EXPECT_GT(bits / 100'000, 9.6);
}

TYPED_TEST(AnySeries, TakesTheBytesThatAreTold) {
  for (const SeriesChains chains : {SeriesChains::own, SeriesChains::apart}) {
    SeriesGoal goal = goal_of(100, 1, chains);
    auto series = *TypeParam::make(goal);
    for (std::uint64_t n = 0; n < 3000; ++n) {
      ASSERT_TRUE(series.add(key(n), by<TypeParam>(0)));
      if (!std::is_same_v<TypeParam, GrowBloomSeries>) continue;  // others have memory as they fill
      if constexpr (!TypeParam::kRemoves) {
        ASSERT_EQ(*TypeParam::bytes_for(goal, series.keys()), series.bytes()) << n;
      }
    }
    EXPECT_GE(*TypeParam::bytes_for(goal, 3000), series.bytes() * 9 / 10);
    EXPECT_EQ(TypeParam::bytes_for(goal, ~0ull).error().code, Errc::limit);
    goal.fpr = 0;
    EXPECT_EQ(TypeParam::bytes_for(goal, 1).error().code, Errc::invalid);
  }
}

template <class Filter>
Bytes with_one_link(const SeriesGoal& goal, const Filter& filter) {
  Bytes bytes;
  seal(bytes, kSeriesFormat, [&](Writer& w) {
    crdt_internal::write_header(w, {kKindOf<Filter>, false, goal}, 1);
    crdt_internal::write_link(w, {1, 1}, {});
    filter.encode(w.sink());
  });
  return bytes;
}

TYPED_TEST(AnySeries, RefusesALinkInItsInitialState) {
  using Filter = std::remove_cvref_t<decltype(TypeParam::make({})->links().begin()->second)>;
  const SeriesGoal goal = goal_of(4, 2);
  Filter filter(*crdt_internal::shape_of<Filter>(goal, 1));
  EXPECT_EQ(TypeParam::decode(with_one_link(goal, filter)).error().message(),
            "series of filters: an empty link");
  if constexpr (TypeParam::kRemoves) {
    (void)*filter.add(key(1), at(1));
    (void)*filter.remove(key(1));
  } else {
    (void)filter.add(key(1));
  }
  EXPECT_TRUE(TypeParam::decode(with_one_link(goal, filter)));
}

TEST(ObservedSeries, RefusesADotOfAnotherSiteInTheChainOfItsOwner) {
  const SeriesGoal goal = goal_of(10, 2);
  const auto shape = *crdt_internal::shape_of<ObservedCuckoo>(goal, 1);
  for (const SiteId site : {SiteId{1}, SiteId{2}}) {
    ObservedCuckoo filter(shape);
    ObservedDelta delta(shape);
    ASSERT_TRUE(filter.add(key(1), at(site), &delta));
    const auto framed = [&](const Format& format, const auto& content) {
      Bytes bytes;
      seal(bytes, format, [&](Writer& w) {
        crdt_internal::write_header(w, {FilterKind::observed_cuckoo, false, goal}, 1);
        crdt_internal::write_link(w, {1, 1}, {});
        content.encode(w.sink());
      });
      return bytes;
    };
    const auto state = ObservedCuckooSeries::decode(framed(kSeriesFormat, filter));
    const auto change = ObservedCuckooSeries::Delta::decode(framed(kSeriesDeltaFormat, delta));
    EXPECT_EQ(state.has_value(), site == 1);
    EXPECT_EQ(change.has_value(), site == 1);
    if (site != 1) {
      EXPECT_EQ(state.error().code, Errc::corrupt);
      EXPECT_EQ(change.error().code, Errc::corrupt);
    }
  }
}

TEST(ObservedSeries, KeepsRemovedWhatAnOlderStateStillHolds) {
  SeriesGoal goal = goal_of(1000, 2);
  goal.fpr = 1e-9;  // so that removals by key alone do not err
  const std::vector<Digest> all = keys(0, 20'000);
  auto series = series_of<ObservedCuckooSeries>(goal, all, 0);
  const ObservedCuckooSeries older = series;
  Answers removed(all.size());
  series.remove(all, removed.span());
  EXPECT_EQ(removed.count(), all.size());
  EXPECT_EQ(series.cardinality(), 0);
  EXPECT_EQ(series.links().size(), older.links().size());
  EXPECT_LT(series.bytes(), older.bytes() / 100);
  EXPECT_NE(series, *ObservedCuckooSeries::make(goal));
  EXPECT_FALSE(*series.merge(older));
  EXPECT_EQ(count_found(series, all), 0u);
  ObservedCuckooSeries other = older;
  EXPECT_TRUE(*other.merge(series));
  EXPECT_EQ(other, series);
  EXPECT_LT(other.bytes(), older.bytes() / 100);
  const ObservedCuckooSeries read = *ObservedCuckooSeries::decode(encoded(series));
  EXPECT_EQ(read, series);
}

TEST(ObservedSeries, ReusesEmptiedLinksUnderChurn) {
  constexpr std::uint64_t kLive = 1000;
  for (const SeriesChains chains : {SeriesChains::own, SeriesChains::apart}) {
    ObservedCuckooSeries series = *ObservedCuckooSeries::make(goal_of(256, 1, chains));
    std::vector<LinkDot> places(50 * kLive);
    std::size_t links = 0;
    for (std::uint64_t n = 0; n < 50 * kLive; ++n) {
      if (n >= kLive) {
        ASSERT_TRUE(*series.remove(key(n - kLive), places[n - kLive]));
      } else {
        links = series.links().size();
      }
      places[n] = *series.add(key(n), at(0));
    }
    EXPECT_EQ(series.cardinality(), kLive);
    EXPECT_LE(series.links().size(), links + 1);  // a crowded bucket may open one more
    EXPECT_EQ(count_found(series, keys(49 * kLive, 50 * kLive)), kLive);
    EXPECT_LE(series.live_fpr(), kFpr);
  }
}

TEST(ObservedSeries, SeldomLosesAnotherKeyToARemovalByKeyAlone) {
  constexpr std::uint64_t kLive = 5000;
  auto series = series_of<ObservedCuckooSeries>(goal_of(256, 1), keys(0, kLive), 0);
  std::uint64_t lost = 0;
  for (std::uint64_t n = kLive; n < 20 * kLive; ++n) {
    lost += !series.remove(key(n - kLive));
    ASSERT_TRUE(series.add(key(n), at(0)));
  }
  // Far below live_fpr(), the chance that some other entry collides with the key.
  EXPECT_LT(static_cast<double>(lost), 19 * kLive * series.live_fpr() / 10);
}

TEST(ObservedSeries, RemovesFromTheLatestLinkTheLeastDot) {
  const SeriesGoal goal = goal_of(2, 3);
  ObservedCuckooSeries series = *ObservedCuckooSeries::make(goal);
  std::vector<LinkDot> dots;
  for (int copy = 0; copy < 8; ++copy) {
    for (const SiteId site : {5, 2, 9}) dots.push_back(*series.add(key(1), at(site)));
  }
  EXPECT_EQ(dots[0].link, 1);
  EXPECT_EQ(dots[23].link, 3);
  std::sort(dots.begin(), dots.end(), [](const LinkDot& a, const LinkDot& b) {
    return std::tuple(-a.link, a.dot) < std::tuple(-b.link, b.dot);
  });
  ObservedCuckooSeries batch = series;
  for (const LinkDot& dot : dots) EXPECT_EQ(series.remove(key(1)), dot);
  EXPECT_EQ(series.remove(key(1)), std::nullopt);
  const std::vector<Digest> again(30, key(1));
  Answers removed(30);
  batch.remove(again, removed.span());
  EXPECT_EQ(removed.count(), 24u);
  EXPECT_FALSE(removed[24]);
  EXPECT_EQ(batch, series);
}

TEST(ObservedSeries, RemovesInBatchesAsOneByOne) {
  const SeriesGoal goal = goal_of(10, 2);
  auto one = series_of<ObservedCuckooSeries>(goal, keys(0, 3000), 0);
  add_all(one, keys(1000, 2000), 1);
  ObservedCuckooSeries many = one;
  ObservedCuckooSeries::Delta one_delta(goal), many_delta(goal);
  Random random(3);
  std::vector<Digest> batch;
  for (int n = 0; n < 2000; ++n) batch.push_back(key(random.below(4000)));
  Answers removed(batch.size());
  many.remove(batch, removed.span(), &many_delta);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    ASSERT_EQ(one.remove(batch[i], &one_delta).has_value(), removed[i]);
  }
  EXPECT_EQ(one, many);
  EXPECT_EQ(one_delta, many_delta);
}

TEST(ObservedSeries, RemovesANamedEntryAndNoOther) {
  const SeriesGoal goal = goal_of(2, 2);
  ObservedCuckooSeries a = *ObservedCuckooSeries::make(goal);
  const LinkDot first = *a.add(key(1), at(0)), second = *a.add(key(1), at(0)),
                third = *a.add(key(1), at(0));
  EXPECT_NE(first.id(), third.id());
  ObservedCuckooSeries b = *ObservedCuckooSeries::make(goal);
  EXPECT_EQ(b.remove(key(1), first).error().code, Errc::gap);
  ASSERT_TRUE(b.merge(a));
  EXPECT_EQ(b.remove(key(1), {0, 9, first.dot}).error().code, Errc::gap);
  EXPECT_EQ(b.remove(key(1), {0, first.link, {0, 7}}).error().code, Errc::gap);
  EXPECT_TRUE(*b.remove(key(1), second));
  EXPECT_FALSE(*b.remove(key(1), second));
  EXPECT_TRUE(b.contains(key(1)));
  EXPECT_EQ(b.remove(key(1)), third);
  EXPECT_EQ(b.remove(key(1)), first);
  EXPECT_FALSE(b.contains(key(1)));
}

// Figure 3.4 of the thesis: the filter cannot tell the keys apart.
TEST(ObservedSeries, LosesNoKeyWhenTwoSitesRemoveAnotherAtOnce) {
  const Digest e4 = key(4), e5 = {e4.lo + 1, e4.hi};
  ObservedCuckooSeries a = *ObservedCuckooSeries::make(goal_of(10, 2)), b = a;
  ASSERT_TRUE(a.add(e4, at(0)));
  ASSERT_TRUE(b.add(e5, at(1)));
  ASSERT_TRUE(a.merge(b));
  ASSERT_TRUE(b.merge(a));
  ASSERT_EQ(a, b);
  EXPECT_EQ(a.remove(e4), b.remove(e4));
  ASSERT_TRUE(a.merge(b));
  EXPECT_TRUE(a.contains(e5));
}

TEST(ObservedSeries, RefusesADeltaWithAGapInAnyLink) {
  const SeriesGoal goal = goal_of(4, 2);
  ObservedCuckooSeries sender = *ObservedCuckooSeries::make(goal), receiver = sender;
  ObservedCuckooSeries::Delta first(goal), second(goal);
  add_all(sender, keys(0, 6), 1, &first);  // two links, the second of eight keys
  add_all(sender, keys(6, 10), 1, &second);
  add_all(sender, keys(10, 12), 0, &second);  // a chain that lacks nothing
  const ObservedCuckooSeries before = receiver;
  EXPECT_EQ(receiver.admits(second).error().code, Errc::gap);
  EXPECT_EQ(receiver.merge(second).error().code, Errc::gap);
  EXPECT_EQ(receiver, before);
  EXPECT_TRUE(*receiver.merge(first));
  EXPECT_TRUE(receiver.admits(second));
  EXPECT_TRUE(*receiver.merge(second));
  EXPECT_FALSE(*receiver.merge(second));
  EXPECT_EQ(receiver, sender);
}

}  // namespace
}  // namespace semel

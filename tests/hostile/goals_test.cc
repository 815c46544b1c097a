// Goals of any kind: a structure is made or refused, never half made, and no goal ends the process.
//
// Error rates, numbers of ids and windows are drawn from both ends of their ranges, and from
// everywhere between. A structure that was made keeps an id, and its encoding decodes. So a server
// that accepts a goal can also load the file that it wrote.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "semel/core/internal/error_rate.h"
#include "semel/crdt/series.h"
#include "semel/filter/bloom_filter.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/hash/hasher.h"
#include "semel/sift/sifter.h"
#include "semel/tally/internal/recogniser.h"
#include "semel/window/internal/endless_filter.h"
#include "semel/window/internal/forgetful_filter.h"
#include "semel/window/internal/sliding_filter.h"
#include "tests/support/keys.h"
#include "tests/support/site_life.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'800'000'000'000;
constexpr std::uint64_t kMostBytes = 32 << 20;  // of structures that are really made
const Hasher kHash = Hasher::fast(kTestSeed);

rc::Gen<double> any_rate() {
  const auto limits = std::numeric_limits<double>();
  return rc::gen::weightedOneOf<double>(
      {{4, rc::gen::map(rc::gen::inRange(0, 1000),
                        [](int n) { return std::pow(10, -n * 0.013); })},  // 1e-13 to 1
       {2, rc::gen::element(kLeastErrorRate, std::nextafter(kLeastErrorRate, 0), kMostErrorRate,
                            1.0, 0.0, -0.0, limits.denorm_min(), -limits.denorm_min(), limits.min(),
                            limits.infinity(), -limits.infinity(), limits.quiet_NaN(), limits.max(),
                            0.5, 0.999999)},
       {2, rc::gen::map(rc::gen::inRange(1, 17), [](int n) { return 1 - std::pow(10, -n); })},
       {1, rc::gen::map(rc::gen::arbitrary<std::uint64_t>(),
                        [](std::uint64_t bits) { return std::bit_cast<double>(bits); })}});
}

rc::Gen<std::uint64_t> any_count() {
  return rc::gen::weightedOneOf<std::uint64_t>(
      {{4, rc::gen::inRange<std::uint64_t>(0, 5000)},
       {2, rc::gen::map(rc::gen::inRange(0, 64), [](int n) { return std::uint64_t{1} << n; })},
       {1, rc::gen::element<std::uint64_t>(std::numeric_limits<std::uint64_t>::max(),
                                           std::numeric_limits<std::int64_t>::max(),
                                           (std::uint64_t{1} << 38) + 1)}});
}

rc::Gen<TimeMs> any_window() {
  return rc::gen::weightedOneOf<TimeMs>(
      {{3, rc::gen::inRange<TimeMs>(1, 10'000'000)},
       {1, rc::gen::element<TimeMs>(1, 2, 7, 0, -1, std::numeric_limits<TimeMs>::max(),
                                    std::numeric_limits<TimeMs>::min())}});
}

// Only an impossible goal may be refused.
template <class T>
bool made(const Result<T>& result, bool allowed) {
  if (result) {
    RC_ASSERT(allowed);
    return true;
  }
  RC_ASSERT(result.error().code == Errc::invalid || result.error().code == Errc::limit);
  return false;
}

template <class T>
void encodes(const T& value) {
  Bytes bytes;
  value.encode(bytes);
  const auto again = T::decode(bytes);
  if (!again) RC_FAIL(again.error().message());
}

template <class W>
void recognises(W& window) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Digest id = key(i);
    if (window.insert(id) == Verdict::full) break;
    RC_ASSERT(window.test(id) == Verdict::duplicate);
  }
  encodes(window);
}

TEST(Goals, OfAForgetfulFilterAreMadeOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const window_internal::ForgetfulFilter::Goal goal{
        .window_ms = *any_window(),
        .fpr = *any_rate(),
        .ids = *any_count(),
        .past_lanes = *rc::gen::element<std::uint32_t>(0, 1, 2, 7, 30, 62, 63, 64),
        .layout = static_cast<BloomLayout>(*rc::gen::inRange(0, 6)),
        .grows = *rc::gen::arbitrary<bool>(),
        .max_bytes = kMostBytes,
        .hash = kTestHash};
    auto filter =
        window_internal::ForgetfulFilter::make(goal, kNow, *rc::gen::element(0.25, 0.5, 0.75));
    if (!made(filter, is_error_rate(goal.fpr))) return;
    recognises(*filter);
  }));
}

TEST(Goals, OfASlidingFilterAreMadeOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const window_internal::SlidingFilter::Goal goal{
        .window_ms = *any_window(),
        .fpr = *any_rate(),
        .ids = *any_count(),
        .timer_bits = *rc::gen::element<std::uint32_t>(0, 3, 4, 8, 16, 17),
        .max_bytes = kMostBytes,
        .hash = kTestHash};
    auto filter = window_internal::SlidingFilter::make(goal, kNow);
    if (!made(filter, is_error_rate(goal.fpr))) return;
    recognises(*filter);
  }));
}

TEST(Goals, OfASifterAreMadeOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const Sifter::Goal goal{{.structure = static_cast<Window::Structure>(*rc::gen::inRange(0, 2)),
                             .window_ms = *any_window(),
                             .fpr = *any_rate(),
                             .ids = *any_count(),
                             .max_bytes = kMostBytes,
                             .hash = kTestHash}};
    auto sifter = Sifter::make(goal, kNow);
    if (!made(sifter, is_error_rate(goal.fpr))) return;
    const Digest id = key(1);
    RC_ASSERT(sifter->test_and_insert(id, kNow) != ClaimAnswer::stale);
    RC_ASSERT(sifter->test(id, kNow) == ClaimAnswer::seen);
    encodes(*sifter);
  }));
}

TEST(Goals, OfARecogniserAreMadeOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const tally::Recognition goal{
        .kind = static_cast<tally::Recognition::Kind>(*rc::gen::inRange(0, 3)),
        .window_ms = *any_window(),
        .fpr = *any_rate(),
        .ids = *any_count(),
        .max_bytes = kMostBytes,
        .hash = kTestHash};
    auto recogniser = tally::internal::Recogniser::make(goal, kNow);
    if (!made(recogniser, is_error_rate(goal.fpr))) return;
    const auto id = tally::opaque_id(kHash, "a");
    RC_ASSERT(id.has_value());
    recogniser->test_and_insert({*id});
    encodes(*recogniser);
  }));
}

TEST(Goals, OfAnEndlessFilterAreMadeOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const SeriesGoal goal{.fpr = *any_rate(),
                          .first_keys = std::min<std::uint64_t>(*any_count(), 1 << 18),
                          .hash = kTestHash};
    auto filter = window_internal::EndlessFilter::make(goal, kNow);
    if (!made(filter, is_error_rate(goal.fpr))) return;
    recognises(*filter);
  }));
}

template <class Series>
void grows_or_refuses() {
  EXPECT_TRUE(rc::check([] {
    const SeriesGoal goal{.fpr = *any_rate(),
                          .first_keys = std::min<std::uint64_t>(*any_count(), 1 << 16),
                          .sites = *rc::gen::element<std::uint32_t>(0, 1, 3, 65'536, 65'537),
                          .chains = static_cast<SeriesChains>(*rc::gen::inRange(0, 4)),
                          .growth = *rc::gen::element<std::uint32_t>(0, 1, 2, 3, 1000),
                          .hash = kTestHash};
    auto series = Series::make(goal);
    if (!made(series, is_error_rate(goal.fpr))) return;
    // Far enough for a few links of a small structure. A structure that cannot grow says so.
    for (std::uint64_t i = 0; i < 200; ++i) {
      if (const auto added = series->add(key(i), by<Series>(1)); !added) {
        RC_ASSERT(added.error().code == Errc::limit || added.error().code == Errc::full);
        break;
      }
      RC_ASSERT(series->contains(key(i)));
    }
    encodes(*series);
  }));
}
TEST(Goals, OfAGrowingBloomSeriesAreMadeOrRefused) { grows_or_refuses<GrowBloomSeries>(); }
TEST(Goals, OfAGrowingCuckooSeriesAreMadeOrRefused) { grows_or_refuses<GrowCuckooSeries>(); }
TEST(Goals, OfAnObservedCuckooSeriesAreMadeOrRefused) { grows_or_refuses<ObservedCuckooSeries>(); }

// Filters that serve as parts take shares of an error too, so they accept all rates above 0 and
// below 1.
TEST(Goals, OfShapesAreMetOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const double rate = *any_rate();
    const std::uint64_t keys = *any_count();
    const auto refused_rightly = [&](const auto& shape) {
      if (shape) RC_ASSERT(rate > 0 && rate < 1 && shape->valid());
      if (!shape)
        RC_ASSERT(shape.error().code == Errc::invalid || shape.error().code == Errc::limit);
    };
    const auto layout = static_cast<BloomLayout>(*rc::gen::inRange(0, 5));
    refused_rightly(BloomShape::for_goal({keys, rate, layout, kTestHash}));
    refused_rightly(CuckooShape::for_goal({.keys = keys,
                                           .fpr = rate,
                                           .bucket_size = *rc::gen::element<std::uint32_t>(4, 8),
                                           .hash = kTestHash}));
  }));
}

}  // namespace
}  // namespace semel

// EndlessFilter: the promise beside an exact twin, what is refused, and bytes.
#include "semel/window/internal/endless_filter.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/oracle/endless_twin.h"
#include "tests/support/keys.h"

namespace semel::window_internal {

// The steps of WindowHistory are parts of the window, and this one has no end.
// tests/oracle/endless_twin.h takes its place.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WindowHistory);

namespace {

EndlessFilter filter_of(const EndlessFilter::Goal& goal, TimeMs now_ms = 0) {
  return *EndlessFilter::make(goal, now_ms);
}

struct TwinCase {
  using Type = EndlessFilter;
  static constexpr bool kFalsePositives = true, kStaleById = false;
  static constexpr EndlessFilter::Goal kGoals[] = {{.fpr = 0.05, .first_keys = 10},
                                                   {.fpr = 1e-3, .first_keys = 300},
                                                   {.fpr = 1e-9, .first_keys = 1}};
  static Digest id(std::uint64_t number) { return {mix(number), mix(~number)}; }
  static Type make(int i, TimeMs now_ms) { return filter_of(kGoals[i], now_ms); }
  static std::uint64_t cap(int) { return kNoCap; }
  static OnFull on_full(int) { return OnFull::refuse; }
  static std::optional<TimeMs> upper_edge(const Type&) { return std::nullopt; }
};

// Three filters, the last of them half full.
struct BytesCase {
  using Type = EndlessFilter;
  static constexpr std::size_t kHeaderSize = 56;
  static constexpr std::size_t kMostGrowth = 8;
  static constexpr char kFile[] = "series_v1_endless.bin";
  static Type make() {
    EndlessFilter filter = filter_of({.fpr = 0.01, .first_keys = 8, .hash = kTestHash}, 5);
    for (std::uint64_t n = 0; n < 40; ++n) {
      EXPECT_EQ(filter.test_and_insert(key(n)), Verdict::fresh) << n;
    }
    return filter;
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(EndlessFilter, HostileBytes, BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(EndlessFilter, Golden, BytesCase);

TEST(EndlessFilter, KeepsThePromiseForEver) {
  for (int configuration = 0; configuration < 3; ++configuration) {
    check_endless<TwinCase>(configuration, 1, 50'000);
  }
}

TEST(EndlessFilter, RefusesAnImpossibleGoal) {
  EXPECT_EQ(EndlessFilter::make({.fpr = 0}, 0).error().code, Errc::invalid);
  EXPECT_EQ(EndlessFilter::make({.fpr = 0.01, .first_keys = ~0ull}, 0).error().code, Errc::limit);
  EXPECT_EQ(EndlessFilter::make({.fpr = 0.01, .sites = 2}, 0).error().code, Errc::invalid);
  EXPECT_EQ(EndlessFilter::make({.fpr = 0.01, .chains = SeriesChains::apart}, 0).error().code,
            Errc::invalid);
}

TEST(EndlessFilter, RefusesASeriesOfSites) {
  for (const SeriesGoal& goal :
       {SeriesGoal{.fpr = 0.01, .sites = 2, .hash = {}},
        SeriesGoal{.fpr = 0.01, .chains = SeriesChains::apart, .hash = {}}}) {
    Bytes bytes;
    GrowBloomSeries::make(goal)->encode_counted(bytes);
    EXPECT_EQ(EndlessFilter::decode(bytes).error().code, Errc::corrupt);
  }
}

// A chain has at most 255 links, here of one id each.
TEST(EndlessFilter, RefusesNewIdsOnlyWhenTheSeriesCannotGrow) {
  constexpr std::uint64_t kMost = SeriesGoal::kMostLinks;
  EndlessFilter filter = filter_of({.fpr = 1e-9, .first_keys = 1, .growth = 1, .hash = kTestHash});
  std::vector<Verdict> verdicts(kMost + 2);
  filter.test_and_insert(keys(0, kMost + 2), verdicts);
  for (std::size_t n = 0; n < kMost + 2; ++n) {
    EXPECT_EQ(verdicts[n], n < kMost ? Verdict::fresh : Verdict::full) << n;
  }
  const EndlessFilter before = filter;
  verdicts.resize(12);
  filter.test_and_insert(keys(kMost - 5, kMost + 7), verdicts);
  for (std::size_t n = 0; n < 12; ++n) {
    EXPECT_EQ(verdicts[n], n < 5 ? Verdict::duplicate : Verdict::full) << n;
  }
  EXPECT_EQ(filter.insert(key(3)), Verdict::duplicate);
  EXPECT_EQ(filter.insert(key(kMost + 1)), Verdict::full);
  EXPECT_EQ(filter.test(key(kMost + 1)), Verdict::fresh);
  EXPECT_EQ(filter.counts().refused, 2u + 7 + 1);
  EXPECT_EQ(filter, before);
}

TEST(EndlessFilter, GoesOnAsItsCopyFromBytesDoes) {
  EndlessFilter filter = filter_of({.fpr = 0.01, .first_keys = 10, .hash = kTestHash});
  EndlessFilter copy = filter;
  for (std::uint64_t n = 0; n < 3000; ++n) {
    if (n % 50 == 0) {
      Bytes bytes;
      filter.encode(bytes);
      copy = *EndlessFilter::decode(bytes);
      EXPECT_EQ(copy.now(), std::numeric_limits<TimeMs>::min());
    }
    ASSERT_EQ(filter.test_and_insert(key(n)), copy.test_and_insert(key(n)));
  }
  EXPECT_EQ(copy, filter);
  EXPECT_EQ(copy.ids(), filter.ids());
  EXPECT_EQ(copy.bytes(), filter.bytes());
  EXPECT_EQ(copy.false_positive_rate(), filter.false_positive_rate());
}

}  // namespace
}  // namespace semel::window_internal

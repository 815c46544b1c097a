// SlidingFilter: the promise beside an exact twin, the error, growth, and untrusted bytes.
#include "semel/window/internal/sliding_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/laws/merge_laws.h"
#include "tests/oracle/ahead.h"
#include "tests/oracle/window_twin.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel::window_internal {
namespace {

constexpr TimeMs kFirstTime = std::numeric_limits<TimeMs>::min();
constexpr TimeMs kLastTime = std::numeric_limits<TimeMs>::max();
constexpr TimeMs kStart = 1'700'000'000'000;

TimeMs saturating_add(TimeMs time_ms, TimeMs by_ms) {
  TimeMs sum = 0;
  if (!__builtin_add_overflow(time_ms, by_ms, &sum)) return sum;
  return by_ms > 0 ? kLastTime : kFirstTime;
}

SlidingFilter make(const SlidingShape::Goal& goal, TimeMs now_ms = kStart) {
  Result<SlidingFilter> filter = SlidingFilter::make(goal, now_ms);
  EXPECT_TRUE(filter) << filter.error().message();
  return *std::move(filter);
}

// With so low an error, a false positive in a test is a bug.
SlidingShape::Goal exact_goal(TimeMs window_ms, std::uint64_t ids, std::uint32_t timer_bits) {
  return {
      .window_ms = window_ms, .fpr = 1e-9, .ids = ids, .timer_bits = timer_bits, .hash = kTestHash};
}

std::uint64_t count_of(Verdict wanted, std::span<const Verdict> verdicts) {
  return static_cast<std::uint64_t>(std::count(verdicts.begin(), verdicts.end(), wanted));
}

std::vector<Verdict> test_and_insert(SlidingFilter& filter, std::span<const Digest> ids) {
  std::vector<Verdict> verdicts(ids.size());
  filter.test_and_insert(ids, verdicts);
  return verdicts;
}

std::uint64_t count_known(const SlidingFilter& filter, std::span<const Digest> ids) {
  std::vector<Verdict> verdicts(ids.size());
  filter.test(ids, verdicts);
  return count_of(Verdict::duplicate, verdicts);
}

// Encodes small filters: two or more, expired cells, and one that was forgotten early.
template <std::uint32_t kBits>
struct Case {
  using Type = SlidingFilter;
  static constexpr std::size_t kHeaderSize = 76;
  static constexpr SlidingShape kShape = {
      .window_ms = 20,
      .fpr = 0.3,
      .timer_bits = kBits,
      .probes = 3,
      .lines = 4,
      .on_full = OnFull::forget,
      .max_bytes = 4 * (64 * 4 + 21 * 8),
      .hash = kTestHash,
  };

  static Type make() {
    SlidingFilter filter(kShape, kStart);
    for (std::uint64_t n = 0; filter.counts().forgotten_early == 0 || filter.filters() < 2; ++n) {
      filter.test_and_insert(key(n), filter.now() - static_cast<TimeMs>(n % 7));
      if (n % 16 == 15) filter.advance(filter.now() + 1);
    }
    filter.advance(filter.now() + 5);
    return filter;
  }
  static Type make(int replica) {
    SlidingFilter filter(kShape, kStart);
    filter.advance(kStart + 10);
    for (std::uint64_t n = 0; n < 6; ++n) {
      filter.insert(key(n + 4 * static_cast<std::uint64_t>(replica)), kStart + 2 + replica);
    }
    return filter;
  }
  static bool holds(const Type& filter, int replica) {
    const auto first = 4 * static_cast<std::uint64_t>(replica);
    return count_known(filter, keys(first, first + 6)) == 6;
  }
};

using Small4 = Case<4>;
using Small5 = Case<5>;  // 3 bits of a line are in no cell
using Small8 = Case<8>;
using Small16 = Case<16>;
struct Golden5 : Small5 {
  static constexpr char kFile[] = "sliding_v1_5.bin";
};
struct Golden8 : Small8 {
  static constexpr char kFile[] = "sliding_v1_8.bin";
};
using Cases = ::testing::Types<Small4, Small5, Small8, Small16>;
using GoldenCases = ::testing::Types<Golden5, Golden8>;
INSTANTIATE_TYPED_TEST_SUITE_P(Sliding, HostileBytes, Cases);
INSTANTIATE_TYPED_TEST_SUITE_P(Sliding, MergeLaws, Cases);
INSTANTIATE_TYPED_TEST_SUITE_P(Sliding, Golden, GoldenCases);

template <std::uint64_t kIds>
struct TwinCase {
  using Type = SlidingFilter;
  static constexpr int kConfigurations = 8;
  static constexpr bool kFalsePositives = false, kStaleById = false;

  static SlidingShape::Goal goal(int configuration) {
    static constexpr std::uint32_t kBits[kConfigurations] = {8, 4, 8, 5, 16, 8, 4, 8};
    static constexpr std::uint64_t kCaps[kConfigurations] = {0, 0, 2, 3, 1, 0, 7, 4};
    SlidingShape::Goal goal = exact_goal(1000, kIds, kBits[configuration]);
    goal.on_full = configuration == 2 || configuration == 7 ? OnFull::refuse : OnFull::forget;
    if (const std::uint64_t cap = kCaps[configuration]; cap > 0) {
      goal.max_bytes = cap * SlidingShape::for_goal(goal)->filter_bytes() + 1;
    }
    return goal;
  }
  static Digest id(std::uint64_t number) { return key(number); }
  static Type make(int configuration, TimeMs now_ms) {
    return window_internal::make(goal(configuration), now_ms);
  }
  static std::uint64_t cap(int configuration) { return goal(configuration).max_bytes; }
  static OnFull on_full(int configuration) { return goal(configuration).on_full; }
  static std::optional<TimeMs> upper_edge(const Type& filter) {
    return filter.shape().window_ms + filter.shape().tick_ms();
  }
};
using SmallTwin = TwinCase<200>;   // a burst fills several
using LargeTwin = TwinCase<2000>;  // only the highest load does
using TwinCases = ::testing::Types<SmallTwin>;
INSTANTIATE_TYPED_TEST_SUITE_P(Sliding, WindowHistory, TwinCases);

TEST(SlidingFilter, RecognisesTenMillionIdsOfTheWindowAndNoneBeyondItsEdge) {
  for (int configuration = 0; configuration < LargeTwin::kConfigurations; ++configuration) {
    check_promise<LargeTwin>(configuration, 1, 2'000'000);
  }
}

// Covers windows of any length, at times where sums overflow, with a cap that is reached.
TEST(SlidingFilter, KeepsThePromiseAtTheEndsOfTime) {
  for (const TimeMs window_ms : {TimeMs{1}, TimeMs{1000}, TimeMs{1} << 62, kLastTime}) {
    for (const TimeMs start_ms : {kFirstTime, TimeMs{-1}, kStart, kLastTime - 3000, kLastTime}) {
      for (const std::uint32_t bits : {4u, 8u, 16u}) {
        SlidingShape::Goal goal = exact_goal(window_ms, 20, bits);
        goal.on_full = OnFull::forget;
        goal.max_bytes = 2 * SlidingShape::for_goal(goal)->filter_bytes();
        SlidingFilter filter = make(goal, start_ms);
        std::unordered_map<std::uint64_t, TimeMs> accepted;
        Random random(bits);
        for (int step = 0; step < 2000; ++step) {
          const TimeMs most_ms = random.below(100) == 0 ? kLastTime : 1 + window_ms / 50;
          const auto by_ms = static_cast<TimeMs>(random.below(static_cast<std::uint64_t>(most_ms)));
          if (random.below(3) == 0 && (most_ms != kLastTime || step > 1000)) {
            filter.advance(saturating_add(filter.now(), by_ms));
          }
          const std::uint64_t id = random.below(100);
          const WindowPromise promise = filter.promise();
          const TimeMs at_ms = saturating_add(filter.now(), -by_ms);
          const Verdict verdict = filter.test_and_insert(key(id), at_ms);
          const auto known = accepted.find(id);
          // Ids accepted in the last millisecond may be forgotten early, which kept_from_ms cannot
          // express.
          if (known != accepted.end() && known->second >= promise.kept_from_ms &&
              known->second != kLastTime) {
            ASSERT_EQ(verdict, Verdict::duplicate);
          }
          if (known == accepted.end() || known->second < promise.forgotten_before_ms) {
            ASSERT_NE(verdict, Verdict::duplicate);
          }
          if (verdict == Verdict::fresh) accepted[id] = at_ms;
        }
      }
    }
  }
}

TEST(SlidingFilter, GoesOnTheSameAfterItsBytesWereRead) {
  for (int configuration = 0; configuration < SmallTwin::kConfigurations; ++configuration) {
    SlidingFilter filter = SmallTwin::make(configuration, kStart);
    Random random(static_cast<std::uint64_t>(configuration));
    for (int round = 0; round < 300; ++round) {
      Bytes bytes;
      filter.encode(bytes);
      Result<SlidingFilter> copy = SlidingFilter::decode(bytes);
      ASSERT_TRUE(copy) << copy.error().message();
      for (int step = 0; step < 30; ++step) {
        const Digest id = key(random.below(600));
        const TimeMs at_ms = filter.now() - static_cast<TimeMs>(random.below(1200));
        ASSERT_EQ(filter.test_and_insert(id, at_ms), copy->test_and_insert(id, at_ms));
      }
      const TimeMs now_ms = filter.now() + static_cast<TimeMs>(random.below(100));
      filter.advance(now_ms);
      copy->advance(now_ms);
      ASSERT_EQ(filter, *copy);  // the copy has counted its live cells itself
      ASSERT_EQ(filter.promise(), copy->promise());
      ASSERT_EQ(filter.false_positive_rate(), copy->false_positive_rate());
    }
  }
}

TEST(SlidingFilter, ForgetsAnIdAtMostOneTickAfterTheWindow) {
  for (const std::uint32_t bits : {4u, 6u, 8u}) {
    for (const TimeMs window_ms : {1, 9, 10, 11, 100, 997}) {
      for (TimeMs late_ms = 0; late_ms <= window_ms; late_ms += 1 + window_ms / 7) {
        SlidingFilter filter = make(exact_goal(window_ms, 10, bits), -500);
        const TimeMs tick_ms = filter.shape().tick_ms();
        EXPECT_LE(tick_ms, 1 + window_ms / (bits == 4 ? 10 : 42));
        const TimeMs at_ms = filter.now() - late_ms;
        ASSERT_EQ(filter.test_and_insert(key(1), at_ms), Verdict::fresh);
        while (filter.test(key(1)) == Verdict::duplicate) {
          ASSERT_LE(filter.now(), at_ms + window_ms + tick_ms);
          ASSERT_GE(at_ms, filter.promise().forgotten_before_ms);
          filter.advance(filter.now() + 1);
        }
        EXPECT_GT(filter.now(), at_ms + window_ms);
        EXPECT_LT(at_ms, filter.promise().forgotten_before_ms);
        EXPECT_EQ(filter.promise().kept_from_ms, filter.now() - window_ms);
      }
    }
  }
}

TEST(SlidingFilter, RenewsByInsertAndNotByADuplicate) {
  SlidingFilter filter = make(exact_goal(1000, 10, 8));
  for (const std::uint64_t n : {1, 2}) EXPECT_EQ(filter.insert(key(n)), Verdict::fresh);
  filter.advance(kStart + 900);
  EXPECT_EQ(filter.test_and_insert(key(1)), Verdict::duplicate);
  EXPECT_EQ(filter.insert(key(2)), Verdict::duplicate);
  EXPECT_EQ(filter.insert(key(2), kStart), Verdict::duplicate);  // never to an earlier expiry
  filter.advance(kStart + 1100);
  EXPECT_EQ(filter.test(key(1)), Verdict::fresh);
  EXPECT_EQ(filter.test(key(2)), Verdict::duplicate);
}

TEST(SlidingFilter, CallsStaleWhatIsOutsideTheWindowAndNotKnown) {
  SlidingFilter filter = make(exact_goal(1000, 10, 8));
  EXPECT_EQ(filter.test_and_insert(key(1), kStart - 1001), Verdict::stale);
  EXPECT_EQ(filter.insert(key(1), kFirstTime), Verdict::stale);
  EXPECT_EQ(filter.counts().stale, 2u);
  EXPECT_EQ(filter.test_and_insert(key(1), kStart - 1000), Verdict::fresh);
  EXPECT_EQ(filter.test_and_insert(key(1), kStart - 1001), Verdict::duplicate);
  EXPECT_EQ(filter.insert(key(1), kStart - 1001), Verdict::duplicate);
  EXPECT_EQ(filter.test_and_insert(key(2), kLastTime), Verdict::fresh);  // counts as now
  filter.advance(kStart + 1000);
  EXPECT_EQ(filter.test(key(2)), Verdict::duplicate);
  filter.advance(kStart + 1000 + filter.shape().tick_ms());
  EXPECT_EQ(filter.test(key(2)), Verdict::fresh);
}

TEST(SlidingFilter, ClampsAndCountsTimeThatRunsBackwards) {
  SlidingFilter filter = make(exact_goal(1000, 10, 8));
  filter.advance(kStart - 1);
  filter.advance(kFirstTime);
  EXPECT_EQ(filter.now(), kStart);
  EXPECT_EQ(filter.counts().backward_steps, 2u);
}

TEST(SlidingFilter, AnswersBatchesOfAnySizeAsOneByOne) {
  for (const std::size_t count : {0, 1, 47, 48, 49, 500}) {
    std::vector<Digest> ids = keys(0, count);
    for (std::size_t i = 0; i < count; i += 3) ids[i] = ids[i / 2];
    SlidingFilter batched = make(exact_goal(1000, 100, 8));
    SlidingFilter single = batched;
    const std::vector<Verdict> verdicts = test_and_insert(batched, ids);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(verdicts[i], single.test_and_insert(ids[i]));
    EXPECT_EQ(batched, single);
    EXPECT_EQ(count_known(batched, ids), count);
    std::vector<Verdict> renewed(count);
    batched.insert(ids, renewed);
    EXPECT_EQ(count_of(Verdict::duplicate, renewed), count);
  }
}

// Applies a steady load for three windows, then asks for absent ids.
double deviations_from_live_rate(const SlidingShape::Goal& goal, std::uint64_t trials) {
  SlidingFilter filter = make(goal);
  const std::uint64_t steps = 300;
  for (std::uint64_t step = 0; step < steps; ++step) {
    filter.advance(kStart + goal.window_ms * static_cast<TimeMs>(step) / 100);
    test_and_insert(filter, keys(step * goal.ids / 100, (step + 1) * goal.ids / 100));
  }
  const std::uint64_t first = steps * goal.ids / 100;
  const double live = filter.false_positive_rate();
  EXPECT_LE(live, goal.fpr);
  EXPECT_GT(live, goal.fpr / 5);  // and the memory is used
  EXPECT_EQ(filter.filters(), 1u);
  const auto n = static_cast<double>(trials);
  const auto hits = static_cast<double>(count_known(filter, keys(first, first + trials)));
  return (hits - n * live) / (five_deviations(n, live) / 5);
}

TEST(SlidingFilter, FalsePositiveRateIsWhatItSays) {
  for (const std::uint32_t bits : {4u, 8u, 16u}) {
    for (const double fpr : {1e-1, 1e-2, 1e-3, 1e-4}) {
      const SlidingShape::Goal goal = {
          .window_ms = 100'000, .fpr = fpr, .ids = 30'000, .timer_bits = bits, .hash = kTestHash};
      EXPECT_NEAR(deviations_from_live_rate(goal, 400'000), 0, 5) << bits << " " << fpr;
    }
  }
}

TEST(SlidingFilter, InsertsNeverBringTheErrorAboveTheGoal) {
  for (const double fpr : {0.5, 1e-2, 1e-4}) {
    SlidingFilter filter = make({.window_ms = 10'000, .fpr = fpr, .ids = 200, .hash = kTestHash});
    Random random(7);
    std::uint64_t next = 0;
    std::size_t most = 0;
    for (TimeMs step = 0; step < 4000; ++step) {
      filter.advance(kStart + step * 10);
      const std::uint64_t load = step / 500 % 2 == 0 ? 1 : 20;  // bursts a hundred times as high
      for (std::uint64_t n = random.below(load + 1); n > 0; --n) {
        filter.test_and_insert(key(next++), filter.now() - static_cast<TimeMs>(random.below(9)));
        ASSERT_LE(filter.false_positive_rate(), fpr);
      }
      most = std::max(most, filter.filters());
    }
    EXPECT_GT(most, 3u);
    EXPECT_LT(most, 9u);
    EXPECT_EQ(filter.counts().refused, 0u);
    filter.advance(filter.now() + 20'000);
    EXPECT_EQ(filter.filters(), 1u);
    EXPECT_EQ(filter.false_positive_rate(), 0);
  }
}

// The filter was made for one id, and has much or little error to share.
TEST(SlidingFilter, TakesAnyNumberOfIdsByDoubling) {
  for (const double fpr : {1e-12, 1e-6, 1e-2, 0.5, 0.9}) {
    SlidingFilter filter = make({.window_ms = 10'000, .fpr = fpr, .ids = 1, .hash = kTestHash});
    const std::vector<Digest> ids = keys(0, 200'000);
    EXPECT_EQ(count_of(Verdict::full, test_and_insert(filter, ids)), 0u) << fpr;
    EXPECT_EQ(count_known(filter, ids), ids.size()) << fpr;
    EXPECT_LE(filter.false_positive_rate(), fpr);
    EXPECT_LE(filter.filters(), 20u) << fpr;
    // The error rate stays within its bound and five standard deviations.
    const std::vector<Digest> others = keys(1'000'000, 1'200'000);
    const double expected = fpr * static_cast<double>(others.size());
    EXPECT_LE(static_cast<double>(count_known(filter, others)), expected + 5 * std::sqrt(expected));
  }
}

TEST(SlidingFilter, BecomesSmallAgainWhenFewIdsCome) {
  SlidingFilter filter = make({.window_ms = 10'000, .fpr = 1e-3, .ids = 100, .hash = kTestHash});
  const std::uint64_t first = filter.bytes();
  test_and_insert(filter, keys(0, 100'000));
  EXPECT_GT(filter.bytes(), 100 * first);
  std::uint64_t next = 1'000'000;
  for (TimeMs step = 1; step <= 1000; ++step) {
    filter.advance(kStart + 100 * step);
    EXPECT_EQ(filter.test_and_insert(key(next++)), Verdict::fresh);
  }
  EXPECT_LE(filter.bytes(), 4 * first);
}

TEST(SlidingFilter, RefusesWhatHasNoRoomUntilTheOldestIdsLeave) {
  SlidingShape::Goal goal = exact_goal(1000, 100, 8);
  goal.max_bytes = 2 * SlidingShape::for_goal(goal)->filter_bytes() + 1;
  SlidingFilter filter = make(goal);
  const std::vector<Digest> ids = keys(0, 1000);
  const std::vector<Verdict> verdicts = test_and_insert(filter, ids);
  const std::uint64_t taken = count_of(Verdict::fresh, verdicts);
  EXPECT_GT(taken, 200u);
  EXPECT_EQ(count_of(Verdict::full, verdicts), 1000 - taken);
  EXPECT_EQ(filter.counts().refused, 1000 - taken);
  EXPECT_LE(filter.bytes(), goal.max_bytes);
  EXPECT_EQ(count_known(filter, ids), taken);
  EXPECT_EQ(filter.promise().kept_from_ms, kStart - 1000);
  filter.advance(kStart + 1000 + filter.shape().tick_ms());
  EXPECT_EQ(count_of(Verdict::full, test_and_insert(filter, keys(1000, 1200))), 0u);
}

TEST(SlidingFilter, ForgetsTheOldestFilterEarlyAndSaysSo) {
  for (const std::uint64_t most : {1, 2, 3}) {
    SlidingShape::Goal goal = exact_goal(1000, 100, 8);
    goal.max_bytes = most * SlidingShape::for_goal(goal)->filter_bytes();
    goal.on_full = OnFull::forget;
    SlidingFilter filter = make(goal);
    const std::vector<Digest> ids = keys(0, 900);
    for (std::uint64_t n = 0; n < 900; ++n) {
      filter.advance(kStart + static_cast<TimeMs>(n));
      ASSERT_EQ(filter.test_and_insert(ids[n]), Verdict::fresh);
      const auto kept =
          static_cast<std::uint64_t>(std::max(filter.promise().kept_from_ms, kStart) - kStart);
      if (kept <= n) {
        ASSERT_EQ(count_known(filter, std::span(ids).subspan(kept, n + 1 - kept)), n + 1 - kept);
      }
      ASSERT_LE(filter.bytes(), goal.max_bytes);
    }
    const double lost = 900 - static_cast<double>(count_known(filter, ids));
    EXPECT_NEAR(static_cast<double>(filter.counts().forgotten_early), lost, lost / 10);
    EXPECT_GT(lost, 200);
    filter.advance(kStart + 5000);
    EXPECT_EQ(filter.promise().kept_from_ms, kStart + 4000);
  }
}

TEST(SlidingFilter, MergesOnlyEqualShapesTimesAndNumbersOfFilters) {
  SlidingFilter filter(Small4::kShape, kStart);
  const auto refusal = [&](const SlidingFilter& other) {
    const SlidingFilter before = filter;
    const Result<void> merged = filter.merge(other);
    EXPECT_EQ(filter, before);
    return merged ? Errc::full : merged.error().code;
  };
  EXPECT_EQ(refusal(SlidingFilter(Small4::kShape, kStart)), Errc::full);
  EXPECT_EQ(refusal(SlidingFilter(Small4::kShape, kStart + 1)), Errc::mismatch);
  EXPECT_EQ(refusal(SlidingFilter(Small5::kShape, kStart)), Errc::mismatch);
  SlidingFilter grown(Small4::kShape, kStart);
  for (std::uint64_t n = 0; grown.filters() == 1; ++n) grown.insert(key(n));
  EXPECT_EQ(refusal(grown), Errc::mismatch);
}

TEST(SlidingFilter, MergeKeepsTheLaterExpiry) {
  SlidingFilter early = make(exact_goal(1000, 10, 8)), late = early;
  early.insert(key(1), kStart - 500);
  late.insert(key(1), kStart);
  for (const bool swapped : {false, true}) {
    SlidingFilter both = swapped ? late : early;
    ASSERT_TRUE(both.merge(swapped ? early : late));
    both.advance(kStart + 1000);
    EXPECT_EQ(both.test(key(1)), Verdict::duplicate);
    both.advance(kStart + 1000 + both.shape().tick_ms());
    EXPECT_EQ(both.test(key(1)), Verdict::fresh);
  }
}

TEST(SlidingFilter, MergeKeepsTheLaterEdge) {
  SlidingShape shape = Small5::kShape;
  shape.max_bytes = shape.filter_bytes();
  SlidingFilter forgot(shape, kStart), few(shape, kStart);
  for (std::uint64_t n = 0; forgot.counts().forgotten_early == 0; ++n) forgot.insert(key(n));
  for (std::uint64_t n = 0; n < 20; ++n) few.insert(key(n));
  for (const bool swapped : {false, true}) {
    SlidingFilter both = swapped ? few : forgot;
    ASSERT_TRUE(both.merge(swapped ? forgot : few));
    EXPECT_EQ(both.promise().kept_from_ms, kStart + 1);
  }
}

TEST(SlidingFilter, ALowerCapRefusesUntilIdsLeave) {
  SlidingFilter filter = make({.window_ms = 1000, .fpr = 1e-3, .ids = 100, .hash = kTestHash});
  test_and_insert(filter, keys(0, 5000));
  filter.set_max_bytes(0);
  EXPECT_EQ(filter.shape().max_bytes, filter.shape().filter_bytes());
  EXPECT_GT(count_of(Verdict::full, test_and_insert(filter, keys(10'000, 20'000))), 0u);
  EXPECT_EQ(count_known(filter, keys(0, 5000)), 5000u);
  filter.set_max_bytes(kNoCap);
  EXPECT_EQ(count_of(Verdict::full, test_and_insert(filter, keys(30'000, 40'000))), 0u);
}

TEST(SlidingFilter, TakesIdsWithoutALargeBlockAsItSays) {
  SlidingFilter filter = make({.window_ms = 1000, .fpr = 1e-3, .ids = 100, .hash = kTestHash});
  std::uint64_t most_bytes = 0;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    const bool takes = filter.takes(1);
    const std::uint64_t before = filter.bytes();
    filter.insert(key(n));
    if (takes) {
      ASSERT_LT(filter.bytes() - before, limits::kSmallBlock);
    }
    most_bytes = std::max(most_bytes, filter.bytes());
  }
  EXPECT_GT(most_bytes, 10 * limits::kSmallBlock);
  EXPECT_TRUE(filter.takes(1));
  EXPECT_FALSE(filter.takes(10'000'000));
}

// Such damage would encode to the same bytes again. It is detected because no filter writes such
// bytes.
TEST(SlidingFilter, RefusesBytesThatNoFilterWrites) {
  SlidingFilter filter(Small5::kShape, kStart);
  filter.insert(key(1));
  Bytes bytes;
  filter.encode(bytes);
  const auto refusal = [&](std::size_t at, std::uint8_t value) -> std::string {
    Bytes damaged = bytes;
    damaged[at] = value;
    store_u64(damaged.data() + damaged.size() - 8,
              checksum(ByteView(damaged).first(damaged.size() - 8)));
    const Result<SlidingFilter> decoded = SlidingFilter::decode(damaged);
    return decoded ? "none" : decoded.error().message();
  };
  // Offsets in docs/formats/sliding_v1.md, after an envelope of 12 bytes.
  constexpr std::size_t kTimerBits = 12 + 16, kOnFull = 12 + 18, kKeptFrom = 12 + 52;
  constexpr std::size_t kFilters = 12 + 60, kLines = 12 + 64, kCells = 12 + 72;
  EXPECT_EQ(refusal(kTimerBits, 5), "none");
  EXPECT_EQ(refusal(kTimerBits, 17), "sliding filter: shape");
  EXPECT_EQ(refusal(kOnFull, 2), "sliding filter: shape");
  EXPECT_EQ(refusal(kFilters, 0), "sliding filter: number of filters");
  EXPECT_EQ(refusal(kFilters, 3), "sliding filter: number of filters");
  EXPECT_EQ(refusal(kLines, 3), "sliding filter: size of a filter");
  EXPECT_EQ(refusal(kLines, 5), "sliding filter: size of a filter");
  EXPECT_EQ(refusal(kKeptFrom + 7, 0x80), "sliding filter: times");
  EXPECT_EQ(refusal(kCells + 55, 0x20), "sliding filter: cells");  // past the last cell of a line
  EXPECT_EQ(refusal(kCells + 55, 0x1f), "sliding filter: cells");  // longer than a window

  bytes.clear();
  Small5::make().encode(bytes);
  const std::uint64_t lines = load_u64(bytes.data() + kLines);
  std::fill_n(bytes.begin() + kCells, lines * 56, std::uint8_t{0});
  EXPECT_EQ(refusal(kCells, 0), "sliding filter: an empty filter that is not the newest");
}

TEST(SlidingShape, RefusesAnImpossibleGoal) {
  const SlidingShape::Goal good = {.window_ms = 1000, .fpr = 0.01, .ids = 100};
  const auto refusal = [&](auto change) {
    SlidingShape::Goal goal = good;
    change(goal);
    const Result<SlidingFilter> filter = SlidingFilter::make(goal, 0);
    return filter ? Errc::full : filter.error().code;
  };
  using Goal = SlidingShape::Goal;
  EXPECT_EQ(refusal([](Goal&) {}), Errc::full);
  EXPECT_EQ(refusal([](Goal& goal) { goal.window_ms = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](Goal& goal) { goal.window_ms = -1; }), Errc::invalid);
  for (const double fpr : {0.0, 1.0, -1.0, std::nan("")}) {
    EXPECT_EQ(refusal([&](Goal& goal) { goal.fpr = fpr; }), Errc::invalid);
  }
  EXPECT_EQ(refusal([](Goal& goal) { goal.ids = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](Goal& goal) { goal.timer_bits = 3; }), Errc::invalid);
  EXPECT_EQ(refusal([](Goal& goal) { goal.timer_bits = 17; }), Errc::invalid);
  EXPECT_EQ(refusal([](Goal& goal) { goal.on_full = OnFull{2}; }), Errc::invalid);
  EXPECT_EQ(refusal([](Goal& goal) { goal.hash.kind = HashKind{2}; }), Errc::invalid);
  EXPECT_EQ(refusal([](Goal& goal) { goal.max_bytes = 1000; }), Errc::limit);
  EXPECT_EQ(refusal([](Goal& goal) { goal.ids = ~0ull; }), Errc::limit);
  EXPECT_EQ(refusal([](Goal& goal) { goal.ids = 1ull << 44; }), Errc::limit);
  EXPECT_EQ(refusal([](Goal& goal) { goal.fpr = 5e-324; }), Errc::invalid);
}

TEST(SlidingFilterDeathTest, RefusesAnInvalidShape) {
  SlidingShape shape = Small4::kShape;
  shape.lines = 0;
  EXPECT_DEATH(SlidingFilter(shape, 0), "shape.valid");
}

TEST(SlidingFilter, TestsAheadOfTimeAsACopyThatWentThere) {
  for (const std::uint32_t timer_bits : {4u, 8u, 16u}) {
    SlidingShape::Goal goal = exact_goal(1000, 20, timer_bits);
    Random random(timer_bits);
    SlidingFilter filter = make(goal);
    std::uint64_t next = 0;
    for (int round = 0; round < 60; ++round) {
      filter.advance(filter.now() + static_cast<TimeMs>(random.below(200)));
      for (std::uint64_t n = random.below(12); n > 0; --n) {
        filter.insert(key(next++), filter.now() - static_cast<TimeMs>(random.below(600)));
      }
      const std::vector<Digest> ids = keys(0, next + 5);
      for (const TimeMs by_ms : {-5, 0, 1, 99, 450, 1000, 1200, 100'000}) {
        expect_test_ahead_of_time(filter, ids, filter.now() + by_ms);
        SlidingFilter later = filter;
        later.advance(filter.now() + by_ms);
        ASSERT_EQ(filter.ids(filter.now() + by_ms), later.ids(later.now()));
      }
      expect_test_ahead_of_time(filter, ids, kLastTime);
      if (HasFailure()) return;
    }
  }
}

TEST(SlidingFilter, EstimatesTheIdsItRemembers) {
  SlidingFilter filter = make({.window_ms = 1000, .fpr = 1e-3, .ids = 2000, .hash = kTestHash});
  test_and_insert(filter, keys(0, 9000));  // more than one filter holds
  EXPECT_GT(filter.filters(), 1u);
  // The estimate of a Bloom filter has a standard deviation below the square root.
  EXPECT_NEAR(static_cast<double>(filter.ids(kStart)), 9000, 5 * std::sqrt(9000.0));
  EXPECT_EQ(filter.ids(kStart + 5000), 0u);
}

}  // namespace
}  // namespace semel::window_internal

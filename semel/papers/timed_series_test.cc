// TimedSeries: the promise beside an exact twin, the error, growth, and what equal timers cost.
#include "semel/papers/timed_series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "semel/core/internal/random.h"
#include "tests/oracle/window_twin.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel::papers {
namespace {

using Goal = window_internal::SlidingShape::Goal;

constexpr TimeMs kStart = 1'700'000'000'000;
constexpr SeriesGrowth kGrowths[] = {SeriesGrowth::density, SeriesGrowth::cardinality};

TimedSeries make(const Goal& goal, SeriesGrowth growth, std::uint32_t equal_timers = 1,
                 TimeMs now_ms = kStart) {
  const Result<TimedShape> shape = TimedShape::for_goal(goal, growth, equal_timers);
  EXPECT_TRUE(shape) << shape.error().message();
  return {*shape, now_ms};
}

void test_and_insert(TimedSeries& series, std::span<const Digest> ids) {
  std::vector<Verdict> verdicts(ids.size());
  series.test_and_insert(ids, verdicts);
}

std::uint64_t count_known(const TimedSeries& series, std::span<const Digest> ids) {
  std::vector<Verdict> verdicts(ids.size());
  series.test(ids, verdicts);
  return static_cast<std::uint64_t>(
      std::count(verdicts.begin(), verdicts.end(), Verdict::duplicate));
}

template <std::uint64_t kIds>
struct TwinCase {
  using Type = TimedSeries;
  static constexpr int kConfigurations = 6;
  static constexpr bool kFalsePositives = false, kStaleById = false;

  static Goal goal(int configuration) {
    static constexpr std::uint32_t kBits[kConfigurations] = {8, 4, 8, 5, 16, 8};
    static constexpr std::uint64_t kCaps[kConfigurations] = {0, 0, 2, 3, 1, 2};
    // With so low an error, a false positive in a test is a bug.
    Goal goal = {.window_ms = 1000, .fpr = 1e-9, .ids = kIds, .timer_bits = kBits[configuration]};
    goal.on_full = configuration == 2 || configuration == 5 ? OnFull::refuse : OnFull::forget;
    if (const std::uint64_t most = kCaps[configuration]; most > 0) {
      goal.max_bytes = most * window_internal::SlidingShape::for_goal(goal)->filter_bytes() + 1;
    }
    return goal;
  }
  static Digest id(std::uint64_t number) { return key(number); }
  static Type make(int configuration, TimeMs now_ms) {
    return papers::make(goal(configuration), kGrowths[configuration % 2], 1, now_ms);
  }
  static std::uint64_t cap(int configuration) { return goal(configuration).max_bytes; }
  static OnFull on_full(int configuration) { return goal(configuration).on_full; }
  static std::optional<TimeMs> upper_edge(const Type& series) {
    return series.shape().filter.window_ms + series.shape().filter.tick_ms();
  }
};
using SmallTwin = TwinCase<200>;   // a burst fills several filters
using LargeTwin = TwinCase<2000>;  // only the highest load fills several
using TwinCases = ::testing::Types<SmallTwin>;
INSTANTIATE_TYPED_TEST_SUITE_P(TimedSeries, WindowHistory, TwinCases);

TEST(TimedSeries, KeepsThePromiseAtSpeed) {
  for (int configuration = 0; configuration < LargeTwin::kConfigurations; ++configuration) {
    check_promise<LargeTwin>(configuration, 1, 300'000);
  }
}

// Applies a steady load for three windows, then asks for absent ids. Returns by how many standard
// deviations their false positives differ from the rate.
double deviations_from_live_rate(const Goal& goal, SeriesGrowth growth, std::uint32_t equal_timers,
                                 std::uint64_t trials) {
  TimedSeries series = make(goal, growth, equal_timers);
  const std::uint64_t steps = 300;
  for (std::uint64_t step = 0; step < steps; ++step) {
    series.advance(kStart + goal.window_ms * static_cast<TimeMs>(step) / 100);
    test_and_insert(series, keys(step * goal.ids / 100, (step + 1) * goal.ids / 100));
  }
  const std::uint64_t first = steps * goal.ids / 100;
  const double live = series.false_positive_rate();
  EXPECT_LE(live, goal.fpr);
  if (equal_timers == 1 && growth == SeriesGrowth::density) {
    EXPECT_GT(live, goal.fpr / 5);  // and the memory is used
    EXPECT_EQ(series.filters(), 1u);
  }
  const auto n = static_cast<double>(trials);
  const auto hits = static_cast<double>(count_known(series, keys(first, first + trials)));
  return (hits - n * live) / (five_deviations(n, live) / 5);
}

TEST(TimedSeries, FalsePositiveRateIsWhatItSays) {
  for (const std::uint32_t bits : {4u, 16u}) {
    for (const double fpr : {1e-1, 1e-2, 1e-3}) {
      for (const SeriesGrowth growth : kGrowths) {
        const Goal goal = {.window_ms = 100'000, .fpr = fpr, .ids = 30'000, .timer_bits = bits};
        EXPECT_NEAR(deviations_from_live_rate(goal, growth, 1, 400'000), 0, 5)
            << bits << " " << fpr;
      }
    }
  }
}

TEST(TimedSeries, FalsePositiveRateWithEqualTimersIsWhatItSays) {
  for (const std::uint32_t equal : {2u, 3u, 4u}) {
    const Goal goal = {.window_ms = 100'000,
                       .fpr = equal == 4 ? 0.05 : 0.2,
                       .ids = 30'000,
                       .timer_bits = equal == 4 ? 4u : 8u};
    EXPECT_NEAR(deviations_from_live_rate(goal, SeriesGrowth::density, equal, 1'000'000), 0, 5)
        << equal;
  }
}

TEST(TimedSeries, InsertsNeverBringTheErrorAboveTheGoal) {
  for (const SeriesGrowth growth : kGrowths) {
    for (const double fpr : {0.5, 1e-2, 1e-4}) {
      TimedSeries series = make({.window_ms = 10'000, .fpr = fpr, .ids = 200}, growth);
      Random random(7);
      std::uint64_t next = 0;
      std::size_t most = 0;
      for (TimeMs step = 0; step < 4000; ++step) {
        series.advance(kStart + step * 10);
        const std::uint64_t load = step / 500 % 2 == 0 ? 1 : 20;  // bursts a hundred times as high
        for (std::uint64_t n = random.below(load + 1); n > 0; --n) {
          series.test_and_insert(key(next++), series.now() - static_cast<TimeMs>(random.below(9)));
          ASSERT_LE(series.false_positive_rate(), fpr);
        }
        most = std::max(most, series.filters());
      }
      EXPECT_GT(most, 10u);
      series.advance(series.now() + 20'000);
      EXPECT_EQ(series.filters(), 1u);
      EXPECT_EQ(series.false_positive_rate(), 0);
    }
  }
}

// Ids that have left the window still count, until none is left at all.
TEST(TimedSeries, ClosesByCardinalityAtTheNumberOfTheFormula) {
  const Goal goal = {.window_ms = 1000, .fpr = 0.01, .ids = 1000};
  TimedSeries series = make(goal, SeriesGrowth::cardinality);
  const window_internal::SlidingShape& shape = series.shape().filter;
  const double share = std::pow(goal.fpr / 2, 1.0 / shape.probes);
  const auto most = static_cast<std::uint64_t>(-static_cast<double>(shape.cells()) / shape.probes *
                                               std::log1p(-share));
  std::uint64_t next = 0, taken = 0;
  for (; series.filters() == 1; series.advance(series.now() + 10)) {
    taken += series.test_and_insert(key(next++)) == Verdict::fresh;
  }
  EXPECT_EQ(taken, most + 1);
  for (int round = 0; round < 10; ++round) {
    series.advance(series.now() + 2000);
    test_and_insert(series, keys(next, next + most / 2));
    next += most / 2;
    EXPECT_EQ(series.filters(), 1u);
  }
}

TEST(TimedSeries, EqualTimersGiveUpThePromiseAndSayItsNegatives) {
  const Goal goal = {.window_ms = 10'000, .fpr = 0.02, .ids = 1000};
  TimedSeries series = make(goal, SeriesGrowth::density, 3);
  TimedSeries plain = make(goal, SeriesGrowth::density);
  for (TimeMs step = 0; step < 1000; ++step) {
    for (TimedSeries* each : {&series, &plain}) {
      each->advance(kStart + step * 10);
      each->insert(key(static_cast<std::uint64_t>(step)));
    }
  }
  EXPECT_EQ(series.promise().kept_from_ms, series.now() + 1);
  EXPECT_EQ(plain.promise().kept_from_ms, plain.now() - 10'000);
  EXPECT_LT(series.false_positive_rate(), plain.false_positive_rate() / 10);
  const std::vector<Digest> ids = keys(0, 1000);
  EXPECT_EQ(count_known(plain, ids), 1000u);
  EXPECT_LT(count_known(series, ids), 1000u);
  EXPECT_GT(count_known(series, ids), 500u);
  EXPECT_EQ(series.test(key(999)), Verdict::duplicate);
}

// With filters of one size and one load, the cells are those of the product, and so are the
// answers.
TEST(TimedSeries, AnswersAsSlidingFilterWhileOneFilterIsEnough) {
  const Goal goal = {.window_ms = 1000, .fpr = 0.3, .ids = 500, .timer_bits = 4};
  TimedSeries series = make(goal, SeriesGrowth::density);
  window_internal::SlidingFilter sliding(series.shape().filter, kStart);
  Random random(3);
  for (int step = 0; step < 3000; ++step) {
    const TimeMs now_ms = series.now() + static_cast<TimeMs>(random.below(6));
    series.advance(now_ms);
    sliding.advance(now_ms);
    const Digest id = key(random.below(3000));
    const TimeMs at_ms = now_ms - static_cast<TimeMs>(random.below(1100));
    ASSERT_EQ(series.test_and_insert(id, at_ms), sliding.test_and_insert(id, at_ms));
    ASSERT_EQ(series.filters(), 1u);
  }
  EXPECT_EQ(series.false_positive_rate(), sliding.false_positive_rate());
  EXPECT_EQ(series.promise(), sliding.promise());
}

TEST(TimedShape, RefusesAnImpossibleGoal) {
  const Goal goal = {.window_ms = 1000, .fpr = 0.01, .ids = 100};
  for (const std::uint32_t equal : {0u, 33u}) {
    EXPECT_EQ(TimedShape::for_goal(goal, SeriesGrowth::density, equal).error().code, Errc::invalid);
  }
  Goal none = goal;
  none.ids = 0;
  EXPECT_EQ(TimedShape::for_goal(none, SeriesGrowth::density).error().code, Errc::invalid);
}

}  // namespace
}  // namespace semel::papers

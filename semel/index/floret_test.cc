// Floret: its accuracy over many keys against the mathematics, its sums, and wrapping.
//
// Every test is deterministic. Where chance is involved, the tolerance is five standard deviations
// of the measured mean or sample variance.
#include "semel/index/floret.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"

namespace semel {
namespace {

DigestKey key_of(std::uint8_t seed) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  bytes[0] = seed;
  return {Secret(bytes), KeyPurpose::floret};
}

Digest record(std::uint64_t number) { return {mix(number), number}; }

// Returns the floret of the records from `first` to before `end`.
Floret floret_of(std::uint64_t first, std::uint64_t end, const DigestKey& key,
                 std::uint32_t counters = Floret::kCounters) {
  Floret floret(counters);
  for (std::uint64_t n = first; n < end; ++n) floret.add(record(n), key);
  return floret;
}

// The florets of two sets, drawn at random instead of hashed. Shared records cancel and are left
// out.
struct Pair {
  Pair(std::uint64_t only_a, std::uint64_t only_b, std::uint32_t counters, Random& random) {
    Bytes bytes(counters);
    for (std::uint64_t i = 0; i < only_a; ++i) ++bytes[random.below(counters)];
    a = *Floret::of_bytes(bytes);
    bytes.assign(counters, 0);
    for (std::uint64_t i = 0; i < only_b; ++i) ++bytes[random.below(counters)];
    b = *Floret::of_bytes(bytes);
  }
  Floret a{2}, b{2};
};

struct Moments {
  double sum = 0, squares = 0, count = 0;
  void add(double x) {
    sum += x;
    squares += x * x;
    ++count;
  }
  double mean() const { return sum / count; }
  double variance() const { return (squares - sum * sum / count) / (count - 1); }
};

double standard_error(double total, double counters) {
  return std::sqrt(2 * total * (total - 1) / (counters - 1));
}

TEST(Floret, OfEqualSetsSaysExactlyThat) {
  const DigestKey key = key_of(1);
  const Floret a = floret_of(0, 10'000, key);
  const DifferenceEstimate same = estimate(a, 10'000, a, 10'000);
  EXPECT_EQ(same.total.value, 0);
  EXPECT_EQ(same.total.error, 0);
  EXPECT_EQ(same.only_a.value, 0);
  EXPECT_EQ(same.only_b.value, 0);
  EXPECT_EQ(same.shared.value, 10'000);
  EXPECT_EQ(same.together.value, 10'000);
  EXPECT_EQ(same.jaccard.value, 1);
  EXPECT_EQ(same.containment.value, 1);
  EXPECT_TRUE(same.reliable);

  const DifferenceEstimate empty = estimate(Floret(), 0, Floret(), 0);
  EXPECT_EQ(empty.total.value, 0);
  EXPECT_EQ(empty.jaccard.value, 1);
  EXPECT_EQ(empty.containment.value, 1);
}

TEST(Floret, FindsOneRecordExactly) {
  const DigestKey key = key_of(1);
  const Floret a = floret_of(0, 5001, key), b = floret_of(0, 5000, key);
  const DifferenceEstimate estimated = estimate(a, 5001, b, 5000);
  EXPECT_NEAR(estimated.total.value, 1, 1e-9);
  EXPECT_NEAR(estimated.total.error, 0, 1e-4);
  EXPECT_NEAR(estimated.only_a.value, 1, 1e-9);
  EXPECT_NEAR(estimated.only_b.value, 0, 1e-9);
  EXPECT_NEAR(estimated.shared.value, 5000, 1e-9);
}

TEST(Floret, ForgetsWhatIsRemoved) {
  const DigestKey key = key_of(1);
  Floret floret = floret_of(0, 2000, key);
  for (std::uint64_t n = 1000; n < 2000; ++n) floret.remove(record(n), key);
  EXPECT_EQ(floret, floret_of(0, 1000, key));
}

TEST(Floret, OfDisjointRangesAddsUp) {
  const DigestKey key = key_of(1);
  const Floret low = floret_of(0, 70'000, key), high = floret_of(70'000, 100'000, key);
  Floret sum = low;
  sum += high;
  EXPECT_EQ(sum, floret_of(0, 100'000, key));
  sum -= low;
  EXPECT_EQ(sum, high);
}

TEST(Floret, OfAnotherKeyPutsRecordsElsewhere) {
  EXPECT_NE(floret_of(0, 100, key_of(1)), floret_of(0, 100, key_of(2)));
}

// Checks equation 3 of docs/math/floret.md for every part of the answer, with hashed records that
// differ on both sides.
TEST(Floret, ErrsAsMuchAsItSays) {
  struct Case {
    std::uint64_t only_a, only_b;
  };
  constexpr std::uint64_t kShared = 500;
  constexpr int kTrials = 200;
  for (const auto& [only_a, only_b] : {Case{5, 5}, Case{1000, 1000}, Case{1800, 200}}) {
    const auto total = static_cast<double>(only_a + only_b);
    const double error = standard_error(total, Floret::kCounters);
    Moments totals, of_a, of_b, shared, together, jaccard, containment;
    for (int trial = 0; trial < kTrials; ++trial) {
      const DigestKey key = key_of(static_cast<std::uint8_t>(trial));
      const Floret a = floret_of(0, kShared + only_a, key);
      Floret b = floret_of(0, kShared, key);
      b += floret_of(1'000'000, 1'000'000 + only_b, key);
      const DifferenceEstimate estimated = estimate(a, kShared + only_a, b, kShared + only_b);
      EXPECT_TRUE(estimated.reliable);
      EXPECT_NEAR(estimated.only_a.value - estimated.only_b.value,
                  static_cast<double>(only_a) - static_cast<double>(only_b), 1e-6);
      EXPECT_NEAR(estimated.total.error, error, 0.5 * error);
      totals.add(estimated.total.value);
      of_a.add((estimated.only_a.value - static_cast<double>(only_a)) / estimated.only_a.error);
      of_b.add((estimated.only_b.value - static_cast<double>(only_b)) / estimated.only_b.error);
      shared.add((estimated.shared.value - kShared) / estimated.shared.error);
      together.add((estimated.together.value - kShared - total) / estimated.together.error);
      jaccard.add((estimated.jaccard.value - kShared / (kShared + total)) /
                  estimated.jaccard.error);
      containment.add(
          (estimated.containment.value - kShared / static_cast<double>(kShared + only_a)) /
          estimated.containment.error);
    }
    EXPECT_NEAR(totals.mean(), total, 5 * error / std::sqrt(kTrials));
    EXPECT_NEAR(totals.variance(), error * error, 5 * error * error * std::sqrt(2.0 / kTrials));
    // These are errors in units of the standard error that the estimate states, so about 1. They
    // depend on the estimate, and a small difference takes few values.
    for (const Moments& relative : {of_a, of_b, shared, together, jaccard, containment}) {
      EXPECT_NEAR(relative.variance(), 1, 0.5) << only_a << " " << only_b;
    }
  }
}

TEST(Floret, IsUnbiasedForAnyNumberOfCounters) {
  Random random(1);
  for (const std::uint32_t counters : {2u, 16u, 100u, 8192u}) {
    for (const std::uint64_t total : {std::uint64_t{2}, std::uint64_t{50}, std::uint64_t{1000}}) {
      if (total > 100 * counters) continue;
      constexpr int kTrials = 2000;
      Moments totals;
      for (int trial = 0; trial < kTrials; ++trial) {
        const Pair pair(total / 2, total - total / 2, counters, random);
        // The counts claim many shared records, so that nothing is clipped.
        totals.add(estimate(pair.a, 100 * total, pair.b, 100 * total).total.value);
      }
      const double error = standard_error(static_cast<double>(total), counters);
      EXPECT_NEAR(totals.mean(), static_cast<double>(total), 5 * error / std::sqrt(kTrials))
          << counters << " " << total;
    }
  }
}

// The paper multiplies the unbiased variance by n / (n - 1), so its estimate is 1 / (n - 1) too
// high. That shows with few counters and many trials.
TEST(Floret, HasNoUseForTheFactorOfThePaper) {
  constexpr std::uint32_t kCounters = 8;
  constexpr double kTotal = 100;
  constexpr int kTrials = 20'000;
  Random random(2);
  Moments ours, paper;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Pair pair(50, 50, kCounters, random);
    const double total = estimate(pair.a, 1000, pair.b, 1000).total.value;
    ours.add(total);
    paper.add(total * kCounters / (kCounters - 1));
  }
  const double tolerance = 5 * standard_error(kTotal, kCounters) / std::sqrt(kTrials);
  EXPECT_NEAR(ours.mean(), kTotal, tolerance);
  EXPECT_NEAR(paper.mean(), kTotal * kCounters / (kCounters - 1), 2 * tolerance);
  EXPECT_GT(paper.mean(), kTotal + 2 * tolerance);
}

TEST(Floret, GivesNoNegativeNumbersAndNoneThatCountsForbid) {
  Random random(3);
  constexpr std::uint64_t kOnlyA = 5000;
  bool clipped = false;
  for (int trial = 0; trial < 100; ++trial) {
    const Pair pair(kOnlyA, 0, Floret::kCounters, random);
    const DifferenceEstimate estimated = estimate(pair.a, kOnlyA + 50, pair.b, 50);
    EXPECT_GE(estimated.only_b.value, 0);
    EXPECT_LE(estimated.only_b.value, 50);
    EXPECT_EQ(estimated.only_a.value - estimated.only_b.value, kOnlyA);
    EXPECT_GE(estimated.shared.value, 0);
    EXPECT_GE(estimated.total.error, standard_error(kOnlyA, Floret::kCounters) - 1e-6);
    clipped = clipped || estimated.only_b.value == 0;
  }
  EXPECT_TRUE(clipped);
}

TEST(Floret, OfATotalFollowsAllElse) {
  const DifferenceEstimate estimated = estimate_of_total({30, 4}, 120, 110);
  EXPECT_EQ(estimated.only_a.value, 20);
  EXPECT_EQ(estimated.only_b.value, 10);
  EXPECT_EQ(estimated.shared.value, 100);
  EXPECT_EQ(estimated.together.value, 130);
  EXPECT_EQ(estimated.jaccard.value, 100.0 / 130);
  EXPECT_EQ(estimated.containment.value, 100.0 / 120);
  EXPECT_EQ(estimated.only_a.error, 2);
  EXPECT_EQ(estimated.total.error, 4);
  EXPECT_EQ(estimate_of_total({5, 4}, 120, 110).total.value, 10);
  EXPECT_EQ(estimate_of_total({500, 4}, 120, 110).total.value, 230);
}

TEST(Floret, IsExactIfOneSideIsEmpty) {
  const DigestKey key = key_of(1);
  const Floret a = floret_of(0, 300'000, key);
  for (const bool swapped : {false, true}) {
    const DifferenceEstimate estimated =
        swapped ? estimate(Floret(), 0, a, 300'000) : estimate(a, 300'000, Floret(), 0);
    EXPECT_EQ((swapped ? estimated.only_b : estimated.only_a).value, 300'000);
    EXPECT_EQ((swapped ? estimated.only_a : estimated.only_b).value, 0);
    EXPECT_EQ(estimated.total.error, 0);
    EXPECT_EQ(estimated.jaccard.value, 0);
    EXPECT_EQ(estimated.containment.value, swapped ? 1 : 0);
    EXPECT_TRUE(estimated.reliable);
  }
}

// The mean difference of a counter is 976: far more than 8 bits hold, but known.
TEST(Floret, BearsADifferenceThatIsAllOnOneSide) {
  Random random(4);
  const Pair pair(1'000'000, 1000, Floret::kCounters, random);
  for (const bool swapped : {false, true}) {
    const DifferenceEstimate estimated = swapped ? estimate(pair.b, 101'000, pair.a, 1'100'000)
                                                 : estimate(pair.a, 1'100'000, pair.b, 101'000);
    EXPECT_TRUE(estimated.reliable);
    EXPECT_NEAR(estimated.total.value, 1'001'000, 5 * standard_error(1'001'000, 1024));
  }
}

TEST(Floret, TellsWhenCountersMayHaveWrapped) {
  Random random(5);
  struct Case {
    std::uint64_t only_a, only_b;
    bool reliable;
  };
  // The limit of 1024 counters is 1.5 million. The estimate is off by 5 % now and then.
  for (const auto& [only_a, only_b, reliable] :
       {Case{500'000, 500'000, true}, Case{600'000, 650'000, true}, Case{1'250'000, 0, true},
        Case{1'000'000, 1'000'000, false}, Case{2'000'000, 0, false},
        Case{2'000'000, 3'000'000, false}, Case{10'000'000, 10'000'000, false},
        Case{50'000'000, 50'000'000, false}, Case{100'000'000, 0, false}}) {
    const Pair pair(only_a, only_b, Floret::kCounters, random);
    const std::uint64_t shared = 1'000'000'000;
    const DifferenceEstimate estimated = estimate(pair.a, shared + only_a, pair.b, shared + only_b);
    EXPECT_EQ(estimated.reliable, reliable) << only_a << " " << only_b;
    const auto total = static_cast<double>(only_a + only_b);
    if (reliable) {
      EXPECT_NEAR(estimated.total.value, total, 5 * standard_error(total, Floret::kCounters));
    } else {
      EXPECT_LE(estimated.total.value, total * 1.2);
    }
  }
}

// Two counters may be close together by chance after they have wrapped.
TEST(Floret, TellsFromTheCountsAloneThatCountersHaveWrapped) {
  const Floret equal(2);
  EXPECT_FALSE(estimate(equal, 512'001, equal, 1).reliable);
  EXPECT_TRUE(estimate(equal, 1025, equal, 1).reliable);
}

TEST(Floret, InParallelErrsLess) {
  constexpr int kTrials = 60, kParallel = 4;
  constexpr std::uint64_t kEach = 1000;  // on each side
  const auto total_of = [](std::uint32_t counters, int seed) {
    const DigestKey key = key_of(static_cast<std::uint8_t>(seed));
    const Floret a = floret_of(0, kEach, key, counters);
    const Floret b = floret_of(kEach, 2 * kEach, key, counters);
    return estimate(a, 10 * kEach, b, 10 * kEach).total.value;
  };
  Moments alone, mean_of_four, four_times_as_long;
  for (int trial = 0; trial < kTrials; ++trial) {
    double sum = 0;
    for (int i = 0; i < kParallel; ++i) {
      const double total = total_of(Floret::kCounters, kParallel * trial + i);
      alone.add(total);
      sum += total;
    }
    mean_of_four.add(sum / kParallel);
    four_times_as_long.add(total_of(kParallel * Floret::kCounters, trial));
  }
  const double error = standard_error(2 * kEach, Floret::kCounters);
  const double expected = error * error / kParallel;
  const double tolerance = 5 * std::sqrt(2.0 / kTrials);  // for a variance of kTrials numbers
  EXPECT_NEAR(mean_of_four.variance(), expected, expected * tolerance);
  EXPECT_NEAR(four_times_as_long.variance(), expected, expected * tolerance);
  EXPECT_NEAR(alone.variance(), error * error, error * error * tolerance / 2);
}

TEST(Floret, TravelsAsItsCounters) {
  const Floret floret = floret_of(0, 10'000, key_of(1), 100);
  EXPECT_EQ(*Floret::of_bytes(floret.bytes()), floret);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, (std::size_t{1} << 20) + 1}) {
    EXPECT_EQ(Floret::of_bytes(Bytes(size)).error().code, Errc::limit) << size;
  }
  EXPECT_TRUE(Floret::of_bytes(Bytes(2)));
  EXPECT_TRUE(Floret::of_bytes(Bytes(std::size_t{1} << 20)));
}

// FROZEN: sites of different releases compare florets.
TEST(Floret, PicksTheSameCountersForEver) {
  const Floret floret = floret_of(0, 8, key_of(1), 16);
  EXPECT_EQ(Bytes(floret.bytes().begin(), floret.bytes().end()),
            (Bytes{0, 1, 0, 0, 1, 0, 1, 1, 2, 0, 1, 0, 1, 0, 0, 0}));
}

// A peer may claim any counts. No answer exceeds what they allow, and none is NaN.
TEST(Floret, AnswersToAnyCounts) {
  Random random(6);
  constexpr std::uint64_t kGreatest = ~std::uint64_t{0};
  for (const std::uint64_t count_a :
       {std::uint64_t{0}, std::uint64_t{1}, kGreatest / 2, kGreatest}) {
    for (const std::uint64_t count_b : {std::uint64_t{0}, std::uint64_t{3}, kGreatest}) {
      for (const std::uint32_t counters : {2u, 1024u}) {
        const Pair pair(1000, 2000, counters, random);
        const DifferenceEstimate estimated = estimate(pair.a, count_a, pair.b, count_b);
        EXPECT_GE(estimated.only_a.value, 0);
        EXPECT_GE(estimated.only_b.value, 0);
        EXPECT_LE(estimated.only_a.value, static_cast<double>(count_a));
        EXPECT_LE(estimated.only_b.value, static_cast<double>(count_b));
        EXPECT_TRUE(std::isfinite(estimated.total.error));
        EXPECT_TRUE(std::isfinite(estimated.jaccard.error));
      }
    }
  }
}

TEST(FloretDeathTest, RefusesShapesThatDoNotExistOrMeet) {
  EXPECT_DEATH(Floret(1), "counters");
  EXPECT_DEATH(Floret((1 << 20) + 1), "counters");
  EXPECT_DEATH(Floret(4) += Floret(5), "size");
  EXPECT_DEATH(Floret(4) -= Floret(5), "size");
  EXPECT_DEATH(estimate(Floret(4), 0, Floret(5), 0), "size");
}

}  // namespace
}  // namespace semel

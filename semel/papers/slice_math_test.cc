// Slice mathematics: the formulas beside each other, beside simulations, and the paper's own
// numbers.
#include "semel/papers/slice_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/slices/placement.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel::papers::slice_math {
namespace {

TEST(SliceMath, AgreesWithTheBloomFilterThatIsSliced) {
  for (const double slices : {1.0, 5.0, 40.0}) {
    EXPECT_NEAR(vertical_fpr(1e6, 4, 1e5), std::pow(1 - std::exp(-0.4), 4), 1e-6);
    EXPECT_NEAR(horizontal_fpr(1e6, 4, 1e5, slices), vertical_fpr(1e6, 4, 1e5), 1e-5);
    EXPECT_GE(horizontal_fpr(1e6, 4, 1e5, slices), vertical_fpr(1e6, 4, 1e5));
  }
  EXPECT_DOUBLE_EQ(uneven_horizontal_fpr(36500, 4, 4300, 1), vertical_fpr(36500, 4, 4300));
  EXPECT_GT(uneven_horizontal_fpr(36500, 4, 4300, 40), horizontal_fpr(36500, 4, 4300, 40));
}

// Slices have 91 bits, so that a few ids more or less matter, and k independent bits in one of
// them.
TEST(SliceMath, TellsWhatUnevenSlicesCost) {
  constexpr std::uint32_t kFunctions = 4;
  constexpr std::uint64_t kSlices = 40, kBits = 91, kIds = 430;
  Random random(1);
  std::vector<double> rates;
  for (int run = 0; run < 4000; ++run) {
    std::vector<std::vector<bool>> slices(kSlices, std::vector<bool>(kBits));
    for (std::uint64_t id = 0; id < kIds; ++id) {
      std::vector<bool>& slice = slices[random.below(kSlices)];
      for (std::uint32_t i = 0; i < kFunctions; ++i) slice[random.below(kBits)] = true;
    }
    double rate = 0;
    for (const std::vector<bool>& slice : slices) {
      const auto set = static_cast<double>(std::count(slice.begin(), slice.end(), true));
      rate += std::pow(set / kBits, kFunctions) / kSlices;
    }
    rates.push_back(rate);
  }
  // The formula takes the mean for the fill of each slice, which lowers a fourth power by half a
  // percent here.
  const Mean measured = mean_of(rates);
  const double expected = uneven_horizontal_fpr(kBits * kSlices, kFunctions, kIds, kSlices);
  EXPECT_NEAR(measured.value, expected, 5 * measured.error + 0.02 * expected);
  EXPECT_GT(measured.value, 1.1 * horizontal_fpr(kBits * kSlices, kFunctions, kIds, kSlices));
}

TEST(SliceMath, HasThePaperPoliciesAsSpecialCases) {
  for (const double q : {0.0, 0.1, 0.5, 1.0}) {
    for (const double s : {0.0, 0.3, 1.0}) {
      const ProbeRates rates = probe_rates(s, q);
      EXPECT_NEAR(false_positives(rates, 1, 0), q + (1 - q) * s, 1e-12);               // (5)
      EXPECT_NEAR(false_positives(rates, 8, 0), std::pow(q + (1 - q) * s, 8), 1e-12);  // (6)
      EXPECT_NEAR(false_positives(rates, 8, 8), std::pow((1 - q) * s, 8), 1e-12);
      EXPECT_NEAR(false_negatives(q, 8, 8), 1 - std::pow(1 - q, 8), 1e-12);
      EXPECT_EQ(false_negatives(q, 8, 0), 0);
      EXPECT_NEAR(false_negatives(q, 8, 9), 1, 1e-12);
      EXPECT_NEAR(heuristic_false_positives(rates, 8, 0), 1, 1e-12);
      for (std::uint32_t x = 0; x <= 8; ++x) {
        EXPECT_LE(false_positives(rates, 8, x), heuristic_false_positives(rates, 8, x) + 1e-12);
      }
    }
  }
}

// One function tests horizontal slices, more functions vertical ones. Each id is placed, and its
// slices fail or not.
TEST(SliceMath, AgreesWithFailuresDrawnAtRandom) {
  constexpr std::uint64_t kTrials = 200'000;
  constexpr std::uint32_t kSlices = 40, kFailed = 8;
  constexpr double kSet = 0.45;
  for (const std::uint32_t functions : {1u, 8u}) {
    const Placement placement =
        *Placement::make({.layout = SliceLayout::vertical, .slices = kSlices, .spread = functions});
    Random random(functions);
    std::vector<double> ours(functions + 1), heuristic(functions + 1), negatives(functions + 1);
    for (std::uint64_t n = 0; n < kTrials; ++n) {
      std::uint32_t set = 0, alive = 0;
      for (std::uint32_t j = 0; j < functions; ++j) {
        if (placement.probe(key(n), j).slice < kFailed) continue;
        ++alive;
        set += random.unit() < kSet;
      }
      for (std::uint32_t x = 0; x <= functions; ++x) {
        ours[x] += set == alive && set >= x;
        heuristic[x] += set >= x;
        negatives[x] += alive < x;
      }
    }
    const double q = 1.0 * kFailed / kSlices;
    const ProbeRates rates = probe_rates(kSet, q);
    for (std::uint32_t x = 0; x <= functions; ++x) {
      const auto expect = [&](double measured, double rate) {
        EXPECT_NEAR(measured, kTrials * rate, five_deviations(kTrials, rate) + 1e-6)
            << functions << " functions, needed " << x;
      };
      expect(ours[x], false_positives(rates, functions, x));
      expect(heuristic[x], heuristic_false_positives(rates, functions, x));
      expect(negatives[x], false_negatives(q, functions, x));
    }
  }
}

TEST(SliceMath, AgreesWithFailuresInDicedSlices) {
  constexpr std::uint32_t kGroups = 5, kParts = 4, kFailed = 6, kFunctions = 4;
  constexpr std::uint64_t kTrials = 100'000;
  constexpr double kSet = 0.4;
  const Placement h_v = *Placement::make(
      {.layout = SliceLayout::h_v, .slices = kGroups, .parts = kParts, .spread = kFunctions});
  const Placement v_h = *Placement::make(
      {.layout = SliceLayout::v_h, .slices = kGroups, .parts = kParts, .spread = kFunctions});
  for (const std::uint32_t needed : {0u, 2u, 4u}) {
    Random random(1);
    const auto positive = [&](const Placement& placement, std::uint64_t n,
                              const std::vector<std::optional<double>>& rates) {
      std::uint32_t set = 0, alive = 0;
      for (std::uint32_t j = 0; j < kFunctions; ++j) {
        const std::optional<double> rate = rates[placement.probe(key(n), j).slice];
        if (!rate) continue;
        ++alive;
        set += random.unit() < *rate;
      }
      return set == alive && set >= needed;
    };
    // In h_v other slices fail for every id. In v_h the same slices fail, and the slices also
    // differ.
    std::vector<std::optional<double>> same;
    for (std::uint32_t i = 0; i < kGroups * kParts; ++i) same.emplace_back(0.2 + 0.02 * i);
    for (const std::size_t slice : {0, 1, 2, 5, 13, 19}) same[slice].reset();
    double in_h_v = 0, in_v_h = 0;
    for (std::uint64_t n = 0; n < kTrials; ++n) {
      std::vector<std::optional<double>> rates(kGroups * kParts, kSet);
      for (std::uint32_t left = kFailed; left > 0;) {
        std::optional<double>& rate = rates[random.below(rates.size())];
        if (rate) --left;
        rate.reset();
      }
      in_h_v += positive(h_v, n, rates);
      in_v_h += positive(v_h, n, same);
    }
    const double of_h_v = h_v_false_positives(kSet, kGroups, kParts, kFailed, kFunctions, needed);
    const double of_v_h = v_h_false_positives(same, kParts, kFunctions, needed);
    EXPECT_NEAR(in_h_v, kTrials * of_h_v, five_deviations(kTrials, of_h_v)) << needed;
    EXPECT_NEAR(in_v_h, kTrials * of_v_h, five_deviations(kTrials, of_v_h)) << needed;
    // Failures collide in a group: the paper's equation 7 is below.
    const double q = 1.0 * kFailed / (kGroups * kParts);
    EXPECT_TRUE(needed > 0 || of_h_v > 1.1 * std::pow(q + (1 - q) * kSet, kFunctions));
  }
  EXPECT_NEAR(h_v_false_positives(0.4, 1, 40, 8, 4, 1),
              false_positives(probe_rates(0.4, 0.2), 4, 1), 1e-9);
  std::vector<std::optional<double>> undiced(40, 0.4);
  std::fill_n(undiced.begin(), 8, std::nullopt);
  EXPECT_NEAR(v_h_false_positives(undiced, 1, 4, 1), false_positives(probe_rates(0.4, 0.2), 4, 1),
              1e-9);
}

TEST(SliceMath, FindsTheFewestSlices) {
  for (const std::uint64_t failed : {1ull, 4ull, 100ull}) {
    for (const std::uint32_t functions : {1u, 4u, 8u}) {
      const double rate = std::pow(0.02, 1.0 / functions);
      for (const double most : {0.021, 0.05, 0.15, 0.9}) {
        const auto of = [&](std::uint64_t slices) {
          const double q = static_cast<double>(failed) / static_cast<double>(slices);
          return false_positives(probe_rates(rate, q), functions, 0);
        };
        const std::uint64_t slices = *slices_for_false_positives(failed, rate, functions, most);
        EXPECT_LE(of(slices), most * (1 + 1e-9));
        EXPECT_TRUE(slices == failed || of(slices - 1) > most);
      }
      for (std::uint32_t needed = 1; needed <= functions; ++needed) {
        for (const double most : {1e-6, 0.01, 0.5}) {
          const auto of = [&](std::uint64_t slices) {
            const double q = static_cast<double>(failed) / static_cast<double>(slices);
            return false_negatives(q, functions, needed);
          };
          const std::uint64_t slices = *slices_for_false_negatives(failed, functions, needed, most);
          EXPECT_LE(of(slices), most * (1 + 1e-9));
          EXPECT_TRUE(slices == failed || of(slices - 1) > most * (1 - 1e-9));
        }
      }
    }
  }
  EXPECT_EQ(*slices_for_false_positives(0, 0.1, 4, 0.5), 1u);
}

TEST(SliceMath, RefusesAnImpossibleGoal) {
  EXPECT_EQ(slices_for_false_positives(4, 0.02, 1, 0.02).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_positives(4, 0.02, 1, 1).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_positives(4, 1, 1, 0.5).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_positives(4, 0.02, 0, 0.5).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_positives(4, std::nan(""), 1, 0.5).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_positives(~0ull, 0.02, 1, 0.03).error().code, Errc::limit);
  EXPECT_EQ(slices_for_false_negatives(4, 4, 0, 0.1).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_negatives(4, 4, 5, 0.1).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_negatives(4, 4, 4, 0).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_negatives(4, 4, 4, std::nan("")).error().code, Errc::invalid);
  EXPECT_EQ(slices_for_false_negatives(~0ull, 1, 1, 1e-9).error().code, Errc::limit);
}

// 'For the same maximum false positive probability of 0.15 and f = 4 failed sites, vertical filters
// require less than 20 slices, while horizontal filters require more than 30.'
TEST(SliceMath, GivesThePaperExample) {
  EXPECT_EQ(*slices_for_false_positives(4, 0.02, 1, 0.15), 31u);
  EXPECT_EQ(*slices_for_false_positives(4, std::pow(0.02, 0.25), 4, 0.15), 11u);
}

// Without the binomial coefficients the printed sum misses most of the probability.
TEST(SliceMath, ShowsWhatThePrintedSumsMiss) {
  EXPECT_NEAR(false_negatives(0.2, 8, 8), 0.832, 1e-3);
  EXPECT_NEAR(printed_false_negatives(0.2, 8, 8), 0.056, 1e-3);
  EXPECT_GT(heuristic_false_positives(probe_rates(0.6, 0.2), 8, 3), 0.7);
  EXPECT_NEAR(printed_false_positives(probe_rates(0.6, 0.2), 3), 0.11, 1e-2);
}

}  // namespace
}  // namespace semel::papers::slice_math

// Checks the formulas against brute force where the universe is small enough.
#include "semel/filter/bloom_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "semel/core/limits.h"

namespace semel::bloom_math {
namespace {

// Returns the mean rate of a block after `keys` keys. Follows the number of set bits probe by
// probe. All terms are positive, so this is slow but exact.
double block_fpr(std::uint32_t probes, std::uint64_t keys) {
  std::vector<double> chance(kBlockBits + 1);  // index: number of set bits
  chance[0] = 1;
  for (std::uint64_t probe = 0; probe < probes * keys; ++probe) {
    for (std::size_t set = kBlockBits; set > 0; --set) {
      const double hit = static_cast<double>(set) / kBlockBits;
      const double miss = 1 - static_cast<double>(set - 1) / kBlockBits;
      chance[set] = chance[set] * hit + chance[set - 1] * miss;
    }
    chance[0] = 0;
  }
  double rate = 0;
  for (std::size_t set = 0; set <= kBlockBits; ++set) {
    rate += chance[set] * std::pow(static_cast<double>(set) / kBlockBits, probes);
  }
  return rate;
}

TEST(BloomMath, BlockedRateIsExactForOneBlock) {
  for (const std::uint32_t probes : {1u, 2u, 3u, 7u, 12u, 24u}) {
    for (const std::uint64_t keys : {0ull, 1ull, 5ull, 20ull, 60ull}) {
      const double exact = block_fpr(probes, keys);
      EXPECT_NEAR(blocked_expected_fpr(1, probes, keys), exact, 1e-9 * exact + 1e-12)
          << probes << " " << keys;
    }
  }
}

TEST(BloomMath, BlockedRateIsTheMeanOverTheKeysInABlock) {
  constexpr std::uint64_t kBlocks = 7, kKeys = 150;
  constexpr std::uint32_t kProbes = 5;
  double binomial = std::pow(1 - 1.0 / kBlocks, kKeys);  // chance of j keys in a block, j = 0
  double rate = 0;
  for (std::uint64_t j = 0; j <= 80; ++j) {
    rate += binomial * block_fpr(kProbes, j);
    binomial *= static_cast<double>(kKeys - j) / static_cast<double>(j + 1) / (kBlocks - 1);
  }
  EXPECT_NEAR(blocked_expected_fpr(kBlocks, kProbes, kKeys), rate, 1e-9 * rate);
}

TEST(BloomMath, SizesAreTheLeastThatMeetTheGoal) {
  for (const double fpr : {0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-9}) {
    for (const std::uint64_t keys : {1ull, 100ull, 10'000ull, 100'000'000ull}) {
      const Size plain = plain_size(keys, fpr);
      EXPECT_LE(plain_expected_fpr(plain.bits, plain.probes, keys), fpr * (1 + 1e-12));
      if (plain.bits > 64) {
        EXPECT_GT(plain_expected_fpr(plain.bits - 64, plain.probes, keys), fpr);
      }

      const Size blocked = blocked_size(keys, fpr);
      const std::uint64_t blocks = blocked.bits / kBlockBits;
      EXPECT_LE(blocked_expected_fpr(blocks, blocked.probes, keys), fpr);
      if (blocks > 1) {
        for (std::uint32_t probes = 1; probes <= limits::kBlockedProbes; ++probes) {
          EXPECT_GT(blocked_expected_fpr(blocks - 1, probes, keys), fpr)
              << fpr << " " << keys << " " << probes;
        }
      }
    }
  }
}

TEST(BloomMath, LiveRateOfABlockedFilterIsTheMeanOverItsBlocks) {
  std::vector<std::uint64_t> words(16);
  EXPECT_EQ(blocked_live_fpr(words, 3), 0);
  words[0] = ~0ull;  // an eighth of the first block
  EXPECT_DOUBLE_EQ(blocked_live_fpr(words, 3), 1.0 / 512 / 2);
  for (std::size_t i = 8; i < 16; ++i) words[i] = ~0ull;
  EXPECT_DOUBLE_EQ(blocked_live_fpr(words, 3), (1.0 / 512 + 1) / 2);
}

TEST(BloomMath, CardinalityInvertsTheShareOfClearBits) {
  for (const double keys : {0.0, 1.0, 1000.0, 20'000.0}) {
    const double plain = 1e5 * std::pow(1 - 1e-5, 5 * keys);
    EXPECT_NEAR(plain_cardinality(100'000, 5, plain), keys, 1e-6 * keys + 1e-6);
    const double touched = 1 - std::pow(1 - 1.0 / 512, 5);
    const double blocked = 512 * 200 * std::pow(1 - touched / 200, keys);
    EXPECT_NEAR(blocked_cardinality(512 * 200, 5, blocked), keys, 1e-6 * keys + 1e-6);
  }
  EXPECT_TRUE(std::isfinite(plain_cardinality(64, 1, 0)));
}

}  // namespace
}  // namespace semel::bloom_math

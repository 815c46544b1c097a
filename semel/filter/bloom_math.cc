#include "semel/filter/bloom_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"

namespace semel::bloom_math {
namespace {

// Equation 5, with the parts that depend only on the probes computed beforehand:
//
//   fpr(B, n) = sum over i of weight[i] * (1 - share[i] / B)^n
//
// share[i] is the chance that a key which falls into the block touches at least one of i given
// bits.
class BlockedModel {
 public:
  BlockedModel(std::uint32_t probes, std::uint64_t block_bits)
      : terms_(probes + 1), block_bits_(block_bits) {
    SEMEL_ASSERT(probes >= 1 && probes <= limits::kBlockedProbes);
    const auto bits = static_cast<long double>(block_bits);

    // distinct[d] is the chance that the probes of one key fall on d different bits.
    std::array<long double, limits::kBlockedProbes + 2> distinct{1};
    for (std::uint32_t thrown = 0; thrown < probes; ++thrown) {
      for (std::uint32_t d = thrown + 1; d > 0; --d) {
        distinct[d] = distinct[d] * (d / bits) + distinct[d - 1] * ((bits - (d - 1)) / bits);
      }
      distinct[0] = 0;
    }

    for (std::uint32_t i = 0; i < terms_; ++i) {
      long double choose = 1;  // d over i, for d = i, i + 1, ...
      long double weight = 0;
      for (std::uint32_t d = i; d <= probes; ++d) {
        weight += distinct[d] * choose;
        choose = choose * (d + 1) / (d + 1 - i);
      }
      weight_[i] = i % 2 == 0 ? weight : -weight;
      share_[i] = -std::expm1(probes * std::log1p(-(i / bits)));
    }
  }

  double fpr(std::uint64_t blocks, std::uint64_t keys) const {
    long double sum = 0;
    for (std::uint32_t i = 0; i < terms_; ++i) {
      const long double missed = std::log1p(-share_[i] / static_cast<long double>(blocks));
      sum += weight_[i] * std::exp(static_cast<long double>(keys) * missed);
    }
    return std::clamp(static_cast<double>(sum), 0.0, 1.0);
  }

  // Returns the least number of blocks with fpr(blocks, keys) <= goal, or 0 if `most` are too few.
  std::uint64_t blocks_for(std::uint64_t keys, double goal, std::uint64_t most) const {
    std::uint64_t enough = std::min(most, divide_up(keys, block_bits_));
    std::uint64_t few = 0;
    while (fpr(enough, keys) > goal) {
      if (enough == most) return 0;
      few = enough;
      enough = std::min(most, enough * 2);
    }
    while (enough - few > 1) {
      const std::uint64_t middle = few + (enough - few) / 2;
      (fpr(middle, keys) <= goal ? enough : few) = middle;
    }
    return enough;
  }

 private:
  std::uint32_t terms_;
  std::uint64_t block_bits_;
  std::array<long double, limits::kBlockedProbes + 1> weight_{};
  std::array<long double, limits::kBlockedProbes + 1> share_{};
};

// Returns the number n of keys for which (1 - touch)^n is the share of clear bits.
double keys_for(std::uint64_t bits, double zeros, double touch) {
  return std::log(std::max(zeros, 1.0) / static_cast<double>(bits)) / std::log1p(-touch);
}

// Returns the chance that at least one of `probes` independent probes into `bits` hits a given bit.
double touched(std::uint64_t bits, std::uint32_t probes) {
  return -std::expm1(probes * std::log1p(-1 / static_cast<double>(bits)));
}

}  // namespace

double plain_expected_fpr(std::uint64_t bits, std::uint32_t probes, std::uint64_t keys) {
  const double load = static_cast<double>(keys) * probes / static_cast<double>(bits);
  return std::pow(-std::expm1(-load), probes);
}

double blocked_expected_fpr(std::uint64_t blocks, std::uint32_t probes, std::uint64_t keys,
                            std::uint64_t block_bits) {
  return BlockedModel(probes, block_bits).fpr(blocks, keys);
}

double plain_live_fpr(double fill, std::uint32_t probes) { return std::pow(fill, probes); }

double blocked_live_fpr(std::span<const std::uint64_t> words, std::uint32_t probes) {
  return blocked_live_fpr(words, probes, words.size());
}

double blocked_live_fpr(std::span<const std::uint64_t> words, std::uint32_t probes,
                        std::size_t most_blocks) {
  constexpr std::size_t kWords = kBlockBits / 64;
  SEMEL_ASSERT(!words.empty() && words.size() % kWords == 0 && most_blocks > 0);
  const std::size_t all = words.size() / kWords;
  const std::size_t step = (all - 1) / most_blocks + 1;
  std::array<std::uint64_t, kBlockBits + 1> blocks_with{};  // blocks by number of set bits
  for (std::size_t block = 0; block < all; block += step) {
    unsigned ones = 0;
    for (const std::uint64_t word : words.subspan(block * kWords, kWords)) {
      ones += static_cast<unsigned>(std::popcount(word));
    }
    ++blocks_with[ones];
  }
  double sum = 0, blocks = 0;
  for (std::size_t ones = 0; ones < blocks_with.size(); ++ones) {
    if (blocks_with[ones] == 0) continue;
    const auto count = static_cast<double>(blocks_with[ones]);
    sum += count * std::pow(static_cast<double>(ones) / kBlockBits, probes);
    blocks += count;
  }
  return sum / blocks;
}

// Uses equation 2, then 4: the best number of probes, rounded, and the bits that it needs.
Size plain_size(std::uint64_t keys, double fpr) {
  SEMEL_ASSERT(keys > 0 && fpr > 0 && fpr < 1);
  const double probes = std::clamp(std::round(-std::log2(fpr)), 1.0, double{limits::kPlainProbes});
  const double per_key = -probes / std::log1p(-std::pow(fpr, 1 / probes));
  const double bits = std::ceil(per_key * static_cast<double>(keys));
  const auto used = static_cast<std::uint32_t>(probes);
  if (bits > static_cast<double>(limits::kFilterBits)) return {0, used};
  return {divide_up(static_cast<std::uint64_t>(bits), 64) * 64, used};
}

// Memory as a function of the probes has one minimum, near that of the plain layout. The loop walks
// to it.
Size blocked_size(std::uint64_t keys, double fpr, std::uint64_t block_bits,
                  std::uint32_t most_probes) {
  SEMEL_ASSERT(keys > 0 && fpr >= kLeastBlockedFpr && fpr < 1);
  SEMEL_ASSERT(most_probes >= 1 && most_probes <= limits::kBlockedProbes);
  const std::uint64_t most = limits::kFilterBits / block_bits;
  const auto size = [&](std::uint32_t probes) {
    return Size{BlockedModel(probes, block_bits).blocks_for(keys, fpr, most) * block_bits, probes};
  };
  const auto better = [](const Size& a, const Size& b) {
    return a.bits != 0 && (b.bits == 0 || a.bits < b.bits);
  };
  const double start =
      std::clamp(std::round(-std::log2(fpr)), 1.0, static_cast<double>(most_probes));
  Size best = size(static_cast<std::uint32_t>(start));
  for (const int step : {-1, 1}) {
    for (std::uint32_t probes = best.probes + step; probes >= 1 && probes <= most_probes;
         probes += step) {
      const Size next = size(probes);
      if (!better(next, best)) break;
      best = next;
    }
  }
  return best;
}

double plain_cardinality(std::uint64_t bits, std::uint32_t probes, double zeros) {
  return keys_for(bits, zeros, touched(bits, probes));
}

double blocked_cardinality(std::uint64_t bits, std::uint32_t probes, double zeros,
                           std::uint64_t block_bits) {
  const double blocks = static_cast<double>(bits) / static_cast<double>(block_bits);
  return keys_for(bits, zeros, touched(block_bits, probes) / blocks);
}

}  // namespace semel::bloom_math

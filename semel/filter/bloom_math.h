// The mathematics of Bloom filters, each formula once. docs/math/bloom.md derives them.
//
// The words matter. `expected` is a mean over random digests, before anything is inserted; `live` is
// what the bits now in a filter amount to. For the blocked layout both are exact, because its probes
// are independent. For the plain layout they are estimates: double hashing spaces the probes evenly,
// and the formulas take them for independent. How near they come is measured (bench/figures).
//
//   m  bits    B  blocks of kBlockBits    k  probes    n  distinct keys    X  bits that are set
//
// The functions for the blocked layout speak of one line per key. A filter of L lines is L of them
// side by side that hold the same keys, each with 1/L of the bits and of the probes: its rates are
// the products of theirs. A line shared by several filters (window/internal/lane_array.h) has fewer bits for
// each: their number is `block_bits`.
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/limits.h"

namespace semel::bloom_math {

inline constexpr std::uint64_t kBlockBits = 512;  // one cache line

// (1 - exp(-kn/m))^k: equation 1.
double plain_expected_fpr(std::uint64_t bits, std::uint32_t probes, std::uint64_t keys);

// The exact mean over the places of all keys and probes: equation 5.
// REQUIRES: probes <= limits::kBlockedProbes.
double blocked_expected_fpr(std::uint64_t blocks, std::uint32_t probes, std::uint64_t keys,
                            std::uint64_t block_bits = kBlockBits);

// (X/m)^k: equation 3.
double plain_live_fpr(double fill, std::uint32_t probes);

// The mean over the blocks of (X_b / kBlockBits)^k: equation 6.
// REQUIRES: words.size() is a multiple of a block.
double blocked_live_fpr(std::span<const std::uint64_t> words, std::uint32_t probes);

// How many probes and bits (a multiple of 64; of block_bits when blocked) bring the expected rate
// for `keys` to `fpr` with the least memory; 0 bits if that is more than limits::kFilterBits.
struct Size {
  std::uint64_t bits;
  std::uint32_t probes;
};
// REQUIRES: keys > 0 and 0 < fpr < 1.
Size plain_size(std::uint64_t keys, double fpr);
// REQUIRES: keys > 0 and kLeastBlockedFpr <= fpr < 1.
Size blocked_size(std::uint64_t keys, double fpr, std::uint64_t block_bits = kBlockBits,
                  std::uint32_t most_probes = limits::kBlockedProbes);

// Below this the sum of equation 5 cancels to noise in the 64-bit mantissa of a long double.
inline constexpr double kLeastBlockedFpr = 1e-10;

// The number of distinct keys that leaves, in the mean, `zeros` of the bits clear: equation 7. With
// no clear bit left it answers as for one: then the filter has seen at least about so many.
double plain_cardinality(std::uint64_t bits, std::uint32_t probes, double zeros);
double blocked_cardinality(std::uint64_t bits, std::uint32_t probes, double zeros,
                           std::uint64_t block_bits = kBlockBits);

}  // namespace semel::bloom_math

// The mathematics of Bloom filters, each formula once. docs/math/bloom.md derives them.
//
// `expected` is a mean over random digests, before anything is inserted. `live` is computed from
// the bits that are now in a filter. Both are exact for the blocked layout, because its probes are
// independent. Both are estimates for the plain layout: double hashing spaces the probes evenly,
// and the formulas treat them as independent. bench/figures measures how close the estimates are.
//
//   m  bits    B  blocks of kBlockBits    k  probes    n  distinct keys    X  bits that are set
//
// The functions for the blocked layout assume one line per key. A filter of L lines is L such
// filters side by side that hold the same keys, each with 1/L of the bits and of the probes. Its
// rates are the products of theirs. Where several filters share a line,
// each has fewer bits of it: `block_bits`.
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/api.h"
#include "semel/core/limits.h"

namespace semel::bloom_math {

inline constexpr std::uint64_t kBlockBits = 512;  // one cache line

// (1 - exp(-kn/m))^k: equation 1.
SEMEL_API double plain_expected_fpr(std::uint64_t bits, std::uint32_t probes, std::uint64_t keys);

// The exact mean over the places of all keys and probes: equation 5.
// REQUIRES: probes <= limits::kBlockedProbes.
SEMEL_API double blocked_expected_fpr(std::uint64_t blocks, std::uint32_t probes,
                                      std::uint64_t keys, std::uint64_t block_bits = kBlockBits);

// (X/m)^k: equation 3.
SEMEL_API double plain_live_fpr(double fill, std::uint32_t probes);

// The mean over the blocks of (X_b / kBlockBits)^k: equation 6. REQUIRES: `words` are whole blocks.
SEMEL_API double blocked_live_fpr(std::span<const std::uint64_t> words, std::uint32_t probes);
// The same, of at most this many blocks, which are evenly spaced: an estimate.
SEMEL_API double blocked_live_fpr(std::span<const std::uint64_t> words, std::uint32_t probes,
                                  std::size_t most_blocks);

// The probes and bits that bring the expected rate for `keys` to `fpr` with the least memory. bits
// is a multiple of 64, or of block_bits if blocked. It is 0 if the goal needs more than
// limits::kFilterBits.
struct Size {
  std::uint64_t bits;
  std::uint32_t probes;
};
// REQUIRES: keys > 0 and 0 < fpr < 1.
SEMEL_API Size plain_size(std::uint64_t keys, double fpr);
// REQUIRES: keys > 0 and kLeastBlockedFpr <= fpr < 1.
SEMEL_API Size blocked_size(std::uint64_t keys, double fpr, std::uint64_t block_bits = kBlockBits,
                            std::uint32_t most_probes = limits::kBlockedProbes);

// Below this rate the sum of equation 5 cancels to noise in the 64-bit mantissa of a long double.
inline constexpr double kLeastBlockedFpr = 1e-10;

// Returns the number of distinct keys that leaves, on average, `zeros` of the bits clear: equation
// 7. If no bit is clear, the result is that for one clear bit: a rough lower bound.
SEMEL_API double plain_cardinality(std::uint64_t bits, std::uint32_t probes, double zeros);
SEMEL_API double blocked_cardinality(std::uint64_t bits, std::uint32_t probes, double zeros,
                                     std::uint64_t block_bits = kBlockBits);

}  // namespace semel::bloom_math

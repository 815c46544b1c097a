// The blocked layout of BloomFilter: a key has its probes in one to four cache lines.
//
// A filter of L lines has L sections of equal size, and a key has one block in each. Half a digest
// stands for an endless sequence of words: the half itself, then words mixed from it. Word `line`
// of the low half chooses the block in section `line`. Words 4 * line and on of the high half give
// the probes: nine bits each, lowest first, seven to a word.
//
//      63 62      54        17        9 8        0
//     +--+----------+-- ~ --+----------+----------+     probe 0 = bits 0 to 8,
//     |  | probe 6  |       | probe 1  | probe 0  |     probe 7 = bits 0 to 8 of the next word, ...
//     +--+----------+-- ~ --+----------+----------+
//
// The upper three bits of a probe choose the 64-bit word of the block. The lower six choose the bit
// in that word. Blocks and probes come from different words, so they are independent, and the
// formulas of bloom_math.h for this layout are exact. FROZEN with docs/formats/bloom_v1.md.
//
// There are two kernels, portable and AVX-512, that give the same bits. The processor decides at
// run time.
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/limits.h"
#include "semel/filter/bloom_filter.h"
#include "semel/hash/digest.h"

namespace semel::filter_internal::bloom_block {

inline constexpr std::uint64_t kBlockWords = 8;

using filter_internal::Sections;

// This is true if the processor has AVX-512 as the second kernel needs it. It is false before it is
// initialised. That does no harm, because both kernels give the same answers.
extern const bool kHasAvx512;

bool contains_portable(const std::uint64_t* words, const Sections& sections, Digest key);
bool contains_avx512(const std::uint64_t* words, const Sections& sections, Digest key);
bool add_portable(std::uint64_t* words, const Sections& sections, Digest key);
bool add_avx512(std::uint64_t* words, const Sections& sections, Digest key);

// `words` is the whole filter and begins on a cache line.
inline bool contains(const std::uint64_t* words, const Sections& sections, Digest key) {
  return kHasAvx512 ? contains_avx512(words, sections, key)
                    : contains_portable(words, sections, key);
}
void contains(const std::uint64_t* words, const Sections& sections, std::span<const Digest> keys,
              std::span<bool> found);

// Returns true if a bit was clear before.
inline bool add(std::uint64_t* words, const Sections& sections, Digest key) {
  return kHasAvx512 ? add_avx512(words, sections, key) : add_portable(words, sections, key);
}
void add(std::uint64_t* words, const Sections& sections, std::span<const Digest> keys,
         std::span<bool> added);

// Writes each bit that add() sets to `bits`, once. Returns their number.
inline constexpr std::size_t kMostBits =
    std::size_t{limits::kBlockedLines} * limits::kBlockedProbes;
std::size_t bits_of(const Sections& sections, Digest key, std::span<std::uint64_t, kMostBits> bits);

// The kernels, for the test that compares them. REQUIRES for the AVX-512 kernels: kHasAvx512.
bool test_portable(const std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                   std::uint32_t probes);
bool test_avx512(const std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                 std::uint32_t probes);
bool set_portable(std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                  std::uint32_t probes);
bool set_avx512(std::uint64_t* block, std::uint64_t high, std::uint32_t line, std::uint32_t probes);

}  // namespace semel::filter_internal::bloom_block

#include "semel/filter/internal/bloom_block.h"

#include <algorithm>
#include <array>
#include <bit>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define SEMEL_AVX512 [[gnu::target("avx512f,bmi2")]]
#define SEMEL_AVX512_LAMBDA __attribute__((target("avx512f,bmi2"), always_inline))
#else
#define SEMEL_AVX512
#endif

// The intrinsics of g++ 12 read their own variables before they set them.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace semel::filter_internal::bloom_block {
namespace {

constexpr std::uint32_t kProbesInWord = 7;
constexpr std::uint32_t kProbeBits = 9;
constexpr std::uint64_t kProbeMask = (1u << kProbeBits) - 1;
constexpr std::uint64_t kWordsInLine = 4;
static_assert(kWordsInLine * kProbesInWord >= limits::kBlockedProbes);

struct Portable {
  // Returns true if the first `here` probes of the word fall on set bits. Looks at every probe,
  // because a branch on the first clear bit would be mispredicted every other time.
  static bool test_word(const std::uint64_t* block, std::uint64_t word, std::uint32_t here) {
    std::uint64_t all = 1;
    for (std::uint32_t i = 0; i < here; ++i, word >>= kProbeBits) {
      const std::uint64_t probe = word & kProbeMask;
      all &= block[probe / 64] >> (probe % 64);
    }
    return all != 0;
  }

  static bool test(const std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                   std::uint32_t probes) {
    for (std::uint64_t n = line * kWordsInLine;; ++n) {
      const std::uint32_t here = std::min(probes, kProbesInWord);
      if (!test_word(block, word_of(high, n), here)) return false;
      if (probes == here) return true;
      probes -= here;
    }
  }

  static bool set_word(std::uint64_t* block, std::uint64_t word, std::uint32_t here) {
    std::uint64_t all = 1;
    for (std::uint32_t i = 0; i < here; ++i, word >>= kProbeBits) {
      const std::uint64_t probe = word & kProbeMask;
      all &= block[probe / 64] >> (probe % 64);
      block[probe / 64] |= std::uint64_t{1} << (probe % 64);
    }
    return all == 0;
  }

  static bool set(std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                  std::uint32_t probes) {
    bool changed = false;
    for (std::uint64_t n = line * kWordsInLine;; ++n) {
      const std::uint32_t here = std::min(probes, kProbesInWord);
      changed |= set_word(block, word_of(high, n), here);
      if (probes == here) return changed;
      probes -= here;
    }
  }
};

#if defined(__x86_64__)
// Holds the whole block in one register and handles the seven probes of a word at once.
struct Avx512 {
  SEMEL_AVX512 static inline __m512i probes_of(std::uint64_t word) {
    const __m512i shifts = _mm512_setr_epi64(0, 9, 18, 27, 36, 45, 54, 63);
    return _mm512_srlv_epi64(_mm512_set1_epi64(static_cast<long long>(word)), shifts);
  }
  static constexpr unsigned lanes(std::uint32_t here) { return (1u << here) - 1; }

  SEMEL_AVX512 static inline bool test_word(const std::uint64_t* block, std::uint64_t word,
                                            std::uint32_t here) {
    const __m512i probe = probes_of(word);
    const __m512i found =
        _mm512_permutexvar_epi64(_mm512_srli_epi64(probe, 6), _mm512_load_si512(block));
    const __m512i wanted = _mm512_rolv_epi64(_mm512_set1_epi64(1), probe);  // modulo 64
    return _mm512_mask_testn_epi64_mask(static_cast<__mmask8>(lanes(here)), found, wanted) == 0;
  }

  SEMEL_AVX512 static inline bool test(const std::uint64_t* block, std::uint64_t high,
                                       std::uint32_t line, std::uint32_t probes) {
    for (std::uint64_t n = line * kWordsInLine;; ++n) {
      const std::uint32_t here = std::min(probes, kProbesInWord);
      if (!test_word(block, word_of(high, n), here)) return false;
      if (probes == here) return true;
      probes -= here;
    }
  }

  // Returns the bits of one word of probes as a block. Each probe becomes a whole block: every lane
  // shifts 1 by the probe minus the lane's first bit. A shift by 64 or more, or by a negative
  // number, gives zero. The probes go through memory, because a load spreads a value over all lanes
  // at no cost.
  SEMEL_AVX512 static inline __m512i bits_of(std::uint64_t word, std::uint32_t here) {
    alignas(64) std::array<long long, 8> probes;
    _mm512_store_si512(probes.data(), _mm512_mask_and_epi64(
                                          _mm512_set1_epi64(-1), static_cast<__mmask8>(lanes(here)),
                                          probes_of(word), _mm512_set1_epi64(kProbeMask)));
    const long long* probe = probes.data();
    asm volatile("" : "+r"(probe) : : "memory");  // keeps the compiler from using registers
    const __m512i base = _mm512_setr_epi64(0, -64, -128, -192, -256, -320, -384, -448);
    const __m512i one = _mm512_set1_epi64(1);
    const auto as_block = [&](int i) SEMEL_AVX512_LAMBDA {
      return _mm512_sllv_epi64(one, _mm512_add_epi64(_mm512_set1_epi64(probe[i]), base));
    };
    constexpr int kOr = 0xfe;  // the OR of three
    const __m512i a = _mm512_ternarylogic_epi64(as_block(0), as_block(1), as_block(2), kOr);
    const __m512i b = _mm512_ternarylogic_epi64(as_block(3), as_block(4), as_block(5), kOr);
    return _mm512_ternarylogic_epi64(a, b, as_block(6), kOr);
  }

  SEMEL_AVX512 static inline bool set_bits(std::uint64_t* block, __m512i wanted) {
    const __m512i before = _mm512_load_si512(block);
    const __m512i after = _mm512_or_si512(before, wanted);
    _mm512_store_si512(block, after);
    return _mm512_cmpneq_epi64_mask(before, after) != 0;
  }

  SEMEL_AVX512 static inline bool set_word(std::uint64_t* block, std::uint64_t word,
                                           std::uint32_t here) {
    return set_bits(block, bits_of(word, here));
  }

  SEMEL_AVX512 static inline bool set(std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                                      std::uint32_t probes) {
    std::uint64_t n = line * kWordsInLine;
    __m512i wanted = bits_of(word_of(high, n), std::min(probes, kProbesInWord));
    while (probes > kProbesInWord) {
      probes -= kProbesInWord;
      wanted =
          _mm512_or_si512(wanted, bits_of(word_of(high, ++n), std::min(probes, kProbesInWord)));
    }
    return set_bits(block, wanted);
  }
};
#else
using Avx512 = Portable;
#endif

// Returns the start, in words, of the key's block in section `line`.
[[gnu::always_inline]] inline std::uint64_t block_start(const Sections& sections, Digest key,
                                                        std::uint32_t line) {
  const std::uint64_t at = scale(word_of(key.lo, line), sections.blocks);
  return (line * sections.blocks + at) * kBlockWords;
}

template <class Word>
[[gnu::always_inline]] inline Word* block_of(Word* words, const Sections& sections, Digest key,
                                             std::uint32_t line) {
  return words + block_start(sections, key, line);
}

// The functions below are inlined into one caller for each kernel. There `flatten` inlines the
// kernel too. This is not possible earlier, because code for another processor is not inlined into
// code for ours.

// `sections` is passed by value. Through a reference it would be read again after every store.

template <class Kernel>
[[gnu::always_inline]] inline bool contains_one(const std::uint64_t* words, Sections sections,
                                                Digest key) {
  for (std::uint32_t line = 0; line < sections.lines; ++line) {
    if (!Kernel::test(block_of(words, sections, key, line), key.hi, line, sections.probes)) {
      return false;
    }
  }
  return true;
}

template <class Kernel>
[[gnu::always_inline]] inline bool add_one(std::uint64_t* words, Sections sections, Digest key) {
  std::uint64_t* first = block_of(words, sections, key, 0);
  bool changed = Kernel::set(first, key.hi, 0, sections.probes);
  for (std::uint32_t line = 1; line < sections.lines; ++line) {
    changed |= Kernel::set(block_of(words, sections, key, line), key.hi, line, sections.probes);
  }
  return changed;
}

// This is for_each_ahead() of prefetch.h, written out, because `flatten` does not reach through
// its lambdas.
template <class Kernel>
[[gnu::always_inline]] inline void contains_in_line(const std::uint64_t* words, Sections sections,
                                                    std::uint32_t line,
                                                    std::span<const Digest> keys,
                                                    std::span<bool> found) {
  const std::size_t ahead = std::min(kAhead, keys.size());
  for (std::size_t i = 0; i < ahead; ++i) prefetch(block_of(words, sections, keys[i], line));
  std::size_t i = 0;
  for (; i + ahead < keys.size(); ++i) {
    prefetch(block_of(words, sections, keys[i + ahead], line));
    const Digest key = keys[i];
    found[i] = Kernel::test(block_of(words, sections, key, line), key.hi, line, sections.probes);
  }
  for (; i < keys.size(); ++i) {
    const Digest key = keys[i];
    found[i] = Kernel::test(block_of(words, sections, key, line), key.hi, line, sections.probes);
  }
}

[[gnu::always_inline]] inline void touch(std::uint64_t* words, Sections sections, Digest key) {
  for (std::uint32_t line = 0; line < sections.lines; ++line) {
    prefetch_for_write(block_of(words, sections, key, line));
  }
}

template <class Kernel>
[[gnu::always_inline]] inline void add_in_lines(std::uint64_t* words, Sections sections,
                                                std::span<const Digest> keys,
                                                std::span<bool> added) {
  const std::size_t ahead = std::min(kAhead, keys.size());
  for (std::size_t i = 0; i < ahead; ++i) touch(words, sections, keys[i]);
  std::size_t i = 0;
  for (; i + ahead < keys.size(); ++i) {
    touch(words, sections, keys[i + ahead]);
    added[i] = add_one<Kernel>(words, sections, keys[i]);
  }
  for (; i < keys.size(); ++i) added[i] = add_one<Kernel>(words, sections, keys[i]);
}

template <class Kernel>
[[gnu::always_inline]] inline void add_all(std::uint64_t* words, Sections sections,
                                           std::span<const Digest> keys, std::span<bool> added) {
  if (sections.lines == 1) {  // a separate loop with a constant
    return add_in_lines<Kernel>(words, {sections.blocks, sections.probes, 1}, keys, added);
  }
  add_in_lines<Kernel>(words, sections, keys, added);
}

// Single keys. The common cases have functions that save no registers, because saving them would
// cost a tenth of the time. The other cases start again in a function that handles all of them.

SEMEL_AVX512 [[gnu::noinline, gnu::flatten]] bool contains_any_avx512(const std::uint64_t* words,
                                                                      const Sections& sections,
                                                                      Digest key) {
  return contains_one<Avx512>(words, sections, key);
}

SEMEL_AVX512 [[gnu::noinline, gnu::flatten]] bool add_any_avx512(std::uint64_t* words,
                                                                 const Sections& sections,
                                                                 Digest key) {
  return add_one<Avx512>(words, sections, key);
}

}  // namespace

bool contains_portable(const std::uint64_t* words, const Sections& sections, Digest key) {
  return contains_one<Portable>(words, sections, key);
}

bool add_portable(std::uint64_t* words, const Sections& sections, Digest key) {
  return add_one<Portable>(words, sections, key);
}

// The first word of probes already tells most absent keys.
SEMEL_AVX512 [[gnu::flatten]] bool contains_avx512(const std::uint64_t* words,
                                                   const Sections& sections, Digest key) {
  const std::uint64_t* block = block_of(words, sections, key, 0);
  const std::uint32_t probes = sections.probes;
  if (!Avx512::test_word(block, key.hi, std::min(probes, kProbesInWord))) return false;
  if (probes > 2 * kProbesInWord || sections.lines > 1) {
    return contains_any_avx512(words, sections, key);
  }
  if (probes <= kProbesInWord) return true;
  return Avx512::test_word(block, word_of(key.hi, 1), probes - kProbesInWord);
}

// Prefetches the block before its bits are computed. This takes a fifth off the time in a large
// filter.
SEMEL_AVX512 [[gnu::flatten]] bool add_avx512(std::uint64_t* words, const Sections& sections,
                                              Digest key) {
  std::uint64_t* block = block_of(words, sections, key, 0);
  prefetch_for_write(block);
  asm volatile("" : "+r"(block) : : "memory");  // keeps the prefetch before the load
  if (sections.lines > 1 || sections.probes > kProbesInWord) {
    return add_any_avx512(words, sections, key);
  }
  return Avx512::set_word(block, key.hi, sections.probes);
}

namespace {

void contains_in_line_portable(const std::uint64_t* words, const Sections& sections,
                               std::uint32_t line, std::span<const Digest> keys,
                               std::span<bool> found) {
  contains_in_line<Portable>(words, sections, line, keys, found);
}
SEMEL_AVX512 [[gnu::flatten]] void contains_in_line_avx512(const std::uint64_t* words,
                                                           const Sections& sections,
                                                           std::uint32_t line,
                                                           std::span<const Digest> keys,
                                                           std::span<bool> found) {
  // The first line has its own loop, because its words need no mixing.
  if (line == 0) return contains_in_line<Avx512>(words, sections, 0, keys, found);
  contains_in_line<Avx512>(words, sections, line, keys, found);
}

void add_all_portable(std::uint64_t* words, const Sections& sections, std::span<const Digest> keys,
                      std::span<bool> added) {
  add_all<Portable>(words, sections, keys, added);
}
SEMEL_AVX512 [[gnu::flatten]] void add_all_avx512(std::uint64_t* words, const Sections& sections,
                                                  std::span<const Digest> keys,
                                                  std::span<bool> added) {
  add_all<Avx512>(words, sections, keys, added);
}

}  // namespace

#if defined(__x86_64__)
const bool kHasAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("bmi2");
#else
const bool kHasAvx512 = false;
#endif

// Goes line by line, and looks at a further line only for the keys that passed all lines before. So
// most absent keys cost one miss, whatever the number of lines.
void contains(const std::uint64_t* words, const Sections& sections, std::span<const Digest> keys,
              std::span<bool> found) {
  const auto in_line = [&](std::uint32_t line, std::span<const Digest> some, std::span<bool> into) {
    return kHasAvx512 ? contains_in_line_avx512(words, sections, line, some, into)
                      : contains_in_line_portable(words, sections, line, some, into);
  };
  in_line(0, keys, found);
  if (sections.lines == 1) return;

  constexpr std::size_t kChunk = 512;
  std::array<Digest, kChunk> left;
  std::array<std::size_t, kChunk> place;  // index of each in `keys`
  std::array<bool, kChunk> passed;
  for (std::size_t start = 0; start < keys.size(); start += kChunk) {
    const std::size_t end = std::min(keys.size(), start + kChunk);
    std::size_t n = 0;
    for (std::size_t i = start; i < end; ++i) {
      left[n] = keys[i];
      place[n] = i;
      n += found[i];
    }
    for (std::uint32_t line = 1; line < sections.lines && n > 0; ++line) {
      in_line(line, {left.data(), n}, {passed.data(), n});
      std::size_t kept = 0;
      for (std::size_t i = 0; i < n; ++i) {
        found[place[i]] = passed[i];
        left[kept] = left[i];
        place[kept] = place[i];
        kept += passed[i];
      }
      n = kept;
    }
  }
}

void add(std::uint64_t* words, const Sections& sections, std::span<const Digest> keys,
         std::span<bool> added) {
  return kHasAvx512 ? add_all_avx512(words, sections, keys, added)
                    : add_all_portable(words, sections, keys, added);
}

// Sets the key in an empty block and reads off the bits.
std::size_t bits_of(const Sections& sections, Digest key,
                    std::span<std::uint64_t, kMostBits> bits) {
  std::size_t n = 0;
  for (std::uint32_t line = 0; line < sections.lines; ++line) {
    std::array<std::uint64_t, kBlockWords> block{};
    Portable::set(block.data(), key.hi, line, sections.probes);
    const std::uint64_t start = block_start(sections, key, line);
    for (std::size_t word = 0; word < kBlockWords; ++word) {
      for (std::uint64_t ones = block[word]; ones != 0; ones &= ones - 1) {
        bits[n++] = (start + word) * 64 + static_cast<unsigned>(std::countr_zero(ones));
      }
    }
  }
  return n;
}

bool test_portable(const std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                   std::uint32_t probes) {
  return Portable::test(block, high, line, probes);
}
SEMEL_AVX512 bool test_avx512(const std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                              std::uint32_t probes) {
  return Avx512::test(block, high, line, probes);
}
bool set_portable(std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                  std::uint32_t probes) {
  return Portable::set(block, high, line, probes);
}
SEMEL_AVX512 bool set_avx512(std::uint64_t* block, std::uint64_t high, std::uint32_t line,
                             std::uint32_t probes) {
  return Avx512::set(block, high, line, probes);
}

}  // namespace semel::filter_internal::bloom_block

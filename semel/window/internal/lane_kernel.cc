#include "semel/window/internal/lane_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define SEMEL_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]]
#else
#define SEMEL_AVX512
#endif

// The intrinsics of g++ 12 read their own variables before they set them.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace semel::window_internal::lane_kernel {
namespace {

template <class Word>
inline constexpr std::uint32_t kPositions = 512 / (8 * sizeof(Word));  // in a line
template <class Word>
inline constexpr int kPositionBits = std::bit_width(kPositions<Word>) - 1;

// Words are read and written in the byte order of the machine.
template <class Word>
inline constexpr std::uint64_t kFlip = std::endian::native == std::endian::little
                                           ? 0
                                           : 8 / sizeof(Word) - 1;

template <class Word>
[[gnu::always_inline]] inline Word load_word(const std::uint64_t* words, std::uint64_t j) {
  Word word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(words) + (j ^ kFlip<Word>)*sizeof word,
              sizeof word);
  return word;
}

template <class Word>
[[gnu::always_inline]] inline void store_word(std::uint64_t* words, std::uint64_t j, Word word) {
  std::memcpy(reinterpret_cast<char*>(words) + (j ^ kFlip<Word>)*sizeof word, &word, sizeof word);
}

// A kernel reads the probes of an id in one line, or in two lines of different sections at once,
// and returns the lanes that have all of them. It reads every probe, because an early exit after a
// word that excludes all lanes would often be mispredicted.
template <class Word>
struct Portable {
  static Word test_line(const std::uint64_t* line, std::uint64_t positions, std::uint32_t probes) {
    Word all = static_cast<Word>(~Word{0});
    for (std::uint32_t i = 0; i < probes; ++i, positions >>= kPositionBits<Word>) {
      all = static_cast<Word>(all & load_word<Word>(line, positions % kPositions<Word>));
    }
    return all;
  }
  static Word test_two(const std::uint64_t* first, std::uint64_t first_positions,
                       const std::uint64_t* second, std::uint64_t second_positions,
                       std::uint32_t probes) {
    return static_cast<Word>(test_line(first, first_positions, probes) &
                             test_line(second, second_positions, probes));
  }
};

#if defined(__x86_64__)
// Reads all probes of a line at once. One shift of each byte spreads their positions over a vector,
// and one permutation gathers the words at those positions from the line.
template <class Word>
struct Avx512;

template <>
struct Avx512<std::uint8_t> {
  using Words = std::uint64_t;  // eight of them
  SEMEL_AVX512 static inline Words words_at(const std::uint64_t* line, std::uint64_t positions,
                                            std::uint32_t) {
    const __m512i shifts = _mm512_set1_epi64(0x2a241e18120c0600);
    const __m512i at =
        _mm512_multishift_epi64_epi8(shifts, _mm512_set1_epi64(static_cast<long long>(positions)));
    const __m512i words = _mm512_permutexvar_epi8(at, _mm512_load_si512(line));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(words)));
  }
  SEMEL_AVX512 static inline Words both(Words a, Words b) { return a & b; }
  SEMEL_AVX512 static inline std::uint8_t all_of(Words all, std::uint32_t probes) {
    all |= ~_bzhi_u64(~std::uint64_t{0}, 8 * std::uint64_t{probes});  // what is past the last probe
    all &= all >> 32;
    all &= all >> 16;
    return static_cast<std::uint8_t>(all & all >> 8);
  }
};

template <>
struct Avx512<std::uint16_t> {
  using Words = __m128i;
  SEMEL_AVX512 static inline Words words_at(const std::uint64_t* line, std::uint64_t positions,
                                            std::uint32_t probes) {
    const __m512i shifts = _mm512_set4_epi64(0, 0, 0x0023001e00190014, 0x000f000a00050000);
    const __m512i at =
        _mm512_multishift_epi64_epi8(shifts, _mm512_set1_epi64(static_cast<long long>(positions)));
    return _mm512_castsi512_si128(_mm512_mask_permutexvar_epi16(
        _mm512_set1_epi64(-1), (1u << probes) - 1, at, _mm512_load_si512(line)));
  }
  SEMEL_AVX512 static inline Words both(Words a, Words b) { return _mm_and_si128(a, b); }
  SEMEL_AVX512 static inline std::uint16_t all_of(Words words, std::uint32_t) {
    auto all = static_cast<std::uint64_t>(_mm_cvtsi128_si64(words)) &
               static_cast<std::uint64_t>(_mm_extract_epi64(words, 1));
    all &= all >> 32;
    return static_cast<std::uint16_t>(all & all >> 16);
  }
};

template <>
struct Avx512<std::uint32_t> {
  using Words = __m256i;
  SEMEL_AVX512 static inline Words words_at(const std::uint64_t* line, std::uint64_t positions,
                                            std::uint32_t probes) {
    const __m512i shifts = _mm512_set4_epi64(0x0000001c00000018, 0x0000001400000010,
                                             0x0000000c00000008, 0x0000000400000000);
    const __m512i at =
        _mm512_multishift_epi64_epi8(shifts, _mm512_set1_epi64(static_cast<long long>(positions)));
    return _mm512_castsi512_si256(_mm512_mask_permutexvar_epi32(
        _mm512_set1_epi64(-1), static_cast<__mmask16>((1u << probes) - 1), at,
        _mm512_load_si512(line)));
  }
  SEMEL_AVX512 static inline Words both(Words a, Words b) { return _mm256_and_si256(a, b); }
  SEMEL_AVX512 static inline std::uint32_t all_of(Words words, std::uint32_t) {
    const __m128i half =
        _mm_and_si128(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    const auto all = static_cast<std::uint64_t>(_mm_cvtsi128_si64(half)) &
                     static_cast<std::uint64_t>(_mm_extract_epi64(half, 1));
    return static_cast<std::uint32_t>(all & all >> 32);
  }
};

template <>
struct Avx512<std::uint64_t> {
  using Words = __m512i;
  SEMEL_AVX512 static inline Words words_at(const std::uint64_t* line, std::uint64_t positions,
                                            std::uint32_t probes) {
    const __m512i shifts = _mm512_setr_epi64(0, 3, 6, 9, 12, 15, 18, 21);
    const __m512i at =
        _mm512_srlv_epi64(_mm512_set1_epi64(static_cast<long long>(positions)), shifts);
    return _mm512_mask_permutexvar_epi64(_mm512_set1_epi64(-1),
                                         static_cast<__mmask8>((1u << probes) - 1), at,
                                         _mm512_load_si512(line));
  }
  SEMEL_AVX512 static inline Words both(Words a, Words b) { return _mm512_and_si512(a, b); }
  SEMEL_AVX512 static inline std::uint64_t all_of(Words words, std::uint32_t) {
    return static_cast<std::uint64_t>(_mm512_reduce_and_epi64(words));
  }
};

template <class Word>
struct Avx512Lines {
  using Vector = Avx512<Word>;
  SEMEL_AVX512 static inline Word test_line(const std::uint64_t* line, std::uint64_t positions,
                                            std::uint32_t probes) {
    return Vector::all_of(Vector::words_at(line, positions, probes), probes);
  }
  SEMEL_AVX512 static inline Word test_two(const std::uint64_t* first,
                                           std::uint64_t first_positions,
                                           const std::uint64_t* second,
                                           std::uint64_t second_positions, std::uint32_t probes) {
    return Vector::all_of(Vector::both(Vector::words_at(first, first_positions, probes),
                                       Vector::words_at(second, second_positions, probes)),
                          probes);
  }
};
#else
template <class Word>
using Avx512Lines = Portable<Word>;
#endif
static_assert(limits::kLaneProbes == 8);  // as many as a vector of 64-bit words holds

// Returns word n of half a digest. The half is random already; it is multiplied by odd factors,
// none of which is a small multiple of another. The upper bits of a product depend on all bits of
// the half.
[[gnu::always_inline]] inline std::uint64_t part_of(std::uint64_t half, std::uint32_t n) {
  constexpr std::array<std::uint64_t, limits::kBlockedLines> kFactors = {
      1, 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb};
  return half * kFactors[n];
}

// Returns the positions of an id in its line of a section, lowest first.
[[gnu::always_inline]] inline std::uint64_t positions_of(Digest id, std::uint32_t section) {
  return part_of(id.hi, section) >> 16;
}

// The positions of an id in the plain layout, one after the other.
class PlainProbes {
 public:
  PlainProbes(const View& v, Digest id)
      : point_(id.lo),
        step_(id.hi),
        turn_(fold(id.hi, 0x9e3779b97f4a7c15)),
        positions_(v.positions) {}
  std::uint64_t next() {
    const std::uint64_t position = scale(point_, positions_);
    point_ += step_;
    step_ += turn_;
    return position;
  }

 private:
  std::uint64_t point_, step_, turn_, positions_;
};

// Returns the line of an id in a section, counted from the first of the array.
[[gnu::always_inline]] inline std::uint64_t line_of(const View& v, Digest id,
                                                    std::uint32_t section) {
  return section * v.blocks + scale(part_of(id.lo, section), v.blocks);
}

[[gnu::always_inline]] inline bool clean(const View& v, std::uint64_t line) {
  return line < v.swept || (v.cleaned[line / 64] >> (line % 64) & 1) != 0;
}

// Returns the lanes whose bits are valid in this line.
[[gnu::always_inline]] inline std::uint64_t readable(const View& v, std::uint64_t line) {
  return v.sweeping == 0 || clean(v, line) ? ~std::uint64_t{0} : ~v.sweeping;
}

void clean_before_write(const View& v, std::uint64_t line) {
  if (clean(v, line)) return;
  std::uint64_t gone = v.sweeping;
  for (std::uint32_t bits = v.word_bits; bits < 64; bits *= 2) gone |= gone << bits;
  for (std::uint64_t i = 0; i < kLineWords; ++i) v.words[line * kLineWords + i] &= ~gone;
  v.cleaned[line / 64] |= std::uint64_t{1} << (line % 64);
}

// Reads four probes at a time: their misses overlap, and the others are seldom needed.
template <class Word>
Word test_plain(const View& v, Digest id, Word lanes) {
  PlainProbes probes(v, id);
  for (std::uint32_t start = 0; start < v.probes && lanes != 0; start += 4) {
    const std::uint32_t end = std::min(start + 4, v.probes);
    for (std::uint32_t probe = start; probe < end; ++probe) {
      const std::uint64_t j = probes.next();
      lanes = static_cast<Word>(lanes & load_word<Word>(v.words, j) &
                                readable(v, j / kPositions<Word>));
    }
  }
  return lanes;
}

// The functions below are inlined into one caller for each kernel. `flatten` inlines the kernel
// there too. The kernel cannot be inlined earlier, because the compiler does not inline code for
// another processor into ours.

template <class Kernel, class Word>
[[gnu::always_inline]] inline Word test_section(const View& v, Digest id, Word lanes,
                                                std::uint32_t section) {
  const std::uint64_t line = line_of(v, id, section);
  const Word words =
      Kernel::test_line(v.words + line * kLineWords, positions_of(id, section), v.probes);
  return static_cast<Word>(lanes & words & readable(v, line));
}

// Tests the first two sections at once. A branch between them would be mispredicted for every
// fourth new id, and a branch that waits for memory is expensive. REQUIRES: two sections, and no
// sweep.
template <class Kernel, class Word>
[[gnu::always_inline]] inline Word test_two(const View& v, Digest id, Word lanes) {
  const std::uint64_t* first = v.words + line_of(v, id, 0) * kLineWords;
  const std::uint64_t* second = v.words + line_of(v, id, 1) * kLineWords;
  return static_cast<Word>(
      lanes & Kernel::test_two(first, positions_of(id, 0), second, positions_of(id, 1), v.probes));
}

template <class Kernel, class Word>
[[gnu::always_inline]] inline Word test_from(const View& v, Digest id, Word lanes,
                                             std::uint32_t section) {
  for (; section < v.sections && lanes != 0; ++section) {
    lanes = test_section<Kernel, Word>(v, id, lanes, section);
  }
  return lanes;
}

// A chunk is tested section by section, and each section only for the ids that passed those before.
// So most new ids cost one or two misses, whatever the number of lines.
constexpr std::size_t kChunk = 512;

template <class Kernel, class Word>
[[gnu::always_inline]] inline void test_chunk(const View& v, std::span<const Digest> ids,
                                              Word lanes, std::span<std::uint64_t> found) {
  std::array<std::uint16_t, kChunk> left;
  std::size_t n = ids.size();
  const std::size_t ahead = std::min(kAhead, n);
  for (std::size_t i = 0; i < ahead; ++i) prefetch(v.words + line_of(v, ids[i], 0) * kLineWords);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) prefetch(v.words + line_of(v, ids[i + ahead], 0) * kLineWords);
    const Word here = test_section<Kernel, Word>(v, ids[i], lanes, 0);
    found[i] = here;
    left[kept] = static_cast<std::uint16_t>(i);
    kept += here != 0;
  }
  for (std::uint32_t section = 1; section < v.sections && kept > 0; ++section) {
    n = kept;
    kept = 0;
    for (std::size_t i = 0; i < std::min(kAhead, n); ++i) {
      prefetch(v.words + line_of(v, ids[left[i]], section) * kLineWords);
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i + kAhead < n) {
        prefetch(v.words + line_of(v, ids[left[i + kAhead]], section) * kLineWords);
      }
      const std::uint16_t at = left[i];
      const Word here =
          test_section<Kernel, Word>(v, ids[at], static_cast<Word>(found[at]), section);
      found[at] = here;
      left[kept] = at;
      kept += here != 0;
    }
  }
}

// The code that few checks need is in separate functions, so that other checks save no registers.
template <class Word>
[[gnu::noinline]] std::uint64_t from_portable(const View& v, Digest id, std::uint64_t lanes,
                                              std::uint32_t section) {
  return test_from<Portable<Word>, Word>(v, id, static_cast<Word>(lanes), section);
}
template <class Word>
SEMEL_AVX512 [[gnu::noinline, gnu::flatten]] std::uint64_t from_avx512(const View& v, Digest id,
                                                                       std::uint64_t lanes,
                                                                       std::uint32_t section) {
  return test_from<Avx512Lines<Word>, Word>(v, id, static_cast<Word>(lanes), section);
}
template <class Word>
std::uint64_t one_portable(const View& v, Digest id, std::uint64_t lanes) {
  if (v.sections < 2 || v.sweeping != 0) return from_portable<Word>(v, id, lanes, 0);
  lanes = test_two<Portable<Word>, Word>(v, id, static_cast<Word>(lanes));
  return lanes == 0 || v.sections == 2 ? lanes : from_portable<Word>(v, id, lanes, 2);
}
// There is one function each for one section, two, and more. A check without needless instructions
// leaves the processor more room to begin the next checks while it waits for memory.
template <class Word>
SEMEL_AVX512 [[gnu::flatten]] std::uint64_t one_avx512(const View& v, Digest id,
                                                       std::uint64_t lanes) {
  return from_avx512<Word>(v, id, lanes, 0);
}
template <class Word>
SEMEL_AVX512 [[gnu::flatten]] std::uint64_t two_avx512(const View& v, Digest id,
                                                       std::uint64_t lanes) {
  if (v.sweeping != 0) return from_avx512<Word>(v, id, lanes, 0);
  return test_two<Avx512Lines<Word>, Word>(v, id, static_cast<Word>(lanes));
}
template <class Word>
SEMEL_AVX512 [[gnu::flatten]] std::uint64_t more_avx512(const View& v, Digest id,
                                                        std::uint64_t lanes) {
  if (v.sweeping != 0) return from_avx512<Word>(v, id, lanes, 0);
  const Word left = test_two<Avx512Lines<Word>, Word>(v, id, static_cast<Word>(lanes));
  return left == 0 ? 0 : from_avx512<Word>(v, id, left, 2);
}
template <class Word>
std::uint64_t plain(const View& v, Digest id, std::uint64_t lanes) {
  return test_plain<Word>(v, id, static_cast<Word>(lanes));
}
template <class Word>
void chunk_portable(const View& v, std::span<const Digest> ids, std::uint64_t lanes,
                    std::span<std::uint64_t> found) {
  test_chunk<Portable<Word>, Word>(v, ids, static_cast<Word>(lanes), found);
}
template <class Word>
SEMEL_AVX512 [[gnu::flatten]] void chunk_avx512(const View& v, std::span<const Digest> ids,
                                                std::uint64_t lanes,
                                                std::span<std::uint64_t> found) {
  const View copy = v;  // no store to `found` can change the copy
  test_chunk<Avx512Lines<Word>, Word>(copy, ids, static_cast<Word>(lanes), found);
}

template <class Word>
bool set_bit(std::uint64_t* words, std::uint64_t j, Word lane) {
  const Word before = load_word<Word>(words, j);
  store_word<Word>(words, j, static_cast<Word>(before | lane));
  return (before & lane) == 0;
}

template <class Word>
std::uint32_t set_all(const View& v, Digest id, Word lane) {
  std::uint32_t fresh = 0;
  if (v.sections == 0) {
    PlainProbes probes(v, id);
    for (std::uint32_t probe = 0; probe < v.probes; ++probe) {
      const std::uint64_t j = probes.next();
      if (v.sweeping != 0) clean_before_write(v, j / kPositions<Word>);
      fresh += set_bit<Word>(v.words, j, lane);
    }
    return fresh;
  }
  for (std::uint32_t section = 0; section < v.sections; ++section) {
    const std::uint64_t line = line_of(v, id, section);
    if (v.sweeping != 0) clean_before_write(v, line);
    std::uint64_t* words = v.words + line * kLineWords;
    std::uint64_t positions = positions_of(id, section);
    for (std::uint32_t i = 0; i < v.probes; ++i, positions >>= kPositionBits<Word>) {
      fresh += set_bit<Word>(words, positions % kPositions<Word>, lane);
    }
  }
  return fresh;
}

#if defined(__x86_64__)
// Sets a line of 8-bit words at once. The mask has a bit for each word that the id has in the line.
SEMEL_AVX512 std::uint32_t set_bytes_avx512(const View& v, Digest id, std::uint64_t lane) {
  const __m512i bit = _mm512_set1_epi8(static_cast<char>(lane));
  std::uint32_t fresh = 0;
  for (std::uint32_t section = 0; section < v.sections; ++section) {
    const std::uint64_t line = line_of(v, id, section);
    if (v.sweeping != 0) clean_before_write(v, line);
    std::uint64_t positions = positions_of(id, section), words = 0;
    for (std::uint32_t i = 0; i < v.probes; ++i, positions >>= 6) {
      words |= std::uint64_t{1} << (positions % 64);
    }
    std::uint64_t* const at = v.words + line * kLineWords;
    const __m512i before = _mm512_load_si512(at);
    const std::uint64_t clear = ~_cvtmask64_u64(_mm512_test_epi8_mask(before, bit));
    fresh += static_cast<std::uint32_t>(__builtin_popcountll(words & clear));
    _mm512_store_si512(at,
                       _mm512_or_si512(before, _mm512_maskz_mov_epi8(_cvtu64_mask64(words), bit)));
  }
  return fresh;
}
#else
std::uint32_t set_bytes_avx512(const View& v, Digest id, std::uint64_t lane) {
  return set_all(v, id, static_cast<std::uint8_t>(lane));
}
#endif

template <class Word>
std::uint32_t set_portable(const View& v, Digest id, std::uint64_t lane) {
  return set_all(v, id, static_cast<Word>(lane));
}

template <class Call>
[[gnu::always_inline]] inline auto with_word(const View& v, Call call) {
  switch (v.word_bits) {
    case 8:
      return call(std::uint8_t{});
    case 16:
      return call(std::uint16_t{});
    case 32:
      return call(std::uint32_t{});
    default:
      return call(std::uint64_t{});
  }
}

}  // namespace

#if defined(__x86_64__)
const bool kHasAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("bmi2");
#else
const bool kHasAvx512 = false;
#endif

TestOne test_for(const View& view, bool avx512) {
  return with_word(view, [&](auto word) -> TestOne {
    using Word = decltype(word);
    if (view.sections == 0) return plain<Word>;
    if (!avx512) return one_portable<Word>;
    return view.sections == 1   ? one_avx512<Word>
           : view.sections == 2 ? two_avx512<Word>
                                : more_avx512<Word>;
  });
}

void test(const View& view, std::span<const Digest> ids, std::uint64_t lanes,
          std::span<std::uint64_t> found, bool avx512) {
  SEMEL_ASSERT(ids.size() == found.size());
  with_word(view, [&](auto word) {
    using Word = decltype(word);
    if (view.sections == 0) {
      return for_each_ahead(
          ids.size(), [&](std::size_t i) { touch(view, ids[i]); },
          [&](std::size_t i) {
            found[i] = test_plain<Word>(view, ids[i], static_cast<Word>(lanes));
          });
    }
    for (std::size_t start = 0; start < ids.size(); start += kChunk) {
      const auto some = ids.subspan(start, std::min(kChunk, ids.size() - start));
      const auto into = found.subspan(start, some.size());
      avx512 ? chunk_avx512<Word>(view, some, lanes, into)
             : chunk_portable<Word>(view, some, lanes, into);
    }
  });
}

SetOne set_for(const View& view, bool avx512) {
  if (avx512 && view.word_bits == 8 && view.sections != 0) return set_bytes_avx512;
  return with_word(view, [](auto word) -> SetOne { return set_portable<decltype(word)>; });
}

TestAndSet test_and_set(const View& view, Digest id, std::uint64_t lanes, std::uint64_t lane) {
  // Most ids are new and need every line; the test before began with two of them.
  for (std::uint32_t section = 2; section < view.sections; ++section) {
    prefetch_for_write(view.words + line_of(view, id, section) * kLineWords);
  }
  const std::uint64_t found = view.test(view, id, lanes);
  return {found, found != 0 ? 0 : view.set(view, id, lane)};
}

void touch(const View& view, Digest id) {
  for (std::uint32_t section = 0; section < view.sections; ++section) {
    prefetch_for_write(view.words + line_of(view, id, section) * kLineWords);
  }
  if (view.sections != 0) return;
  PlainProbes probes(view, id);
  for (std::uint32_t probe = 0; probe < view.probes; ++probe) {
    prefetch(reinterpret_cast<const char*>(view.words) + probes.next() * (view.word_bits / 8));
  }
}

// Prefetches two lines, or four positions. One new id in a hundred passes them.
void touch_for_test(const View& view, Digest id) {
  for (std::uint32_t section = 0; section < std::min(view.sections, 2u); ++section) {
    prefetch(view.words + line_of(view, id, section) * kLineWords);
  }
  if (view.sections != 0) return;
  PlainProbes probes(view, id);
  for (std::uint32_t probe = 0; probe < std::min(view.probes, 4u); ++probe) {
    prefetch(reinterpret_cast<const char*>(view.words) + probes.next() * (view.word_bits / 8));
  }
}

std::uint64_t load(const View& view, std::uint64_t j) {
  return with_word(view, [&](auto word) -> std::uint64_t {
    using Word = decltype(word);
    return load_word<Word>(view.words, j) & readable(view, j / kPositions<Word>);
  });
}

void store(const View& view, std::uint64_t j, std::uint64_t word) {
  with_word(view, [&](auto type) {
    using Word = decltype(type);
    store_word<Word>(view.words, j, static_cast<Word>(word));
  });
}

}  // namespace semel::window_internal::lane_kernel

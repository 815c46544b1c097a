// The probes of LaneArray: the positions of an id's words, and the test for lanes that have all of
// them.
//
// Position i of an id in the plain layout is a point on a circle of 2^64, scaled to the positions:
// the first point is lo, the first step hi, and each step differs from the one before by a third
// word, fold(hi, 0x9e3779b97f4a7c15). (With two words alone, about one id in m would have a step so
// small that all its probes fall on one position. In a small or very exact filter that would exceed
// the error goal.)
//
// In a blocked layout of L lines the array has L sections of equal size, and an id has one line in
// each. For section n both halves of the digest are multiplied by factor n, which is 1,
// 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9 or 0x94d049bb133111eb. The scaled product of lo is the
// line. Bits 16 and up of the product of hi are the positions in it, lowest first. A position has
// 6, 5, 4 or 3 bits, for the 64, 32, 16 or 8 words of a line. Lines and positions are independent,
// so the formulas for this layout are exact.
//
// FROZEN with docs/formats/forgetful_v1.md.
//
// Two kernels, portable and AVX-512, give the same bits; the processor decides at run time.
#pragma once

#include <cstdint>
#include <span>

#include "semel/hash/digest.h"

namespace semel::window_internal::lane_kernel {

inline constexpr std::uint64_t kLineWords = 8;  // of 64 bits

struct View;
using TestOne = std::uint64_t (*)(const View& view, Digest id, std::uint64_t lanes);
using SetOne = std::uint32_t (*)(const View& view, Digest id, std::uint64_t lane);

struct View {
  std::uint64_t* words;    // the whole array, on a cache line
  std::uint64_t* cleaned;  // a bit for each line that was cleared ahead of the sweep
  std::uint64_t positions;
  std::uint64_t blocks;     // lines of a section; 0 if plain
  std::uint64_t swept;      // lines that the sweep is done with
  std::uint64_t sweeping;   // the lanes of the sweep; 0 if there is none
  std::uint32_t word_bits;  // 8, 16, 32 or 64
  std::uint32_t sections;   // lines of an id; 0 if plain
  std::uint32_t probes;     // in a section; all of them if plain

  // Returns the given lanes that have all positions of the id. A lane that is being swept reads as
  // empty in a line that is not clean yet.
  TestOne test = nullptr;  // test_for(*this)
  // Sets all positions of the id in one lane, given as a bit. Returns how many were clear.
  SetOne set = nullptr;  // set_for(*this)
};

// This is true if the processor has the instructions of the second kernel. It is false before its
// initialisation, which is harmless: both kernels give the same bits.
extern const bool kHasAvx512;

// These return View::test and View::set for this layout, and for a processor with or without
// AVX-512.
TestOne test_for(const View& view, bool avx512 = kHasAvx512);
SetOne set_for(const View& view, bool avx512 = kHasAvx512);

// Tests many ids.
void test(const View& view, std::span<const Digest> ids, std::uint64_t lanes,
          std::span<std::uint64_t> found, bool avx512 = kHasAvx512);

// Calls test() and, if that finds no lane, set(). The lines are in the cache by then.
struct TestAndSet {
  std::uint64_t found;
  std::uint32_t set;
};
TestAndSet test_and_set(const View& view, Digest id, std::uint64_t lanes, std::uint64_t lane);

void touch(const View& view, Digest id);  // prefetches the lines for a test or a write
void touch_for_test(const View& view,
                    Digest id);  // prefetches what most new ids need

std::uint64_t load(const View& view, std::uint64_t j);  // word j, as above
void store(const View& view, std::uint64_t j, std::uint64_t word);

}  // namespace semel::window_internal::lane_kernel

// Elias-Fano: a code for ascending numbers that is close to the fewest bits possible.
//
// Contract  A sequence has n numbers, each at most `last`. Equal neighbours are allowed. Each
//           number takes about log2(last / n) + 2 bits, however the numbers are spread. Equal
//           sequences give equal bytes.
// Layout    The lower k bits of each number are stored as they are. 2^k is about the mean distance
//           between neighbours. The upper parts ascend slowly and are stored in unary: number i
//           sets the bit at place (number >> k) + i, and all other bits are zero.
//
//             5, 6, 10, 15 with last = 15:  k = 2  low 01 10 10 11  high 1 1 2 3 -> ones at 1 2 4 6
//
// Cost      A few nanoseconds per number.
// Format    Other formats contain it: docs/formats/README.md, ascending numbers.
// Source    Elias, JACM 21(2), 1974; Fano, MIT Computation Structures Group memo 61, 1971.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/bits/internal/packed_writer.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/result.h"

namespace semel::inline bits_internal::elias_fano {

// Returns the size of the code of n numbers up to `last`, in bytes. The result is correct for every
// n, so n may be an unchecked count from untrusted input.
std::uint64_t byte_size(std::uint64_t n, std::uint64_t last);

// The widths of the two halves of the code.
struct Layout {
  std::uint32_t low_bits;  // k
  uint128 high_bits;       // in all, not per number
};
// REQUIRES: n > 0.
Layout layout_of(std::uint64_t n, std::uint64_t last);

// Appends the code of n numbers and needs the memory of only one. numbers(visit) must call
// visit(number) for each number in ascending order; encode() calls it at most twice. REQUIRES: the
// numbers ascend (equal neighbours allowed), and none exceeds `last`.
template <class Numbers>
void encode(Sink out, std::uint64_t n, std::uint64_t last, Numbers numbers) {
  if (n == 0 || out.only_measures(byte_size(n, last))) return;
  const std::uint32_t low_bits = layout_of(n, last).low_bits;
  PackedWriter bits(out);
  if (low_bits > 0) {
    const std::uint64_t mask = (std::uint64_t{1} << low_bits) - 1;
    numbers([&](std::uint64_t value) { bits.put(value & mask, low_bits); });
    bits.finish();
  }
  std::uint64_t before = 0, count = 0;
  numbers([&](std::uint64_t value) {
    SEMEL_ASSERT(before <= value && value <= last);
    bits.zeros((value >> low_bits) - (before >> low_bits));
    bits.put(1, 1);
    before = value;
    ++count;
  });
  SEMEL_ASSERT(count == n);
  bits.zeros((last >> low_bits) - (before >> low_bits));
  bits.finish();
}
// Appends the code of numbers that lie in one array.
void encode(Sink out, std::span<const std::uint64_t> values, std::uint64_t last);

// Reads n numbers. Errc::truncated if too few bytes are left, before anything is allocated: this
// also catches a forged n. Errc::corrupt unless the bytes are exactly the code of n such numbers.
Result<std::vector<std::uint64_t>> decode(Reader& in, std::uint64_t n, std::uint64_t last);

}  // namespace semel::inline bits_internal::elias_fano

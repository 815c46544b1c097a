// Elias-Fano: the code of ascending numbers, near to the fewest bits that they can take.
//
// Contract  n numbers, each at most `last`, equal neighbours allowed, take about log2(last / n) + 2
//           bits each, wherever they lie. The same numbers give the same bytes.
// Layout    The lower k bits of each number as they are, where 2^k is about the mean distance
//           between two of them. What is above ascends slowly, and is written in unary: for number
//           i a one at place (number >> k) + i, the rest zeros.
//
//             5, 6, 10, 15 of at most 15:   k = 2   low 01 10 10 11   high 0 1 2 3 -> ones at 1 2 4 6
//
// Cost      Some nanoseconds for each number.
// Format    A part of other formats: docs/formats/README.md, ascending numbers.
// Source    Elias, JACM 21(2), 1974; Fano, MIT Computation Structures Group memo 61, 1971.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/bits/packed_writer.h"
#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"

namespace semel::elias_fano {

// Bytes of the code of n numbers up to `last`. Right for any n: it may be a claim of outside bytes.
std::uint64_t byte_size(std::uint64_t n, std::uint64_t last);

// How the numbers are laid out.
struct Layout {
  std::uint32_t low_bits;  // k
  uint128 high_bits;       // of all numbers
};
// REQUIRES: n > 0.
Layout layout_of(std::uint64_t n, std::uint64_t last);

// Appends the code of n numbers, in the memory of one. numbers(visit) calls visit(number) for each,
// ascending; it is called twice at most. REQUIRES: they ascend (equal neighbours allowed), and none
// exceeds `last`.
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
// The same of numbers that lie side by side.
void encode(Sink out, std::span<const std::uint64_t> values, std::uint64_t last);

// Fills `values` with n numbers. False, and `values` is of no use, unless the bytes are the code of
// n such numbers, bit for bit. REQUIRES: in.rest() >= byte_size(n, last), which checks the claim n.
[[nodiscard]] bool decode(Reader& in, std::uint64_t n, std::uint64_t last,
                          std::vector<std::uint64_t>& values);

}  // namespace semel::elias_fano

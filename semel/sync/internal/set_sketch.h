// SetSketch: finds the difference of two sets of 32-bit numbers, in a number of bytes proportional
// to the difference.
//
// Contract  The sketch of a set is the XOR of the sketches of its members. The XOR of two sketches
//           of equal capacity is the sketch of the difference. decode() gives the only set of at
//           most capacity() members that has this sketch, or an error if there is none. A
//           difference with more members gives the error or, with probability of about 1 /
//           capacity!, wrong numbers. Check a digest to be sure. Syndromes may be untrusted: no
//           syndromes cost more than those of a set.
// Cost      Time for each unit of capacity:
//           toggle_many()  0.8 ns with AVX-512, 1.5 ns with PCLMUL, 9 ns without either
//           toggle()       12 ns
//           decode() of 1, 8, 16, 32, 64 members: 0.4, 12, 28, 71, 184 us; up to twice that if few
//           numbers are close together; a fifth if there are too many (bench/micro/set_sketch.cc).
// Memory    4 bytes for each unit of capacity, which is within log2(capacity!) bits of the
//           information-theoretic limit. decode(): slightly more than 2 n^2 bytes for n members, at
//           most 2 MB.
// Source    Dodis, Ostrovsky, Reyzin & Smith, 'Fuzzy extractors', SIAM J. Comput. 38, 2008, section
//           6.3 (PinSketch): syndromes of a BCH code over GF(2^32).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::sync_internal {

class SetSketch {
 public:
  static constexpr std::uint32_t kMostCapacity = 1024;

  // REQUIRES: 1 <= capacity <= kMostCapacity.
  explicit SetSketch(std::uint32_t capacity);
  // REQUIRES: bytes.size() is a multiple of 4, not 0, and at most 4 * kMostCapacity.
  static SetSketch of_bytes(ByteView bytes);

  // Adds the number, or removes it if it is there. REQUIRES: number != 0.
  void toggle(std::uint32_t number) { toggle(syndromes_, number); }
  // Does the same for a sketch in a larger array.
  static void toggle(std::span<std::uint32_t> syndromes, std::uint32_t number);
  // Does the same for many numbers, in a fraction of the time.
  static void toggle_many(std::span<std::uint32_t> syndromes,
                          std::span<const std::uint32_t> numbers);
  // Does the same for many sketches that lie one after another: numbers[i] goes to sketch
  // places[i]. REQUIRES: as many places as numbers, all within `sketches`.
  static void toggle_many(std::span<std::uint32_t> sketches, std::uint32_t capacity,
                          std::span<const std::uint32_t> places,
                          std::span<const std::uint32_t> numbers);
  // REQUIRES: equal capacity.
  SetSketch& operator^=(const SetSketch& other);

  // Returns the members in increasing order. Errc::limit if there are too many.
  Result<std::vector<std::uint32_t>> decode() const { return decode(syndromes_); }
  static Result<std::vector<std::uint32_t>> decode(std::span<const std::uint32_t> syndromes);

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(syndromes_.size()); }
  std::span<const std::uint32_t> syndromes() const { return syndromes_; }
  bool operator==(const SetSketch&) const = default;

 private:
  std::vector<std::uint32_t> syndromes_;  // the odd powers: S1, S3, S5, ...
};

}  // namespace semel::sync_internal

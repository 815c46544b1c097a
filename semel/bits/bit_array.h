// BitArray: a fixed number of bits, stored on whole cache lines.
//
// Contract  Bit i is bit i % 64 of word i / 64. Bits past the size are zero.
// Merge     unite() is the union. REQUIRES: equal sizes.
// Memory    size / 8 bytes, rounded up to words; huge pages from 4 MiB on (bits/lines.h).
// Format    The words in order, little-endian, without a header. Other formats contain it.
#pragma once

#include <cstdint>
#include <span>

#include "semel/bits/lines.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"

namespace semel {

class BitArray {
 public:
  // REQUIRES: bits is a positive multiple of 64.
  explicit BitArray(std::uint64_t bits);

  std::uint64_t size() const { return words_.size() * 64; }
  bool test(std::uint64_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(std::uint64_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  std::uint64_t count() const;        // Returns the number of set bits.
  bool unite(const BitArray& other);  // Returns true if a new bit was set.

  std::span<std::uint64_t> words() { return words_; }
  std::span<const std::uint64_t> words() const { return words_; }

  void encode(Sink out) const;
  // REQUIRES: `in` holds at least size() / 8 bytes. The caller checks this when it sizes the array.
  void decode(Reader& in);

  bool operator==(const BitArray&) const = default;

 private:
  LineArray<std::uint64_t> words_;
};

}  // namespace semel

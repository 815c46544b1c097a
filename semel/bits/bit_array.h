// BitArray: a fixed number of bits on whole cache lines.
//
// Contract  Bit i is bit i % 64 of word i / 64. Bits past the size are zero.
// Merge     unite() is the union. REQUIRES: equal sizes.
// Memory    size / 8 bytes, rounded up to words; huge pages from 4 MiB on (bits/lines.h).
// Format    The words in order, little-endian, without a header: a part of other formats.
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
  std::uint64_t count() const;        // of the bits that are set
  bool unite(const BitArray& other);  // true if that set a bit

  std::span<std::uint64_t> words() { return words_; }
  std::span<const std::uint64_t> words() const { return words_; }

  void encode(Sink out) const;
  // REQUIRES: `in` holds size() / 8 bytes or more; whoever sized the array has checked the length.
  void decode(Reader& in);

  bool operator==(const BitArray&) const = default;

 private:
  LineArray<std::uint64_t> words_;
};

}  // namespace semel

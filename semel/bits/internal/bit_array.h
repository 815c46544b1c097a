// BitArray: a fixed number of bits, stored on whole cache lines.
//
// Contract  Bit i is bit i % 64 of word i / 64.
// Merge     unite() is the union. REQUIRES: equal sizes.
// Memory    size / 8 bytes; huge pages from 4 MiB on (line_array.h).
#pragma once

#include <cstdint>
#include <span>

#include "semel/bits/internal/line_array.h"
#include "semel/core/assert.h"

namespace semel::inline bits_internal {

// Returns the number of set bits.
std::uint64_t count_ones(std::span<const std::uint64_t> words);
// Sets the bits of `there` here. Returns true if a new bit was set. REQUIRES: equal sizes.
bool unite(std::span<std::uint64_t> here, std::span<const std::uint64_t> there);

class BitArray {
 public:
  // REQUIRES: bits is a positive multiple of 64.
  explicit BitArray(std::uint64_t bits);

  std::uint64_t size() const { return words_.size() * 64; }
  bool test(std::uint64_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(std::uint64_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  std::uint64_t count() const { return count_ones(words_); }
  bool unite(const BitArray& other) { return semel::unite(words_, other.words_); }

  std::span<std::uint64_t> words() { return words_; }
  std::span<const std::uint64_t> words() const { return words_; }

  bool operator==(const BitArray&) const = default;

 private:
  LineArray<std::uint64_t> words_;
};

}  // namespace semel::inline bits_internal

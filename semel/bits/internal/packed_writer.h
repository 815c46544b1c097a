// PackedWriter: writes numbers of a few bits each, one after another, without gaps.
//
// Contract  The bytes equal those of a PackedArray of the same numbers, low bit first. The writer
//           needs no memory beyond its sink.
#pragma once

#include <cstdint>

#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::inline bits_internal {

class PackedWriter {
 public:
  explicit PackedWriter(Sink out) : out_(out) {}

  // REQUIRES: width <= 64, and value < 2^width.
  void put(std::uint64_t value, std::uint32_t width) {
    SEMEL_ASSERT(width >= 64 || value >> width == 0);
    pending_ |= static_cast<uint128>(value) << bits_;
    bits_ += width;
    if (bits_ < 64) return;
    out_.u64(static_cast<std::uint64_t>(pending_));
    pending_ >>= 64;
    bits_ -= 64;
  }
  void zeros(std::uint64_t count) {
    for (; count >= 64; count -= 64) put(0, 64);
    put(0, static_cast<std::uint32_t>(count));
  }
  // Fills the last byte with zeros. The next number begins a new byte.
  void finish() {
    out_.low_bytes(static_cast<std::uint64_t>(pending_), divide_up(bits_, 8));
    pending_ = 0;
    bits_ = 0;
  }

 private:
  Writer out_;
  uint128 pending_ = 0;
  std::uint32_t bits_ = 0;  // bits used in pending_, fewer than 64
};

}  // namespace semel::inline bits_internal

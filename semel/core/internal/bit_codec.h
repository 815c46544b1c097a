// BitWriter and BitReader: fields of a few bits, the highest bit of a byte first.
//
// Like a Reader, a BitReader fails once and for all: after the first short read every later read
// returns zero. Ask ok() before you trust any value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "semel/core/assert.h"
#include "semel/core/codec.h"

namespace semel::inline core_internal {

class BitWriter {
 public:
  explicit BitWriter(Bytes& out) : out_(out) {}

  // Writes the lowest `width` bits of `value`. REQUIRES: width <= 64.
  void put(std::uint64_t value, int width) {
    SEMEL_ASSERT(width <= 64);
    for (int i = width - 1; i >= 0; --i) put_bit((value >> i & 1) != 0);
  }
  void put_bit(bool bit) {
    if (free_ == 0) {
      out_.push_back(0);
      free_ = 8;
    }
    --free_;
    if (bit) out_.back() = static_cast<std::uint8_t>(out_.back() | 1U << free_);
  }
  // Writes Elias' gamma code: one bit for 1, three bits for 2 and 3, and so on.
  // REQUIRES: value > 0.
  void gamma(std::uint64_t value) {
    SEMEL_ASSERT(value > 0);
    const auto width = static_cast<int>(std::bit_width(value));
    put(0, width - 1);
    put(value, width);
  }

 private:
  Bytes& out_;
  int free_ = 0;  // unused bits of the last byte
};

class BitReader {
 public:
  explicit BitReader(ByteView in) : in_(in) {}

  std::uint64_t get(int width) {
    std::uint64_t value = 0;
    for (int i = 0; i < width; ++i) value = value << 1 | static_cast<std::uint64_t>(get_bit());
    return value;
  }
  bool get_bit() {
    if (at_ >= in_.size() * 8) ok_ = false;
    if (!ok_) return false;
    const bool bit = (in_[at_ / 8] >> (7 - at_ % 8) & 1) != 0;
    ++at_;
    return bit;
  }
  std::uint64_t gamma() {
    int zeros = 0;
    while (ok_ && !get_bit()) {
      if (++zeros > 63) ok_ = false;
    }
    if (!ok_) return 0;
    return std::uint64_t{1} << zeros | get(zeros);
  }

  bool ok() const { return ok_; }
  // Returns true if every byte has been read and the unread bits of the last byte are zero.
  bool at_end() const {
    if (at_ / 8 + (at_ % 8 != 0 ? 1 : 0) != in_.size()) return false;
    return at_ % 8 == 0 || (in_.back() & ((1U << (8 - at_ % 8)) - 1)) == 0;
  }

 private:
  ByteView in_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace semel::inline core_internal

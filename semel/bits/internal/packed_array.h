// PackedArray: a fixed number of unsigned integers of 0 to 64 bits each, without gaps.
//
// Contract  Entry i holds bits [i * width, (i + 1) * width) of the array, low bit first. Bit b of
//           the array is bit b % 8 of byte b / 8. New entries are zero, and so are the bits past
//           the last entry.
// Cost      get, set: one or two unaligned loads, no division.
// Memory    size * width / 8 bytes, rounded up, plus kSlack bytes that keep wide loads inside.
// Format    The bytes without the slack and without a header. Other formats contain it.
#pragma once

#include <cstdint>
#include <span>

#include "semel/bits/internal/line_array.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::inline bits_internal {

class PackedArray {
 public:
  static constexpr std::size_t kSlack = 8;

  // REQUIRES: width <= 64, and size * width does not overflow.
  PackedArray(std::uint64_t size, std::uint32_t width);

  std::uint64_t size() const { return size_; }
  std::uint32_t width() const { return width_; }

  // REQUIRES: i < size().
  std::uint64_t get(std::uint64_t i) const {
    const std::uint64_t bit = i * width_;
    const std::uint8_t* at = bytes_.data() + bit / 8;
    const std::uint32_t shift = bit % 8;
    std::uint64_t value = load_u64(at) >> shift;
    if (shift > 64 - width_) value |= std::uint64_t{at[8]} << (64 - shift);
    return value & mask_;
  }

  // Calls visit(i, entry) for every entry.
  template <class Visit>
  void for_each(Visit visit) const {
    if (width_ == 64) {  // no shifts needed
      for (std::uint64_t i = 0; i < size_; ++i) visit(i, load_u64(bytes_.data() + 8 * i));
    } else {
      for (std::uint64_t i = 0; i < size_; ++i) visit(i, get(i));
    }
  }

  // REQUIRES: i < size(), and value < 2^width.
  void set(std::uint64_t i, std::uint64_t value) {
    SEMEL_ASSERT(value <= mask_);
    const std::uint64_t bit = i * width_;
    std::uint8_t* at = bytes_.data() + bit / 8;
    if (width_ == 64) return store_u64(at, value);  // no load, which could miss the cache
    const std::uint32_t shift = bit % 8;
    store_u64(at, (load_u64(at) & ~(mask_ << shift)) | value << shift);
    if (shift > 64 - width_) {
      const std::uint32_t rest = 64 - shift;
      at[8] = static_cast<std::uint8_t>((at[8] & ~(mask_ >> rest)) | value >> rest);
    }
  }

  // The caller may read kSlack bytes beyond the last entry.
  const std::uint8_t* data() const { return bytes_.data(); }
  // Returns the size without the slack.
  std::uint64_t byte_size() const { return bytes_.size() - kSlack; }

  void encode(Sink out) const;
  // Errc::truncated if too few bytes are left, before anything is allocated. Errc::corrupt if the
  // bits past the last entry are not zero.
  static Result<PackedArray> decode(Reader& in, std::uint64_t size, std::uint32_t width);

  bool operator==(const PackedArray&) const = default;

 private:
  std::uint64_t size_;
  std::uint64_t mask_;  // a mask of width_ ones
  std::uint32_t width_;
  LineArray<std::uint8_t> bytes_;
};

}  // namespace semel::inline bits_internal

#include "semel/bits/internal/packed_array.h"

#include <limits>

#include "semel/core/internal/arithmetic.h"

namespace semel::inline bits_internal {

PackedArray::PackedArray(std::uint64_t size, std::uint32_t width) : size_(size), width_(width) {
  SEMEL_ASSERT(width <= 64);
  SEMEL_ASSERT(size <= std::numeric_limits<std::uint64_t>::max() / 64);
  mask_ = width == 0 ? 0 : ~std::uint64_t{0} >> (64 - width);
  bytes_ = LineArray<std::uint8_t>(divide_up(size * width, 8) + kSlack);
}

void PackedArray::encode(Sink out) const { out.append({bytes_.data(), byte_size()}); }

Result<PackedArray> PackedArray::decode(Reader& in, std::uint64_t size, std::uint32_t width) {
  const uint128 bits = static_cast<uint128>(size) * width;
  if (in.rest() < (bits + 7) / 8) return Error{Errc::truncated, "packed numbers"};
  PackedArray array(size, width);
  in.bytes({array.bytes_.data(), array.byte_size()});
  const std::uint32_t used = size * width % 8;  // used bits of the last byte
  if (used != 0 && array.bytes_[array.byte_size() - 1] >> used != 0) {
    return Error{Errc::corrupt, "bits past the last packed number"};
  }
  return array;
}

}  // namespace semel::inline bits_internal

#include "semel/bits/packed_array.h"

#include <limits>

#include "semel/core/arithmetic.h"

namespace semel {

PackedArray::PackedArray(std::uint64_t size, std::uint32_t width) : size_(size), width_(width) {
  SEMEL_ASSERT(width <= 64);
  SEMEL_ASSERT(size <= std::numeric_limits<std::uint64_t>::max() / 64);
  mask_ = width == 0 ? 0 : ~std::uint64_t{0} >> (64 - width);
  bytes_ = LineArray<std::uint8_t>(divide_up(size * width, 8) + kSlack);
}

void PackedArray::encode(Sink out) const { out.append({bytes_.data(), byte_size()}); }

bool PackedArray::decode(Reader& in) {
  SEMEL_ASSERT(in.rest() >= byte_size());
  in.bytes({bytes_.data(), byte_size()});
  const std::uint32_t used = size_ * width_ % 8;  // used bits of the last byte
  return used == 0 || bytes_[byte_size() - 1] >> used == 0;
}

}  // namespace semel

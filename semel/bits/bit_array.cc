#include "semel/bits/bit_array.h"

#include <bit>

namespace semel {

BitArray::BitArray(std::uint64_t bits) : words_(bits / 64) {
  SEMEL_ASSERT(bits > 0 && bits % 64 == 0);
}

std::uint64_t BitArray::count() const {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : words_) ones += static_cast<unsigned>(std::popcount(word));
  return ones;
}

void BitArray::unite(const BitArray& other) {
  SEMEL_ASSERT(size() == other.size());
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

void BitArray::encode(Bytes& out) const {
  const std::size_t start = out.size();
  out.resize(start + words_.size() * 8);
  std::uint8_t* to = out.data() + start;
  for (const std::uint64_t word : words_) {
    store_u64(to, word);
    to += 8;
  }
}

void BitArray::decode(Reader& in) {
  SEMEL_ASSERT(in.rest() >= words_.size() * 8);
  for (std::uint64_t& word : words_) word = in.u64();
}

}  // namespace semel

#include "semel/index/bit_path.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/codec.h"

namespace semel {
namespace {

constexpr std::size_t kBitsOfByte = 9;

std::size_t bytes_for(std::size_t bits) { return (bits + 7) / 8; }

std::uint8_t byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<std::uint8_t>(bytes[i]);
}

// Returns the number of leading bytes that both have in common.
std::size_t common_bytes(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  const auto* const in_a = reinterpret_cast<const std::uint8_t*>(a.data());
  const auto* const in_b = reinterpret_cast<const std::uint8_t*>(b.data());
  std::size_t i = 0;
  for (; i + 8 <= most; i += 8) {
    const std::uint64_t differs = load_u64(in_a + i) ^ load_u64(in_b + i);
    if (differs != 0) return i + static_cast<std::size_t>(std::countr_zero(differs)) / 8;
  }
  while (i < most && in_a[i] == in_b[i]) ++i;
  return i;
}

// Returns the number of high bits that two different bytes have in common.
std::size_t common_in_byte(std::uint8_t a, std::uint8_t b) {
  return static_cast<std::size_t>(std::countl_zero(static_cast<std::uint8_t>(a ^ b)));
}

// Returns the least key that is greater than every key with this prefix.
std::optional<std::string> beyond(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

}  // namespace

BitPath BitPath::of_key(std::string_view key) {
  BitPath path;
  path.size_ = kBitsOfByte * key.size() + 1;
  path.bits_.resize(bytes_for(path.size_));
  for (std::size_t i = 0; i < key.size(); ++i) {
    // Nine bits from bit 9 i on lie in two bytes, because 9 i is i beyond a multiple of 8.
    const unsigned pair = (0x100U | byte_at(key, i)) << (7 - i % 8);
    char* const at = path.bits_.data() + kBitsOfByte * i / 8;
    at[0] = static_cast<char>(static_cast<unsigned char>(at[0]) | pair >> 8);
    at[1] = static_cast<char>(pair);
  }
  return path;
}

void BitPath::push(bool bit) {
  if (size_ % 8 == 0) bits_.push_back('\0');
  if (bit) bits_.back() = static_cast<char>(bits_.back() | 0x80 >> size_ % 8);
  ++size_;
}

void BitPath::append(std::string_view bits, std::size_t size) {
  SEMEL_ASSERT(bits.size() == bytes_for(size));
  const std::size_t shift = size_ % 8;
  std::size_t at = size_ / 8;  // the byte that gets the first bit
  bits_.resize(at + (shift == 0 ? 0 : 1) + bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i, ++at) {
    const unsigned pair = unsigned{byte_at(bits, i)} << (8 - shift);
    bits_[at] = static_cast<char>(byte_at(bits_, at) | pair >> 8);
    if (shift != 0) bits_[at + 1] = static_cast<char>(pair);
  }
  const std::size_t together = size_ + size;
  size_ = 8 * bits_.size();
  truncate(together);
}

void BitPath::truncate(std::size_t size) {
  SEMEL_ASSERT(size <= size_);
  size_ = size;
  bits_.resize(bytes_for(size));
  if (size % 8 != 0) bits_.back() = static_cast<char>(bits_.back() & 0xff00 >> size % 8);
}

bool BitPath::is_prefix_of(const BitPath& other) const {
  return size_ <= other.size_ && common_bits(*this, other) == size_;
}

bool BitPath::is_prefix_of_key(std::string_view key) const {
  // Bytes beyond this path do not matter. A key that is cut there has its end beyond the path.
  return is_prefix_of(of_key(key.substr(0, size_ / kBitsOfByte + 1)));
}

std::string BitPath::first_key() const {
  SEMEL_ASSERT(possible());
  std::string key(size_ / kBitsOfByte, '\0');
  for (std::size_t i = 0; i < key.size(); ++i) {
    const std::size_t at = kBitsOfByte * i / 8;
    const unsigned pair = unsigned{byte_at(bits_, at)} << 8 | byte_at(bits_, at + 1);
    key[i] = static_cast<char>(pair >> (7 - i % 8));
  }
  const std::size_t whole = kBitsOfByte * key.size();
  if (whole < size_ && bit(whole)) {
    unsigned byte = 0;
    for (std::size_t i = 1; i < kBitsOfByte; ++i) {
      byte = byte << 1 | static_cast<unsigned>(whole + i < size_ && bit(whole + i));
    }
    key.push_back(static_cast<char>(byte));
  }
  return key;
}

KeyRange BitPath::range() const {
  KeyRange range{first_key(), std::nullopt};
  const std::size_t known = size_ % kBitsOfByte;  // bits of the last byte, with the 1 before it
  if (known == 0) {
    range.end = beyond(range.first);
  } else if (known == 1 && !bit(size_ - 1)) {
    range.end = successor(range.first);
  } else {
    std::string last = range.first;
    last.back() = static_cast<char>(byte_at(last, last.size() - 1) | 0xff >> (known - 1));
    range.end = beyond(std::move(last));
  }
  return range;
}

BitPath BitPath::from_bytes(std::string_view bits, std::size_t size) {
  BitPath path;
  path.append(bits, size);
  return path;
}

bool BitPath::possible() const {
  for (std::size_t i = 0; i + 1 < size_; i += kBitsOfByte) {
    if (!bit(i)) return false;
  }
  return true;
}

std::strong_ordering BitPath::operator<=>(const BitPath& other) const {
  // The padding zeros are the least bits that could follow.
  const std::strong_ordering bytes = bits_ <=> other.bits_;
  return bytes != 0 ? bytes : size_ <=> other.size_;
}

std::size_t common_bits(PackedBits a, PackedBits b) {
  const std::size_t most = std::min(a.size, b.size);
  const std::size_t bytes = common_bytes(a.bytes, b.bytes);
  if (8 * bytes >= most) return most;
  return std::min(most,
                  8 * bytes + common_in_byte(byte_at(a.bytes, bytes), byte_at(b.bytes, bytes)));
}

std::size_t common_bits(const BitPath& a, const BitPath& b) {
  return common_bits(PackedBits{a.bytes(), a.size()}, PackedBits{b.bytes(), b.size()});
}

std::size_t common_bits(std::string_view a, std::string_view b) {
  const std::size_t bytes = common_bytes(a, b);
  if (bytes == a.size() && bytes == b.size()) return kBitsOfByte * bytes + 1;
  if (bytes == a.size() || bytes == b.size()) return kBitsOfByte * bytes;
  return kBitsOfByte * bytes + 1 + common_in_byte(byte_at(a, bytes), byte_at(b, bytes));
}

}  // namespace semel

// Reader and Writer: little-endian bytes in and out.
//
// A Reader fails once and for all: after the first short read every later read returns zero. So a
// decoder reads its fields in a straight line and asks ok() once, before it trusts any of them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "semel/core/int128.h"
#include "semel/core/sink.h"

namespace semel {

static_assert(sizeof(std::size_t) == 8, "sizes come from 64-bit fields");

// These two convert between the two kinds of view of the same bytes.
inline ByteView bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads or writes eight bytes anywhere in memory as a little-endian number.
inline std::uint64_t load_u64(const std::uint8_t* from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

inline void store_u64(std::uint8_t* to, std::uint64_t value) {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
}

class Reader {
 public:
  explicit Reader(ByteView in) : rest_(in) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(take(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(take(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(take(4)); }
  std::uint64_t u64() { return take(8); }
  std::int64_t i64() { return static_cast<std::int64_t>(take(8)); }
  double f64() { return std::bit_cast<double>(take(8)); }
  // Reads one byte. Fails unless it is 0 or 1.
  bool boolean() { return in_range(u8(), 1) != 0; }
  // Reads one byte that stands for an enumerator. Fails if it is above `last`.
  template <class Enum>
  Enum enumeration(Enum last) {
    return static_cast<Enum>(in_range(u8(), static_cast<std::uint8_t>(last)));
  }
  // Reads seven bits from each byte, the lowest first. The highest bit of a byte says that another
  // byte follows. Fails on bytes that no Writer writes: longer than needed, or more than 64 bits.
  std::uint64_t varint() { return take_varint<std::uint64_t>(); }
  // Reads a varint of up to 128 bits that stands for a signed number: 0, 1, 2, 3, ... mean 0, -1,
  // 1, -2, ...
  int128 signed_varint() {
    const auto folded = take_varint<uint128>();
    return static_cast<int128>(folded >> 1 ^ (0 - (folded & 1)));
  }
  // Fills `out`. The caller sized it by a length that is already checked.
  void bytes(std::span<std::uint8_t> out) {
    if (rest_.size() < out.size()) ok_ = false;
    if (!ok_ || out.empty()) return;
    std::memcpy(out.data(), rest_.data(), out.size());
    rest_ = rest_.subspan(out.size());
  }
  void skip(std::size_t size) {
    if (rest_.size() < size) ok_ = false;
    if (ok_) rest_ = rest_.subspan(size);
  }
  // Returns a view of the next `size` bytes, or an empty view if fewer are left.
  ByteView view(std::size_t size) {
    if (rest_.size() < size) ok_ = false;
    if (!ok_) return {};
    const ByteView taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  // Returns a view of what Writer::text() wrote.
  std::string_view text() { return text_of(view(varint())); }
  // Makes this and every later read fail, for a value that no Writer writes.
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  // Returns true if every read succeeded and nothing is left.
  bool at_end() const { return ok_ && rest_.empty(); }
  std::size_t rest() const { return rest_.size(); }

 private:
  std::uint64_t take(std::size_t width) {
    if (rest_.size() < width) ok_ = false;
    if (!ok_) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{rest_[i]} << (8 * i);
    rest_ = rest_.subspan(width);
    return value;
  }
  std::uint8_t in_range(std::uint8_t value, std::uint8_t last) {
    if (value > last) ok_ = false;
    return ok_ ? value : 0;
  }
  template <class Number>
  Number take_varint() {
    constexpr int kBits = 8 * sizeof(Number), kLastShift = (kBits - 1) / 7 * 7;
    Number value = 0;
    for (int shift = 0; ok_; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift == kLastShift && byte >> (kBits - kLastShift) != 0) ok_ = false;
      value |= Number{byte & 0x7fU} << shift;
      if (byte < 0x80) {
        if (byte == 0 && shift > 0) ok_ = false;
        break;
      }
    }
    return ok_ ? value : 0;
  }
  ByteView rest_;
  bool ok_ = true;
};

class Writer {
 public:
  explicit Writer(Sink out) : out_(out) {}
  void u8(std::uint8_t value) { put(value, 1); }
  void u16(std::uint16_t value) { put(value, 2); }
  void u32(std::uint32_t value) { put(value, 4); }
  void u64(std::uint64_t value) { put(value, 8); }
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
  void boolean(bool value) { u8(value ? 1 : 0); }
  template <class Enum>
  void enumeration(Enum value) {
    u8(static_cast<std::uint8_t>(value));
  }
  void varint(std::uint64_t value) { put_varint(value); }
  void signed_varint(int128 value) {
    put_varint(static_cast<uint128>(value) << 1 ^ static_cast<uint128>(value >> 127));
  }
  void bytes(ByteView in) { out_.append(in); }
  // Writes the `width` lowest bytes of a number. REQUIRES: width <= 8.
  void low_bytes(std::uint64_t value, std::size_t width) { put(value, width); }
  // Writes eight bytes for each word.
  void words(std::span<const std::uint64_t> in) {
    if constexpr (std::endian::native == std::endian::little) {
      out_.append({reinterpret_cast<const std::uint8_t*>(in.data()), in.size_bytes()});
    } else if (!out_.only_measures(in.size_bytes())) {
      for (const std::uint64_t word : in) u64(word);
    }
  }
  // Writes the length as a varint, then the bytes.
  void text(std::string_view value) {
    varint(value.size());
    bytes(bytes_of(value));
  }
  Sink sink() const { return out_; }

 private:
  [[gnu::always_inline]] void put(std::uint64_t value, std::size_t width) {
    std::array<std::uint8_t, 8> raw;
    store_u64(raw.data(), value);
    out_.append({raw.data(), width});
  }
  template <class Number>
  void put_varint(Number value) {
    std::array<std::uint8_t, 8 * sizeof(Number) / 7 + 1> raw;
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) raw[size++] = static_cast<std::uint8_t>(value | 0x80);
    raw[size++] = static_cast<std::uint8_t>(value);
    out_.append({raw.data(), size});
  }
  Sink out_;
};

}  // namespace semel

#include "client/slot.h"

#include <array>

#include "semel/core/assert.h"

namespace semel::client {
namespace {

// The CRC of each byte value, with the polynomial x^16 + x^12 + x^5 + 1.
constexpr std::array<std::uint16_t, 256> kCrc = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    table.at(byte) = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

std::uint16_t crc16(std::string_view bytes) {
  unsigned crc = 0;
  for (const char byte : bytes) {
    crc = (crc << 8 ^ kCrc.at((crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff)) & 0xffff;
  }
  return static_cast<std::uint16_t>(crc);
}

}  // namespace

std::uint32_t slot_of(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return crc16(key) % kSlots;
}

std::vector<std::string> spread_tags(std::size_t count) {
  SEMEL_ASSERT(count > 0 && count <= 1024);
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> wanted(kSlots, kNone);
  for (std::size_t i = 0; i < count; ++i) wanted[(2 * i + 1) * kSlots / (2 * count)] = i;
  std::vector<std::string> tags(count);
  // The slots of numbers are as good as random: some 160,000 numbers meet all slots.
  std::size_t found = 0;
  for (std::uint64_t number = 0; found < count; ++number) {
    std::string tag = std::to_string(number);
    std::size_t& place = wanted[slot_of(tag)];
    if (place == kNone) continue;
    tags[place] = std::move(tag);
    place = kNone;
    ++found;
  }
  return tags;
}

std::vector<std::string> spread_keys(std::string_view name, std::size_t count) {
  std::vector<std::string> keys = spread_tags(count);
  for (std::string& key : keys) key = std::string(name) + ":{" + key + '}';
  return keys;
}

}  // namespace semel::client

// Payloads of DUMP and chunks of SCANDUMP that a test has changed, with checksums that are right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "semel/core/codec.h"
#include "semel/hash/internal/checksum.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

inline void append_u64(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
}

// Returns the CRC-64 of the server's payloads: polynomial 0xad93d23594c935a9, reflected, from zero.
inline std::uint64_t crc64(std::string_view bytes) {
  std::uint64_t crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x95ac9329ac4bc9b5 : 0);
  }
  return crc;
}

// Returns a number as payloads and RDB files have it, in nine bytes.
inline std::string rdb_length(std::uint64_t length) {
  std::string out = "\x81";  // 64 bits, the highest byte first
  for (int i = 7; i >= 0; --i) out += static_cast<char>(length >> (8 * i));
  return out;
}

// A payload ends with the version of the RDB format and a CRC.
inline constexpr std::size_t kFooter = 10;

// Returns the payload with the right footer.
inline std::string sealed_payload(std::string payload, const std::string& version) {
  payload += version;
  append_u64(payload, crc64(payload));
  return payload;
}

// Returns the encoding with the length and the checksum of its envelope made right.
inline std::string mended(std::string encoding) {
  if (encoding.size() < kSealedTrailer) return encoding;
  const bool has_length = encoding.size() >= kSealedHeader + kSealedTrailer && encoding[3] == 1;
  if (has_length) {
    std::string length;
    append_u64(length, encoding.size() - kSealedHeader - kSealedTrailer);
    encoding.replace(4, 8, length);
  }
  encoding.resize(encoding.size() - kSealedTrailer);
  append_u64(encoding, checksum(bytes_of(encoding)));
  return encoding;
}

// Returns the encoding with another number at a place of its body: `size` bytes, the lowest first.
// REQUIRES: the body has these bytes.
inline std::string with_number(std::string encoding, std::size_t place, std::size_t size,
                               std::uint64_t value) {
  for (std::size_t i = 0; i < size; ++i) {
    encoding.at(kSealedHeader + place + i) = static_cast<char>(value >> (8 * i));
  }
  return mended(encoding);
}

}  // namespace semel

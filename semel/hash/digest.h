// Digest: the 128 bits that every structure sees instead of a key. FROZEN: every format contains
// it.
//
// Contract  digest() gives the same bits on every machine and in every release (tests/golden).
//           Anyone who chooses the keys and knows the seed can make two keys collide. For untrusted
//           keys use hash/keyed_digest.h.
// Cost      About 4 ns for a key of 16 bytes, 11 ns for one of 100 (docs/benchmarks.md).
// Source    XXH3-128, xxHash 0.8.
#pragma once

#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "semel/core/codec.h"

namespace semel {

struct Digest {
  std::uint64_t lo;
  std::uint64_t hi;

  // The digest of a set is the XOR of the digests of its members.
  Digest& operator^=(const Digest& other) {
    lo ^= other.lo;
    hi ^= other.hi;
    return *this;
  }
  bool operator==(const Digest&) const = default;
};

enum class HashKind : std::uint8_t { fast = 0, keyed = 1 };

// The name of a hash function. Every shape contains it, because digests of different functions must
// never meet in one structure.
struct HashId {
  HashKind kind = HashKind::fast;
  std::uint64_t seed = 0;  // fast: the seed itself; keyed: a public name of the secret key

  bool valid() const { return kind == HashKind::fast || kind == HashKind::keyed; }
  bool operator==(const HashId&) const = default;
};

inline Digest digest(std::string_view key, std::uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {h.low64, h.high64};
}

inline std::uint64_t checksum(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// The checksum of bytes that come in pieces.
class RunningChecksum {
 public:
  RunningChecksum() { XXH3_64bits_reset(&state_); }
  void add(ByteView bytes) { XXH3_64bits_update(&state_, bytes.data(), bytes.size()); }
  std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace semel

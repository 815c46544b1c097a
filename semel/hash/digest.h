// Digest: the 128 bits that every structure sees instead of a key. FROZEN: every format contains
// it.
//
// Contract  digest() gives the same bits on every machine and in every release.
//           Anyone who chooses the keys and knows the seed can make two keys collide. For untrusted
//           keys use hash/keyed_digest.h.
// Cost      About 4 ns for a key of 16 bytes, 11 ns for one of 100 (docs/benchmarks.md).
// Source    XXH3-128, xxHash 0.8.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "semel/core/api.h"

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
  // Orders digests as 128-bit numbers.
  constexpr std::strong_ordering operator<=>(const Digest& other) const {
    if (const auto order = hi <=> other.hi; order != 0) return order;
    return lo <=> other.lo;
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

SEMEL_API Digest digest(std::string_view key, std::uint64_t seed);

}  // namespace semel

// Digests are uniform already, so half of one is a hash of it.
template <>
struct std::hash<semel::Digest> {
  std::size_t operator()(const semel::Digest& digest) const { return digest.lo; }
};

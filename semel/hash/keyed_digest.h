// DigestKey: digests that only the holders of a secret can compute, for keys from outside.
//
// Contract  Without the secret nobody finds two keys of equal digest faster than by chance: 2^64
//           digests for one collision. FROZEN like digest().
//           Keys derived for different purposes tell nothing about each other.
//           id() names the key without revealing it, so that structures of different keys refuse to
//           merge.
// Cost      About 28 ns for a key of 16 bytes, 65 ns for one of 100: six times digest()
//           (docs/benchmarks.md). Of many, where eight in a row have the same number of words of 8
//           bytes and the processor has AVX2: half of that.
// Source    SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, INDOCRYPT 2012) and the
//           BLAKE2b key derivation, both of libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "semel/hash/digest.h"

namespace semel {

// What the sites of one replication group share and nobody else knows. Wiped when it goes.
class Secret {
 public:
  static constexpr std::size_t kSize = 32;

  explicit Secret(std::span<const std::uint8_t, kSize> bytes);
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  static Secret random();
  std::span<const std::uint8_t, kSize> bytes() const { return bytes_; }

 private:
  std::array<std::uint8_t, kSize> bytes_;
};

// One key for each use, so that what one of them gives away is of no help against another.
enum class KeyPurpose : std::uint64_t { key = 1, entry = 2, floret = 3, sketch = 4 };

class DigestKey {
 public:
  DigestKey(const Secret& secret, KeyPurpose purpose);
  DigestKey(const DigestKey&) = default;
  DigestKey& operator=(const DigestKey&) = default;
  ~DigestKey();

  Digest operator()(std::string_view key) const;
  // Of many. REQUIRES: as many digests as keys.
  void operator()(std::span<const std::string_view> keys, std::span<Digest> digests) const;
  HashId id() const { return id_; }

 private:
  std::array<std::uint8_t, 16> key_;
  HashId id_;
};

}  // namespace semel

// DigestKey: digests that only the holders of a secret can compute, for untrusted keys.
//
// Contract  Without the secret nobody finds two keys with equal digests faster than by chance: 2^64
//           digests for one collision. FROZEN like digest().
//           Keys derived for different purposes reveal nothing about each other.
//           id() names the key without revealing it, so that structures with different keys refuse
//           to merge.
// Cost      About 28 ns for a key of 16 bytes, 65 ns for one of 100: six times digest()
//           (docs/benchmarks.md). The batch form takes half of that if the processor has AVX2 and
//           eight keys in a row have the same number of whole 8-byte words.
// Source    SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, INDOCRYPT 2012) and the
//           BLAKE2b key derivation, both from libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "semel/core/api.h"
#include "semel/hash/digest.h"

namespace semel {

// The secret that the sites of one replication group share. It is wiped when it is destroyed.
class SEMEL_API Secret {
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

// Each use has its own key, so that what one use reveals does not help against another.
enum class KeyPurpose : std::uint64_t { key = 1, entry = 2, floret = 3, sketch = 4 };

class SEMEL_API DigestKey {
 public:
  DigestKey(const Secret& secret, KeyPurpose purpose);
  DigestKey(const DigestKey&) = default;
  DigestKey& operator=(const DigestKey&) = default;
  ~DigestKey();

  Digest operator()(std::string_view key) const;
  // Hashes many keys. REQUIRES: the spans are of equal size.
  void operator()(std::span<const std::string_view> keys, std::span<Digest> digests) const;
  HashId id() const { return id_; }

 private:
  std::array<std::uint8_t, 16> key_;
  HashId id_;
};

}  // namespace semel

// ShortDigest: the few bits of a digest that are sent, different ones in each pass.
//
// Contract  Equal digests have equal short digests. Different digests have equal short digests of b
//           bits with probability 2^-b, independently for each salt. Without the secret, the bits
//           reveal nothing about the digests.
// Cost      One multiplication and a mix.
#pragma once

#include <cstdint>
#include <string>

#include "semel/core/internal/arithmetic.h"
#include "semel/hash/keyed_digest.h"

namespace semel::sync_internal {

class ShortDigest {
 public:
  // The thing that a short digest identifies. Each use has its own key.
  enum class Of : std::uint8_t { node = 1, record = 2 };

  ShortDigest(const Secret& secret, Of of, std::uint32_t salt) {
    const std::string name = {static_cast<char>(of), static_cast<char>(salt),
                              static_cast<char>(salt >> 8), static_cast<char>(salt >> 16),
                              static_cast<char>(salt >> 24)};
    key_ = DigestKey(secret, KeyPurpose::sketch)(name);
  }

  std::uint64_t operator()(const Digest& digest) const {
    return mix(fold(digest.lo ^ key_.lo, digest.hi ^ key_.hi));
  }

 private:
  Digest key_;
};

// Identifies a record in a sketch or a list by a number that is not 0. Its place among the
// partitions is independent of the number.
struct RecordId {
  std::uint32_t number;
  std::uint32_t place;

  static RecordId of(const ShortDigest& shorten, const Digest& digest) {
    const std::uint64_t bits = shorten(digest);
    const auto number = static_cast<std::uint32_t>(bits >> 32);
    return {number == 0 ? 1 : number, static_cast<std::uint32_t>(bits)};
  }
  std::uint32_t partition(std::uint32_t partitions) const {
    return static_cast<std::uint32_t>(std::uint64_t{place} * partitions >> 32);
  }
};

}  // namespace semel::sync_internal

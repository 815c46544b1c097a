// ShortDigest: the few bits of a digest that travel, other ones in each pass.
//
// Contract  Equal digests have equal short ones. Different digests have, in b bits, equal ones with
//           probability 2^-b, and again so, independently, under another salt. The bits tell
//           nothing of the digests to those who do not have the secret.
// Cost      One multiplication and a mix.
#pragma once

#include <cstdint>
#include <string>

#include "semel/core/arithmetic.h"
#include "semel/hash/keyed_digest.h"

namespace semel {

class ShortDigest {
 public:
  // One key for each use.
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

// What stands for a record in a sketch or a list: a number that is not 0, and a place among the
// partitions that does not depend on it.
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

}  // namespace semel

// CuckooShape: everything that two cuckoo tables must agree on, and the places of a key.
//
// A key has a fingerprint f and two buckets. f comes from the high half of the digest, and is 1 to
// 2^bits - 1. One bucket, b, comes from the low half; the other is (h(f) - b) mod buckets. Each
// bucket follows from the other and f, so an entry can move without its key. Any number of buckets
// will do, not only powers of two.
//
// It means nothing which of the two buckets an entry lies in. Only the pair of buckets has a
// meaning. Pairs are numbered without gaps: the lesser bucket of a pair is at most h / 2, or lies
// in (h, (h + buckets) / 2].
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "semel/core/result.h"
#include "semel/filter/internal/cuckoo_bucket.h"
#include "semel/hash/digest.h"

namespace semel {

// An entry, whatever slot it lies in.
struct CuckooEntry {
  std::uint64_t pair;
  std::uint64_t fingerprint;
  std::uint64_t payload;
  auto operator<=>(const CuckooEntry&) const = default;
};

// An entry in one of its two buckets.
struct CuckooSpot {
  std::uint64_t bucket;
  std::uint64_t fingerprint;
};

struct CuckooShape {
  struct Goal {
    std::uint64_t keys;
    double fpr;
    std::uint32_t bucket_size = 4;
    std::uint32_t payload_bits = 0;
    HashId hash = {};
  };

  std::uint32_t bucket_size;       // 4 or 8
  std::uint32_t fingerprint_bits;  // 8 to 16, 20, 24, 28, 32, 40, 48 or 56
  std::uint32_t payload_bits;      // 0 to 64
  std::uint64_t buckets;
  HashId hash;  // the hash that made the digests

  // Returns the shape with the shortest fingerprints and the fewest buckets that holds `keys` at an
  // error of at most `fpr`. The load is 95 % if there are many keys. Errc::invalid unless keys > 0,
  // 0 < fpr < 1 and the other fields are as above. Errc::limit beyond limits::kFilterBits, and if
  // fingerprints of 56 bits are too short.
  static Result<CuckooShape> for_goal(const Goal& goal);

  bool valid() const;
  std::uint64_t slots() const { return buckets * bucket_size; }
  std::uint64_t capacity() const;                 // most keys for this number of buckets
  double expected_fpr(std::uint64_t keys) const;  // an estimate

  CuckooSpot spot_of(Digest key) const {
    return {scale(key.lo, buckets), cuckoo_bucket::fingerprint_of(key, fingerprint_bits)};
  }
  // Returns the same entry in its other bucket.
  CuckooSpot other(const CuckooSpot& spot) const {
    return {cuckoo_bucket::other(spot.bucket, spot.fingerprint, buckets), spot.fingerprint};
  }

  std::uint64_t pairs() const { return buckets / 2 + 1; }  // every pair number is lower
  std::uint64_t pair_of(const CuckooSpot& spot) const {
    const std::uint64_t h = scale(mix(spot.fingerprint), buckets);
    const std::uint64_t lesser = std::min(spot.bucket, other(spot).bucket);
    return lesser <= h / 2 ? lesser : lesser - h + h / 2;
  }
  // Returns the lesser bucket of a pair. REQUIRES: is_pair(pair, fingerprint).
  CuckooSpot spot_of(std::uint64_t pair, std::uint64_t fingerprint) const {
    const std::uint64_t h = scale(mix(fingerprint), buckets);
    return {pair <= h / 2 ? pair : pair - h / 2 + h, fingerprint};
  }
  // Returns true if pair_of() gives this number for some bucket.
  bool is_pair(std::uint64_t pair, std::uint64_t fingerprint) const {
    if (pair >= pairs()) return false;
    const CuckooSpot spot = spot_of(pair, fingerprint);
    return spot.bucket < buckets && pair_of(spot) == pair;
  }

  bool operator==(const CuckooShape&) const = default;
};

}  // namespace semel

// CuckooShape: all that two cuckoo tables must agree on, and where it puts a key.
//
// A key has a fingerprint f of the digest's high half, 1 to 2^bits - 1, and two buckets: one from
// the low half, b, and (h(f) - b) mod buckets. From either bucket and f follows the other, so that
// an entry moves without its key; any number of buckets will do, not only powers of two.
//
// Which of the two an entry lies in says nothing. What says something is its pair, numbered so that
// no number is wasted: the lesser bucket of a pair is at most h / 2, or in (h, (h + buckets) / 2].
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "semel/core/result.h"
#include "semel/filter/internal/cuckoo_bucket.h"
#include "semel/hash/digest.h"

namespace semel {

// An entry, in whatever slot.
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
  HashId hash;  // what made the digests

  // The shortest fingerprints and the fewest buckets that hold `keys` at no more than `fpr`; a load
  // of 95 % when keys are many. Errc::invalid unless keys > 0, 0 < fpr < 1 and the other fields are
  // as above; Errc::limit beyond limits::kFilterBits, and where 56 bits of fingerprint are too few.
  static Result<CuckooShape> for_goal(const Goal& goal);

  bool valid() const;
  std::uint64_t slots() const { return buckets * bucket_size; }
  std::uint64_t capacity() const;  // the keys that for_goal would give these buckets to
  double expected_fpr(std::uint64_t keys) const;  // an estimate

  CuckooSpot spot_of(Digest key) const {
    return {scale(key.lo, buckets), cuckoo_bucket::fingerprint_of(key, fingerprint_bits)};
  }
  // The same entry in its other bucket.
  CuckooSpot other(const CuckooSpot& spot) const {
    return {cuckoo_bucket::other(spot.bucket, spot.fingerprint, buckets), spot.fingerprint};
  }

  std::uint64_t pairs() const { return buckets / 2 + 1; }  // numbers of pairs are below
  std::uint64_t pair_of(const CuckooSpot& spot) const {
    const std::uint64_t h = scale(mix(spot.fingerprint), buckets);
    const std::uint64_t lesser = std::min(spot.bucket, other(spot).bucket);
    return lesser <= h / 2 ? lesser : lesser - h + h / 2;
  }
  // The lesser bucket of a pair. REQUIRES: is_pair(pair, fingerprint).
  CuckooSpot spot_of(std::uint64_t pair, std::uint64_t fingerprint) const {
    const std::uint64_t h = scale(mix(fingerprint), buckets);
    return {pair <= h / 2 ? pair : pair - h / 2 + h, fingerprint};
  }
  // Whether pair_of gives this number for some bucket.
  bool is_pair(std::uint64_t pair, std::uint64_t fingerprint) const {
    if (pair >= pairs()) return false;
    const CuckooSpot spot = spot_of(pair, fingerprint);
    return spot.bucket < buckets && pair_of(spot) == pair;
  }

  bool operator==(const CuckooShape&) const = default;
};

}  // namespace semel

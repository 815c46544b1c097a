// CuckooPlaces: where the entries of a key may lie in a cuckoo table of some shape.
//
// A key has a fingerprint f and two buckets. f comes from the high half of the digest, and is 1 to
// 2^bits - 1. One bucket, b, comes from the low half; the other is (h(f) - b) mod buckets. Each
// bucket follows from the other and f, so an entry can move without its key. Any number of buckets
// will do, not only powers of two.
//
// Only the pair of buckets has a meaning, not which of the two an entry lies in. Pairs are numbered
// without gaps: the lesser bucket of a pair is at most h / 2, or lies in
// (h, (h + buckets) / 2].
#pragma once

#include <algorithm>
#include <cstdint>

#include "semel/filter/cuckoo_filter.h"
#include "semel/filter/internal/cuckoo_bucket.h"
#include "semel/hash/digest.h"

namespace semel::filter_internal {

// An entry in one of its two buckets.
struct CuckooSpot {
  std::uint64_t bucket;
  std::uint64_t fingerprint;
};

// A shape, and the places of a key in it.
struct CuckooPlaces : CuckooShape {
  CuckooPlaces(const CuckooShape& shape) : CuckooShape(shape) {}  // NOLINT: the same with functions

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
};

}  // namespace semel::filter_internal

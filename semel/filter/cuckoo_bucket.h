// The fingerprints of one bucket, compared all at once: the inner part of CuckooFilter.
//
// A bucket is loaded as one or more 64-bit words of several lanes, XORed with the fingerprint in
// every lane, and searched for a lane that is zero, without a branch. Eight kinds of bucket, four
// widths times two sizes, are compiled apart; visit() chooses once for a whole batch.
#pragma once

#include <array>
#include <cstdint>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/hash/digest.h"

namespace semel::cuckoo_bucket {

inline constexpr std::array<std::uint32_t, 4> kWidths = {8, 12, 16, 32};

// The other bucket of an entry: an involution, because h - (h - b) = b. FROZEN with the format.
inline std::uint64_t other(std::uint64_t bucket, std::uint64_t fingerprint, std::uint64_t buckets) {
  const std::uint64_t h = scale(mix(fingerprint), buckets);
  return h >= bucket ? h - bucket : h - bucket + buckets;
}

// FROZEN with the format, like other().
inline std::uint64_t fingerprint_of(Digest key, std::uint32_t width) {
  return 1 + scale(key.hi, (std::uint64_t{1} << width) - 1);
}

// Where a key may lie.
struct Place {
  const std::uint8_t* first;  // bucket
  const std::uint8_t* second;
  std::uint64_t fingerprint;
};

template <std::uint32_t kWidth, std::uint32_t kSize>
struct Kind {
  static constexpr std::uint32_t kLanes = kWidth == 32 ? 2 : kWidth == 8 ? kSize : 4;
  static constexpr std::uint32_t kLoads = kSize / kLanes;
  static constexpr std::size_t kLoadBytes = kLanes * kWidth / 8;
  static constexpr std::uint64_t kBytes = kSize * kWidth / 8;

  // A word with `lane` in each of the lanes.
  static constexpr std::uint64_t in_all(std::uint64_t lane) {
    std::uint64_t word = 0;
    for (std::uint32_t i = 0; i < kLanes; ++i) word |= lane << (i * kWidth);
    return word;
  }
  static constexpr std::uint64_t kLow = in_all(1);
  static constexpr std::uint64_t kHigh = kLow << (kWidth - 1);
  static constexpr std::uint64_t kRest = kHigh - kLow;  // all but the high bit of each lane

  static const std::uint8_t* address(const std::uint8_t* table, std::uint64_t bucket) {
    return table + bucket * kBytes;
  }

  static Place place(const std::uint8_t* table, std::uint64_t buckets, Digest key) {
    const std::uint64_t bucket = scale(key.lo, buckets);
    const std::uint64_t fingerprint = fingerprint_of(key, kWidth);
    return {address(table, bucket), address(table, other(bucket, fingerprint, buckets)),
            fingerprint};
  }

  // Not zero if a slot of the bucket holds the fingerprint. The borrow of a zero lane can set the high
  // bit of lanes above it, which does no harm where only 'any' is asked.
  static std::uint64_t any(const std::uint8_t* bucket, std::uint64_t fingerprint) {
    const std::uint64_t wanted = fingerprint * kLow;
    std::uint64_t zero = 0;
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      const std::uint64_t x = load_u64(bucket + i * kLoadBytes) ^ wanted;
      zero |= (x - kLow) & ~x & kHigh;
    }
    return zero;
  }

  // Both buckets at once and without a branch, so that the two loads do not wait for each other.
  static bool holds(const Place& place) {
    return (any(place.first, place.fingerprint) | any(place.second, place.fingerprint)) != 0;
  }

  // One bit for each slot of the bucket that holds the fingerprint, exactly.
  static std::uint32_t matches(const std::uint8_t* bucket, std::uint64_t fingerprint) {
    const std::uint64_t wanted = fingerprint * kLow;
    std::uint32_t slots = 0;
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      const std::uint64_t x = load_u64(bucket + i * kLoadBytes) ^ wanted;
      const std::uint64_t zero = ~(((x & kRest) + kRest) | x) & kHigh;
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const auto hit = static_cast<std::uint32_t>(zero >> (lane * kWidth + kWidth - 1) & 1);
        slots |= hit << (i * kLanes + lane);
      }
    }
    return slots;
  }
};

// Calls fn(Kind<width, size>()) for the kind of the shape.
template <class Shape, class Fn>
inline auto visit(const Shape& shape, Fn fn) {
  const bool wide = shape.bucket_size == 8;
  switch (shape.fingerprint_bits) {
    case 8:
      return wide ? fn(Kind<8, 8>()) : fn(Kind<8, 4>());
    case 12:
      return wide ? fn(Kind<12, 8>()) : fn(Kind<12, 4>());
    case 16:
      return wide ? fn(Kind<16, 8>()) : fn(Kind<16, 4>());
    default:
      SEMEL_ASSERT(shape.fingerprint_bits == 32);
      return wide ? fn(Kind<32, 8>()) : fn(Kind<32, 4>());
  }
}

template <class Shape>
inline const std::uint8_t* address(const Shape& shape, const std::uint8_t* table,
                                   std::uint64_t bucket) {
  return table + bucket * (shape.bucket_size * shape.fingerprint_bits / 8);
}

}  // namespace semel::cuckoo_bucket

// Compares all fingerprints of a bucket at once: the inner loop of CuckooTable.
//
// A bucket is loaded as one or more 64-bit words of several lanes. Each word is XORed with the
// fingerprint in every lane, then searched for a zero lane without a branch. Every kind of bucket
// (a width and a size) is compiled separately; visit() chooses once for a whole batch. The widths
// are such that a load never spans more than eight bytes.
#pragma once

#include <array>
#include <cstdint>

#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/hash/digest.h"

namespace semel::filter_internal::cuckoo_bucket {

inline constexpr std::array<std::uint32_t, 16> kWidths = {8,  9,  10, 11, 12, 13, 14, 15,
                                                          16, 20, 24, 28, 32, 40, 48, 56};

// Returns the other bucket of an entry. This is an involution, because h - (h - b) = b. FROZEN with
// the format.
inline std::uint64_t other(std::uint64_t bucket, std::uint64_t fingerprint, std::uint64_t buckets) {
  const std::uint64_t h = scale(mix(fingerprint), buckets);
  return h >= bucket ? h - bucket : h - bucket + buckets;
}

// FROZEN with the format, like other().
inline std::uint64_t fingerprint_of(Digest key, std::uint32_t width) {
  return 1 + scale(key.hi, (std::uint64_t{1} << width) - 1);
}

template <std::uint32_t kWidth, std::uint32_t kSize>
struct Kind {
  static constexpr std::uint32_t kSlots = kSize;
  static constexpr std::uint32_t kLanes = kWidth > 32   ? 1
                                          : kWidth > 16 ? 2
                                          : kWidth == 8 ? kSize
                                                        : 4;
  static constexpr std::uint32_t kLoads = kSize / kLanes;
  static constexpr std::uint64_t kLoadBits = std::uint64_t{kLanes} * kWidth;
  static constexpr std::uint64_t kBits = std::uint64_t{kSize} * kWidth;
  static_assert(kLoadBits % 4 == 0 && (kLoadBits % 8 == 0 ? kLoadBits : kLoadBits + 4) <= 64);

  // Returns a word with `lane` in each of the lanes.
  static constexpr std::uint64_t in_all(std::uint64_t lane) {
    std::uint64_t word = 0;
    for (std::uint32_t i = 0; i < kLanes; ++i) word |= lane << (i * kWidth);
    return word;
  }
  static constexpr std::uint64_t kLow = in_all(1);
  static constexpr std::uint64_t kHigh = kLow << (kWidth - 1);
  static constexpr std::uint64_t kRest = kHigh - kLow;  // all but the high bit of each lane

  // The two buckets where a key may lie.
  struct Place {
    std::uint64_t first;  // a bucket
    std::uint64_t second;
    std::uint64_t fingerprint;
  };

  static Place place(std::uint64_t buckets, Digest key) {
    const std::uint64_t bucket = scale(key.lo, buckets);
    const std::uint64_t fingerprint = fingerprint_of(key, kWidth);
    return {bucket, other(bucket, fingerprint, buckets), fingerprint};
  }

  static const std::uint8_t* address(const std::uint8_t* table, std::uint64_t bucket) {
    return table + bucket * kBits / 8;
  }

  // Loads some lanes of a bucket. Ignore the bits above them.
  static std::uint64_t load(const std::uint8_t* table, std::uint64_t bucket, std::uint32_t i) {
    const std::uint64_t bit = bucket * kBits + i * kLoadBits;
    const std::uint64_t word = load_u64(table + bit / 8);
    if constexpr (kLoadBits % 8 == 0) return word;
    return word >> (bit % 8);
  }

  static std::uint64_t get(const std::uint8_t* table, std::uint64_t bucket, std::uint32_t slot) {
    const std::uint64_t word = load(table, bucket, slot / kLanes);
    return word >> (slot % kLanes * kWidth) & ((std::uint64_t{1} << kWidth) - 1);
  }

  // Returns a nonzero word if a slot of the bucket holds the fingerprint. The borrow of a zero lane
  // can set the high bit of lanes above it. That does no harm, because only the question 'any?' is
  // asked.
  static std::uint64_t any(const std::uint8_t* table, std::uint64_t bucket,
                           std::uint64_t fingerprint) {
    const std::uint64_t wanted = fingerprint * kLow;
    std::uint64_t zero = 0;
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      const std::uint64_t x = load(table, bucket, i) ^ wanted;
      zero |= (x - kLow) & ~x & kHigh;
    }
    return zero;
  }

  // Tests both buckets without a branch, so that the two loads do not wait for each other.
  static bool holds(const std::uint8_t* table, const Place& place) {
    return (any(table, place.first, place.fingerprint) |
            any(table, place.second, place.fingerprint)) != 0;
  }

  // Returns one bit for each slot of the bucket. A bit is set exactly if the slot holds the
  // fingerprint.
  static std::uint32_t matches(const std::uint8_t* table, std::uint64_t bucket,
                               std::uint64_t fingerprint) {
    const std::uint64_t wanted = fingerprint * kLow;
    std::uint32_t slots = 0;
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      const std::uint64_t x = load(table, bucket, i) ^ wanted;
      const std::uint64_t zero = ~(((x & kRest) + kRest) | x) & kHigh;
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        const auto hit = static_cast<std::uint32_t>(zero >> (lane * kWidth + kWidth - 1) & 1);
        slots |= hit << (i * kLanes + lane);
      }
    }
    return slots;
  }
};

template <std::uint32_t kWidth, class Shape, class Fn>
inline auto of_size(const Shape& shape, Fn fn) {
  return shape.bucket_size == 8 ? fn(Kind<kWidth, 8>()) : fn(Kind<kWidth, 4>());
}

// Calls fn(Kind<width, size>()) for the kind of the shape. In line: if it were a call, what fn has
// captured would go through memory.
template <class Shape, class Fn>
[[gnu::always_inline]] inline auto visit(const Shape& shape, Fn fn) {
  switch (shape.fingerprint_bits) {
    case 8:
      return of_size<8>(shape, fn);
    case 9:
      return of_size<9>(shape, fn);
    case 10:
      return of_size<10>(shape, fn);
    case 11:
      return of_size<11>(shape, fn);
    case 12:
      return of_size<12>(shape, fn);
    case 13:
      return of_size<13>(shape, fn);
    case 14:
      return of_size<14>(shape, fn);
    case 15:
      return of_size<15>(shape, fn);
    case 16:
      return of_size<16>(shape, fn);
    case 20:
      return of_size<20>(shape, fn);
    case 24:
      return of_size<24>(shape, fn);
    case 28:
      return of_size<28>(shape, fn);
    case 32:
      return of_size<32>(shape, fn);
    case 40:
      return of_size<40>(shape, fn);
    case 48:
      return of_size<48>(shape, fn);
    default:
      SEMEL_ASSERT(shape.fingerprint_bits == 56);
      return of_size<56>(shape, fn);
  }
}

}  // namespace semel::filter_internal::cuckoo_bucket

// Integer arithmetic that the language leaves out.
#pragma once

#include <cstdint>

#include "semel/core/int128.h"

namespace semel::inline core_internal {

// The two halves of the product of two 64-bit numbers.
struct Product {
  std::uint64_t high;
  std::uint64_t low;
};

constexpr Product multiply(std::uint64_t a, std::uint64_t b) {
  const uint128 product = static_cast<uint128>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

// Returns the exclusive or of the two halves of the product: a quick hash of two numbers.
constexpr std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const uint128 product = static_cast<uint128>(a) * b;
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

// Maps a uniform 64-bit point to a uniform number in [0, range). This multiplies where `%` would
// divide. The bias is at most range / 2^64.
constexpr std::uint64_t scale(std::uint64_t point, std::uint64_t range) {
  return multiply(point, range).high;
}

// Mixes the bits of x. This is a bijection of 64-bit numbers: every input bit changes every output
// bit about half of the time. It is the finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA
// 2014; variant 13 of Stafford).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns word n of an endless sequence of independent words that half a digest stands for. Word 0
// is the half itself; the others are mixed from it. FROZEN with the formats of the blocked filters.
constexpr std::uint64_t word_of(std::uint64_t half, std::uint64_t n) {
  return n == 0 ? half : mix(half + n * 0x9e3779b97f4a7c15);
}

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

}  // namespace semel::inline core_internal

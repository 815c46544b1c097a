// Random: reproducible random numbers, handed in wherever chance is needed.
//
// Contract  The same seed gives the same sequence on every machine, for ever: simulations and test
//           data are named by their seed. Do not use it for secrets; those come from libsodium.
// Cost      One multiplication chain per number; 8 bytes of state.
// Source    splitmix64: Steele, Lea and Flood, 'Fast splittable pseudorandom number generators',
//           OOPSLA 2014.
#pragma once

#include <cstdint>
#include <limits>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::inline core_internal {

class Random {
 public:
  using result_type = std::uint64_t;  // makes this a UniformRandomBitGenerator

  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t operator()() { return mix(state_ += 0x9e3779b97f4a7c15); }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return std::numeric_limits<std::uint64_t>::max(); }

  // Returns a uniform number in [0, bound), with a bias of at most bound / 2^64.
  // REQUIRES: bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    SEMEL_ASSERT(bound > 0);
    return scale((*this)(), bound);
  }

  // Returns a uniform number in [0, 1), in steps of 2^-53.
  constexpr double unit() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace semel::inline core_internal

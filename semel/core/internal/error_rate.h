// The error rates that a user may ask for. The library, the command and the module share one range.
//
// Every structure of the command and the module can keep the lowest rate while it grows. The parts
// of a growing cuckoo filter get shares down to a thousandth of it, and their longest fingerprints,
// of 56 bits, err at a rate of 1e-16. Filters that serve as parts (BloomShape, CuckooShape)
// take every rate above 0 and below 1, and refuse a rate that they cannot keep.
#pragma once

#include "semel/core/result.h"

namespace semel::inline core_internal {

inline constexpr double kLeastErrorRate = 1e-12;
inline constexpr double kMostErrorRate = 1 - 0x1p-53;  // the last double below 1

// Returns true if a user may ask for this error rate. Returns false for NaN.
constexpr bool is_error_rate(double rate) {
  return rate >= kLeastErrorRate && rate <= kMostErrorRate;
}

inline constexpr const char* kErrorRatesAllowed = "1e-12 or more, below 1";
inline Error error_rate_refused() {
  return {Errc::invalid, "an error rate is 1e-12 or more, below 1"};
}

}  // namespace semel::inline core_internal

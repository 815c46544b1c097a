// The error rates that may be asked for: one range for the library, the command and the module.
//
// The lower end is what every structure of the command and the module can keep while it grows: the
// parts of a cuckoo filter have shares of down to a thousandth of it, and their longest
// fingerprints, of 56 bits, err by 1e-16. Filters that serve as parts (BloomShape, CuckooShape,
// BloomSeries) take every rate above 0 and below 1, and refuse what they cannot keep.
#pragma once

#include "semel/core/result.h"

namespace semel {

inline constexpr double kLeastErrorRate = 1e-12;
inline constexpr double kMostErrorRate = 1 - 0x1p-53;  // the last double below 1

// Returns whether a structure can be asked to err this rarely. False for what is not a number.
constexpr bool is_error_rate(double rate) {
  return rate >= kLeastErrorRate && rate <= kMostErrorRate;
}

inline constexpr const char* kErrorRatesAllowed = "1e-12 or more, below 1";
inline constexpr Error kErrorRateRefused{Errc::invalid, "an error rate is 1e-12 or more, below 1"};

}  // namespace semel

// The mathematics of slices of which some failed. docs/math/slices.md derives the formulas.
//
//   s  the share of new keys that a slice takes for known ones: for one bit, the share that is set
//   q  the share of the slices that failed, each with equal probability
//   x  `needed`: an id is distinct if fewer slices than this are live and say 'known'
//
// For horizontal slices use one function, and the rate of a whole slice for s. The other formulas
// of the paper are in semel/papers/slice_math.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace semel::slices_internal::slice_math {

// The probabilities that a function of a new id meets each kind of slice.
struct ProbeRates {
  double set;     // a slice that did not fail and says 'known': (1 - q)s
  double failed;  // a slice that failed: q
};

// Returns the binomial coefficient: the ways to choose i of n.
double choose(std::uint32_t n, std::uint32_t i);

// Returns the probability that a new id is taken for a duplicate: no live slice says 'new', and x
// or more say 'known'. This is equation 9. With x = 0 failed slices count as known (equations 5 and
// 6), with x = k as new.
double false_positives(const ProbeRates& rates, std::uint32_t functions, std::uint32_t needed);

// Returns the rate for v_h. `rates` has one rate for each slice, nullopt for a failed one. If
// several functions of an id choose one group, they meet the same slice there and fail together.
// This is equation 12. Takes O(groups * functions^3). REQUIRES: parts > 0, and rates.size() is a
// multiple of it.
double v_h_false_positives(std::span<const std::optional<double>> rates, std::uint32_t parts,
                           std::uint32_t functions, std::uint32_t needed);

}  // namespace semel::slices_internal::slice_math

// The mathematics of slices: the formulas that the product does not use, each once.
// docs/math/slices.md derives them. The others are in semel/slices/internal/slice_math.h.
//
// The words bound, estimate and exact mean what docs/math/bloom.md says. Formulas `as printed` are
// those of the paper, kept for comparison; no code decides by them.
//
//   m  bits of all slices    S  slices    S'  slices of a group    n  distinct ids    k  functions
//   s, q, x  as in semel/slices/internal/slice_math.h    f  slices that failed: q = f/S
#pragma once

#include <cstdint>

#include "semel/core/result.h"
#include "semel/slices/internal/slice_math.h"

namespace semel::papers::slice_math {

using slices_internal::slice_math::false_positives;
using slices_internal::slice_math::ProbeRates;
using slices_internal::slice_math::v_h_false_positives;

// These formulas hold while no slice has failed.

// (1 - (1 - 1/m)^(kn))^k: equations 1 and 3.
double vertical_fpr(double bits, std::uint32_t functions, double ids);
// (1 - (1 - S/m)^(kn/S))^k: equation 4, where every slice has n/S ids.
double horizontal_fpr(double bits, std::uint32_t functions, double ids, double slices);
// Returns the mean of horizontal_fpr() over the number of ids that hashing brings to a slice:
// equation 8.
double uneven_horizontal_fpr(double bits, std::uint32_t functions, std::uint64_t ids,
                             std::uint64_t slices);

// The formulas below are for slices of which some failed.

constexpr ProbeRates probe_rates(double rate, double failed_share) {
  return {(1 - failed_share) * rate, failed_share};
}

// Returns the probability that a duplicate is taken for new: fewer than x of its slices are live.
// Equation 10.
double false_negatives(double failed_share, std::uint32_t functions, std::uint32_t needed);
// Returns the mean of equation 9 over the number of failed slices in the group of an id, for h_v.
// This is equation 11. REQUIRES: failed <= groups * parts.
double h_v_false_positives(double rate, std::uint32_t groups, std::uint32_t parts,
                           std::uint32_t failed, std::uint32_t functions, std::uint32_t needed);

// The paper's heuristic: x slices that say 'known' make the id a duplicate, whatever the others
// say.
double heuristic_false_positives(const ProbeRates& rates, std::uint32_t functions,
                                 std::uint32_t needed);
double printed_false_positives(const ProbeRates& rates, std::uint32_t needed);
double printed_false_negatives(double failed_share, std::uint32_t functions, std::uint32_t needed);

// These return S_f: the least number of slices that keeps the error below `most` when `failed` of
// them fail.

// Failed slices count as known. Errc::invalid unless 0 <= rate < 1, functions > 0 and
// rate^functions < most < 1; Errc::limit beyond 2^53 slices.
Result<std::uint64_t> slices_for_false_positives(std::uint64_t failed, double rate,
                                                 std::uint32_t functions, double most);
// Errc::invalid unless needed is 1 to `functions` and 0 < most < 1; Errc::limit beyond 2^53 slices.
Result<std::uint64_t> slices_for_false_negatives(std::uint64_t failed, std::uint32_t functions,
                                                 std::uint32_t needed, double most);

}  // namespace semel::papers::slice_math

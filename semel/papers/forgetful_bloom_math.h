// The mathematics of the forgetful Bloom filter of the paper, each formula once.
// docs/math/forgetful.md derives them.
//
// Ids are counted in periods. With spread 1, lane i holds the ids of period i. With spread 2 it
// also holds those of period i - 1, in which it was the future lane. Lanes are numbered from the
// oldest (0) to the newest (L - 1). So period -1 is that of the lane dropped last, and period L - 1
// has not begun.
//
// If lanes or pairs of lanes share ids, the rates are upper bounds of the mean over random digests:
// the events are positively correlated, but 1 - prod(1 - p) treats them as independent.
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/result.h"
#include "semel/window/internal/lane_array.h"

namespace semel::papers {

using window_internal::LaneShape;

// A rule says how many lanes an id is written to, and in which lanes a check must find it.
enum class CheckRule : std::uint8_t {
  newest,  // spread 1; the id is in any lane
  any,     // spread 2: future and present; in any lane. The paper's simple check
  // Spread 2; in two adjacent lanes, or in the oldest. This is the paper's Algorithm 2, corrected:
  // as printed, it never checks the oldest lane alone if there are two or more past lanes.
  pairs_or_oldest,
  split_pairs,  // spread 2; in two adjacent lanes, which have different hash functions
};

constexpr std::uint32_t spread_of(CheckRule rule) { return rule == CheckRule::newest ? 1 : 2; }

// Returns true if the next lane alone still recognises the ids of a period when the lane of that
// period is dropped.
constexpr bool carries(CheckRule rule) {
  return rule == CheckRule::any || rule == CheckRule::pairs_or_oldest;
}

// Returns how many periods of time the lanes are sure to cover.
constexpr std::uint32_t periods_covered(CheckRule rule, std::uint32_t lanes) {
  return rule == CheckRule::split_pairs ? lanes - 2 : lanes - 1;
}

// Returns the false positive rate, given how many ids each period has. REQUIRES: a plain shape that
// is valid(). Spread 1: one number for each lane. Spread 2: the number of period -1 first (0 if
// there was none or it is forgotten), then one for each lane before the newest.
double rate(const LaneShape& shape, CheckRule rule, std::span<const double> ids);

// Returns the false positive rate when every period has `ids`.
double full_rate(const LaneShape& shape, CheckRule rule, double ids);

// Returns the plain shape of least memory with full_rate(ids) <= fpr and a position for each id.
// Errors: Errc::limit beyond limits::kFilterBits.
// REQUIRES: ids > 0, 0 < fpr < 1, and more lanes than the spread.
Result<LaneShape> shape_for(std::uint32_t lanes, CheckRule rule, std::uint64_t ids, double fpr);

// Returns the most ids in a period with full_rate(ids) <= fpr, or 0 if one is too many.
std::uint64_t ids_for(const LaneShape& shape, CheckRule rule, double fpr);

// Returns the false positive rate by equation 3 of the paper. It treats neighbouring lanes as
// independent, and lets the future lane alone suffice, so it serves only for comparison. `ids` are
// as for rate() with spread 2. REQUIRES: plain layout, ids.size() >= 2.
double equation_3(const LaneShape& shape, std::span<const double> ids);

}  // namespace semel::papers

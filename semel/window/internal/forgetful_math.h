// The mathematics of forgetful filters, each formula once. docs/math/forgetful.md derives them.
//
// Ids are written in periods. Lane i is written to in period i, and with spread 2 in period i - 1 too,
// when it was the future lane. So, for L lanes from the oldest (0) to the newest (L - 1):
//
//   spread 1   lane i holds the ids of period i
//   spread 2   lane i holds those of periods i - 1 and i; period -1 is that of the lane dropped last,
//              and period L - 1 has not begun: the newest lane is the future one
//
// Rates are upper bounds of the mean over random digests where lanes or pairs of them share ids: these
// are positively associated, and 1 - prod(1 - p) treats them as independent. For spread 1 nothing is
// shared, and it is exact (as far as bloom_math is: exact for blocked layouts, an estimate for plain).
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/result.h"
#include "semel/window/internal/lane_array.h"

namespace semel {

// How many lanes an id is written to, and what a check demands of them.
enum class LaneRule : std::uint8_t {
  newest = 0,  // spread 1; in any lane
  any = 1,     // spread 2: future and present; in any lane. The paper's simple check
  pairs_or_oldest =
      2,  // spread 2; in two adjacent lanes, or in the oldest. The paper's Algorithm 2,
          // corrected: there the oldest alone is never reached with two past lanes or more
  split_pairs = 3,  // spread 2; in two adjacent lanes, which have other hash functions
};

constexpr std::uint32_t spread_of(LaneRule rule) { return rule == LaneRule::newest ? 1 : 2; }

// Whether the ids of a period stay recognised when the lane that had it as its own is dropped, by the
// next lane alone.
constexpr bool carries(LaneRule rule) {
  return rule == LaneRule::any || rule == LaneRule::pairs_or_oldest;
}

// How many periods of time the lanes are sure to cover.
constexpr std::uint32_t periods_covered(LaneRule rule, std::uint32_t lanes) {
  return rule == LaneRule::split_pairs ? lanes - 2 : lanes - 1;
}

namespace forgetful_math {

// The share of an id's chance to be recognised by mistake, given how many ids each period has.
// REQUIRES: shape.valid(); spread 1: one number for each lane; spread 2: one for each lane before the
// newest, and first that of period -1 (0 if there was none or if it is forgotten).
double rate(const LaneShape& shape, LaneRule rule, std::span<const double> ids);

// The same by equation 3 of the paper, which takes neighbouring lanes for independent and lets the
// future lane alone suffice. For comparison. REQUIRES: plain layout and spread 2.
double paper_rate(const LaneShape& shape, std::span<const double> ids);

// With every lane as full as it gets: `ids` in each period.
double full_rate(const LaneShape& shape, LaneRule rule, double ids);

// The least memory with full_rate(ids) <= fpr and a position for each id, which only errors near 1
// would do without. The layout and the lanes are given.
// Errc::limit beyond limits::kFilterBits, and where a line cannot reach so low a rate.
// REQUIRES: ids > 0, 0 < fpr < 1, lanes that are valid for the rule, and plain unless spread is 1.
Result<LaneShape> shape_for(BloomLayout layout, std::uint32_t lanes, LaneRule rule,
                            std::uint64_t ids, double fpr);

// The most ids in a period with full_rate(ids) <= fpr; 0 if one is too many.
std::uint64_t ids_for(const LaneShape& shape, LaneRule rule, double fpr);

// How many ids leave so many bits of a lane set, in the mean.
double ids_that_set(const LaneShape& shape, double ones);

}  // namespace forgetful_math
}  // namespace semel

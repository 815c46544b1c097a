// The mathematics of forgetful filters, each formula once. docs/math/forgetful.md derives them.
//
// Lane i of L, from the oldest (0) to the newest (L - 1), holds the ids of period i. Lanes share
// nothing, so the rates are exact as far as bloom_math is: exact for blocked layouts, an estimate
// for the plain one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "semel/core/limits.h"
#include "semel/core/result.h"
#include "semel/window/internal/lane_array.h"

namespace semel::window_internal {

// Returns how many periods of time the lanes are sure to cover.
constexpr std::uint32_t periods_covered(std::uint32_t lanes) { return lanes - 1; }

namespace forgetful_math {

// Returns the false positive rate, given how many ids each lane holds.
// REQUIRES: shape.valid().
double rate(const LaneShape& shape, std::span<const double> ids);

// Returns the false positive rate when every lane holds `ids`.
double full_rate(const LaneShape& shape, double ids);

// Returns the shape of least memory that has the given layout and lanes, full_rate(ids) <= fpr, and
// at least one position for each id. (Only errors near 1 would need fewer.) Errors: Errc::limit
// beyond limits::kFilterBits, or if a line cannot reach so low a rate. REQUIRES: ids > 0, 0 < fpr <
// 1, lanes that are valid.
Result<LaneShape> shape_for(BloomLayout layout, std::uint32_t lanes, std::uint64_t ids, double fpr);

inline Error too_many_bits() { return {Errc::limit, "the lanes would need more than 2^46 bits"}; }

// Returns the mean number of ids that leave this many bits of a lane set.
double ids_that_set(const LaneShape& shape, double ones);

// These are the parts of the functions above, and of those in semel/papers.

// Returns the greatest n in [0, most] with holds(n). REQUIRES: holds(n) is true up to some n and
// false beyond it.
template <class Holds>
std::uint64_t greatest(std::uint64_t most, Holds holds) {
  std::uint64_t good = 0, bad = 1;
  while (bad <= most && holds(bad)) {
    good = bad;
    bad = bad > most / 2 ? most + 1 : bad * 2;
  }
  while (bad - good > 1) {
    const std::uint64_t middle = good + (bad - good) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  return good;
}

// Returns the plain shape of least memory with good(shape). REQUIRES: good() is true from some
// number of positions on. Errors: Errc::limit beyond limits::kFilterBits.
template <class Good>
Result<LaneShape> least_plain(std::uint32_t lanes, std::uint64_t ids, Good good) {
  LaneShape best{BloomLayout::plain, lanes, 0, 0};
  const std::uint64_t most = limits::kFilterBits / best.word_bits();
  // Memory as a function of the probes has one minimum; the walk ends where it rises again.
  for (std::uint32_t probes = 1; probes <= limits::kPlainProbes; ++probes) {
    const auto too_few = [&](std::uint64_t positions) {
      return !good(LaneShape{BloomLayout::plain, lanes, probes, positions});
    };
    const std::uint64_t positions = greatest(most, too_few) + 1;
    if (best.positions != 0 && positions > best.positions) break;
    best.positions = positions;
    best.probes = probes;
  }
  best.positions = std::max(best.positions, ids);
  if (best.positions > most) return too_many_bits();
  return best;
}

// Returns the chance that all probes of an id fall on set positions, when a mean share f of the
// positions is set. It is f^k plus the effect of a small lane: two probes may fall on one position,
// and the share of one lane differs from the mean. Both count to second order. That is nearly exact
// from a hundred positions on, and an upper bound below.
double all_set(const LaneShape& shape, double f, double variance);

// Returns the chance of a false positive in one lane that holds so many ids.
double lane_rate(const LaneShape& shape, double ids);

// Gathers 1 - prod(1 - p), one p after the other.
class AnyOf {
 public:
  void add(double p) { none_ += std::log1p(-std::min(p, 1.0)); }
  double rate() const { return -std::expm1(none_); }

 private:
  double none_ = 0;  // the logarithm of the chance of none
};

}  // namespace forgetful_math
}  // namespace semel::window_internal

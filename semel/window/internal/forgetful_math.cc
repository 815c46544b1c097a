#include "semel/window/internal/forgetful_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/limits.h"
#include "semel/filter/bloom_math.h"

namespace semel::forgetful_math {
namespace {

// The share of positions that `ids` set in a lane of the plain layout.
double filled(const LaneShape& shape, double ids) {
  return -std::expm1(-ids * shape.probes / static_cast<double>(shape.positions));
}

// The chance that all probes of an id fall on positions of which, in the mean, a share f is set: f^k,
// and what a small lane adds to it. Two probes may fall on one position, and the share of one lane
// differs from the mean: both to second order, which is nearly exact from a hundred positions on and
// below that an upper bound.
double all_set(const LaneShape& shape, double f, double variance) {
  if (f <= 0) return 0;
  const double pairs = shape.probes * (shape.probes - 1.0) / 2;
  const double twice = (1 - f) / (f * static_cast<double>(shape.positions));
  return std::min(1.0, std::pow(f, shape.probes) * (1 + pairs * (twice + variance / (f * f))));
}

// The chance of a false positive in one lane that holds so many ids.
double lane_rate(const LaneShape& shape, double ids) {
  if (shape.layout == BloomLayout::plain) {
    // The variance of the share of bins that stay empty when balls are thrown.
    const auto positions = static_cast<double>(shape.positions);
    const double balls = ids * shape.probes / positions;
    const double empty = std::exp(-balls);
    return all_set(shape, -std::expm1(-balls), empty * (1 - (1 + balls) * empty) / positions);
  }
  const std::uint32_t lines = shape.lines();
  const std::uint64_t blocks = shape.array_lines() / lines;
  const double line_rate = bloom_math::blocked_expected_fpr(
      blocks, shape.probes / lines, static_cast<std::uint64_t>(std::ceil(ids)),
      shape.line_positions());
  return std::pow(line_rate, lines);
}

// 1 - prod(1 - p), one p after the other.
class AnyOf {
 public:
  void add(double p) { none_ += std::log1p(-std::min(p, 1.0)); }
  double rate() const { return -std::expm1(none_); }

 private:
  double none_ = 0;  // the logarithm of the chance of none
};

// ids of period i, where i = -1 comes first in the span, and the last has not begun.
double at(std::span<const double> ids, std::ptrdiff_t period) {
  const auto i = static_cast<std::size_t>(period + 1);
  return i < ids.size() ? ids[i] : 0;
}

double pair_rate(const LaneShape& shape, LaneRule rule, double before, double shared,
                 double after) {
  if (rule == LaneRule::split_pairs) {
    // No position is shared: what one lane says of an id tells nothing about the other.
    return lane_rate(shape, before + shared) * lane_rate(shape, shared + after);
  }
  // A position is set in both lanes by an id of the period that they share, or by one of each.
  const double s = filled(shape, shared);
  const double both = s + (1 - s) * filled(shape, before) * filled(shape, after);
  return all_set(shape, both, both * (1 - both) / static_cast<double>(shape.positions));
}

// The greatest n in [0, most] with holds(n), which must hold up to somewhere and not beyond.
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

}  // namespace

double rate(const LaneShape& shape, LaneRule rule, std::span<const double> ids) {
  AnyOf any;
  if (rule == LaneRule::newest) {
    double last = -1, last_rate = 0;  // lanes are often equally full, and a rate takes some work
    for (const double n : ids) {
      if (n != last) last_rate = lane_rate(shape, n);
      last = n;
      any.add(last_rate);
    }
    return any.rate();
  }
  SEMEL_ASSERT(shape.layout == BloomLayout::plain && !ids.empty());
  const auto lanes = static_cast<std::ptrdiff_t>(ids.size());
  if (rule == LaneRule::any) {
    for (std::ptrdiff_t i = 0; i < lanes; ++i)
      any.add(lane_rate(shape, at(ids, i - 1) + at(ids, i)));
    return any.rate();
  }
  for (std::ptrdiff_t i = 0; i + 1 < lanes; ++i) {
    any.add(pair_rate(shape, rule, at(ids, i - 1), at(ids, i), at(ids, i + 1)));
  }
  if (rule == LaneRule::pairs_or_oldest) any.add(lane_rate(shape, at(ids, -1) + at(ids, 0)));
  return any.rate();
}

double paper_rate(const LaneShape& shape, std::span<const double> ids) {
  SEMEL_ASSERT(shape.layout == BloomLayout::plain && ids.size() >= 2);
  const auto lanes = static_cast<std::ptrdiff_t>(ids.size());
  const auto p = [&](std::ptrdiff_t i) {
    return std::pow(filled(shape, at(ids, i - 1) + at(ids, i)), shape.probes);
  };
  AnyOf any;
  any.add(p(lanes - 1));  // the future lane alone
  for (std::ptrdiff_t i = 0; i + 2 < lanes; ++i) any.add(p(i) * p(i + 1));
  any.add(p(0));
  return any.rate();
}

double full_rate(const LaneShape& shape, LaneRule rule, double ids) {
  return rate(shape, rule, std::vector<double>(shape.lanes, ids));
}

Result<LaneShape> shape_for(BloomLayout layout, std::uint32_t lanes, LaneRule rule,
                            std::uint64_t ids, double fpr) {
  SEMEL_ASSERT(ids > 0 && fpr > 0 && fpr < 1);
  const Error too_large{Errc::limit, "the lanes would need more than 2^46 bits"};
  LaneShape best{layout, lanes, 0, 0};
  const std::uint64_t most = limits::kFilterBits / best.word_bits();

  if (layout != BloomLayout::plain) {
    SEMEL_ASSERT(rule == LaneRule::newest);
    const double lane_fpr = -std::expm1(std::log1p(-fpr) / lanes);
    const double line_fpr = std::pow(lane_fpr, 1.0 / best.lines());
    if (line_fpr < bloom_math::kLeastBlockedFpr) {
      return Error{Errc::limit, "so low an error needs more lines, or the plain layout"};
    }
    const bloom_math::Size size =
        bloom_math::blocked_size(ids, line_fpr, best.line_positions(), limits::kLaneProbes);
    const std::uint64_t unit = std::uint64_t{best.line_positions()} * best.lines();
    if (size.bits == 0 || size.bits > most / best.lines() || ids > most - unit) return too_large;
    best.positions = std::max(size.bits * best.lines(), divide_up(ids, unit) * unit);
    best.probes = size.probes * best.lines();
    return best;
  }

  // Memory as a function of the probes has one minimum; the walk ends where it rises again.
  for (std::uint32_t probes = 1; probes <= limits::kPlainProbes; ++probes) {
    const auto too_few = [&](std::uint64_t positions) {
      return full_rate({layout, lanes, probes, positions}, rule, static_cast<double>(ids)) > fpr;
    };
    const std::uint64_t positions = greatest(most, too_few) + 1;
    if (best.positions != 0 && positions > best.positions) break;
    best.positions = positions;
    best.probes = probes;
  }
  best.positions = std::max(best.positions, ids);
  if (best.positions > most) return too_large;
  return best;
}

std::uint64_t ids_for(const LaneShape& shape, LaneRule rule, double fpr) {
  return greatest(shape.positions, [&](std::uint64_t ids) {
    return full_rate(shape, rule, static_cast<double>(ids)) <= fpr;
  });
}

double ids_that_set(const LaneShape& shape, double ones) {
  if (shape.layout == BloomLayout::plain) {
    return bloom_math::plain_cardinality(shape.positions, shape.probes,
                                         static_cast<double>(shape.positions) - ones);
  }
  const std::uint32_t lines = shape.lines();
  const std::uint64_t section = shape.positions / lines;
  return bloom_math::blocked_cardinality(section, shape.probes / lines,
                                         static_cast<double>(section) - ones / lines,
                                         shape.line_positions());
}

}  // namespace semel::forgetful_math

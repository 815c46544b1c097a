#include "semel/window/internal/forgetful_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"
#include "semel/filter/bloom_math.h"

namespace semel::window_internal::forgetful_math {

double all_set(const LaneShape& shape, double f, double variance) {
  if (f <= 0) return 0;
  const double pairs = shape.probes * (shape.probes - 1.0) / 2;
  const double twice = (1 - f) / (f * static_cast<double>(shape.positions));
  return std::min(1.0, std::pow(f, shape.probes) * (1 + pairs * (twice + variance / (f * f))));
}

double lane_rate(const LaneShape& shape, double ids) {
  if (shape.layout == BloomLayout::plain) {
    // Returns the variance of the share of bins that stay empty when balls are thrown.
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

double rate(const LaneShape& shape, std::span<const double> ids) {
  AnyOf any;
  double last = -1, last_rate = 0;  // lanes are often equally full, and a rate takes some work
  for (const double n : ids) {
    if (n != last) last_rate = lane_rate(shape, n);
    last = n;
    any.add(last_rate);
  }
  return any.rate();
}

double full_rate(const LaneShape& shape, double ids) {
  return rate(shape, std::vector<double>(shape.lanes, ids));
}

Result<LaneShape> shape_for(BloomLayout layout, std::uint32_t lanes, std::uint64_t ids,
                            double fpr) {
  SEMEL_ASSERT(ids > 0 && fpr > 0 && fpr < 1);
  if (layout == BloomLayout::plain) {
    return least_plain(lanes, ids, [&](const LaneShape& shape) {
      return full_rate(shape, static_cast<double>(ids)) <= fpr;
    });
  }
  LaneShape best{layout, lanes, 0, 0};
  const std::uint64_t most = limits::kFilterBits / best.word_bits();
  const double lane_fpr = -std::expm1(std::log1p(-fpr) / lanes);
  const double line_fpr = std::pow(lane_fpr, 1.0 / best.lines());
  if (line_fpr < bloom_math::kLeastBlockedFpr) {
    return Error{Errc::limit, "so low an error needs more lines, or the plain layout"};
  }
  const bloom_math::Size size =
      bloom_math::blocked_size(ids, line_fpr, best.line_positions(), limits::kLaneProbes);
  const std::uint64_t unit = std::uint64_t{best.line_positions()} * best.lines();
  if (size.bits == 0 || size.bits > most / best.lines() || ids > most - unit) {
    return too_many_bits();
  }
  best.positions = std::max(size.bits * best.lines(), divide_up(ids, unit) * unit);
  best.probes = size.probes * best.lines();
  return best;
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

}  // namespace semel::window_internal::forgetful_math

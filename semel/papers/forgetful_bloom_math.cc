#include "semel/papers/forgetful_bloom_math.h"

#include <cmath>
#include <vector>

#include "semel/core/assert.h"
#include "semel/window/internal/forgetful_math.h"

namespace semel::papers {
namespace {

namespace math = window_internal::forgetful_math;

// Returns the share of positions that `ids` set in a lane.
double filled(const LaneShape& shape, double ids) {
  return -std::expm1(-ids * shape.probes / static_cast<double>(shape.positions));
}

// Returns the ids of a period. Period -1 comes first in the span; the last period has not begun.
double at(std::span<const double> ids, std::ptrdiff_t period) {
  const auto i = static_cast<std::size_t>(period + 1);
  return i < ids.size() ? ids[i] : 0;
}

double pair_rate(const LaneShape& shape, CheckRule rule, double before, double shared,
                 double after) {
  if (rule == CheckRule::split_pairs) {
    // No position is shared: one lane tells nothing about the other.
    return math::lane_rate(shape, before + shared) * math::lane_rate(shape, shared + after);
  }
  // A position is set in both lanes by an id of the period that they share, or by one of each.
  const double s = filled(shape, shared);
  const double both = s + (1 - s) * filled(shape, before) * filled(shape, after);
  return math::all_set(shape, both, both * (1 - both) / static_cast<double>(shape.positions));
}

}  // namespace

double rate(const LaneShape& shape, CheckRule rule, std::span<const double> ids) {
  SEMEL_ASSERT(shape.layout == BloomLayout::plain && !ids.empty());
  if (rule == CheckRule::newest) return math::rate(shape, ids);
  math::AnyOf any;
  const auto lanes = static_cast<std::ptrdiff_t>(ids.size());
  if (rule == CheckRule::any) {
    for (std::ptrdiff_t i = 0; i < lanes; ++i) {
      any.add(math::lane_rate(shape, at(ids, i - 1) + at(ids, i)));
    }
    return any.rate();
  }
  for (std::ptrdiff_t i = 0; i + 1 < lanes; ++i) {
    any.add(pair_rate(shape, rule, at(ids, i - 1), at(ids, i), at(ids, i + 1)));
  }
  if (rule == CheckRule::pairs_or_oldest) {
    any.add(math::lane_rate(shape, at(ids, -1) + at(ids, 0)));
  }
  return any.rate();
}

double full_rate(const LaneShape& shape, CheckRule rule, double ids) {
  return rate(shape, rule, std::vector<double>(shape.lanes, ids));
}

Result<LaneShape> shape_for(std::uint32_t lanes, CheckRule rule, std::uint64_t ids, double fpr) {
  SEMEL_ASSERT(ids > 0 && fpr > 0 && fpr < 1 && lanes > spread_of(rule));
  return math::least_plain(lanes, ids, [&](const LaneShape& shape) {
    return full_rate(shape, rule, static_cast<double>(ids)) <= fpr;
  });
}

std::uint64_t ids_for(const LaneShape& shape, CheckRule rule, double fpr) {
  return math::greatest(shape.positions, [&](std::uint64_t ids) {
    return full_rate(shape, rule, static_cast<double>(ids)) <= fpr;
  });
}

double equation_3(const LaneShape& shape, std::span<const double> ids) {
  SEMEL_ASSERT(shape.layout == BloomLayout::plain && ids.size() >= 2);
  const std::size_t lanes = ids.size();
  const auto rate = [&](std::size_t lane) {  // lane i holds the ids of periods i - 1 and i
    const double held = ids[lane] + (lane + 1 < lanes ? ids[lane + 1] : 0);
    return std::pow(filled(shape, held), shape.probes);
  };
  double none = (1 - rate(lanes - 1)) * (1 - rate(0));
  for (std::size_t i = 0; i + 2 < lanes; ++i) none *= 1 - rate(i) * rate(i + 1);
  return 1 - none;
}

}  // namespace semel::papers

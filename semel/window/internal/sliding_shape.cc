#include "semel/window/internal/sliding_shape.h"

#include <algorithm>
#include <cmath>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/error_rate.h"
#include "semel/filter/bloom_math.h"

namespace semel::window_internal {

std::uint64_t most_live_in(std::uint64_t cells, std::uint32_t probes, double error_left) {
  if (!(error_left > 0)) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(cells) *
                                    std::pow(error_left / 2, 1.0 / probes));
}

Result<SlidingShape> SlidingShape::for_goal(const Goal& goal) {
  if (goal.window_ms < 1) return Error{Errc::invalid, "a window lasts a millisecond or longer"};
  if (!is_error_rate(goal.fpr)) return error_rate_refused();
  if (goal.ids == 0) return Error{Errc::invalid, "a sliding filter needs room for one id"};
  if (goal.timer_bits < 4 || goal.timer_bits > 16) {
    return Error{Errc::invalid, "a timer has 4 to 16 bits"};
  }
  if (goal.ids > limits::kFilterBits) return Error{Errc::limit, "more ids than filters have bits"};

  SlidingShape shape{goal.window_ms, goal.fpr,       goal.timer_bits, 0, 0,
                     goal.on_full,   goal.max_bytes, goal.hash};
  // The last tick of an id is live to its end; the load of a window varies by its square root.
  const auto ids = static_cast<double>(goal.ids);
  const double late = static_cast<double>(shape.tick_ms()) / static_cast<double>(goal.window_ms);
  const double most_ids = std::ceil(ids * (1 + late) + 3 * std::sqrt(ids));
  const bloom_math::Size size =
      bloom_math::plain_size(static_cast<std::uint64_t>(most_ids), goal.fpr / 2);
  if (size.bits == 0) return Error{Errc::limit, "the filter would need more than 2^46 bits"};
  shape.probes = size.probes;
  shape.lines = std::max(divide_up(size.bits, shape.line_cells()), shape.least_lines());
  if (shape.lines > kMostLines) {
    return Error{Errc::limit, "the filter would need more than 2^46 bits"};
  }
  if (shape.filter_bytes() > goal.max_bytes) {
    return Error{Errc::limit, "one filter would take more memory than allowed"};
  }
  if (!shape.valid()) return Error{Errc::invalid, "a sliding filter of unknown policy or hash"};
  return shape;
}

bool SlidingShape::valid() const {
  if (window_ms < 1 || !is_error_rate(fpr) || timer_bits < 4 || timer_bits > 16) return false;
  if (probes < 1 || probes > limits::kPlainProbes) return false;
  if (on_full > OnFull::forget || !hash.valid()) return false;
  if (lines < least_lines() || lines > kMostLines || filter_bytes() > max_bytes) return false;
  return has_room_for_an_id(cells(), probes, fpr);
}

TimeMs SlidingShape::tick_ms() const {
  const TimeMs most = 2 * TimeMs{mask_of(timer_bits)} / 3;
  return window_ms / most + (window_ms % most != 0);
}

std::uint64_t SlidingShape::ticks() const {
  return divide_up(static_cast<std::uint64_t>(window_ms), static_cast<std::uint64_t>(tick_ms()));
}

std::uint32_t SlidingShape::line_cells() const { return kCellBits / timer_bits; }
std::uint64_t SlidingShape::least_lines() const { return divide_up(ticks() + 1, kLineBytes / 8); }
std::uint64_t SlidingShape::filter_bytes(std::uint64_t of_lines) const {
  return of_lines * kLineBytes + (ticks() + 1) * 8;
}

}  // namespace semel::window_internal

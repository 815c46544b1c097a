// GenerationTime: time cut into spans of equal length. The ids of one span are a generation, and
// are forgotten as a whole.
//
// Contract  Generation g holds the times [g * span, (g + 1) * span). Any two windows of the same
//           span cut time at the same places, and merge generation by generation. A generation is
//           alive while any of its times is inside the window: an id is recognised for the window,
//           and for less than a span beyond it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "semel/core/assert.h"
#include "semel/core/clock.h"
#include "semel/window/window.h"

namespace semel::window_internal {

class GenerationTime {
 public:
  static constexpr std::uint32_t kMostGenerations = 64;

  static constexpr bool valid(TimeMs window_ms, std::uint32_t generations) {
    return window_ms > 0 && generations > 0 && generations <= kMostGenerations;
  }

  // REQUIRES: valid(window_ms, generations).
  GenerationTime(TimeMs window_ms, std::uint32_t generations, TimeMs now_ms)
      : window_ms_(window_ms),
        span_ms_((SEMEL_ASSERT(valid(window_ms, generations)), (window_ms - 1) / generations + 1)),
        time_(now_ms),
        kept_from_ms_(std::numeric_limits<TimeMs>::min()) {}

  bool advance(TimeMs now_ms) { return time_.advance(now_ms); }
  TimeMs now() const { return time_.now(); }
  TimeMs span_ms() const { return span_ms_; }
  std::uint64_t backward_steps() const { return time_.backward_steps(); }

  std::int64_t generation_of(TimeMs time_ms) const {
    const std::int64_t quotient = time_ms / span_ms_;
    return quotient - (time_ms % span_ms_ < 0);
  }
  std::int64_t newest() const { return generation_of(now()); }
  std::int64_t oldest_alive() const { return oldest_alive(now()); }
  // Returns the same as after advance(now_ms).
  std::int64_t oldest_alive(TimeMs now_ms) const { return generation_of(edge(now_ms)); }

  // Returns the first time inside the window, now or as after advance(now_ms).
  TimeMs edge() const { return edge(now()); }
  TimeMs edge(TimeMs now_ms) const { return earlier_by(std::max(now_ms, now()), window_ms_); }

  // Ends the promise for all ids up to generation g.
  // REQUIRES: g <= newest().
  void forget_early(std::int64_t g) {
    keep_from(g == newest() ? later_by(now(), 1) : (g + 1) * span_ms_);
  }
  // Returns the time from which the promise holds; the first of all times if nothing was forgotten
  // early.
  TimeMs kept_from() const { return kept_from_ms_; }
  void keep_from(TimeMs time_ms) { kept_from_ms_ = std::max(kept_from_ms_, time_ms); }

  // Returns true if an id of this time may have been accepted before and forgotten.
  bool too_old(TimeMs at_ms) const {
    return at_ms < now() && at_ms < std::max(edge(), kept_from_ms_);
  }

  WindowPromise promise() const {
    const TimeMs edge_ms = edge();
    TimeMs start_ms = 0;
    if (__builtin_mul_overflow(generation_of(edge_ms), span_ms_, &start_ms)) {
      start_ms = std::numeric_limits<TimeMs>::min();
    }
    return {window_ms_, std::max(edge_ms, kept_from_ms_), start_ms};
  }

 private:
  TimeMs window_ms_;
  TimeMs span_ms_;
  WindowTime time_;
  TimeMs kept_from_ms_;
};

// Returns room for `n` things, in steps of an eighth to a quarter: 1 to 8, 10, 12, 14, 16, 20, ...
constexpr std::uint64_t size_class(std::uint64_t n) {
  if (n <= 8) return n;
  const int shift = 61 - __builtin_clzll(n - 1);
  return ((n - 1) >> shift << shift) + (std::uint64_t{1} << shift);
}

}  // namespace semel::window_internal

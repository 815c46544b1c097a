// SlidingShape: what a sliding filter is made of, and what two of them must agree on to merge.
//
// Layout    A line has 448 / timer_bits cells, then its base: 8 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/bits/internal/line_array.h"
#include "semel/core/clock.h"
#include "semel/core/limits.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/window.h"

namespace semel::window_internal {

inline constexpr std::size_t kCellBytes = 56;  // of a line; the rest is its base
inline constexpr std::uint32_t kCellBits = 8 * kCellBytes;

// Returns the largest timer.
constexpr std::uint32_t mask_of(std::uint32_t bits) { return (std::uint32_t{1} << bits) - 1; }

// Returns the number of live cells at which a filter has used half of the error that is left:
// docs/math/sliding.md, equation 2.
std::uint64_t most_live_in(std::uint64_t cells, std::uint32_t probes, double error_left);
inline bool has_room_for_an_id(std::uint64_t cells, std::uint32_t probes, double error_left) {
  return most_live_in(cells, probes, error_left) >= probes;
}

// Two filters can merge if they agree on the time, and on the shape except for the last two fields
// of memory.
struct SlidingShape {
  struct Goal {
    TimeMs window_ms;
    double fpr;
    std::uint64_t ids;  // new ones expected in a window; more of them take more filters
    std::uint32_t timer_bits = 8;
    std::uint64_t max_bytes = kNoCap;
    OnFull on_full = OnFull::refuse;
    HashId hash = {};
  };

  TimeMs window_ms;          // 1 or more
  double fpr;                // an error rate: the goal
  std::uint32_t timer_bits;  // 4 to 16
  std::uint32_t probes;      // k: 1 to 32
  std::uint64_t lines;       // of the first filter: least_lines() to kMostLines
  OnFull on_full;
  std::uint64_t max_bytes;  // room for one filter or more
  HashId hash;              // what made the digests

  // Returns the shape whose first filter is enough for `ids` in a window.
  // Errors: Errc::invalid unless window_ms > 0, is_error_rate(fpr), ids > 0 and the other fields
  // are as above; Errc::limit where a filter would be larger than max_bytes or limits::kFilterBits.
  static Result<SlidingShape> for_goal(const Goal& goal);

  static constexpr std::uint64_t kMostLines = limits::kFilterBits / (8 * kLineBytes);

  bool valid() const;
  TimeMs tick_ms() const;
  std::uint64_t ticks() const;  // in a window, rounded up
  std::uint32_t line_cells() const;
  std::uint64_t cells() const { return lines * line_cells(); }
  std::uint64_t least_lines() const;  // so that the counters take no more memory than the cells
  std::uint64_t filter_bytes() const { return filter_bytes(lines); }
  std::uint64_t filter_bytes(std::uint64_t of_lines) const;
  bool operator==(const SlidingShape&) const = default;
};

}  // namespace semel::window_internal

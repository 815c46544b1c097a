// TimedSeries: the paper's Bloom filters with a timer in every cell, with its growth and its test.
//
// Contract  A Window (window/window.h) like SlidingFilter, with these differences.
// Growth    Filters are of equal size. The newest takes the ids, and all are tested. It closes
//           before it would exceed half of the error that the older filters leave of the goal. So,
//           unlike in the paper, the sum stays below the goal however many filters there are.
//             density      The share of live cells is measured.
//             cardinality  Ids are counted, and never counted down, as their leaving is not seen;
//                          such a filter closes earlier.
// Equal     With equal_timers = k' > 1, k' timers of a duplicate must also be equal, as they are if
// timers    one id has set them. Then fewer new ids are taken for duplicates, but later ids
//           overwrite timers: THE PROMISE IS LOST, and promise() guarantees no id at all.
// Cost      O(filters * probes) for an id. With equal timers false_positive_rate() visits all
//           ticks.
// Memory    8 bytes for a cell, because expiries are stored whole. bytes() returns what
//           SlidingFilter would take for the same filters.
// Threads   const members may run at once; any other call needs the object to itself.
// Source    Koloniari, Ntarmos, Pitoura & Souravlias, 'One is Enough', sections 4 and 5, with
//           expiries in place of timers that count down, and a bound on the sum of the errors.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "semel/core/limits.h"
#include "semel/core/result.h"
#include "semel/window/internal/id_window.h"
#include "semel/window/internal/sliding_filter.h"

namespace semel::papers {

enum class SeriesGrowth : std::uint8_t { density, cardinality };

struct TimedShape {
  window_internal::SlidingShape filter;  // of every filter of the series
  SeriesGrowth growth = SeriesGrowth::density;
  std::uint32_t equal_timers = 1;  // k': 1 to k

  // Returns the shape with which one filter is enough for goal.ids in a window. Errors: those of
  // SlidingShape::for_goal, and Errc::invalid for equal timers beyond the probes.
  static Result<TimedShape> for_goal(const window_internal::SlidingShape::Goal& goal,
                                     SeriesGrowth growth, std::uint32_t equal_timers = 1);
  bool valid() const;
  bool operator==(const TimedShape&) const = default;
};

class TimedSeries {
 public:
  using Id = Digest;

  // REQUIRES: shape.valid().
  TimedSeries(const TimedShape& shape, TimeMs now_ms);

  // These do what window/window.h says. insert() renews a known id if `at_ms` is within the window.
  Verdict test(Digest id) const;
  Verdict insert(Digest id) { return insert(id, now()); }
  Verdict insert(Digest id, TimeMs at_ms) { return put(id, at_ms, true); }
  Verdict test_and_insert(Digest id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(Digest id, TimeMs at_ms) { return put(id, at_ms, false); }
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  WindowPromise promise() const;
  WindowCounts counts() const;
  // Returns an estimate: the live shares are exact, but probes and their expiries are treated as
  // independent.
  double false_positive_rate() const;
  std::uint64_t bytes() const { return filters_.size() * shape_.filter.filter_bytes(); }
  std::size_t filters() const { return filters_.size(); }
  const TimedShape& shape() const { return shape_; }

  bool operator==(const TimedSeries& other) const;  // compares all but counts()

 private:
  using Tick = std::uint64_t;  // since the least time that there is

  struct Filter {
    explicit Filter(std::uint64_t cells) : ends(cells) {}
    std::vector<Tick> ends;                  // the first tick in which each cell is dead
    std::map<Tick, std::uint64_t> expiring;  // cells by the tick of their end; only future ones
    std::uint64_t live = 0;                  // their sum
    std::uint64_t ids = 0;                   // taken since it was empty; by cardinality only
  };
  using Cells = std::array<std::uint64_t, limits::kPlainProbes>;

  std::uint32_t probes() const { return shape_.filter.probes; }
  Tick tick_of(TimeMs time_ms) const;
  // Returns the tick in which an id of this time is forgotten.
  Tick end_for(TimeMs at_ms) const;
  Cells cells_of(Digest id) const;
  bool known(const Cells& cells) const;
  bool holds(const Filter& filter, const Cells& cells) const;
  Verdict put(Digest id, TimeMs at_ms, bool renews);
  void remember(const Cells& cells, Tick end);
  double error_of(const Filter& filter) const;
  double error_left() const;
  void plan();
  bool make_room(const Cells& cells);
  void forget_oldest();
  TimeMs kept_from() const;

  TimedShape shape_;
  std::uint64_t tick_ms_;
  WindowTime time_;
  Tick tick_;                    // of now()
  std::vector<Filter> filters_;  // the oldest first, never empty
  TimeMs kept_from_ms_;
  WindowCounts counts_;          // except backward_steps
  std::uint64_t most_live_ = 0;  // the newest filter closes at this number
  std::uint64_t most_ids_ = 0;   // the same for growth by cardinality
};

static_assert(window_internal::IdWindow<TimedSeries>);

}  // namespace semel::papers

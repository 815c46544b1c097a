// SlidingFilter: a Bloom filter that forgets each id at its own time, by a timer in every cell.
//
// Contract  A Window (window/window.h). An id accepted at time a is recognised while now() - a <=
//           window, and forgotten in the tick after that of a + window, at most one tick late. A
//           late event is placed where it would have been: it expires at its own time plus the
//           window. A new id is called a duplicate at the rate false_positive_rate(), which inserts
//           never bring above the goal.
//           A window has 10 of them with timers of 4 bits, 170 with 8 and 43690 with 16, in general
//           2/3 * (2^timer_bits - 1). It has fewer where they would be shorter than a millisecond.
// Layout    Cells come in cache lines, each with the tick from which its codes count:
//
//             | code code code ...                        56 bytes | base, 8 bytes |
//
//           Code c > 0 expires after tick base + c - 1; with age = tick - base it is live if c >
//           age, however long ago the line was touched. So cells need no work when time passes, be
//           it a tick or a year. If the code of a write would not fit, the write first moves the
//           base of its line to the present and clears the expired cells there. This is the sweep:
//           one line at a time, two or three times in a window.
// Growth    Ids go to the newest of several filters, and every filter is tested. The newest closes
//           when the share of its live cells would use more than half of the error that the older
//           filters leave of the goal, so that the sum stays below the goal however many there are
//           (docs/math/sliding.md). The next filter has room for twice as many ids, so there are
//           few filters for any number of ids, and error left for all of them. A smaller one
//           follows when few ids come. A filter without a live cell is dropped. If the cap leaves
//           no room for another filter, new ids are refused, or the oldest filter is dropped early.
//           Then counts() has an estimate of the ids lost, and promise() the time up to which they
//           were accepted.
// Merge     Each cell gets the later of its two expiries. Commutative, associative, idempotent
//           (tests/laws). Times and sizes of the filters must be equal, and the shapes except
//           max_bytes and on_full. The error of the union may exceed the goal. Then new ids go to
//           another filter, which adds at most half of the goal.
// Cost      test: up to k cache misses a filter, about two for a new id. insert: k lines to write.
//           With a million ids at 1e-3 and 8 bits, batched, a new id takes 0.12 us to test and 0.5
//           us to test and insert. advance: one counter for each filter and passed tick. No insert,
//           test or advance touches more than k lines of each filter, however much time has passed,
//           not even one that opens a filter (zeroed.h). merge, encode, ==: O(cells).
// Memory    64 bytes for 448 / timer_bits cells, and 8 bytes for a tick of the window. Bits per id
//           in a window of a million:
//
//             error      1e-2    1e-3    1e-4
//             4 bits       56      80     104
//             8 bits      102     146     190
//             16 bits     205     293     381
//
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/sliding_v1.md. counts() belong to this object alone: they are not part of
//           its state, not written, not compared and not merged.
// Source    Koloniari, Ntarmos, Pitoura & Souravlias, 'One is Enough', sections 4 and 5, with
//           expiries in place of timers that count down, a bound on the sum of the errors, and
//           growth by doubling. The growth of the paper and its equal timers are in
//           semel/papers/timed_series.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/bits/internal/line_array.h"
#include "semel/core/codec.h"
#include "semel/core/limits.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/internal/sliding_shape.h"
#include "semel/window/window.h"

namespace semel::window_internal {

class SlidingFilter {
 public:
  using Id = Digest;
  using Goal = SlidingShape::Goal;

  static Result<SlidingFilter> make(const Goal& goal, TimeMs now_ms);
  // REQUIRES: shape.valid().
  SlidingFilter(const SlidingShape& shape, TimeMs now_ms);

  // These do what window/window.h says. REQUIRES: digests made by shape().hash.

  // Returns fresh or duplicate, now or as after advance(now_ms).
  Verdict test(Digest id) const;
  Verdict test(Digest id, TimeMs now_ms) const;
  // Returns `duplicate` for a known id, and renews it if `at_ms` is within the window and later
  // than before.
  Verdict insert(Digest id);
  Verdict insert(Digest id, TimeMs at_ms);
  Verdict test_and_insert(Digest id);
  Verdict test_and_insert(Digest id, TimeMs at_ms);

  // These do the same for many ids, in order. REQUIRES: the spans are of equal size.
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  // Returns true if this many more ids need no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  void touch(Digest id) const;  // prefetches what the calls above will read

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  WindowPromise promise() const;
  WindowCounts counts() const;
  // Returns an estimate: the live shares are exact, but probes are taken for independent.
  double false_positive_rate() const;
  // Estimates from the live cells how many ids are recognised, now or as after advance(now_ms).
  std::uint64_t ids() const { return ids(now()); }
  std::uint64_t ids(TimeMs now_ms) const;
  std::uint64_t bytes() const;
  // Changes the cap, but leaves room for at least the first filter. Memory beyond a lower cap stays
  // until its ids leave the window.
  void set_max_bytes(std::uint64_t max_bytes) {
    shape_.max_bytes = std::max(max_bytes, shape_.filter_bytes());
  }
  std::size_t filters() const { return filters_.size(); }
  const SlidingShape& shape() const { return shape_; }

  // Remembers each id for the longer of the two times. Returns Errc::mismatch, and changes nothing,
  // if the shapes, the times, or the numbers or sizes of filters differ.
  Result<void> merge(const SlidingFilter& other);

  // Appends the encoding. Equal filters give equal bytes.
  void encode(Sink out) const;
  static Result<SlidingFilter> decode(ByteView in);

  // Compares shapes, times, promises and live cells. An expired cell equals a cleared one.
  bool operator==(const SlidingFilter& other) const;

 private:
  using Tick = std::uint64_t;  // since the least time that there is

  struct Filter {
    Filter(const SlidingShape& shape, std::uint64_t of_lines);
    std::uint64_t count() const { return lines.size() / kLineBytes; }  // of lines
    LineArray<std::uint8_t> lines;
    std::vector<std::uint64_t> expiring;  // live cells by the last tick of their life: a ring
    std::uint64_t live = 0;               // their sum
  };

  struct Cell {
    std::uint64_t line;  // offset of its first byte
    std::uint32_t bit;   // of the line, where the cell begins
  };
  // The hashes of the probes of an id. Each names a cell in a filter of any size.
  using Points = std::array<std::uint64_t, limits::kPlainProbes>;

  // A timer is the remaining life of a cell in ticks, including the present one; 0 if none is left.
  Tick tick_of(TimeMs time_ms) const;
  std::uint32_t timer_for(TimeMs at_ms) const;
  Cell cell_at(const Filter& filter, std::uint64_t point) const;
  std::uint32_t timer_of(const Filter& filter, const Cell& cell) const {
    return timer_of(filter, cell, tick_);
  }
  std::uint32_t timer_of(const Filter& filter, const Cell& cell, Tick tick) const;
  std::uint64_t& expiring(Filter& filter, std::uint32_t timer) const;
  bool prolong(Filter& filter, const Cell& cell, std::uint32_t timer);
  template <class Visit>
  void for_each_cell(const Filter& filter, Visit visit) const;

  void prefetch_lines(Digest id) const;
  template <class PointOf>
  bool holds(const Filter& filter, PointOf point, Tick tick) const;
  template <class PointOf>
  bool known(PointOf point, Tick tick) const;
  Tick tick_after(TimeMs now_ms) const { return tick_of(std::max(now_ms, now())); }
  Verdict test_in(Tick tick, Digest id) const;
  template <bool kRenew>
  Verdict put(Digest id, TimeMs at_ms);
  void remember(const Points& points, std::uint32_t timer);

  std::uint64_t cells_of(const Filter& filter) const { return filter.count() * line_cells_; }
  double error_of(const Filter& filter) const;
  double error_left(std::size_t filters) const;
  bool make_room(const Points& points);
  std::uint64_t lines_of_next(double left) const;
  bool open_next();
  bool open(std::uint64_t lines, double left);
  bool outlived() const;
  void shrink();
  void forget_oldest();
  void drop_empty();
  void plan();
  TimeMs kept_from() const;
  void write_filter(Writer& w, const Filter& filter) const;
  Result<void> read_filter(Reader& in);

  SlidingShape shape_;  // valid(); only the cap changes
  std::uint64_t tick_ms_;
  std::uint32_t line_cells_;

  WindowTime time_;
  Tick tick_;                    // of now()
  std::uint64_t slot_;           // of tick_, in the rings
  std::vector<Filter> filters_;  // the oldest first, never empty; only the last takes ids
  TimeMs kept_from_ms_;          // what was accepted earlier may have been forgotten early
  WindowCounts counts_;          // except backward_steps
  std::uint64_t most_live_ = 0;  // where the newest filter closes; follows from the older ones
};

}  // namespace semel::window_internal

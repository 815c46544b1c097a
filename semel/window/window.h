// Window: what every structure here is, which remembers an id for as long as promised, then forgets
// it. Tally and sift choose one by configuration.
//
//   forgetful_filter.h   a few bits an id, in lanes that rotate; may take a new id for a duplicate
//   sliding_filter.h     the same with a timer in every cell, for events that come late
//   client_window.h      ids (client, sequence); exact, and smaller than a filter
//   exact_window.h       full digests; exact, and 10 times as large
//   endless_filter.h     bits that are never forgotten, in filters that grow with their number
//   endless_set.h        digests that are never forgotten
//
// Promise   Time is handed in by advance(). An id accepted at time a is recognised while
//           now() - a <= window. It is forgotten at some time after that, not far away: promise()
//           says up to when. Nothing but a window that is full and was told to forget early breaks
//           this; then promise() and counts() say so.
// Time      A step backwards is clamped: time stays, and the step is counted. An id may be handed in
//           with a time of its own, `at`, for events that come late: it is remembered as if it had
//           been accepted then. A time after now() counts as now(). What was not seen and is already
//           outside of the window is `stale`: there is no telling whether it came before.
// Duplicates do not renew an id: test_and_insert() leaves what it recognises as it was. insert() does
//           renew: it remembers the id from this time on, whether or not it was known.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

#include "semel/core/clock.h"

namespace semel {

enum class Verdict : std::uint8_t {
  fresh,      // not seen within the window; now remembered, unless it was only a test
  duplicate,  // seen within the window, or taken for one that was
  stale,      // too old to judge; nothing changed
  full,       // no room, and told to refuse; nothing changed
};

// What a window does with a new id for which the memory that it may use has no room.
enum class WhenFull : std::uint8_t {
  refuse = 0,  // Verdict::full, until the oldest ids leave the window
  forget = 1,  // the oldest ids go before their time
};

inline constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();

struct Promise {
  TimeMs window_ms;            // as asked for
  TimeMs kept_from_ms;         // every id accepted at this time or later is recognised now
  TimeMs forgotten_before_ms;  // none accepted before this time is, but for false positives
  bool operator==(const Promise&) const = default;
};

// What happened since the window was made.
struct WindowCounts {
  std::uint64_t backward_steps = 0;  // advance() to a time before now()
  std::uint64_t refused = 0;         // ids answered with Verdict::full
  std::uint64_t stale = 0;           // ids answered with Verdict::stale by an insert of either kind
  std::uint64_t forgotten_early = 0;  // ids that left while still inside the window
  bool operator==(const WindowCounts&) const = default;
};

template <class W>
concept Window = requires(W window, const W& seen, typename W::Id id, TimeMs time,
                          std::span<const typename W::Id> ids, std::span<Verdict> verdicts) {
  { seen.test(id) } -> std::same_as<Verdict>;
  { window.insert(id) } -> std::same_as<Verdict>;
  { window.insert(id, time) } -> std::same_as<Verdict>;
  { window.test_and_insert(id) } -> std::same_as<Verdict>;
  { window.test_and_insert(id, time) } -> std::same_as<Verdict>;

  // The same for many ids, in order: an id that comes twice is a duplicate the second time.
  // REQUIRES: the spans are of equal size.
  { seen.test(ids, verdicts) } -> std::same_as<void>;
  { window.insert(ids, verdicts) } -> std::same_as<void>;
  { window.test_and_insert(ids, verdicts) } -> std::same_as<void>;

  { window.advance(time) } -> std::same_as<void>;
  { seen.now() } -> std::same_as<TimeMs>;
  { seen.promise() } -> std::same_as<Promise>;
  { seen.counts() } -> std::same_as<WindowCounts>;
  {
    seen.false_positive_rate()
    } -> std::same_as<double>;                      // that a new id is called a duplicate, now
  { seen.bytes() } -> std::same_as<std::uint64_t>;  // all memory that the window holds
};

// Time as a window sees it: it never runs backwards.
class WindowTime {
 public:
  explicit WindowTime(TimeMs now_ms) : now_ms_(now_ms) {}

  TimeMs now() const { return now_ms_; }
  std::uint64_t backward_steps() const { return backward_steps_; }

  // Whether time moved.
  bool advance(TimeMs now_ms) {
    if (now_ms < now_ms_) ++backward_steps_;
    if (now_ms <= now_ms_) return false;
    now_ms_ = now_ms;
    return true;
  }

  bool operator==(const WindowTime&) const = default;

 private:
  TimeMs now_ms_;
  std::uint64_t backward_steps_ = 0;
};

// Times of any 64-bit value come from outside: their difference must not overflow.
constexpr bool older_than(TimeMs time_ms, TimeMs window_ms, TimeMs now_ms) {
  TimeMs edge_ms = 0;
  return !__builtin_sub_overflow(now_ms, window_ms, &edge_ms) && time_ms < edge_ms;
}

// The difference, or the earliest time that there is. REQUIRES: by_ms >= 0.
constexpr TimeMs earlier_by(TimeMs time_ms, TimeMs by_ms) {
  TimeMs difference_ms = 0;
  return __builtin_sub_overflow(time_ms, by_ms, &difference_ms) ? std::numeric_limits<TimeMs>::min()
                                                                : difference_ms;
}

// The sum, or the latest time that there is.
constexpr TimeMs later_by(TimeMs time_ms, TimeMs by_ms) {
  TimeMs sum_ms = 0;
  return __builtin_add_overflow(time_ms, by_ms, &sum_ms) ? std::numeric_limits<TimeMs>::max()
                                                         : sum_ms;
}

}  // namespace semel

// Window: remembers ids for as long as promised, then forgets them.
//
//   Window::Goal goal{.window_ms = 600'000, .fpr = 1e-6};
//   Window window = SEMEL_TRY(Window::make(goal, now_ms));
//   if (window.test_and_insert(id) == Verdict::fresh) take(event);
//
// Contract  advance() hands in the time. An id that was accepted at time a is recognised while
//           now() - a <= window_ms. It is forgotten some time after that; promise() has the latest
//           time. Only a full window that was told to forget early breaks this promise, and then
//           promise() and counts() say so. Ids are digests: hash/hasher.h makes them.
// Structures Goal::structure chooses how ids are kept:
//             forgetful  lanes of bits that rotate. A new id is taken for a duplicate with a
//                        probability of at most `fpr`.
//             timers     a timer in each cell, for events that come late. Takes 4 to 6 times as
//                        much memory, and forgets each id at its own time.
//             exact      full digests, no error.
//           With window_ms = kForever nothing is forgotten: forgetful is a series of Bloom filters
//           that grows, exact is one table. Timers need an end.
// Time      Time never runs backwards: a step back is counted and changes nothing else. A late
//           event may bring its own time, `at_ms`. Its id is remembered as if it had been accepted
//           then. A time after now() counts as now(). An id that was not seen, and whose time is
//           already outside of the window, is `stale`. If a forgetful or exact window has forgotten
//           ids early, an id with a time before promise().kept_from_ms is stale as well, because it
//           may be one of them.
// Duplicates do not renew an id: test_and_insert() leaves a known id as it was. insert() renews it.
// Merge     The union of two windows: an id is recognised as long as one of the two would do so.
//           Commutative, associative, idempotent. The window that lags is first advanced to the
//           time of the other, as advance() does it.
//             exact      merges with any window of its goal. Errc::full if both do not fit into
//                        max_bytes.
//             timers     merges while both have the same filters inside. They do as long as all
//                        sites together are given no more than `ids` in a window.
//             forgetful  merges while both have the same lanes inside. They do once both are older
//                        than two windows, as long as all sites together are given no more than a
//                        seventh of `ids` in each seventh of a window. Without an end it does not
//                        merge: GrowBloomSeries (crdt/series.h) has a chain of filters for each
//                        site, and does.
//           A merged filter holds the ids of all sites. It keeps to `fpr` under the same
//           conditions. A burst beyond them raises the error until its ids have left the window.
//           Two sites that were given `ids` each then err at a rate of up to 0.05 for an `fpr` of
//           1e-3, and up to 0.003 for 1e-6. false_positive_rate() is the present rate. New ids go
//           to another filter or lane, and add no more than `fpr`.
// Memory    Bytes per id, for a million ids that come evenly in a window:
//
//             error       1e-3   1e-6
//             forgetful    3.1    6.0
//             timers        18     35
//             exact         31     31
//
// Cost      One id takes 0.1 us in a batch, because cache misses overlap. A single call takes 0.2
//           to 0.4 us.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/window_v1.md. Equal windows give equal bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "semel/core/api.h"
#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/core/sink.h"
#include "semel/hash/digest.h"

namespace semel {

namespace window_internal {
class ExactWindow;
}

enum class Verdict : std::uint8_t {
  fresh,      // not seen within the window; now remembered, unless it was only a test
  duplicate,  // seen within the window, or taken for an id that was
  stale,      // too old to judge; nothing changed
  full,       // `max_bytes` leaves no room, and the window refuses; nothing changed
};

// The answer of a full window to a new id.
enum class OnFull : std::uint8_t {
  refuse = 0,  // Verdict::full, until the oldest ids leave the window
  forget = 1,  // the oldest ids are forgotten early
};

inline constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();
inline constexpr TimeMs kForever = std::numeric_limits<TimeMs>::max();

struct WindowPromise {
  TimeMs window_ms;            // as asked for
  TimeMs kept_from_ms;         // every id accepted at this time or later is recognised now
  TimeMs forgotten_before_ms;  // no id accepted earlier is recognised, except by error
  bool operator==(const WindowPromise&) const = default;
};

// Counts since the window was made or decoded.
struct WindowCounts {
  std::uint64_t backward_steps = 0;   // calls of advance() with a time before now()
  std::uint64_t refused = 0;          // ids answered with Verdict::full
  std::uint64_t stale = 0;            // ids that an insert of either kind answered with stale
  std::uint64_t forgotten_early = 0;  // ids that left while still inside the window
  bool operator==(const WindowCounts&) const = default;
};

class SEMEL_API Window {
 public:
  enum class Structure : std::uint8_t { forgetful = 0, timers = 1, exact = 2 };

  struct Goal {
    Structure structure = Structure::forgetful;
    TimeMs window_ms = kForever;
    double fpr = 0;                    // the bound of the error; exact: 0
    std::uint64_t ids = 1 << 16;       // expected in a window, or at first; more may come
    std::uint64_t max_bytes = kNoCap;  // kForever has no cap
    OnFull on_full = OnFull::refuse;
    HashId hash = {};
    // Only for `exact`: forgets an id in the first millisecond outside of the window. Otherwise an
    // id is forgotten up to a quarter of the window later, and takes two thirds of the memory.
    bool punctual = false;
    bool operator==(const Goal&) const = default;
  };

  // Errors: Errc::invalid for a goal that contradicts itself or the comments above; Errc::limit for
  // one that is impossible, or whose first table is larger than max_bytes.
  static Result<Window> make(const Goal& goal, TimeMs now_ms);

  // Returns the longest time for which an id is recognised after it was handed in. An id with an
  // earlier time of its own (`at_ms`) is that much older by then. REQUIRES: make() succeeds.
  static TimeMs longest_ms(const Goal& goal);

  // A window that was moved from can only be assigned to, copied, moved and destroyed.
  Window(const Window& other);
  Window(Window&& other) noexcept;
  Window& operator=(const Window& other);
  Window& operator=(Window&& other) noexcept;
  ~Window();

  // REQUIRES for all ids: their digests were made by goal().hash.

  // Returns fresh or duplicate, now or as after advance(now_ms). The time is that of the question,
  // not of the id.
  Verdict test(Digest id) const;
  Verdict test(Digest id, TimeMs now_ms) const;
  // Remembers the id from `at_ms` on, even if it is known. Returns duplicate for a known id.
  Verdict insert(Digest id) { return insert(id, now()); }
  Verdict insert(Digest id, TimeMs at_ms);
  // Remembers the id if it is new.
  Verdict test_and_insert(Digest id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(Digest id, TimeMs at_ms);

  // These do the same for many ids, in order: an id that comes twice is a duplicate the second
  // time. REQUIRES: the spans are of equal size.
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void insert(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
              std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                       std::span<Verdict> verdicts);

  // Prefetches what the calls above will read.
  void touch(Digest id) const;

  // Makes this the union of both; counts() stays. The goals may differ in max_bytes and on_full:
  // each site decides about its own memory, and keeps its own. Errors change nothing:
  // Errc::mismatch for another goal, or for other filters or lanes inside; Errc::full beyond
  // max_bytes; Errc::unsupported for a forgetful window without an end.
  Result<void> merge(const Window& other);

  void advance(TimeMs now_ms);
  TimeMs now() const;
  WindowPromise promise() const;
  WindowCounts counts() const;
  double false_positive_rate() const;  // that a new id is taken for a duplicate, now
  // Returns how many ids are remembered, now or as after advance(now_ms): an estimate for filters.
  std::uint64_t ids() const { return ids(now()); }
  std::uint64_t ids(TimeMs now_ms) const;
  std::uint64_t bytes() const;  // all memory that the window holds

  const Goal& goal() const;
  // Changes the cap. Memory beyond a lower cap stays until its ids leave the window. A cap that is
  // too low for the structure becomes the lowest that it can have; goal() shows it.
  // REQUIRES: goal().window_ms != kForever.
  void set_max_bytes(std::uint64_t max_bytes);
  // Returns true if this many more ids need no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  void encode(Sink out) const;
  static Result<Window> decode(ByteView in);

  // Compares goals and what is remembered, not counts().
  bool operator==(const Window& other) const;

 private:
  friend class window_internal::ExactWindow;  // inside()
  struct SEMEL_LOCAL Body;
  explicit Window(std::unique_ptr<Body> body);

  std::unique_ptr<Body> body_;  // null after a move
};

}  // namespace semel

// ForgetfulFilter: remembers ids in a few bits each for a window of time, then forgets them.
//
// Contract  A Window (window/window.h). An id within the window is always recognised. A new id is
//           taken for a duplicate with the probability false_positive_rate(), which never exceeds
//           the goal. An id is forgotten within one and a half periods after it left the window, or
//           within one window if lanes are short; promise() has the exact time. A period is
//           window / past lanes.
//           An id goes to the newest lane, and a check asks all lanes at once (lane_array.h). When
//           a period is over or its lane is full, a new lane begins. A lane is dropped when all of
//           its ids are older than the window.
// Growth    The first table of lanes has room for `ids` in a window, if they come evenly. Silence
//           uses up lanes too, so an intermittent load may need up to twice as much room. When more
//           ids come, a new table with room for the present rate takes the new ids; the old one is
//           queried until its ids have left the window, then freed. When far fewer ids come, a
//           smaller table follows, unless the cap would not allow the larger one again. Each new
//           table takes half of the error that is left, so that the sum stays below the goal. After
//           a merge the sum may exceed the goal. The next table then gets the least share that it
//           could have had without the merge.
//           max_bytes bounds the memory of all tables. Beyond it ids are refused, or the oldest are
//           forgotten early, as chosen.
// Cost      A check reads one to four cache lines (layouts: filter/bloom_filter.h) for each table.
//           Usually there is one table. A lane is cleared a piece of 512 KiB at a time
//           (LaneTable); it is cleared in one go only if a period has fewer calls than there are
//           pieces. Making a table takes no time, whatever its size: the system clears its pages as
//           they are used (zeroed.h).
// Memory    Bits per id in the window at an error of 1e-3, one table (docs/math/forgetful.md has
//           more):
//
//             lanes              8     16     32     64
//             plain           21.4   21.5   22.3   23.4
//             blocked3        23.5   26.5   35.0   58.5
//             blocked2        26.8   34.6   59.3    175
//
// Merge     The union of two filters with the same goal (max_bytes and on_full may differ), time,
//           tables and lane times. Sites whose lanes rotate by time alone have these in common.
//           Commutative, associative, idempotent
//           (tests/laws).
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/forgetful_v1.md. counts() belong to this object alone: they are not part
//           of its state, not written, not compared and not merged.
// Source    Subramanyam, Gupta, Leslie & Wang, 'Idempotent distributed counters using a Forgetful
//           Bloom Filter', ICCAC 2015, with one lane for an id and rotation by fill. The rules and
//           the schedule of the paper are in semel/papers/forgetful_bloom_filter.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/result.h"
#include "semel/core/sink.h"
#include "semel/window/internal/lane_table.h"
#include "semel/window/window.h"

namespace semel::window_internal {

class ForgetfulFilter {
 public:
  using Id = Digest;

  struct Goal {
    TimeMs window_ms;
    double fpr;                    // the bound of the error
    std::uint64_t ids = 1 << 16;   // expected in a window
    std::uint32_t past_lanes = 7;  // 1 to 63
    BloomLayout layout = BloomLayout::blocked3;
    bool grows = true;  // false: there is room for `ids` and no more
    std::uint64_t max_bytes = kNoCap;
    OnFull on_full = OnFull::refuse;
    HashId hash = {};

    std::uint32_t lanes() const { return past_lanes + 1; }
    bool operator==(const Goal&) const = default;
  };

  // Makes an empty filter. The first table gets `first_share` of the error; the rest is for those
  // that may follow. Errors: Errc::invalid for a window of zero or less, an invalid error rate, no
  // ids, or a number of lanes or a layout that does not exist; Errc::limit if the first table would
  // be impossible or larger than max_bytes. REQUIRES: 0 < first_share <= 3/4.
  static Result<ForgetfulFilter> make(const Goal& goal, TimeMs now_ms, double first_share = 0.5);

  // These do what window/window.h says. REQUIRES: digests made by goal().hash.
  Verdict test(Digest id) const { return recognises(id) ? Verdict::duplicate : Verdict::fresh; }
  Verdict insert(Digest id) { return insert(id, now()); }
  Verdict insert(Digest id, TimeMs at_ms);
  Verdict test_and_insert(Digest id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(Digest id, TimeMs at_ms);
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  // Returns what test() would answer after advance(now_ms).
  Verdict test(Digest id, TimeMs now_ms) const;
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<Verdict> verdicts) const;

  // Returns true if this many more ids need no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  void touch(Digest id) const;  // prefetches what the calls above will read

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  WindowPromise promise() const;
  WindowCounts counts() const;
  double false_positive_rate() const;
  std::uint64_t bytes() const;

  // Returns the longest time for which an id is recognised after it was handed in. The last free
  // lane may stay open until the first one has left the window.
  static TimeMs longest_ms(const Goal& goal) { return later_by(goal.window_ms, goal.window_ms); }

  const Goal& goal() const { return goal_; }
  // Changes the cap. Memory beyond a lower cap stays until its ids leave the window.
  void set_max_bytes(std::uint64_t max_bytes) {
    goal_.max_bytes = max_bytes;
    cannot_grow_ = false;
  }
  TimeMs period_ms() const { return period_ms_; }
  std::uint64_t ids() const;               // a lower bound of the ids that are remembered
  std::uint64_t ids(TimeMs now_ms) const;  // ids() after advance(now_ms)
  // The oldest table comes first; the last takes the new ids.
  const std::vector<LaneTable>& tables() const { return tables_; }

  // Returns Errc::mismatch, and changes nothing, unless goal, now, tables and times of lanes are
  // the same.
  Result<void> merge(const ForgetfulFilter& other);

  // Appends the encoding. Equal states give equal bytes.
  void encode(Sink out) const;
  static Result<ForgetfulFilter> decode(ByteView in);

  bool operator==(const ForgetfulFilter& other) const;

 private:
  ForgetfulFilter(const Goal& goal, TimeMs now_ms);

  LaneTable& newest() { return tables_.back(); }
  const LaneTable& newest() const { return tables_.back(); }

  bool recognises(Digest id) const {
    for (const LaneTable& table : tables_) {
      if (table.recognises(id)) return true;
    }
    return false;
  }
  // Calls visit(table, dropped) for each table that advance(now_ms) would keep. `dropped` is the
  // number of its oldest lanes that advance() would drop.
  template <class Visit>
  void for_each_table_at(TimeMs now_ms, Visit visit) const;
  std::size_t lanes_dropped(const LaneTable& table, TimeMs now_ms) const;
  bool late(TimeMs at_ms) const;
  TimeMs promised_from() const;
  bool make_room();
  bool follow_with(std::uint64_t ids);
  bool follow_with(const LaneShape& shape, std::uint64_t lane_ids);
  void forget_expired();
  void forget_early();
  void lose(const Lane& lane);
  TimeMs next_period(TimeMs begin_ms) const;
  void begin_period() { next_period_ms_ = next_period(newest().present().begin_ms); }
  TimeMs begin_after(TimeMs end_ms, TimeMs now_ms) const;
  // Returns true if the present period goes on beyond its end, because all lanes are in use.
  bool overdue() const { return next_period_ms_ <= now(); }
  void rotate_by_time();
  void shrink();
  std::uint64_t wanted_ids() const;
  double share_of_next() const;

  Goal goal_;
  WindowTime time_;
  TimeMs period_ms_;
  TimeMs next_period_ms_ = 0;      // when the present period is over
  TimeMs kept_from_ms_;            // nothing accepted at this time or later was forgotten early
  WindowCounts counts_;            // without backward steps, which time_ counts
  std::vector<LaneTable> tables_;  // at least one
  bool cannot_grow_ = false;       // it failed, and no lane was dropped since
};

}  // namespace semel::window_internal

// ForgetfulFilter: remembers ids in a few bits each, for a window of time, and forgets them after it.
//
// Contract  A Window (window/window.h). An id within the window is always recognised; a new id is taken
//           for a duplicate with the probability false_positive_rate(), which never exceeds the goal
//           with the schedule `fill`. An id is forgotten within a period and a half after it left the
//           window, and within a window after it when lanes are short; promise() says it exactly. A
//           period is window / past lanes.
// Lanes     Ids go to the newest lane (spread 1), or to two, as the paper has it (spread 2); a check asks
//           all of them at once (window/internal/lane_array.h). When a period is over or full, a new lane begins;
//           a lane is dropped when all that this forgets is older than the window.
// Size      `ids` in a window fit the first table of lanes, if they come evenly: silence takes lanes too,
//           so that a load that comes and goes may need up to twice as many. When more come, a table
//           with room for the rate at hand follows, and takes the new ids; the one before is asked until
//           its ids have left the window, then freed. When far fewer come, a smaller one follows, unless
//           the cap would not allow the larger one again. Each new table takes half of the error that is
//           left, so that the sum stays below the goal. max_bytes bounds the memory of all; beyond it
//           ids are refused, or the oldest are forgotten early, as chosen.
// Schedules fill: as above. time: a lane for each period, whatever it holds; one table, no bound on the
//           error. paper: Algorithm 3 of the paper, which doubles the lanes and shortens the period when
//           the error comes near to the goal; it reacts after the fact, and is here to be compared.
// Cost      A check reads one to four cache lines (layouts: filter/bloom_filter.h) for each table, of
//           which there is mostly one. A lane is cleared a piece at a time (LaneTable), and in one go only
//           where a period has fewer calls than pieces: one for each 512 KiB. Making a table takes no
//           time, whatever its size: the system clears its pages as they are used (core/zeroed.h).
// Memory    Bits per id in the window at an error of 1e-3, one table, docs/math/forgetful.md has more:
//
//             lanes              8     16     32     64
//             plain           21.4   21.5   22.3   23.4
//             blocked3        23.5   26.5   35.0   58.5
//             blocked2        26.8   34.6   59.3    175
//
// Merge     Union, of two with the same goal, now, tables and times of lanes: sites that rotate by time
//           alone have them. Commutative, associative, idempotent (tests/laws).
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/forgetful_v1.md.
// Source    Subramanyam, Gupta, Leslie & Wang, 'Idempotent distributed counters using a Forgetful Bloom
//           Filter', ICCAC 2015; its faults are listed in docs/papers.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/window/internal/lane_table.h"
#include "semel/window/window.h"

namespace semel {

enum class LaneSchedule : std::uint8_t { fill = 0, time = 1, paper = 2 };

class ForgetfulFilter {
 public:
  using Id = Digest;

  struct Goal {
    TimeMs window_ms;
    double fpr;                    // the bound of the error
    std::uint64_t ids = 1 << 16;   // expected in a window
    std::uint32_t past_lanes = 7;  // N: 1 to 63 with spread 1, to 62 with spread 2
    LaneRule rule = LaneRule::newest;
    BloomLayout layout = BloomLayout::blocked3;  // with spread 2: plain
    LaneSchedule schedule = LaneSchedule::fill;
    bool grows = true;  // schedule fill: or `ids` is all that there is room for
    std::uint64_t max_bytes = kNoCap;
    WhenFull when_full = WhenFull::refuse;
    HashId hash = {};

    std::uint32_t lanes() const { return past_lanes + spread_of(rule); }
    bool operator==(const Goal&) const = default;
  };

  // Errc::invalid for a window of zero or less, an error rate that is none, no ids, or lanes, a
  // rule and a layout that do not go together; Errc::limit where the first table would be
  // impossible or larger than max_bytes.
  // `first_share` of the error is for the first table, the rest for those that may follow.
  // REQUIRES: 0 < first_share < 1.
  static Result<ForgetfulFilter> make(const Goal& goal, TimeMs now_ms, double first_share = 0.5);
  // The same with a first table of this shape in place of one for goal.ids.
  static Result<ForgetfulFilter> make(const Goal& goal, const LaneShape& shape, TimeMs now_ms);

  // As window/window.h has it. REQUIRES: digests made by goal().hash.
  Verdict test(Digest id) const { return recognises(id) ? Verdict::duplicate : Verdict::fresh; }
  Verdict insert(Digest id) { return insert(id, now()); }
  Verdict insert(Digest id, TimeMs at_ms);
  Verdict test_and_insert(Digest id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(Digest id, TimeMs at_ms);
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  // Whether so many more ids take no large block (limits::kSmallBlock).
  bool takes(std::uint64_t ids) const;

  // What test() would answer after advance(now_ms).
  Verdict test(Digest id, TimeMs now_ms) const;
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<Verdict> verdicts) const;

  void touch(Digest id) const;  // begins to load what the others will need

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  Promise promise() const;
  WindowCounts counts() const;
  double false_positive_rate() const;
  std::uint64_t bytes() const;

  // How long at most an id is recognised after it was handed in, with the schedule `fill`. The last
  // free lane may stay open until the first one has left the window.
  static TimeMs longest_ms(const Goal& goal) { return later_by(goal.window_ms, goal.window_ms); }

  const Goal& goal() const { return goal_; }
  // Changes the cap. What is beyond a lower one stays until it leaves the window.
  void set_max_bytes(std::uint64_t max_bytes) {
    goal_.max_bytes = max_bytes;
    cannot_grow_ = false;
  }
  TimeMs period_ms() const { return period_ms_; }
  std::uint64_t ids() const;               // remembered, at least
  std::uint64_t ids(TimeMs now_ms) const;  // the same after advance(now_ms)
  // From the oldest; the last takes the new ids.
  const std::vector<LaneTable>& tables() const { return tables_; }
  // When each lane of the newest table is as full as it gets.
  double full_false_positive_rate() const;

  // Errc::mismatch, and no change, unless goal, now, tables and times of lanes are the same.
  Result<void> merge(const ForgetfulFilter& other);

  // Appends the encoding to `out`. Equal states give equal bytes.
  void encode(Sink out) const;
  // The same with the counts that it was decoded with, zero if it was not: what changes nothing but
  // counts() leaves no trace.
  void encode_state(Sink out) const { encode(out, decoded_counts_); }
  // Reads one filter that fills `in` exactly; `in` may come from an enemy.
  static Result<ForgetfulFilter> decode(ByteView in);

  bool operator==(const ForgetfulFilter& other) const;  // but for counts()

 private:
  ForgetfulFilter(const Goal& goal, TimeMs now_ms);

  bool bounded() const { return goal_.schedule == LaneSchedule::fill; }
  LaneTable& newest() { return tables_.back(); }
  const LaneTable& newest() const { return tables_.back(); }

  void encode(Sink out, const WindowCounts& counted) const;
  bool recognises(Digest id) const {
    for (const LaneTable& table : tables_) {
      if (table.recognises(id)) return true;
    }
    return false;
  }
  // Calls visit(table, lanes) for each table that advance(now_ms) keeps, with how many of its oldest
  // lanes that drops.
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
  void lose(const Lane& period);
  TimeMs next_period(TimeMs begin_ms) const;
  void begin_period() { next_period_ms_ = next_period(newest().present().begin_ms); }
  TimeMs begin_after(TimeMs end_ms, TimeMs now_ms) const;
  // Whether the present period goes on beyond its end, because all lanes are in use.
  bool overdue() const { return next_period_ms_ <= now(); }
  void rotate_by_time();
  void shrink();
  void adapt();
  void use_lanes(std::uint32_t lanes);
  std::uint64_t wanted_ids() const;
  double error_left() const;

  Goal goal_;
  WindowTime time_;
  TimeMs period_ms_;
  TimeMs next_period_ms_ = 0;  // when the present one is over
  TimeMs next_check_ms_;       // schedule paper
  TimeMs kept_from_ms_;        // nothing accepted at this time or later was forgotten early
  WindowCounts counts_;        // but for backward steps, which time_ counts
  WindowCounts decoded_counts_;
  std::vector<LaneTable> tables_;  // at least one
  bool cannot_grow_ = false;       // it was tried, which takes time, and no lane was dropped since
};

static_assert(Window<ForgetfulFilter>);

}  // namespace semel

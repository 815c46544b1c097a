// ForgetfulBloomFilter: the N-FBF of the paper, one Bloom filter for each lane, with its faults
// corrected.
//
// Contract  A Window (window/window.h) that never answers `full`. Lanes rotate by time alone, so
//           nothing bounds the error: false_positive_rate() may exceed the goal.
// Rules     An id goes to the future and the present lane; the CheckRule decides which lanes a
//           check asks (forgetful_bloom_math.h). The rule `newest` writes one lane. It is the rule
//           of the product, without rotation by fill.
// Schedules time: a lane for each period of window / periods covered.
//           algorithm_3: as `time`, and once a second the filter compares its rate with the goal.
//           At 0.9 of it the lanes double and the period shrinks by a second; at 0.1 it loses a
//           lane and the period grows by a second. Unlike the printed algorithm, a lane is dropped
//           by its age alone, and the period stays long enough for the lanes to cover the window.
// Cost      A check probes every lane: O(lanes * probes).
// Memory    positions / 8 bytes for each lane in use.
// Threads   const members may run at once; any other call needs the object to itself.
// Source    Subramanyam, Gupta, Leslie & Wang, 'Idempotent distributed counters using a Forgetful
//           Bloom Filter', ICCAC 2015. Its filter word by word is in bench/papers/paper_filter.h.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "semel/bits/internal/bit_array.h"
#include "semel/core/result.h"
#include "semel/papers/forgetful_bloom_math.h"
#include "semel/window/internal/id_window.h"

namespace semel::papers {

enum class LaneSchedule : std::uint8_t { time, algorithm_3 };

class ForgetfulBloomFilter {
 public:
  using Id = Digest;

  struct Goal {
    TimeMs window_ms;
    double fpr;                   // the error of the shape, and the aim of algorithm_3
    std::uint64_t ids = 1 << 16;  // expected in a window
    std::uint32_t past_lanes = 1;
    CheckRule rule = CheckRule::pairs_or_oldest;
    LaneSchedule schedule = LaneSchedule::time;

    std::uint32_t lanes() const { return past_lanes + spread_of(rule); }
    bool operator==(const Goal&) const = default;
  };

  // Makes an empty filter with room for goal.ids. Errors: Errc::invalid for a window of zero or
  // less, an invalid error rate, no ids, no past lane, or more than limits::kLanes lanes;
  // Errc::limit for more than limits::kFilterBits.
  static Result<ForgetfulBloomFilter> make(const Goal& goal, TimeMs now_ms);
  // Makes an empty filter of this shape in place of the one for goal.ids.
  // Errors: Errc::invalid as above, and for a shape that is not plain or has other lanes.
  static Result<ForgetfulBloomFilter> make(const Goal& goal, const LaneShape& shape, TimeMs now_ms);

  Verdict test(Digest id) const { return recognises(id) ? Verdict::duplicate : Verdict::fresh; }
  Verdict insert(Digest id) { return insert(id, now()); }
  Verdict insert(Digest id, TimeMs at_ms);
  Verdict test_and_insert(Digest id) { return test_and_insert(id, now()); }
  Verdict test_and_insert(Digest id, TimeMs at_ms);
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts);
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  void advance(TimeMs now_ms);
  TimeMs now() const { return time_.now(); }
  WindowPromise promise() const;
  WindowCounts counts() const;
  double false_positive_rate() const;
  std::uint64_t bytes() const;

  const Goal& goal() const { return goal_; }
  TimeMs period_ms() const { return period_ms_; }
  std::size_t lanes() const { return lanes_.size(); }

  bool operator==(const ForgetfulBloomFilter& other) const;  // compares all but counts()

 private:
  // The ids of a period, and the times at which they came.
  struct Period {
    static constexpr TimeMs kNever = std::numeric_limits<TimeMs>::max();

    TimeMs begin_ms = 0;
    TimeMs end_ms = 0;  // no id of the period was accepted after this
    TimeMs first_ms = kNever;
    std::uint64_t ids = 0;

    bool operator==(const Period&) const = default;
  };
  struct Lane {
    Period period;  // of the ids that are its own
    bool odd;       // an odd lane of split_pairs has hash functions of its own
    BitArray bits;

    bool operator==(const Lane&) const = default;
  };

  ForgetfulBloomFilter(const Goal& goal, const LaneShape& shape, TimeMs now_ms);

  std::size_t spread() const { return spread_of(goal_.rule); }
  Lane& present() { return lanes_[lanes_.size() - spread()]; }
  const Lane& present() const { return lanes_[lanes_.size() - spread()]; }
  // Returns the period whose ids are forgotten when the oldest lane is dropped.
  const Period& next_to_forget() const {
    return carries(goal_.rule) ? carried_ : lanes_.front().period;
  }
  bool in_lane(const Lane& lane, Digest id) const;
  bool recognises(Digest id) const;
  bool late(TimeMs at_ms) const;
  TimeMs promised_from() const { return earlier_by(now(), goal_.window_ms); }

  void append_lane(TimeMs begin_ms);
  void rotate(TimeMs end_ms, TimeMs begin_ms);
  void rotate_by_time();
  void forget_expired();
  void begin_period();
  bool overdue() const { return next_period_ms_ <= now(); }
  void adapt();

  Goal goal_;
  LaneShape shape_;
  WindowTime time_;
  std::uint32_t most_lanes_;
  TimeMs period_ms_;
  TimeMs next_period_ms_ = 0;  // when the present period ends
  TimeMs next_check_ms_;       // of algorithm_3
  std::uint64_t stale_ = 0;
  bool newest_odd_ = false;
  Period carried_;          // spread 2: the period before the oldest lane's own
  std::deque<Lane> lanes_;  // the oldest first; with spread 2 the future lane last
};

static_assert(window_internal::IdWindow<ForgetfulBloomFilter>);

}  // namespace semel::papers

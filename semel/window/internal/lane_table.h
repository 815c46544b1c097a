// LaneTable: one forgetful filter of fixed size: a ring of lanes, the time of each, and the rule.
//
//   columns of the array      0    1    2    3    4    5    6    7
//                           [ 9 ][10 ][11 ][   ][   ][ 6 ][ 7 ][ 8 ]      period of each lane
//                                   ^ newest                ^ oldest
//
// Contract  An id that is inserted is recognised until the lane is dropped which dropping would forget
//           it: see `Lane`. Nothing is dropped, rotated or swept unless the caller says so or the header
//           of the call does.
// Sweeping  A dropped lane is empty at once. Its column is cleared when it is used again: a part with
//           each insert, so that it is done when a quarter of the new lane is full, and a part with each
//           sweep_until().
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/limits.h"
#include "semel/window/internal/forgetful_math.h"
#include "semel/window/internal/lane_array.h"

namespace semel {

// A lane, and the period in which it took the ids that are its own. With spread 2 it also holds those of
// the period before, and the newest lane, the future one, has no period yet.
struct Lane {
  static constexpr TimeMs kNever = std::numeric_limits<TimeMs>::max();

  TimeMs begin_ms = 0;  // of the period
  // No id of the period was accepted after this. Until it ends: its beginning, or, if it goes on for
  // longer than it should, the time of its last id.
  TimeMs end_ms = 0;
  TimeMs first_ms = kNever;  // nor any before this
  std::uint64_t ids = 0;     // accepted in the period
  std::uint64_t ones = 0;    // bits of the lane that are set, by ids of either period

  bool operator==(const Lane&) const = default;
};

class LaneTable {
 public:
  // `lane_ids` is what a period has room for. REQUIRES: shape.valid(), at least spread + 1 lanes, and
  // plain unless the spread is 1.
  LaneTable(const LaneShape& shape, LaneRule rule, std::uint64_t lane_ids, TimeMs begin_ms);

  bool recognises(Digest id) const {
    return any_lane() ? array_.test(id, live_) != 0 : recognises_by_rule(id);
  }
  // Sets found[i] for those that are recognised, and leaves the others.
  void recognises(std::span<const Digest> ids, std::span<bool> found,
                  std::size_t dropped = 0) const;
  // As if so many of the oldest lanes had been dropped.
  bool recognises(Digest id, std::size_t dropped) const {
    return holds(found(id, columns_from(dropped)), dropped);
  }
  void touch(Digest id) const { array_.touch(id); }
  void touch_for_test(Digest id) const { array_.touch_for_test(id); }

  void insert(Digest id, TimeMs at_ms);
  // False if the id was recognised, and left as it was.
  bool test_and_insert(Digest id, TimeMs at_ms);

  // Whether the present period has no room for another id.
  bool period_full() const;
  // Whether it certainly has room for so many.
  bool period_takes(std::uint64_t ids) const;

  // Ends the present period with this time as the last of its ids, and begins another. What is left of
  // a sweep is done first: how far one has come is not encoded, so that nothing may depend on it.
  // REQUIRES: can_rotate().
  void rotate(TimeMs end_ms, TimeMs begin_ms);
  bool can_rotate() const { return lanes_.size() < usable_; }

  // Works off what is left of a sweep, as far as it should be when so great a share of the period has
  // gone by; but no more than is done in a fraction of a millisecond.
  void sweep_until(double share_of_period);
  bool sweeping() const { return array_.sweeping(); }
  void finish_sweep() { array_.sweep(array_.lines_left()); }

  // What dropping the oldest lane forgets: the ids of this lane's period. With a rule that carries it is
  // the one before the oldest, else the oldest itself. After it those of lanes().
  const Lane& next_to_forget() const { return carries(rule_) ? carried_ : lanes_.front(); }
  bool can_drop() const { return lanes_.size() > spread_of(rule_); }
  void drop_oldest();  // REQUIRES: can_drop()

  const LaneShape& shape() const { return array_.shape(); }
  LaneRule rule() const { return rule_; }
  std::uint64_t lane_ids() const { return lane_ids_; }
  std::uint64_t capacity() const;  // ids in a window, when lanes rotate because they are full
  // From the oldest. The present one is present(); after it comes, with spread 2, the future one.
  const std::vector<Lane>& lanes() const { return lanes_; }
  const Lane& present() const { return lanes_[lanes_.size() - spread_of(rule_)]; }

  // No more than so many lanes are used. REQUIRES: spread + 1 <= lanes <= shape().lanes.
  void limit_lanes(std::uint32_t lanes) { usable_ = lanes; }
  std::uint32_t usable_lanes() const { return usable_; }

  // That are remembered, at least; one inserted twice counts twice.
  std::uint64_t ids(std::size_t dropped = 0) const;
  TimeMs first_ms() const;    // the least time of an id that is remembered; kNever if there is none
  double rate() const;        // of false positives, now
  double paper_rate() const;  // the same by equation 3 of the paper. REQUIRES: spread 2
  std::uint64_t bytes() const {
    return shape().bytes() + sizeof *this + limits::kLanes * sizeof(Lane);
  }

  // The present period has ids up to this time.
  void prolong(TimeMs end_ms) { open_period().end_ms = end_ms; }
  // Ends the present period for good: from now on the table is only asked.
  void close(TimeMs end_ms) { open_period().end_ms = end_ms; }

  // Errc::mismatch, and no change, unless shape, rule and the times of the lanes are the same.
  Result<void> check_mergeable(const LaneTable& other) const;
  void merge(const LaneTable& other);  // REQUIRES: check_mergeable(other)

  // A part of docs/formats/forgetful_v1.md.
  void encode(Sink out) const;
  static Result<LaneTable> decode(Reader& in, BloomLayout layout, LaneRule rule, TimeMs now_ms);

 private:
  std::uint32_t column(std::size_t lane) const {
    return static_cast<std::uint32_t>((oldest_ + lane) % shape().lanes);
  }
  bool any_lane() const { return rule_ == LaneRule::newest || rule_ == LaneRule::any; }
  bool recognises_by_rule(Digest id) const;
  std::uint64_t columns_from(std::size_t lane) const;  // of this lane and of those after it
  void update_live() { live_ = columns_from(0); }
  std::uint64_t by_age(std::uint64_t columns) const;
  bool holds(std::uint64_t columns, std::size_t dropped) const;
  std::uint64_t found(Digest id, std::uint64_t columns) const;
  void count(TimeMs at_ms);
  void sweep_for_insert();
  Lane& open_period() { return lanes_[lanes_.size() - spread_of(rule_)]; }
  std::vector<double> period_ids() const;
  void append_lane(TimeMs begin_ms);

  LaneArray array_;
  LaneRule rule_;
  std::uint32_t usable_;  // lanes
  std::uint64_t lane_ids_;
  std::uint64_t ones_limit_;  // more than this in a newest lane, and it holds more than it counts
  std::uint64_t sweep_step_;  // lines for an insert
  std::uint64_t sweep_owed_ = 0;
  std::uint32_t oldest_ = 0;  // column
  std::uint64_t live_ = 0;    // columns in use
  std::uint64_t dirty_ = 0;   // columns not in use that have been, and are not cleared
  std::uint64_t odd_ = 0;     // columns of lanes with odd numbers: those have other hash functions
  bool newest_odd_ = false;   // only with split pairs
  std::vector<Lane> lanes_;   // from the oldest
  Lane carried_;              // spread 2: the period before the oldest lane's
};

}  // namespace semel
